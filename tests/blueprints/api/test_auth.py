"""Signatures over HTTP: the covered values, the valid secrets, and the refusals."""

import base64
import hmac
import json
from urllib.parse import urlencode

import pytest

from tests.support import ENDPOINTS, PERSON, Api, signature, signed

BUY = {"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}


def sent(body):
    return json.dumps(body).encode()


def without(name, body):
    return {field: value for field, value in body.items() if field != name}


def auth(key="demo", **more):
    """The auth fields without a signature, as a client would make them."""
    return {name: str(value) for name, value in without("signature", signed("any", {}, key)).items()} | more


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_call_without_a_known_api_key_is_40101(api, endpoint):
    for key in (None, "", "nobody", "DEMO", 17, ["demo"]):
        refused = api.call(endpoint, {"api_key": key})
        assert (refused.status, refused.code, refused.data) == (401, 40101, None), key


def test_signatures_are_compared_in_constant_time(api, monkeypatch):
    compared, compare = [], hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda *two: compared.append(two[1]) or compare(*two))
    forged = signed("getPayChannels", {}) | {"signature": "0" * 64}
    assert api.post("getPayChannels", sent(forged)).code == 40102
    assert b"0" * 64 in compared


def test_an_api_secret_has_256_bits(flask_json):
    secret = flask_json("merchant", "add", "shop")["api_secret"]
    assert len(base64.urlsafe_b64decode(f"{secret}=")) == 32


def test_a_wrong_signature_is_40102_and_changes_nothing(api):
    good = signed("createOrder", BUY | {"merchant_order_no": "A-1"})
    tampered = {
        "a changed amount": good | {"cny_amount": "900.00"},
        "the same amount in other digits": good | {"cny_amount": "100.0"},
        "an added field": good | {"customer_name": "X"},
        "a dropped field": without("merchant_order_no", good),
        "a fresh nonce": good | {"nonce": "another-nonce-1"},
        "another timestamp": good | {"timestamp": good["timestamp"] + 1},
        "another merchant's key": good | {"api_key": "other"},
        "no signature": without("signature", good),
        "null": good | {"signature": None},
        "a number": good | {"signature": 12345678},
        "not hex": good | {"signature": "é" * 64},
        "upper case": good | {"signature": good["signature"].upper()},
        "cut short": good | {"signature": good["signature"][:-1]},
    }
    for what, body in tampered.items():
        refused = api.post("createOrder", sent(body))
        assert (refused.status, refused.code, refused.data) == (401, 40102, None), what
    assert api.listed().data["total"] == 0
    assert api.post("createOrder", sent(good)).code == 1


def test_a_signature_is_valid_for_its_own_endpoint_only(api):
    body = sent(signed("orderQueryList", {}))
    assert api.post("orderQueryDetail", body).code == 40102
    assert api.post("orderQueryList", body).code == 1


@pytest.mark.parametrize(("text", "code"), [("12.50", 1), ("12.5", 40102)])
def test_a_number_is_signed_as_its_digits_were_sent(api, text, code):
    fields = signed("createOrder", BUY | {"cny_amount": "?"})
    fields["signature"] = signature("createOrder", fields | {"cny_amount": text}, "demo-secret")
    assert api.post("createOrder", sent(fields).replace(b'"?"', b"12.50")).code == code


def test_null_and_empty_fields_are_not_signed_and_nested_ones_are(api):
    body = signed("createOrder", BUY | {"customer_name": None, "merchant_order_no": ""})
    assert api.post("createOrder", sent(body)).code == 1
    body = signed("createOrder", BUY | {"gatewaya_personal_data": PERSON})
    body["gatewaya_personal_data"] = PERSON | {"name": "李四"}
    assert api.post("createOrder", sent(body)).code == 40102


def test_five_levels_can_be_signed(api):
    assert api.post("createOrder", b'{"a":{"b":{"c":{"d":{"e":1}}}}}').code == 40101


# The query string


def test_the_auth_fields_of_the_body_are_read_first(api):
    query = auth("other", timestamp="1", nonce="x")
    body = auth("demo")
    body["signature"] = signature("getPayChannels", body, "demo-secret", query)
    found = api.post("getPayChannels", sent(body), query=f"?{urlencode(query)}")
    assert [row["id"] for row in found.data["list"]] == [1, 2, 3]


def test_values_in_both_places_can_not_be_exchanged(api):
    def ask(body, nonce):
        return api.post("getPayChannels", sent(body), query=f"?nonce={nonce}").code

    body = auth(nonce="nonce-1111")
    body["signature"] = signature("getPayChannels", body, "demo-secret", {"nonce": "nonce-2222"})
    assert ask(body, "nonce-2222") == 1
    assert ask(body | {"nonce": "nonce-2222"}, "nonce-1111") == 40102


def test_query_parameters_are_covered_by_the_signature(api):
    fields = without("category", signed("getPayChannels", {"category": "gateway_b"}))
    for changed in ("category=gateway_c", "category=", "x=1", ""):
        assert api.post("getPayChannels", sent(fields), query=f"?{changed}").code == 40102, changed
    assert api.post("createOrder", sent(signed("createOrder", BUY)), query="?paychannel_id=1").code == 40102


def test_orders_take_the_four_parameters_from_the_body_only(http):
    query = auth()
    query["signature"] = signature("orderQueryList", query, "demo-secret")
    path = f"/merchant/orderQueryList?{urlencode(query)}"
    assert http("POST", path, b"{}", {"Content-Type": "application/json"}).code == 40101


# Rotation


def test_both_secrets_are_valid_until_the_rotation_ends_and_share_their_nonces(http, flask_json, ahead):
    old = Api(http, "demo", "demo-secret")
    new = Api(http, "demo", flask_json("merchant", "rotate", "demo", "--keep-hours", "2")["api_secret"])
    assert [client.listed().code for client in (new, old)] == [1, 1]
    assert old.call("orderQueryList", {"nonce": "shared-nonce"}).code == 1
    assert new.call("orderQueryList", {"nonce": "shared-nonce"}).code == 40104
    ahead(2 * 3600 + 1)
    assert [client.listed().code for client in (new, old)] == [1, 40102]


def test_a_leaked_secret_can_be_ended_immediately(http, flask_json):
    new = Api(http, "demo", flask_json("merchant", "rotate", "demo", "--keep-hours", "0")["api_secret"])
    assert [client.listed().code for client in (new, Api(http, "demo", "demo-secret"))] == [1, 40102]


def test_a_second_rotation_leaves_no_third_secret(http, flask_json):
    second, third = (flask_json("merchant", "rotate", "demo")["api_secret"] for _ in range(2))
    codes = [Api(http, "demo", secret).listed().code for secret in ("demo-secret", second, third)]
    assert codes == [40102, 1, 1]


# The string to sign


def test_demo_mode_shows_the_servers_string_to_sign_and_never_the_secret(demo, http):
    refused = Api(http, "demo", "wrong").buy("12.50", merchant_order_no="订单-1", timestamp=1, nonce="a-nonce-1")
    lines = ["createOrder", "api_key=demo", "cny_amount=12.50", "merchant_order_no=订单-1", "nonce=a-nonce-1"]
    assert refused.code == 40102
    assert all(line in refused.json["msg"] for line in lines)
    assert "demo-secret" not in refused.text


def test_only_demo_mode_shows_the_string_to_sign(http):
    refused = Api(http, "demo", "wrong").buy("12.50")
    assert refused.code == 40102
    assert "cny_amount" not in refused.text
    assert "api_key" not in refused.text
