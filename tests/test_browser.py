"""A payer with a real browser: headless Chromium against the running service, in both sizes and languages."""

import json
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from pytest_httpserver import HTTPServer
from selenium.webdriver.common.by import By

from services.sandbox import seeding
from tests.browser import DESKTOP, NEEDS_CHROMIUM, PHONE, Person, scripts_disabled, watched
from tests.epay_shop import Shop
from tests.pages import FORM
from tests.support import DemoApi, Receiver, until
from tests.upstreams.epay import EpayPlatform

pytestmark = NEEDS_CHROMIUM


class Payer(Person):
    """A payer on the payment page."""

    @property
    def heading(self):
        return self.chrome.execute_script(
            "return document.querySelector('.panel:not([hidden]) :is(h1, h2)')?.textContent.trim() ?? ''"
        )

    @property
    def heading_is_in_sight(self):
        box = "document.querySelector('.panel:not([hidden]) :is(h1, h2)').getBoundingClientRect()"
        return self.chrome.execute_script(f"const box = {box}; return box.top >= 0 && box.bottom <= innerHeight")

    @property
    def is_at_the_shop(self):
        return "/sandbox/return?" in self.chrome.current_url

    def views(self, placed, size=PHONE, language="en"):
        """Open the payment page of an order, in a window of this size and language."""
        self.sits_at(size, language)
        self.opens(placed["pay_url"])

    def copies(self, button):
        """Press a button that copies; return the text in the clipboard."""
        button.click()
        self.waits_for(lambda: button.get_attribute("class") == "copy done")
        return self.chrome.execute_async_script("navigator.clipboard.readText().then(arguments[0])")


@pytest.fixture
def payer(chrome):
    yield from watched(Payer(chrome))


@pytest.fixture(scope="module")
def merchant(running):
    """The merchant's own HTTP server."""
    with HTTPServer(threaded=True) as server:
        receiver = Receiver(server, "/demo", seeding.CALLBACK_SECRETS["demo"])
        running.flask("merchant", "set", "demo", "--callback-url", receiver.url)
        yield receiver


@pytest.mark.parametrize(
    ("size", "language", "complete"),
    [(PHONE, "zh-CN,zh", "支付成功"), (DESKTOP, "en-US,en", "Payment complete")],
    ids=["phone", "desktop"],
)
def test_a_deposit_is_paid_in_a_browser_credited_and_reported_to_the_merchant(
    size, language, complete, payer, running, merchant
):
    placed = running.api.buy("123.45", merchant_order_no=f"WEB-{size[0]}").data
    payer.views(placed, size, language)
    assert "¥123.45" in payer.find("h1").text
    assert placed["order_no"] in payer.find(".details").text
    payer.find("button[value=success]").click()
    payer.waits_for(lambda: payer.heading == complete)
    order = running.api.detail(order_no=placed["order_no"]).data
    assert (order["status"], order["merchant_actual_amount"]) == ("completed", 12_345 - 74)
    assert running.api.listed(merchant_order_no=f"WEB-{size[0]}").data["list"] == [order]
    until(lambda: [got for got in merchant.got if got.event["data"] == order])


@pytest.mark.parametrize(
    ("size", "language", "before", "after"),
    [(PHONE, "zh-CN", "测试付款", "支付成功"), (DESKTOP, "en", "Test payment", "Payment complete")],
    ids=["phone", "desktop"],
)
def test_the_page_of_an_order_paid_elsewhere_updates_and_leads_back_to_the_shop_once(
    size, language, before, after, payer, running
):
    placed = running.api.buy("88.00").data
    payer.opens(f"{running.url}/sandbox/inbox")
    payer.views(placed, size, language)
    assert payer.heading == before
    running.api.play(placed["order_no"], "success")
    payer.waits_for(lambda: payer.find("#leaving").is_displayed())
    assert payer.heading == after
    assert after in payer.chrome.title
    assert not payer.find("#checkout .qr").is_displayed()
    assert payer.has_not_reloaded
    payer.waits_for(lambda: payer.is_at_the_shop)
    assert payer.find(".badge.good").is_displayed()
    payer.chrome.back()
    payer.waits_for(lambda: payer.chrome.current_url == f"{running.url}/sandbox/inbox")
    payer.opens(placed["pay_url"])
    assert payer.find("#back").is_displayed()
    assert not payer.find("#leaving").is_displayed()
    payer.find("#back").click()
    payer.waits_for(lambda: payer.is_at_the_shop)


def test_a_payer_who_stays_is_not_sent_away(payer, running):
    placed = running.api.buy().data
    running.api.play(placed["order_no"], "success")
    payer.views(placed)
    payer.find("#stay").click()
    assert not payer.find("#leaving").is_displayed()
    assert payer.chrome.execute_script("return document.activeElement.id") == "back"
    payer.chrome.execute_async_script("setTimeout(arguments[0], 3500)")  # longer than the page waits
    assert payer.has_not_reloaded
    payer.opens(placed["pay_url"])
    assert not payer.find("#leaving").is_displayed()


def test_without_script_the_payer_returns_too_or_stays(payer, running):
    placed = running.api.buy().data
    running.api.play(placed["order_no"], "success")
    payer.sits_at(DESKTOP, "en")
    with scripts_disabled(payer):
        payer.chrome.get(placed["pay_url"])
        payer.find("#stay").click()
        payer.waits_for(lambda: not payer.find("#leaving").is_displayed())
        payer.chrome.get(placed["pay_url"])
        payer.waits_for(lambda: payer.is_at_the_shop)


@pytest.mark.parametrize("outcome", ["fail", "wrong_amount", "late", "success"])
def test_the_result_is_visible_without_scrolling_on_a_phone(outcome, payer, running):
    payer.views(running.api.buy().data)
    payer.find(f"button[value={outcome}]").click()
    payer.waits_for(lambda: payer.heading not in ("", "Test payment"))
    assert payer.heading_is_in_sight


def test_a_manual_transfer_is_claimed_by_the_payer_and_confirmed_by_the_operator(payer, running):
    placed = running.api.buy("50.00", channel=3, paychannel_paymethod="bank").data
    payer.views(placed, PHONE, "zh-CN")
    assert "6222 0200 0000 0000 001" in payer.find(".lines").text
    payer.find("form.claim button").click()
    payer.waits_for(lambda: payer.heading == "正在确认到账")
    assert running.api.status(placed["order_no"]) == "paid"
    payer.chrome.execute_script("window.sameDocument = true")
    running.flask("order", "paid", placed["order_no"])
    payer.waits_for(lambda: payer.heading == "支付成功")
    assert payer.has_not_reloaded
    assert running.api.status(placed["order_no"]) == "completed"


def test_without_script_the_page_shows_everything_needed_to_pay(payer, running):
    placed = running.api.buy("66.00", channel=3, paychannel_paymethod="bank").data
    payer.sits_at(PHONE, "en")
    with scripts_disabled(payer):
        payer.chrome.get(placed["pay_url"])
        for text in ("¥66.00", "6222 0200 0000 0000 001", placed["order_no"]):
            assert text in payer.find("main").text
        assert not payer.find(".copy").is_displayed()
        payer.find("form.claim button").click()
        payer.waits_for(lambda: payer.find(".panel:not([hidden]) h2").text == "Confirming your payment")


@pytest.mark.parametrize(("size", "language"), [(PHONE, "zh-CN"), (DESKTOP, "en")], ids=["phone", "desktop"])
def test_the_payer_copies_each_value_of_a_transfer_and_all_at_once(size, language, payer, running):
    placed = running.api.buy("1234.50", channel=3, paychannel_paymethod="bank").data
    payer.chrome.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    payer.views(placed, size, language)
    values = [payer.copies(button) for button in payer.chrome.find_elements(By.CSS_SELECTOR, ".lines .copy")]
    assert values == ["1234.50", "Demo Shop Ltd.", "Demo Bank", "6222020000000000001", placed["order_no"]]
    lines = payer.copies(payer.find(".all .copy")).splitlines()
    assert [line.split(": ")[1] for line in lines] == values
    payer.opens(placed["pay_url"])
    payer.chrome.execute_script("navigator.clipboard.writeText = () => Promise.reject(new Error())")
    assert payer.copies(payer.find(".lines .copy")) == "1234.50", "by the browser's own command instead"


@pytest.mark.parametrize(("size", "channel"), [(PHONE, 3), (DESKTOP, 2)], ids=["phone", "desktop"])
def test_the_page_fits_and_its_clock_runs(size, channel, payer, running):
    payer.views(running.api.buy("999999.99", channel=channel).data, size, "zh-CN")
    assert not payer.scrolls_sideways
    first = payer.find("#countdown").text
    payer.waits_for(lambda: payer.find("#countdown").text != first)
    for button in payer.chrome.find_elements(By.CSS_SELECTOR, "button"):
        assert button.is_displayed()
        assert button.accessible_name


def test_the_payer_changes_the_language_on_the_page(payer, running):
    placed = running.api.buy().data
    payer.views(placed)
    payer.find(".language").click()
    payer.waits_for(lambda: payer.find(".language").text == "English")
    assert payer.chrome.current_url == placed["pay_url"]
    payer.opens(running.api.buy().data["pay_url"])
    assert payer.find("html").get_attribute("lang") == "zh-CN"
    payer.find(".language").click()
    payer.waits_for(lambda: payer.find(".language").text == "中文")
    payer.chrome.delete_all_cookies()


def test_a_closed_page_shows_money_that_arrives_late_and_is_sent_back(payer, running):
    placed = running.api.buy().data

    def heading():
        payer.chrome.execute_script("window.dispatchEvent(new Event('online'))")  # asks now, not in 15 seconds
        return payer.heading

    payer.views(placed)
    running.api.play(placed["order_no"], "fail")
    payer.waits_for(lambda: heading() == "Order closed")
    running.api.play(placed["order_no"], "success")
    payer.waits_for(lambda: heading() == "Payment received, being checked")
    assert "Your payment arrived after this order had ended." in payer.find("main").text
    running.flask("order", "resolve", placed["order_no"], "--refund")
    payer.waits_for(lambda: heading() == "Payment sent back")
    assert payer.has_not_reloaded


def test_a_wrong_address_shows_a_message(payer, running):
    payer.sits_at(PHONE, "zh-CN")
    payer.chrome.get(f"{running.url}/addons/paychannel/pay/index?order_no=1")
    assert payer.heading == "未找到订单"
    assert not payer.scrolls_sideways
    assert all("404" in complaint for complaint in payer.complaints())


@pytest.fixture(scope="module")
def platform(running):
    """An epay platform of protocol version 2 and its channels: 5, 6 that opens on view, 7 that redirects."""
    with HTTPServer(threaded=True) as server:
        server.expect_request("/favicon.ico").respond_with_data(status=204)  # browsers request it at any time
        made = EpayPlatform(server)
        for number, more in ((5, {}), (6, {"open_on_view": "true"}), (7, {"redirect": "true"})):
            config = made.config("2", **more)
            pairs = [part for name, value in config.items() for part in ("--config", f"{name}={value}")]
            running.flask("channel", "add", "--category", "gateway_b", "--driver", "epay", "--name", "Epay", *pairs)
            running.flask("channel", "link", str(number), "demo")
        yield made


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_payment_opened_late_appears_automatically_and_is_paid(size, payer, running, platform):
    platform.fails(*["broken"] * 4)
    placed = running.api.buy("66.00", channel=5).data
    payer.views(placed, size)
    assert payer.heading == "Preparing your payment"
    payer.waits_for(lambda: payer.heading == "Scan with WeChat to pay", 30)
    assert payer.find("#checkout .qr").is_displayed()
    assert not payer.scrolls_sideways
    platform.pay(placed["order_no"])
    assert platform.notice(placed["order_no"], "2").to(running.api.send, placed["order_no"]).text == "success"
    payer.waits_for(lambda: payer.heading == "Payment complete")


@pytest.mark.parametrize(
    ("size", "gives", "on_the_page"),
    [(PHONE, "urlscheme", "a[href^='weixin:']"), (DESKTOP, "urlscheme", ".scan .qr"), (PHONE, "jump", "a.primary")],
)
def test_the_channels_payment_details_are_shown_where_they_are_usable(
    size, gives, on_the_page, payer, running, platform
):
    platform.gives = gives
    payer.views(running.api.buy(channel=5).data, size, "zh-CN")
    platform.gives = "qrcode"
    assert payer.find(on_the_page).is_displayed()
    links = payer.chrome.find_elements(By.CSS_SELECTOR, "a[href^='weixin:']")
    assert [link.is_displayed() for link in links] in ([], [size is PHONE])


@pytest.mark.parametrize(
    ("size", "language", "heading", "refused"),
    [
        (PHONE, "zh-CN", "微信扫码支付", "无法发起支付"),
        (DESKTOP, "en", "Scan with WeChat to pay", "Payment could not be started"),
    ],
    ids=["phone", "desktop"],
)
def test_a_payment_is_opened_once_its_page_is_viewed_and_after_a_refusal_by_trying_again(
    size, language, heading, refused, payer, running, platform
):
    opened, barred = (running.api.buy("77.00", channel=6).data for _ in range(2))
    assert opened["order_no"] not in platform.orders
    payer.views(opened, size, language)
    payer.waits_for(lambda: payer.heading == heading)
    assert payer.find("#checkout .qr").is_displayed()
    assert platform.orders[opened["order_no"]]["money"] == "77.00"

    platform.barred.add("127.0.0.1")
    payer.opens(barred["pay_url"])
    payer.waits_for(lambda: payer.heading == refused)
    assert "你今天已无法再发起支付，请明天再试" in payer.find(".pay").text
    assert not payer.scrolls_sideways
    platform.barred.clear()
    payer.find("button[name=again]").click()
    payer.waits_for(lambda: payer.heading == heading)


def test_with_redirect_the_button_opens_the_platforms_own_page(payer, running, platform):
    placed = running.api.buy("77.00", channel=7).data
    payer.views(placed, PHONE, "zh-CN")
    payer.find(".pay a.primary").click()
    payer.waits_for(lambda: payer.chrome.current_url == f"{platform.url}/api/pay/submit")
    assert placed["order_no"] in platform.orders


@pytest.fixture(scope="module")
def epay_shop(running):
    """A shop at the epay gateway: Alipay leads to one channel, WeChat Pay to two."""
    hosts = ("--host", "127.0.0.1", "--host", "localhost")
    types = ("--type", "alipay=2", "--type", "wxpay=1", "--type", "wxpay=2")
    keys = json.loads(running.flask("epay", "enable", "demo", *hosts, *types, "--json").stdout)
    with HTTPServer(threaded=True) as server:
        server.expect_request("/favicon.ico").respond_with_data(status=204)
        server.expect_request("/thanks").respond_with_data("Thank you for your order.", content_type="text/html")
        shop = Shop(running.api.send, server, keys)
        shop.return_url = server.url_for("/thanks?page=1")
        yield shop


def submitted(shop, running, **changed):
    """The address to which the shop sends the payer's browser."""
    return f"{running.url}/submit.php?{urlencode(shop.signed(**changed))}"


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no script"])
@pytest.mark.parametrize(
    ("size", "language", "choose", "complete", "back"),
    [
        (PHONE, "zh-CN", "请选择支付方式", "支付成功", "返回 Demo Shop 演示商户"),
        (DESKTOP, "en", "Choose a payment method", "Payment complete", "Back to Demo Shop 演示商户"),
    ],
    ids=["phone", "desktop"],
)
def test_a_payer_comes_from_the_shop_chooses_pays_and_returns(
    size, language, choose, complete, back, has_script, payer, running, epay_shop
):
    number = f"SHOP-{size[0]}-{has_script}"
    payer.sits_at(size, language)
    with scripts_disabled(payer, not has_script):
        payer.opens(submitted(epay_shop, running, type="wxpay", out_trade_no=number))
        assert payer.heading == choose
        assert not payer.scrolls_sideways
        names = [each.accessible_name for each in payer.chrome.find_elements(By.CSS_SELECTOR, ".choices button")]
        assert [name.split()[-1] for name in names] == ["A", "B"]
        payer.find(".choices button:last-child").click()
        payer.waits_for(lambda: payer.find("button[value=success]")).click()
        payer.waits_for(lambda: payer.heading == complete)
        assert payer.find("#back").text == back
        payer.waits_for(lambda: "Thank you for your order." in payer.find("body").text)
    returned = dict(parse_qsl(urlsplit(payer.chrome.current_url).query))
    assert (returned["out_trade_no"], returned["trade_status"]) == (number, "TRADE_SUCCESS")
    assert returned.pop("page") == "1"
    assert epay_shop.is_ours(returned)


@pytest.mark.parametrize(
    ("size", "language", "heading", "reason"),
    [
        (PHONE, "zh-CN", "无法发起支付", "签名校验失败"),
        (DESKTOP, "en", "The payment could not be started", "Signature verification failed"),
    ],
)
def test_a_refused_payer_learns_what_to_do_and_the_shop_why(size, language, heading, reason, payer, running, epay_shop):
    payer.sits_at(size, language)
    payer.chrome.get(submitted(epay_shop, running).replace("sign=", "sign=0"))
    assert payer.heading == heading
    assert not payer.scrolls_sideways
    assert not payer.find(".reason p").is_displayed()
    payer.find(".reason summary").click()
    assert reason in payer.find(".reason p").text
    assert all("400" in complaint for complaint in payer.complaints())


def test_the_inbox_shows_a_callback_when_it_arrives(payer, running):
    payer.sits_at(DESKTOP, "en")
    payer.opens(f"{running.url}/sandbox/inbox")
    other = DemoApi(running.api.send, "other")  # its callbacks go there from the start
    order_no = other.buy().data["order_no"]
    other.play(order_no, "success")
    payer.waits_for(lambda: order_no in payer.find("#items").text)
    assert "Signature valid" in payer.find("#items").text
    assert payer.has_not_reloaded


def test_the_last_two_minutes_have_a_bar_and_are_announced_once(payer, running):
    """The last test here, because the service's clock stays ahead."""
    payer.views(running.api.buy().data)
    assert not payer.find("#left").is_displayed()
    payer.chrome.execute_script(
        "window.heard = []; new MutationObserver(() => heard.push(document.getElementById('announcer').textContent))"
        ".observe(document.getElementById('announcer'), {childList: true})"
    )
    running.api.send("POST", "/sandbox/clock", b"seconds=800", FORM)
    payer.waits_for(lambda: payer.find("#left").is_displayed())
    first = float(payer.find("#left").get_property("value"))
    payer.waits_for(lambda: float(payer.find("#left").get_property("value")) < first)
    assert payer.chrome.execute_script("return heard") == ["Less than two minutes left to pay"]
    running.api.send("POST", "/sandbox/clock", b"seconds=101", FORM)
    payer.waits_for(lambda: payer.heading != "Test payment")
    assert not payer.find("#left").is_displayed()
