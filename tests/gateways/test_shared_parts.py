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


def test_a_signature_is_valid_for_its_text_and_key_only():
    signature = sign(private_key(OURS[0]), TEXT)
    assert is_signature(public_key(OURS[1]), TEXT, signature)
    assert not is_signature(public_key(OURS[1]), TEXT + b"0", signature)
    assert not is_signature(public_key(THEIRS[1]), TEXT, signature)


@pytest.mark.parametrize(
    "cut", [lambda _: "", lambda given: given[:-1], lambda given: given[:-100], lambda _: "é" * 344, lambda _: None]
)
def test_part_of_a_signature_or_another_text_is_none(cut):
    assert not is_signature(public_key(OURS[1]), TEXT, cut(sign(private_key(OURS[0]), TEXT)))


@pytest.mark.parametrize("text", ["100", "100.0", "100.00", "100.0000"])
def test_the_same_amount_may_be_written_in_several_ways(text):
    assert money.fen(text) == 10_000


@pytest.mark.parametrize(
    "text",
    [
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
        "None",
        "9" * 14,
    ],
)
def test_any_other_text_is_no_amount(text):
    with pytest.raises(ValueError, match=r"fen|amount"):
        money.fen(text)


@pytest.mark.parametrize("raw", [b"a=1&a=2", b"a=%ff", b"a=\xff", b"&".join(b"%d=1" % at for at in range(200))])
def test_a_form_that_can_be_read_in_two_ways_or_not_at_all_is_refused(raw):
    with pytest.raises(BadNotice):
        read_form(raw)
