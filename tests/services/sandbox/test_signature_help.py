"""The explainer and the check of requests agree on every request, and no input stops it."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from services.sandbox.signature_help import explain
from services.sandbox.signature_help.recipe import Keys
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


@settings(deadline=None, max_examples=60)
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
