"""A payer's phone, inside WeChat and outside, as a real browser: headless Chromium that gives itself out as it."""

import json

import pytest
import requests
from pytest_httpserver import HTTPServer

from tests.browser import NEEDS_CHROMIUM, PHONE, Person, watched
from tests.epay_shop import Shop
from tests.payers import AGENTS, MAC
from tests.upstreams.alipay import Alipay
from tests.upstreams.wechatpay import WechatPay, WechatSignIn

pytestmark = NEEDS_CHROMIUM

# What WeChat adds to each page: it answers each request to pay with the outcome that the test chose.
BRIDGE = """
window.asked = [];
window.WeixinJSBridge = {
  invoke(name, parameters, done) {
    window.asked.push([name, parameters]);
    setTimeout(() => done({ err_msg: `get_brand_wcpay_request:${window.outcome}` }), 10);
  },
};
"""


@pytest.fixture(scope="module")
def upstreams(running):
    """WeChat Pay with JSAPI, and Alipay with its page for phones; `channels` has their numbers."""
    with HTTPServer(threaded=True) as server:
        server.expect_request("/favicon.ico").respond_with_data(status=204)
        wechat, sign_in, alipay = WechatPay(server), WechatSignIn(server), Alipay(server)
        for upstream, driver, config in (
            (wechat, "wechatpay", wechat.config(**sign_in.config(), h5="true")),
            (alipay, "alipay", alipay.config("key", wap="true")),
        ):
            pairs = [part for name, value in config.items() for part in ("--config", f"{name}={value}")]
            new = ("channel", "add", "--category", "gateway_b", "--driver", driver, "--name", driver, *pairs, "--json")
            upstream.channel = json.loads(running.flask(*new).stdout)["id"]
            running.flask("channel", "link", str(upstream.channel), "demo")
        server.expect_request("/checkmweb").respond_with_data("<b>WeChat</b>", content_type="text/html")
        wechat.h5_url = server.url_for("/checkmweb?prepay_id={}")
        yield wechat, alipay


class Phone(Person):
    """A phone with one of the AGENTS."""

    def uses(self, browser, language="zh-CN"):
        self.sits_at(PHONE, language)
        agent = {"userAgent": AGENTS[browser], "acceptLanguage": language}
        self.chrome.execute_cdp_cmd("Emulation.setUserAgentOverride", agent)

    @property
    def heading(self):
        return self.chrome.execute_script(
            "return document.querySelector('.panel:not([hidden]) h2')?.textContent.trim()"
        )


@pytest.fixture
def phone(chrome):
    yield from watched(Phone(chrome))


@pytest.fixture
def in_wechat(phone):
    """A phone whose pages have WeChat's object."""
    script = phone.chrome.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": BRIDGE})
    phone.uses("wechat")
    yield phone
    phone.chrome.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_in_wechat_the_button_pays_and_the_page_shows_the_result(in_wechat, running, upstreams):
    wechat, _ = upstreams
    placed = running.api.buy("12.30", channel=wechat.channel, paychannel_paymethod="wxpay").data
    in_wechat.opens(placed["pay_url"])
    in_wechat.chrome.execute_script("window.outcome = 'ok'")
    assert not in_wechat.scrolls_sideways
    in_wechat.find("#wechat-pay").click()
    in_wechat.waits_for(lambda: "微信已受理" in in_wechat.find("#wechat-message").text)
    [[name, given]] = in_wechat.chrome.execute_script("return window.asked")
    assert name == "getBrandWCPayRequest"
    assert given["package"].endswith(placed["order_no"][-9:])
    assert sorted(given) == ["appId", "nonceStr", "package", "paySign", "signType", "timeStamp"]
    wechat.pay(placed["order_no"])
    assert wechat.notice(placed["order_no"]).to(running.api.send, placed["order_no"]).status == 204
    in_wechat.waits_for(lambda: in_wechat.heading == "支付成功")


@pytest.mark.parametrize(
    ("outcome", "shown"), [("cancel", "您已取消支付"), ("fail", "无法调起微信支付"), ("else", "无法调起")]
)
def test_in_wechat_a_payment_that_does_not_succeed_can_be_tried_again(outcome, shown, in_wechat, running, upstreams):
    wechat, _ = upstreams
    in_wechat.opens(running.api.buy(channel=wechat.channel, paychannel_paymethod="wxpay").data["pay_url"])
    in_wechat.chrome.execute_script("window.outcome = arguments[0]", outcome)
    for tries in (1, 2):
        in_wechat.find("#wechat-pay").click()
        in_wechat.waits_for(lambda: shown in in_wechat.find("#wechat-message").text)
        assert len(in_wechat.chrome.execute_script("return window.asked")) == tries


def test_on_a_phone_wechats_page_learns_from_which_site_the_payer_comes(phone, running, upstreams):
    wechat, _ = upstreams
    phone.uses("mobile")
    phone.opens(running.api.buy(channel=wechat.channel, paychannel_paymethod="wxpay").data["pay_url"])
    phone.waits_for(lambda: phone.find(".pay a.primary").is_displayed())
    phone.find(".pay a.primary").click()
    phone.waits_for(lambda: phone.find("b").text == "WeChat")
    [visit] = [asked for asked, _ in wechat.server.log if asked.path == "/checkmweb"]
    assert visit.headers["Referer"] == f"{running.url}/", "WeChat refuses payers from an unknown site"


@pytest.fixture
def touch(phone):
    """`touch(True)`: the browser calls itself Safari on a Mac, and the device has a touch screen, as an iPad has."""

    def uses(has_touch):
        phone.uses("pc")
        phone.chrome.execute_cdp_cmd("Emulation.setUserAgentOverride", {"userAgent": MAC, "acceptLanguage": "zh-CN"})
        touch = {"enabled": has_touch, **({"maxTouchPoints": 5} if has_touch else {})}
        phone.chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", touch)

    yield uses
    phone.chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    phone.chrome.execute_cdp_cmd("Network.clearBrowserCookies", {})


@pytest.mark.parametrize(("has_touch", "way"), [(True, "h5"), (False, "native")])
def test_an_ipad_that_calls_itself_a_mac_can_pay_on_itself(has_touch, way, phone, touch, running, upstreams):
    wechat, _ = upstreams
    placed = running.api.buy(channel=wechat.channel, paychannel_paymethod="wxpay").data
    touch(has_touch)
    phone.opens(placed["pay_url"])
    wanted = ".pay a.primary" if has_touch else ".pay .qr"
    phone.waits_for(lambda: phone.chrome.find_elements("css selector", wanted) and phone.find(wanted).is_displayed())
    ways = {number: made["way"] for number, made in wechat.orders.items() if number.startswith(placed["order_no"])}
    assert ways == {placed["order_no"]: way}


def test_on_a_phone_alipays_page_opens_by_one_button(phone, running, upstreams):
    _, alipay = upstreams
    placed = running.api.buy("12.30", channel=alipay.channel, paychannel_paymethod="alipay").data
    phone.uses("mobile")
    phone.opens(placed["pay_url"])
    phone.waits_for(lambda: phone.find(".pay a.primary").is_displayed())
    phone.find(".pay a.primary").click()
    phone.waits_for(lambda: "12.30" in phone.find("b").text)
    assert phone.chrome.current_url.startswith(alipay.gateway)
    phone.chrome.get(alipay.return_address(placed["order_no"]))
    alipay.pay(placed["order_no"])
    assert alipay.notice(placed["order_no"]).to(running.api.send, placed["order_no"]).text == "success"
    phone.waits_for(lambda: phone.heading == "支付成功")


def test_in_wechat_a_payer_who_chose_wechat_pay_is_led_through_the_sign_in(in_wechat, running, upstreams):
    wechat, alipay = upstreams
    types = ("--type", f"wxpay={wechat.channel}:wxpay", "--type", f"alipay={alipay.channel}:alipay")
    keys = running.flask("epay", "enable", "demo", "--host", "127.0.0.1", "--host", "localhost", *types, "--json")
    shop = Shop(None, wechat.server, json.loads(keys.stdout))
    placed = requests.post(f"{running.url}/mapi.php", data=shop.signed(type=None), timeout=10).json()
    in_wechat.opens(placed["payurl"])
    in_wechat.find("button[value$=wxpay]").click()
    in_wechat.waits_for(lambda: in_wechat.chrome.find_elements("id", "wechat-pay"))
