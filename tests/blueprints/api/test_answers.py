"""The common properties of all responses: envelope, version, language, and limits set by HTTP itself."""

import json

import pytest

from runtime import settings
from tests.support import Api, signed

JSON = {"Content-Type": "application/json"}
REGIONS = "/addons/paychannel/channel.gatewaya"
PAY = "/addons/paychannel/pay/index"


def test_every_response_has_the_version(http, api):
    tag = http("GET", f"{REGIONS}/provinceList").headers["ETag"]
    got = ("/healthz", "/", "/nowhere", "/merchant/createOrder", "/sandbox/inbox", f"{REGIONS}/cityList", PAY)
    posted = ("/merchant/createOrder", "/addons/paychannel/notify/1", "/healthz")
    answers = [
        *(http("GET", path) for path in got),
        *(http("POST", path) for path in posted),
        *(http(method, "/merchant/createOrder") for method in ("PUT", "OPTIONS", "HEAD")),
        *(api.buy(), api.sell(), api.detail(id=1), api.listed(), api.call("getPayChannels")),
        http("GET", f"{REGIONS}/provinceList", headers={"If-None-Match": tag}),
    ]
    assert {200, 304, 400, 404, 405} <= {answer.status for answer in answers}
    assert {answer.headers["X-Service-Version"] for answer in answers} == {settings.VERSION}


def test_only_the_two_creation_responses_have_a_time(api, http):
    for answer in (api.buy(), api.sell()):
        assert list(answer.json) == ["code", "msg", "data", "time"]
    for answer in (
        *(api.detail(id=1), api.listed(), api.call("getPayChannels"), api.buy("0"), api.sell("10000.00")),
        http("GET", f"{REGIONS}/provinceList"),
    ):
        assert list(answer.json) == ["code", "msg", "data"]


def test_the_message_is_in_the_language_that_the_caller_prefers(api):
    for header in (None, "", "en-US,en;q=0.9", "fr", "*", ";;;=,q"):
        headers = {} if header is None else {"Accept-Language": header}
        assert api.call("getPayChannels", headers=headers).json["msg"] == "success", header
    for header in ("zh-CN,zh;q=0.9,en;q=0.8", "zh-TW", "en;q=0.5, zh;q=0.9", "fr, zh;q=0.1"):
        assert api.call("getPayChannels", headers={"Accept-Language": header}).json["msg"] == "成功", header
    assert api.buy(headers={"Accept-Language": "zh"}).json["msg"] not in ("", "order created")


@pytest.mark.parametrize("settings_of_app", [{"language": "zh"}])
def test_the_language_setting_applies_if_the_caller_names_none(api, settings_of_app):
    assert api.call("getPayChannels").json["msg"] == "成功"
    assert api.call("getPayChannels", headers={"Accept-Language": "en"}).json["msg"] == "success"


@pytest.mark.parametrize("settings_of_app", [{"api_prefix": "/api/v1"}])
def test_only_the_merchant_endpoints_have_the_prefix(http, settings_of_app):
    under_prefix = Api(lambda method, path, *rest: http(method, "/api/v1" + path, *rest))
    assert under_prefix.buy().code == 1
    assert Api(http).buy().code == 40404
    assert http("GET", f"{REGIONS}/provinceList").code == 1


def test_a_refused_method_names_the_allowed_ones_and_a_similar_path_is_unknown(http):
    assert "POST" in http("GET", "/merchant/createOrder").headers["Allow"]
    body = json.dumps(signed("createOrder", {})).encode()
    for path in ("createOrder/", "/createOrder", "CreateOrder", "%ff"):
        answer = http("POST", f"/merchant/{path}", body, JSON)
        assert (answer.status, answer.code) == (404, 40404), path


@pytest.mark.parametrize("endpoint", ["orderQueryList", "getPayChannels"])
def test_a_body_must_be_declared_as_json(api, endpoint):
    for declared in ("application/json", "application/json; charset=utf-8", "Application/JSON"):
        assert api.call(endpoint, headers={"Content-Type": declared}).code == 1, declared
    for declared in ("text/plain", "text/json", "multipart/form-data", "json", "application/jsonx"):
        assert api.call(endpoint, headers={"Content-Type": declared}).code == 41500, declared


@pytest.mark.parametrize(("size", "code"), [(65_536, 1), (65_537, 41300)])
def test_a_body_has_64_kib_at_most(api, size, code):
    body = json.dumps(signed("orderQueryList", {})).encode()
    assert api.post("orderQueryList", body + b" " * (size - len(body))).code == code


def test_by_default_a_merchant_has_100_requests_a_second_and_an_address_200_refusals_a_minute():
    assert settings.Settings().requests_per_second == 100
    assert settings.Settings().refused_per_minute == 200


@pytest.mark.parametrize("size", [65_537, 7 * 2**20])
def test_over_a_real_connection_a_too_large_body_gets_its_response_however_it_is_sent(service, size):
    for body in (b"x" * size, (b"x" * 4_096 for _ in range(size // 4_096 + 1))):
        answer = service.api.post("createOrder", body)
        assert (answer.status, answer.code) == (413, 41300)
        assert answer.headers.get("X-Service-Version") == settings.VERSION
    assert service.api.buy().code == 1
