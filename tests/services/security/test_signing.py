"""Signatures against the published vectors, whose hex was computed by OpenSSL."""

import json
from urllib.parse import parse_qsl

import pytest

from schemas.strict_json import parse, parse_query
from services.security import signing
from tests.support import ROOT, signature

PUBLISHED = json.loads((ROOT / "docs" / "signature-vectors.json").read_text("utf-8"))
VECTORS = {vector["name"]: vector for vector in PUBLISHED["vectors"]}


@pytest.mark.parametrize("name", VECTORS)
def test_the_service_agrees_with_the_published_vector(name):
    vector = VECTORS[name]
    body = parse(vector["body"].encode()) if vector["body"] else {}
    query = parse_query(parse_qsl(vector["query"]))
    text = signing.string_to_sign(vector["endpoint"], body, query)
    assert text == vector["string_to_sign"]
    assert signing.sign(PUBLISHED["secret"], text) == vector["signature"]


@pytest.mark.parametrize(
    "kind", ["plain", "Chinese text", "null and empty are left out", "nested objects", "arrays and booleans"]
)
def test_the_tests_own_client_agrees_with_the_published_vector(kind):
    vector = VECTORS[kind]
    assert signature(vector["endpoint"], json.loads(vector["body"]), PUBLISHED["secret"]) == vector["signature"]


def test_a_signature_is_valid_under_either_of_two_secrets_and_no_third():
    text = "createOrder\napi_key=demo"
    given = signing.sign("new", text)
    assert signing.is_valid(given, ["new", "old"], text)
    assert signing.is_valid(given, ["old", "new"], text)
    assert not signing.is_valid(given, ["old", "older"], text)


def test_the_signature_itself_is_not_signed():
    fields = {"a": "1", "signature": "x"}
    assert signing.string_to_sign("createOrder", fields) == "createOrder\na=1"
