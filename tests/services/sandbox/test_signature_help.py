"""The explainer and the check of requests agree on every request, and no input stops it."""

import json
from urllib.parse import urlencode

from hypothesis import given, settings
from hypothesis import strategies as st

from gateways.epay_protocol import md5_signature, signed_text
from services.sandbox.signature_help import epay
from services.sandbox.signature_help.explanation import Keys
from services.sandbox.signature_help.merchant_api import explain
from tests.wrong_signers import CALLBACK, SECRET, hexed

KEYS = Keys("demo", (SECRET,), (CALLBACK,), ("ended",))
NAMES = st.sampled_from(["a", "B", "a_b", "a1", "api_key", "timestamp", "nonce", "signature", "cny_amount"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
BODIES = st.dictionaries(NAMES, VALUES, max_size=5).map(lambda body: json.dumps(body).encode())
QUERIES = st.text("a=1&%F0 +\ufffd", max_size=12)


@settings(deadline=None, max_examples=30)
@given(body=BODIES | st.binary(max_size=20), query=QUERIES, theirs=st.none() | st.text(max_size=20))
def test_the_lines_are_those_of_the_signed_text(body, query, theirs):
    explanation = explain("/merchant/createOrder", body, query, KEYS, theirs=theirs, signature="x")
    assert explanation.refused or explanation.text == "\n".join(line for line, _ in explanation.lines)
    right = hexed(explanation.text)
    assert explanation.refused or explain("/merchant/createOrder", body, query, KEYS, signature=right).holds
    assert explanation.refused or not explanation.holds


def test_a_request_with_thousands_of_values_is_explained_without_a_search():
    body = json.dumps({f"a{number}": number for number in range(5_000)}).encode()
    explanation = explain("/merchant/createOrder", body, "", KEYS, signature="x")
    assert (explanation.holds, explanation.mistakes, len(explanation.lines)) == (False, (), 5_001)


FIELDS = st.dictionaries(
    st.sampled_from(["pid", "money", "name", "param", "sign_type", "notify_url", "a", "B", "a1"]),
    st.text(max_size=8) | st.sampled_from(["", " ", "a&money=1", "http://x/?a=1&b=2"]),
    min_size=1,
)


@settings(deadline=None, max_examples=30)
@given(fields=FIELDS, theirs=st.none() | st.text(max_size=20))
def test_the_lines_of_an_epay_request_are_those_of_the_signed_text(fields, theirs):
    signed = urlencode(fields | {"sign": md5_signature(fields, "k")})
    explanation = epay.explain(f"/submit.php?{signed}", typed="k", theirs=theirs)
    assert explanation.text == signed_text(fields) == "&".join(line for line, _ in explanation.lines)
    assert explanation.holds
    assert epay.explain(f"/submit.php?{signed}", typed="k", theirs=theirs, signature="0" * 32).holds is False


@settings(deadline=None, max_examples=50)
@given(sent=st.text("pidsgn=&?%F0+/: \ufffd", max_size=30), typed=st.text(max_size=10), rsa=st.booleans())
def test_no_epay_input_stops_the_explainer(sent, typed, rsa):
    for text in (sent, f"pid=1&{sent}&sign=AA==&sign_type={'RSA' if rsa else 'MD5'}"):
        explanation = epay.explain(text, typed=typed, theirs=sent)
        assert explanation.refused or explanation.verdict.text
