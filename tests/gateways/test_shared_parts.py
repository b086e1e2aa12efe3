"""What drivers share: signatures, amounts, and forms."""

import pytest

from gateways.base import BadNotice
from gateways.config import private_key, public_key
from gateways.signatures import is_signature, sign
from gateways.upstream import read_form
from runtime import money
from tests.upstreams.loopback import key_pair

OURS, THEIRS = key_pair("ours"), key_pair("theirs")
TEXT = b"amount=100.00"


AMOUNTS = ("100", "100.0", "100.00", "100.0000")  # one amount
NO_AMOUNTS = (
    *(
        "",
        "100.001",
        "99.9999",
        "100.00001",
        "-100.00",
        "+100",
        "1E2",
        "1e2",
        "nan",
        "100,00",
        "１００",
        " 100",
        "100.",
    ),
    *("None", "9" * 14),
)
NO_FORMS = (b"a=1&a=2", b"a=%ff", b"a=\xff", b"&".join(b"%d=1" % at for at in range(200)))


def test_a_signature_is_valid_whole_and_for_its_text_and_key_only():
    signature, public = sign(private_key(OURS[0]), TEXT), public_key(OURS[1])
    assert is_signature(public, TEXT, signature)
    assert not is_signature(public, TEXT + b"0", signature)
    assert not is_signature(public_key(THEIRS[1]), TEXT, signature)
    for other in ("", signature[:-1], signature[:-100], "é" * 344, None):
        assert not is_signature(public, TEXT, other)


def test_an_amount_may_be_written_in_several_ways_and_any_other_text_is_none():
    assert [money.fen(text) for text in AMOUNTS] == [10_000] * len(AMOUNTS)
    for text in NO_AMOUNTS:
        with pytest.raises(ValueError, match=r"fen|amount"):
            money.fen(text)


def test_a_form_that_can_be_read_in_two_ways_or_not_at_all_is_refused():
    for raw in NO_FORMS:
        with pytest.raises(BadNotice):
            read_form(raw)
