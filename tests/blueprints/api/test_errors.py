"""Every documented error, provoked over HTTP: its status, envelope, headers, and text in both languages."""

import json
import re
import time
from types import SimpleNamespace

import pytest

from blueprints.api import envelope
from models.tables.merchant import Merchant
from models.tables.replay import IdempotencyKey
from tests.databases import impatient, orders_held_up
from tests.support import NOON, Api, signed

FIELDS = {"order_type": 1, "cny_amount": "1.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
REGIONS = "/addons/paychannel/channel.gatewaya"

# The documented codes.
DOCUMENTED = {
    *(40000, 40101, 40102, 40103, 40104, 40300, 40401, 40402, 40403, 40404, 40405, 40406, 40500, 41300, 41500),
    *(40901, 40902, 40903, 40904, 42200, 42201, 42900, 50000, 50201, 50300),
}
WITH_RETRY_AFTER = {42900, 50000, 50300}
LIMIT = 20
ROWS = []


def row(code, name):
    """Register a way to provoke a code."""
    return lambda provoke: ROWS.append(pytest.param(code, provoke, id=f"{code}-{name}"))


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": LIMIT, "refused_per_minute": LIMIT}


@pytest.fixture
def world(app, http, flask):
    """Tools to provoke errors, in the language `world.language`."""
    world = SimpleNamespace(flask=flask, language="en", instance=app.instance_path)

    def send(method, path, body=b"", headers=None):
        return http(method, path, body, (headers or {}) | {"Accept-Language": world.language})

    world.send, world.api, world.other = send, Api(send), Api(send, "other")
    world.post = lambda fields, headers=None: world.api.post("createOrder", json.dumps(fields).encode(), headers)
    yield world
    envelope.draining().clear()


row(40000, "no JSON")(lambda world: world.api.post("createOrder", b"order_type=1"))
row(40101, "unknown")(lambda world: Api(world.send, "nobody", "?").buy())
row(40102, "wrong secret")(lambda world: Api(world.send, "demo", "guess").buy())
row(40103, "old")(lambda world: world.api.buy(timestamp=int(time.time()) - 310))
row(40103, "early")(lambda world: world.api.buy(timestamp=int(time.time()) + 310))
row(40104, "malformed")(lambda world: world.api.buy(nonce="short"))
row(40401, "detail")(lambda world: world.api.detail(order_no="1" * 24))
row(40402, "province")(lambda world: world.send("GET", f"{REGIONS}/cityList?province=Atlantis"))
row(40403, "buy")(lambda world: world.api.buy(channel=999))
row(40404, "root")(lambda world: world.send("GET", "/nowhere"))
row(40404, "merchant")(lambda world: world.api.call("deleteOrder"))
row(40405, "detail")(lambda world: world.api.call("refundQueryDetail", {"refund_no": "1" * 24}))
row(40406, "statement")(lambda world: world.api.call("statementQuery", {"month": "2026-05", "after": "a99"}))
row(40500, "GET")(lambda world: world.send("GET", "/merchant/createOrder"))
row(40500, "OPTIONS of a region")(lambda world: world.send("OPTIONS", f"{REGIONS}/provinceList"))
row(41300, "large")(lambda world: world.api.post("createOrder", b"{" + b" " * 65_536))
row(41500, "form")(lambda world: world.api.buy(headers={"Content-Type": "application/x-www-form-urlencoded"}))
row(41500, "none")(lambda world: world.api.buy(headers={"Content-Type": ""}))
row(40901, "sell")(lambda world: world.api.sell("10000.00"))
row(40903, "sell")(lambda world: world.other.sell())
row(42200, "buy")(lambda world: world.api.buy("0"))
row(42200, "region")(lambda world: world.send("GET", f"{REGIONS}/cityList"))


@row(40101, "disabled")
def disabled(world):
    world.flask("merchant", "set", "demo", "--disabled")
    return world.api.buy()


@row(40104, "used")
def replayed(world):
    request = signed("createOrder", FIELDS)
    assert world.post(request).code == 1
    return world.post(request)


@row(40300, "not on the list")
def not_allowed(world):
    world.flask("merchant", "set", "demo", "--allow", "192.0.2.0/24")
    return world.api.buy()


@row(40902, "still running")
def in_flight(world):
    headers = {"Idempotency-Key": "k"}
    assert world.api.buy(headers=headers).code == 1
    IdempotencyKey.update(outcome=None).execute()  # as it is until the response to the first request
    return world.api.buy(headers=headers)


@row(42201, "another amount")
def reused(world):
    assert world.api.buy("1.00", headers={"Idempotency-Key": "k"}).code == 1
    return world.api.buy("2.00", headers={"Idempotency-Key": "k"})


@row(40904, "refunds are disabled")
def not_refundable(world):
    world.flask("merchant", "set", "demo", "--refunds", "off")
    fields = {"order_no": world.api.buy().data["order_no"], "cny_amount": "1.00", "merchant_refund_no": "R-1"}
    return world.api.call("createRefund", fields)


@row(42900, "requests")
def too_many(world):
    return next(
        answer for answer in (world.api.detail(order_no="1") for _ in range(100 * LIMIT)) if answer.status == 429
    )


@row(42900, "refusals")
def refused_too_often(world):
    for _ in range(LIMIT):
        assert world.api.buy(signature="x", timestamp=0, api_key="nobody").status == 401
    return world.api.buy()


@row(50000, "a secret that can't be read")
def internal(world):
    Merchant.update(secret="damaged").where(Merchant.key == "demo").execute()
    return world.api.buy()


@row(50201, "refused")
def channel_refused(world):
    world.flask("channel", "set", 2, "--config", "open=refuse")
    return world.api.buy()


@row(50300, "shutting down")
def shutting_down(world):
    envelope.draining().set()
    return world.api.buy()


@row(50300, "database locked")
def locked(world):
    with impatient(), orders_held_up(world.instance):
        return world.api.buy()


@pytest.mark.parametrize(("code", "provoke"), ROWS)
@pytest.mark.parametrize("language", ["en-GB,en;q=0.9,zh;q=0.5", "zh-CN,zh;q=0.9,en;q=0.8"], ids=["en", "zh"])
def test_an_error_has_the_documented_response_in_the_callers_language(world, code, provoke, language):
    world.language = language
    answer = provoke(world)
    assert (answer.code, answer.status) == (code, code // 100)
    assert list(answer.json) == ["code", "msg", "data"]
    assert bool(re.search(r"[\u4e00-\u9fff]", answer.json["msg"])) is language.startswith("zh"), answer
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.headers["X-Service-Version"]
    retry_after = answer.headers.get("Retry-After", "")
    if code in WITH_RETRY_AFTER:
        assert re.fullmatch(r"[1-9][0-9]{0,3}", retry_after)
    elif code != 40902:  # 40902 may have a Retry-After, too
        assert retry_after == ""
    if code == 42200:
        assert all(type(messages) is list and messages for messages in answer.data.values())
    elif code == 40904:
        assert answer.data == {"reason": "disabled", "left": "0.00"}
    elif code == 50201:
        assert world.api.status(answer.data["order_no"]) == "cancelled"
    else:
        assert answer.data is None


def test_every_documented_error_is_provoked_here():
    assert {parameters.values[0] for parameters in ROWS} == DOCUMENTED


# The details in `msg`: the place and the cause

HALF = "is half a character, such as an emoji cut in two: send whole characters"
HALF_BYTES = "begins half a character, such as an emoji cut in two"
MALFORMED = {
    b"": "the body is empty",
    b"\xef\xbb\xbf{}": "the body begins with a byte order mark: send UTF-8 without it",
    b'{"a": "\xff"}': "the body is not UTF-8: byte 7",
    b'{"a": 1': "invalid JSON at line 1, column 8: the text ends too early",
    b'{"a":\n"b}': "invalid JSON at line 2, column 1: this string has no end",
    b'{"a": "\\u0041': "invalid JSON at line 1, column 7: this string has no end",
    b'{"a": 1} {}': "invalid JSON at line 1, column 10: unexpected {",
    b'{"a": 1 ,\n}': "invalid JSON at line 1, column 9: unexpected ,",
    b'{"a": [1,]}': "invalid JSON at line 1, column 9: unexpected ,",
    '{"a"：1}'.encode(): "invalid JSON at line 1, column 5: unexpected U+FF1A",
    b"[]": "the body must be a JSON object",
    b'{"a": {"b": 1, "b": 2}}': "a.b: the name appears twice",
    b'{"a": {"b-c": 1}}': "a.b-c: a name may only have letters, digits and _",
    b'{"\\ud800": 1}': "\\ud800: a name may only have letters, digits and _",
    b'{"a": [1, {"b": "\\n"}]}': "a.1.b: control characters are not allowed",
    b'{"a": [1, {"b": "x\\ud83d"}]}': f"a.1.b: \\ud83d {HALF}",
    b'{"a": "\\ude00\\ud83d"}': f"a: \\ude00 {HALF}",
    b'{"a": "\xf0\x9f\x98"}': f"the body is not UTF-8: byte 7 {HALF_BYTES}",
    b'{"a": "\xe4\xbc"}': f"the body is not UTF-8: byte 7 {HALF_BYTES}",
    b'{"a": "\xed\xa0\xbd"}': f"the body is not UTF-8: byte 7 {HALF_BYTES}",
    b'{"a": "\xd5\xc5"}': "the body is not UTF-8: byte 7",  # GBK
    b'{"a": [1, NaN]}': "a.1: NaN is not a JSON value",
    b'{"a": {"b": {"c": {"d": {"e": {}}}}}}': "a.b.c.d.e: nested deeper than 5 levels",
    b'{"a":' * 100 + b'"[[["' + b"}" * 100: "a.a.a.a.a: nested deeper than 5 levels",
    b'{"a":' * 101 + b"1" + b"}" * 101: "nested deeper than 5 levels",
    b'{"a":' * 6_000: "nested deeper than 5 levels",
}


@pytest.mark.parametrize("settings_of_app", [{}])
def test_40000_names_the_path_of_the_fault(api, settings_of_app):
    for body, detail in MALFORMED.items():
        refused = api.post("createOrder", body)
        assert (refused.code, refused.json["msg"]) == (40000, f"malformed request: {detail}")
    refused = api.post("getPayChannels", b"", query="?category=a&category=b")
    assert refused.json["msg"] == "malformed request: category: the name appears twice"


def test_a_whole_emoji_is_accepted_as_utf_8_and_as_a_pair_of_escapes(api):
    assert api.buy(customer_name="\U0001f600").code == 1
    body = json.dumps(signed("createOrder", {"customer_name": "\U0001f600"})).encode()
    assert b"\\ud83d\\ude00" in body
    assert api.post("createOrder", body).code == 42200  # the signature holds, and only other fields are missing


def test_a_refused_authentication_reports_its_cause(clock, api):
    now, not_seconds = f"the server's time is {NOON}", "must be Unix time in seconds"
    malformed = "must be 8 to 64 letters, digits, _ . or -"
    for name, value, message in (
        ("timestamp", None, f"invalid timestamp: missing; {now}"),
        ("timestamp", "", f"invalid timestamp: missing; {now}"),
        ("timestamp", "now", f"invalid timestamp: {not_seconds}; {now}"),
        ("timestamp", NOON * 1_000, f"invalid timestamp: {not_seconds}; {now}"),
        ("timestamp", [NOON], f"invalid timestamp: {not_seconds}; {now}"),
        ("timestamp", NOON - 301, f"invalid timestamp: 301 s behind the server, whose time is {NOON}"),
        ("timestamp", NOON + 4_000, f"invalid timestamp: 4000 s ahead of the server, whose time is {NOON}"),
        ("nonce", None, "invalid nonce: missing"),
        ("nonce", "", "invalid nonce: missing"),
        ("nonce", "short", f"invalid nonce: {malformed}"),
        ("nonce", 12345678, f"invalid nonce: {malformed}"),
        ("api_key", "", "invalid api_key: missing"),
    ):
        assert api.call("orderQueryList", {name: value}).json["msg"] == message
    for missing in ({}, {"signature": None}, {"signature": ""}):
        body = {name: value for name, value in signed("orderQueryList", {}).items() if name != "signature"} | missing
        assert api.post("orderQueryList", json.dumps(body).encode()).json["msg"] == "bad signature: missing"


@pytest.mark.parametrize("first", ["createOrder", "orderQueryList"])
def test_40104_reports_that_the_nonce_was_used(api, first):
    assert api.call(first, {"createOrder": FIELDS}.get(first, {}) | {"nonce": "the-nonce"}).code == 1
    for endpoint, fields in (("orderQueryList", {}), ("createOrder", FIELDS)):
        refused = api.call(endpoint, fields | {"nonce": "the-nonce"})
        assert refused.json["msg"] == "invalid nonce: already used; send a new nonce with each request"


def test_details_are_in_the_callers_language(clock, world):
    world.language = "zh"
    behind = f"时间戳无效：比服务器慢 301 秒，服务器时间为 {NOON}"
    assert world.api.call("orderQueryList", {"timestamp": NOON - 301}).json["msg"] == behind
    assert world.api.post("createOrder", b'{"a": "\\n"}').json["msg"] == "请求格式错误：a：不允许控制字符"
