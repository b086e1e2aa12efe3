"""The common properties of all responses: envelope, version, language, and limits set by HTTP itself."""

import json

import pytest

from runtime import settings
from tests.support import Api, signed

JSON = {"Content-Type": "application/json"}
REGIONS = "/addons/paychannel/channel.gatewaya"
PAY = "/addons/paychannel/pay/index"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(
            ("GET", path)
            for path in ("/healthz", "/", "/nowhere", "/merchant", "/merchant/createOrder", "/sandbox/inbox")
        ),
        *(("GET", f"{REGIONS}/{path}") for path in ("provinceList", "cityList", "cityList?province=x", "regionData")),
        *(("GET", path) for path in (PAY, f"{PAY}?order_no=1")),
        *(
            ("POST", path)
            for path in ("/merchant/createOrder", "/addons/paychannel/notify/1", "/sandbox/pay", "/healthz")
        ),
        *((method, "/merchant/createOrder") for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "HEAD")),
    ],
)
def test_every_response_has_the_version(http, method, path):
    assert http(method, path).headers["X-Service-Version"] == settings.VERSION


def test_a_not_modified_response_has_the_version(http):
    tag = http("GET", f"{REGIONS}/provinceList").headers["ETag"]
    answer = http("GET", f"{REGIONS}/provinceList", headers={"If-None-Match": tag})
    assert answer.status == 304
    assert answer.headers["X-Service-Version"] == settings.VERSION


def test_a_success_has_the_version(api):
    for answer in (api.buy(), api.sell(), api.detail(id=1), api.listed(), api.call("getPayChannels")):
        assert (answer.code, answer.headers["X-Service-Version"]) == (1, settings.VERSION)


def test_only_the_two_creation_responses_have_a_time(api, http):
    for answer in (api.buy(), api.sell()):
        assert list(answer.json) == ["code", "msg", "data", "time"]
    for answer in (
        *(api.detail(id=1), api.listed(), api.call("getPayChannels"), api.buy("0"), api.sell("10000.00")),
        http("GET", f"{REGIONS}/provinceList"),
    ):
        assert list(answer.json) == ["code", "msg", "data"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "success"),
        ("", "success"),
        ("en", "success"),
        ("en-US,en;q=0.9", "success"),
        ("zh", "成功"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "成功"),
        ("zh-TW", "成功"),
        ("en;q=0.5, zh;q=0.9", "成功"),
        ("fr", "success"),
        ("fr, zh;q=0.1", "成功"),
        ("*", "success"),
        (";;;=,q", "success"),
    ],
)
def test_the_message_is_in_the_language_that_the_caller_prefers(api, header, message):
    headers = {} if header is None else {"Accept-Language": header}
    assert api.call("getPayChannels", headers=headers).json["msg"] == message


@pytest.mark.parametrize("settings_of_app", [{"language": "zh"}])
@pytest.mark.parametrize(("header", "message"), [({}, "成功"), ({"Accept-Language": "en"}, "success")])
def test_the_language_setting_applies_if_the_caller_names_none(api, header, message, settings_of_app):
    assert api.call("getPayChannels", headers=header).json["msg"] == message


def test_the_message_of_a_created_order_is_translated(api):
    assert api.buy(headers={"Accept-Language": "zh"}).json["msg"] not in ("", "order created")


@pytest.mark.parametrize("settings_of_app", [{"api_prefix": "/api/v1"}])
def test_only_the_merchant_endpoints_have_the_prefix(http, settings_of_app):
    under_prefix = Api(lambda method, path, *rest: http(method, "/api/v1" + path, *rest))
    assert under_prefix.buy().code == 1
    assert Api(http).buy().code == 40404
    assert http("GET", f"{REGIONS}/provinceList").code == 1


def test_a_refused_method_names_the_allowed_ones(http):
    assert "POST" in http("GET", "/merchant/createOrder").headers["Allow"]


@pytest.mark.parametrize(
    "path", ["/merchant/createOrder/", "/merchant//createOrder", "/merchant/CreateOrder", "/merchant/%ff"]
)
def test_a_similar_path_is_unknown(http, path):
    answer = http("POST", path, json.dumps(signed("createOrder", {})).encode(), JSON)
    assert (answer.status, answer.code) == (404, 40404)


@pytest.mark.parametrize(
    ("content_type", "code"),
    [
        ("application/json", 1),
        ("application/json; charset=utf-8", 1),
        ("Application/JSON", 1),
        *((text, 41500) for text in ("text/plain", "text/json", "multipart/form-data", "json", "application/jsonx")),
    ],
)
@pytest.mark.parametrize("endpoint", ["orderQueryList", "getPayChannels"])
def test_a_body_must_be_declared_as_json(api, endpoint, content_type, code):
    assert api.call(endpoint, headers={"Content-Type": content_type}).code == code


@pytest.mark.parametrize(("size", "code"), [(65_536, 1), (65_537, 41300)])
def test_a_body_has_64_kib_at_most(api, size, code):
    body = json.dumps(signed("orderQueryList", {})).encode()
    assert api.post("orderQueryList", body + b" " * (size - len(body))).code == code


def test_by_default_a_merchant_has_100_requests_a_second_and_an_address_200_refusals_a_minute():
    assert settings.Settings().requests_per_second == 100
    assert settings.Settings().refused_per_minute == 200


@pytest.mark.parametrize("size", [65_537, 2**20, 7 * 2**20])
def test_over_a_real_connection_a_too_large_body_gets_its_response_however_it_is_sent(service, size):
    for body in (b"x" * size, (b"x" * 4_096 for _ in range(size // 4_096 + 1))):
        answer = service.api.post("createOrder", body)
        assert answer.status == 413
        assert answer.headers.get("X-Service-Version") == settings.VERSION
        assert answer.code == 41300
    assert service.api.buy().code == 1
