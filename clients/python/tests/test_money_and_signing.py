"""Amounts and the published signature vectors."""

import json
from decimal import Decimal
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from tillbook_client import Client, fen, yuan
from tillbook_client.money import amount_text
from tillbook_client.signing import sign, string_to_sign

PUBLISHED = json.loads((Path(__file__).parents[3] / "docs" / "signature-vectors.json").read_text("utf-8"))


@pytest.mark.parametrize("vector", PUBLISHED["vectors"], ids=lambda vector: vector["name"])
def test_every_published_vector_is_valid(vector):
    body = json.loads(vector["body"] or "{}", parse_int=str, parse_float=str)
    text = string_to_sign(vector["endpoint"], body, dict(parse_qsl(vector["query"])))
    assert text == vector["string_to_sign"]
    assert sign(PUBLISHED["secret"], text) == vector["signature"]


def test_numbers_are_signed_as_json_writes_them():
    assert string_to_sign("x", {"a": 1, "b": True, "c": None, "d": ["", {"e": 2}]}) == "x\na=1\nb=true\nd.1.e=2"


def test_a_float_is_not_signed():
    with pytest.raises(TypeError, match="a float"):
        string_to_sign("x", {"cny_amount": 12.5})


@pytest.mark.parametrize(
    ("amount", "text"),
    [("12.5", "12.50"), (Decimal("100"), "100.00"), (Decimal("1E+2"), "100.00"), (Decimal("1.1000"), "1.10")],
)
def test_an_amount_is_sent_with_two_decimals(amount, text):
    assert amount_text(amount) == text


@pytest.mark.parametrize("amount", [12.5, 100, True, None])
def test_a_float_or_an_int_is_not_an_amount(amount):
    with pytest.raises(TypeError, match="a Decimal or a str in yuan"):
        amount_text(amount)


@pytest.mark.parametrize("amount", ["1.005", Decimal("0.001"), "NaN", "Infinity", "ten", ""])
def test_an_amount_is_never_rounded(amount):
    with pytest.raises(ValueError, match="amount"):
        amount_text(amount)


def test_fen_and_yuan():
    assert (fen("12.50"), fen(Decimal("0.07")), yuan(1250), str(yuan(-5))) == (1250, 7, Decimal("12.50"), "-0.05")
    with pytest.raises(TypeError):
        fen(12.5)
    with pytest.raises(TypeError):
        yuan(12.5)


def test_an_invalid_argument_of_the_client_is_named():
    with pytest.raises(ValueError, match="callback secret"):
        Client("http://127.0.0.1:1", "demo", "whsec_AAAA")
    with pytest.raises(ValueError, match="https"):
        Client("orders.example.com", "demo", "secret")
    assert "demo-secret" not in repr(Client("http://127.0.0.1:1", "demo", "demo-secret"))
