"""Signatures over HTTP: the covered values, the valid secrets, and the refusals."""

import base64
import hmac
import json

import pytest

from tests.support import PERSON, Api, signature, signed

BUY = {"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
ENDPOINTS = ("createOrder", "orderQueryDetail", "orderQueryList", "getPayChannels", "balanceQuery")


def ask_channels(http, query, body=None, secret="demo-secret"):
    """getPayChannels, signed over its query and body together; the signature goes where the key is found first."""
    body = dict(body or {})
    carrier = body if "api_key" in body else query
    carrier["signature"] = signature("getPayChannels", body, secret, query)
    path = "/merchant/getPayChannels?" + "&".join(f"{name}={value}" for name, value in query.items())
    headers = {"Content-Type": "application/json"} if body else {}
    return http("POST", path, json.dumps(body).encode() if body else b"", headers)


def auth(key="demo", **more):
    """The auth fields without a signature, as a client would make them."""
    made = signed("any", {}, key)
    del made["signature"]
    return {name: str(value) for name, value in made.items()} | more


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("key", [None, "", "nobody", "DEMO", 17, ["demo"]])
def test_a_call_without_a_known_api_key_is_40101(api, endpoint, key):
    refused = api.call(endpoint, {"api_key": key})
    assert (refused.status, refused.code, refused.data) == (401, 40101, None)


def test_signatures_are_compared_in_constant_time(api, monkeypatch):
    compared, compare = [], hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda *two: compared.append(two[1]) or compare(*two))
    forged = signed("getPayChannels", {}) | {"signature": "0" * 64}
    assert api.post("getPayChannels", json.dumps(forged).encode()).code == 40102
    assert b"0" * 64 in compared


def test_an_api_secret_has_256_bits(flask_json):
    secret = flask_json("merchant", "add", "shop")["api_secret"]
    assert len(base64.urlsafe_b64decode(f"{secret}=")) == 32


def _set(**changes):
    return lambda body: body | changes


def _drop(name):
    return lambda body: {field: value for field, value in body.items() if field != name}


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(_set(cny_amount="900.00"), id="a changed amount"),
        pytest.param(_set(cny_amount="100.0"), id="the same amount in other digits"),
        pytest.param(_set(merchant_order_no="X"), id="an added field"),
        pytest.param(_drop("merchant_order_no"), id="a dropped field"),
        pytest.param(_set(nonce="another-nonce-1"), id="a fresh nonce"),
        pytest.param(lambda body: body | {"timestamp": body["timestamp"] + 1}, id="another timestamp"),
        pytest.param(_set(api_key="other"), id="another merchant's key"),
        pytest.param(_drop("signature"), id="no signature"),
        pytest.param(_set(signature=None), id="null"),
        pytest.param(_set(signature=12345678), id="a number"),
        pytest.param(_set(signature="é" * 64), id="not hex"),
        pytest.param(lambda body: body | {"signature": body["signature"].upper()}, id="upper case"),
        pytest.param(lambda body: body | {"signature": body["signature"][:-1]}, id="cut short"),
    ],
)
def test_a_wrong_signature_is_40102_and_changes_nothing(api, tamper):
    body = tamper(signed("createOrder", BUY | {"merchant_order_no": "A-1"}))
    refused = api.post("createOrder", json.dumps(body).encode())
    assert (refused.status, refused.code, refused.data) == (401, 40102, None)
    assert api.listed().data["total"] == 0


def test_a_signature_is_valid_for_its_own_endpoint_only(api):
    body = json.dumps(signed("orderQueryList", {})).encode()
    assert api.post("orderQueryDetail", body).code == 40102
    assert api.post("orderQueryList", body).code == 1


@pytest.mark.parametrize(("text", "code"), [("12.50", 1), ("12.5", 40102)])
def test_a_number_is_signed_as_its_digits_were_sent(api, text, code):
    fields = signed("createOrder", BUY | {"cny_amount": "?"})
    fields["signature"] = signature("createOrder", fields | {"cny_amount": text}, "demo-secret")
    answer = api.post("createOrder", json.dumps(fields).replace('"?"', "12.50").encode())
    assert answer.code == code


def test_null_and_empty_fields_are_not_signed_and_nested_ones_are(api):
    body = signed("createOrder", BUY | {"customer_name": None, "merchant_order_no": ""})
    assert api.post("createOrder", json.dumps(body).encode()).code == 1
    person = {"gatewaya_personal_data": PERSON}
    body = signed("createOrder", BUY | person)
    body["gatewaya_personal_data"] = PERSON | {"name": "李四"}
    assert api.post("createOrder", json.dumps(body).encode()).code == 40102


@pytest.mark.parametrize(
    "body",
    [b'{"a":"\\u0007"}', b'{"a":1,"a":1}', b'{"a":{"b":{"c":{"d":{"e":{}}}}}}', b'{"a-b":1}', b"[]", b"", b"{"],
    ids=["control character", "duplicate key", "too deep", "a name with a dash", "no object", "nothing", "cut off"],
)
def test_unsignable_values_are_refused_before_any_signature_is_computed(api, body):
    refused = api.post("createOrder", body)
    assert (refused.status, refused.code) == (400, 40000)


def test_five_levels_can_be_signed(api):
    assert api.post("createOrder", b'{"a":{"b":{"c":{"d":{"e":1}}}}}').code == 40101


# getPayChannels: the query string too


def test_the_four_parameters_may_be_in_the_query_string(http):
    assert [row["id"] for row in ask_channels(http, auth()).data["list"]] == [1, 2, 3]


def test_the_four_parameters_may_be_in_the_body(http):
    found = ask_channels(http, {"category": "gateway_b"}, auth())
    assert [row["id"] for row in found.data["list"]] == [2]


def test_the_body_is_read_first(http):
    query = auth("other", timestamp="1", nonce="x")
    assert [row["id"] for row in ask_channels(http, query, auth("demo")).data["list"]] == [1, 2, 3]


def test_values_in_both_places_can_not_be_exchanged(api):
    def ask(body, nonce):
        return api.post("getPayChannels", json.dumps(body).encode(), query=f"?nonce={nonce}").code

    body = auth(nonce="nonce-1111")
    body["signature"] = signature("getPayChannels", body, "demo-secret", {"nonce": "nonce-2222"})
    assert ask(body, "nonce-2222") == 1
    assert ask(body | {"nonce": "nonce-2222"}, "nonce-1111") == 40102


@pytest.mark.parametrize("changed", ["category=gateway_c", "category=", "x=1", ""])
def test_query_parameters_are_covered_by_the_signature(api, changed):
    fields = signed("getPayChannels", {"category": "gateway_b"})
    del fields["category"]
    assert api.post("getPayChannels", json.dumps(fields).encode(), query=f"?{changed}").code == 40102


def test_a_query_parameter_added_to_a_signed_order_breaks_its_signature(api):
    assert api.buy().code == 1
    body = json.dumps(signed("createOrder", BUY)).encode()
    assert api.post("createOrder", body, query="?paychannel_id=1").code == 40102


def test_orders_take_the_four_parameters_from_the_body_only(http):
    query = auth()
    query["signature"] = signature("orderQueryList", query, "demo-secret")
    path = "/merchant/orderQueryList?" + "&".join(f"{name}={value}" for name, value in query.items())
    assert http("POST", path, b"{}", {"Content-Type": "application/json"}).code == 40101


# Rotation


def test_both_secrets_are_valid_during_a_rotation(http, flask_json):
    new = Api(http, "demo", flask_json("merchant", "rotate", "demo", "--keep-hours", "2")["api_secret"])
    assert [client.listed().code for client in (new, Api(http, "demo", "demo-secret"))] == [1, 1]


def test_the_old_secret_ends_with_the_rotation(http, flask_json, ahead):
    new = Api(http, "demo", flask_json("merchant", "rotate", "demo", "--keep-hours", "2")["api_secret"])
    ahead(2 * 3600 + 1)
    assert Api(http, "demo", "demo-secret").listed().code == 40102
    assert new.listed().code == 1


def test_a_leaked_secret_can_be_ended_immediately(http, flask_json):
    new = Api(http, "demo", flask_json("merchant", "rotate", "demo", "--keep-hours", "0")["api_secret"])
    assert Api(http, "demo", "demo-secret").listed().code == 40102
    assert new.listed().code == 1


def test_a_second_rotation_leaves_no_third_secret(http, flask_json):
    second = flask_json("merchant", "rotate", "demo")["api_secret"]
    third = flask_json("merchant", "rotate", "demo")["api_secret"]
    codes = [Api(http, "demo", secret).listed().code for secret in ("demo-secret", second, third)]
    assert codes == [40102, 1, 1]


def test_a_nonce_is_used_under_both_secrets(http, flask_json):
    old = Api(http, "demo", "demo-secret")
    new = Api(http, "demo", flask_json("merchant", "rotate", "demo")["api_secret"])
    assert old.call("orderQueryList", {"nonce": "shared-nonce"}).code == 1
    assert new.call("orderQueryList", {"nonce": "shared-nonce"}).code == 40104


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
