"""The `msg` of a refused request: the place and the cause, in the caller's language."""

import json

import pytest

from tests.support import NOON, Api, signed

HALF = "is half a character, such as an emoji cut in two: send whole characters"
HALF_BYTES = "begins half a character, such as an emoji cut in two"
BOM = b"\xef\xbb\xbf"


def msg_of(answer):
    return answer.json["msg"]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "the body is empty"),
        (BOM + b"{}", "the body begins with a byte order mark: send UTF-8 without it"),
        (b'{"a": "\xff"}', "the body is not UTF-8: byte 7"),
        (b'{"a": 1', "invalid JSON at line 1, column 8: the text ends too early"),
        (b'{"a":\n"b}', "invalid JSON at line 2, column 1: this string has no end"),
        (b'{"a": "\\u0041', "invalid JSON at line 1, column 7: this string has no end"),
        (b'{"a": 1} {}', "invalid JSON at line 1, column 10: unexpected {"),
        (b'{"a": 1 ,\n}', "invalid JSON at line 1, column 9: unexpected ,"),
        (b'{"a": [1,]}', "invalid JSON at line 1, column 9: unexpected ,"),
        ('{"a"：1}'.encode(), "invalid JSON at line 1, column 5: unexpected U+FF1A"),
        (b"[]", "the body must be a JSON object"),
        (b'{"a": {"b": 1, "b": 2}}', "a.b: the name appears twice"),
        (b'{"a": {"b-c": 1}}', "a.b-c: a name may only have letters, digits and _"),
        (b'{"\\ud800": 1}', "\\ud800: a name may only have letters, digits and _"),
        (b'{"a": [1, {"b": "\\n"}]}', "a.1.b: control characters are not allowed"),
        (b'{"a": [1, {"b": "x\\ud83d"}]}', f"a.1.b: \\ud83d {HALF}"),
        (b'{"a": "\\ude00\\ud83d"}', f"a: \\ude00 {HALF}"),
        (b'{"a": "\xf0\x9f\x98"}', f"the body is not UTF-8: byte 7 {HALF_BYTES}"),
        (b'{"a": "\xe4\xbc"}', f"the body is not UTF-8: byte 7 {HALF_BYTES}"),
        (b'{"a": "\xed\xa0\xbd"}', f"the body is not UTF-8: byte 7 {HALF_BYTES}"),
        (b'{"a": "\xd5\xc5"}', "the body is not UTF-8: byte 7"),  # GBK
        (b'{"a": [1, NaN]}', "a.1: NaN is not a JSON value"),
        (b'{"a": {"b": {"c": {"d": {"e": {}}}}}}', "a.b.c.d.e: nested deeper than 5 levels"),
        (b'{"a":' * 100 + b'"[[["' + b"}" * 100, "a.a.a.a.a: nested deeper than 5 levels"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, "nested deeper than 5 levels"),
        (b'{"a":' * 6_000, "nested deeper than 5 levels"),
    ],
)
def test_40000_names_the_path_of_the_fault(api, body, detail):
    refused = api.post("createOrder", body)
    assert (refused.code, msg_of(refused)) == (40000, f"malformed request: {detail}")


def test_40000_names_a_query_parameter(api):
    refused = api.post("getPayChannels", b"", query="?category=a&category=b")
    assert msg_of(refused) == "malformed request: category: the name appears twice"


def test_a_whole_emoji_is_accepted_as_utf_8_and_as_a_pair_of_escapes(api):
    assert api.buy(customer_name="\U0001f600").code == 1
    body = json.dumps(signed("createOrder", {"customer_name": "\U0001f600"})).encode()
    assert b"\\ud83d\\ude00" in body
    assert api.post("createOrder", body).code == 42200  # the signature holds, and only other fields are missing


@pytest.mark.parametrize(
    ("stamp", "detail"),
    [
        (None, f"missing; the server's time is {NOON}"),
        ("", f"missing; the server's time is {NOON}"),
        ("now", f"must be Unix time in seconds; the server's time is {NOON}"),
        (NOON * 1_000, f"must be Unix time in seconds; the server's time is {NOON}"),
        ([NOON], f"must be Unix time in seconds; the server's time is {NOON}"),
        (NOON - 301, f"301 s behind the server, whose time is {NOON}"),
        (NOON + 4_000, f"4000 s ahead of the server, whose time is {NOON}"),
    ],
)
def test_40103_reports_the_cause_and_the_servers_time(clock, api, stamp, detail):
    refused = api.call("orderQueryList", {"timestamp": stamp})
    assert (refused.code, msg_of(refused)) == (40103, f"invalid timestamp: {detail}")


@pytest.mark.parametrize(
    ("nonce", "detail"),
    [
        (None, "missing"),
        ("", "missing"),
        ("short", "must be 8 to 64 letters, digits, _ . or -"),
        (12345678, "must be 8 to 64 letters, digits, _ . or -"),
    ],
)
def test_40104_reports_whether_the_nonce_is_missing_or_malformed(api, nonce, detail):
    refused = api.call("orderQueryList", {"nonce": nonce})
    assert (refused.code, msg_of(refused)) == (40104, f"invalid nonce: {detail}")


@pytest.mark.parametrize("first", ["createOrder", "orderQueryList"])
def test_40104_reports_that_the_nonce_was_used(api, first):
    order = {"order_type": 1, "cny_amount": "1.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
    assert api.call(first, {"createOrder": order}.get(first, {}) | {"nonce": "the-nonce"}).code == 1
    for endpoint, fields in (("orderQueryList", {}), ("createOrder", order)):
        refused = api.call(endpoint, fields | {"nonce": "the-nonce"})
        assert msg_of(refused) == "invalid nonce: already used; send a new nonce with each request"


@pytest.mark.parametrize("sent", [{}, {"signature": None}, {"signature": ""}], ids=str)
def test_40102_reports_that_the_signature_is_missing(api, sent):
    body = {name: value for name, value in signed("orderQueryList", {}).items() if name != "signature"} | sent
    assert msg_of(api.post("orderQueryList", json.dumps(body).encode())) == "bad signature: missing"


def test_40101_reports_that_the_key_is_missing(api):
    assert msg_of(api.call("orderQueryList", {"api_key": ""})) == "invalid api_key: missing"


def test_details_are_in_the_callers_language(clock, http):
    def send(method, path, body=b"", headers=None):
        return http(method, path, body, (headers or {}) | {"Accept-Language": "zh"})

    api = Api(send)
    assert (
        msg_of(api.call("orderQueryList", {"timestamp": NOON - 301}))
        == f"时间戳无效：比服务器慢 301 秒，服务器时间为 {NOON}"
    )
    assert msg_of(api.post("createOrder", b'{"a": "\\n"}')) == "请求格式错误：a：不允许控制字符"
