"""A channel whose address leads to something else than the payment API: the check fails and names the cause."""

import re

import pytest
from werkzeug import Response

from tests.upstreams.alipay import Alipay
from tests.upstreams.epay import EpayPlatform
from tests.upstreams.wechatpay import WechatPay

PAGE = "<html><h1>Bad Gateway</h1></html>"
# The body of each response, its status, and its headers.
WRONG = {
    "the 502 of a proxy": (PAGE, 502, {"Content-Type": "text/html"}),
    "a page": (PAGE, 200, {"Content-Type": "text/html"}),
    "a redirect": ("", 302, {"Location": "https://elsewhere.example/login"}),
    "nothing": ("", 200, {}),
    "other JSON": ("{}", 200, {"Content-Type": "application/json"}),
    "other JSON with a 503": ('{"msg": "busy"}', 503, {"Content-Type": "application/json"}),
}
CONFIGS = {
    "epay 1": lambda server: EpayPlatform(server).config("1"),
    "epay 1 without status checks": lambda server: EpayPlatform(server).config("1", no_status_checks="true"),
    "epay 2": lambda server: EpayPlatform(server).config("2"),
    "wechatpay": lambda server: WechatPay(server).config("key"),
    "alipay": lambda server: Alipay(server).config("key"),
}


@pytest.fixture
def elsewhere(web_server):
    """`elsewhere(*response)`: the address of a server that responds so to every request."""

    def serve(*response):
        web_server.expect_request(re.compile("^/elsewhere")).respond_with_handler(lambda _: Response(*response))
        return web_server.url_for("/elsewhere")

    return serve


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_response_that_is_not_the_apis_is_a_failure_with_status_and_host(
    kind, wrong, elsewhere, add_channel, flask, web_server
):
    config = CONFIGS[kind](web_server) | {"base_url": elsewhere(*WRONG[wrong])}
    number = add_channel(kind.split()[0], config)
    said = flask("channel", "check", number, fails=True).output
    assert said.startswith(f"Error: HTTP {WRONG[wrong][1]} from localhost: "), said


def test_a_timeout_is_a_failure(add_channel, flask, platform, impatient):
    number = add_channel("epay", platform.config("2"))
    platform.fails("slow")
    with impatient():
        said = flask("channel", "check", number, fails=True).output
    assert said.startswith("Error: no response from localhost: ")


def test_with_redirect_and_without_status_checks_the_page_for_payers_must_be_there(
    elsewhere, add_channel, flask, platform
):
    config = platform.config("1", no_status_checks="true", redirect="true")
    number = add_channel("epay", config)
    assert flask("channel", "check", number)
    flask("channel", "set", number, "--config", f"base_url={elsewhere(*WRONG['the 502 of a proxy'])}")
    assert "HTTP 502 from localhost: no payment page" in flask("channel", "check", number, fails=True).output


def test_a_method_without_a_usable_response_is_a_problem(add_channel, flask, platform):
    number = add_channel("epay", platform.config("2"), "--pay-method", "wxpay")
    platform.fails("", "", "", "broken")
    said = flask("channel", "check", number, fails=True).output
    assert re.search("wxpay +problem +HTTP 502 from localhost", said), said


def test_a_sign_in_api_behind_a_502_is_a_problem(add_channel, flask, wechat, elsewhere):
    sign_in = {"jsapi": "true", "app_secret": "s" * 32, "sign_in_api": elsewhere(*WRONG["the 502 of a proxy"])}
    number = add_channel("wechatpay", wechat.config("key", **sign_in))
    said = flask("channel", "check", number, fails=True).output
    assert re.search("jsapi +problem +HTTP 502 from localhost", said), said
