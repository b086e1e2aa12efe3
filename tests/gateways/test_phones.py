"""Payments that depend on the payer's browser: WeChat's JSAPI and H5, Alipay's pages for phones and computers.

`sdk` in a name: compared with the vendors' SDKs.
"""

import json
import re
from html import unescape
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
import requests
from alipay import AliPay
from wechatpayv3 import WeChatPayType

from gateways import registry
from gateways.base import Payer, Payment
from runtime.settings import Settings
from runtime.state import Runtime
from services.deposits import attempts
from tests.pages import CASHIER, GO, SIGNED_IN
from tests.payers import AGENTS, MAC
from tests.upstreams.alipay import APP_ID

START = 1_000_000
PAID = START + 9_940
PAGES = "/addons/paychannel/pay"  # the path of cookies


HARMONY = "Chrome/114.0 Safari/537.36 ArkWeb/4.1"
WAYS = {  # in which WeChat is paid, by the payer's browser
    "wechat": "jsapi",
    "mobile": "h5",
    "pc": "native",
    "alipay": "native",
    "qq": "native",
    # WeChat on computers, and WeCom.
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/126.0 Safari/537.36 MicroMessenger/7.0 WindowsWechat": "native",
    "Mozilla/5.0 (X11; Linux x86_64) Chrome/132.0 MicroMessenger/7.0 UnifiedPCLinuxWechat(0xf)": "native",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Mobile/15E148 MicroMessenger/7.0.1 wxwork/4.1.10": "native",
    MAC: "native",
    # HarmonyOS 4 to 6 in computers, a tablet and a phone; another Android tablet in Firefox.
    f"Mozilla/5.0 (PC; OpenHarmony 5.0) AppleWebKit/537.36 {HARMONY}": "native",
    f"Mozilla/5.0 (PC; OpenHarmony 5.0) AppleWebKit/537.36 {HARMONY} MicroMessenger/8.0.8": "native",
    "Mozilla/5.0 (PC; HarmonyOS 6.0) AppleWebKit/537.36 Chrome/132.0 Safari/537.36 ArkWeb/6.0": "native",
    f"Mozilla/5.0 (Tablet; OpenHarmony 5.0) AppleWebKit/537.36 {HARMONY}": "h5",
    f"Mozilla/5.0 (Phone; OpenHarmony 5.0) AppleWebKit/537.36 {HARMONY}": "h5",
    "Mozilla/5.0 (Linux; HarmonyOS; MRX-W09; HMSCore 6.14) HuaweiBrowser/15.0 Safari/537.36": "h5",
    "Mozilla/5.0 (Android 14; Tablet; rv:140.0) Gecko/140.0 Firefox/140.0": "h5",
}
FAILURES = [(40163, "code been used"), (40125, "invalid appsecret"), (-1, "system busy")]  # of WeChat's sign-in


@pytest.fixture
def phone(payer):
    """`phone()`: a payer in WeChat; `phone("mobile", address)`: one with another browser."""
    return lambda browser="wechat", *address: payer(browser, *address)


@pytest.fixture
def wechat_channel(wechat, sign_in, add_channel):
    return add_channel("wechatpay", wechat.config(**sign_in.config(), h5="true"))


@pytest.fixture
def alipay_channel(alipay, add_channel):
    return add_channel("alipay", alipay.config("key", wap="true", page="true"))


@pytest.fixture
def placed(api):
    """`placed(channel, "alipay")`: the number of a new deposit of 100 yuan."""
    return lambda channel, method="wxpay": api.buy(channel=channel, paychannel_paymethod=method).data["order_no"]


@pytest.fixture
def pays(api):
    """`pays(wechat, number)`: the payer pays an attempt, and the upstream's notice about it is accepted."""

    def pay(upstream, number):
        upstream.pay(number)
        assert upstream.notice(number).to(api.send, number.partition("_")[0]).text in ("", "success")

    return pay


def bridge(page):
    """The parameters that the page gives to WeChat."""
    return json.loads(unescape(re.search(r'data-bridge="([^"]*)"', page)[1]))


def states(wechat):
    """The state at WeChat of each attempt, by its number."""
    return {number: made["trade_state"] for number, made in wechat.orders.items()}


# --- WeChat


def test_the_payers_browser_decides_how_wechat_is_paid(wechat, wechat_channel, placed, phone):
    ways = {}
    for number, browser in enumerate(WAYS):
        order_no = placed(wechat_channel)
        assert order_no not in wechat.orders
        phone(browser, f"203.0.113.{number}").opens(order_no)
        ways[browser] = wechat.orders[order_no]["way"]
    assert ways == WAYS


def test_a_payer_in_wechat_pays_there_after_a_silent_sign_in(wechat, sign_in, wechat_channel, placed, phone, api, pays):
    order_no, payer = placed(wechat_channel), phone()
    page = payer.views(order_no)
    [authorize] = [address for address in payer.visited if "authorize" in address]
    assert authorize.endswith("#wechat_redirect")
    [back] = parse_qs(urlsplit(authorize).query)["redirect_uri"]
    assert urlsplit(back).path == SIGNED_IN, "the registered directory"
    asked = wechat.orders[order_no]["asked"]
    assert (asked["payer"], asked["amount"]["total"]) == ({"openid": sign_in.openid}, 10_000)
    assert bridge(page)["package"] == f"prepay_id=wx26112209580621e9b071c00d9e093b00{order_no[-9:]}"
    assert ("Pay with WeChat" in page, 'class="qr"' in page) == (True, False)
    assert payer.policy(order_no).endswith("; frame-src weixin:")
    assert "frame-src" not in phone("pc").policy(order_no)
    [signed_in] = [address for address in payer.visited if urlsplit(address).path == SIGNED_IN]
    assert bridge(payer.get(signed_in)) == bridge(page), "WeChat accepts a code once"
    payer.visited.clear()
    assert bridge(payer.views(order_no)) == bridge(page)
    assert (len(payer.visited), payer.is_ready(order_no)) == (1, True), "the payer does not sign in again"
    pays(wechat, order_no)
    assert api.status(order_no) == "completed"


def test_two_payers_who_close_each_others_attempts_do_not_end_the_order(
    wechat, wechat_channel, placed, phone, api, ahead, later, exceptions, monkeypatch
):
    order_no, slow, fast = placed(wechat_channel), phone("mobile"), phone("pc", "203.0.113.8")
    slow.opens(order_no)
    ahead(241)  # the link must be renewed
    requests_of_slow, turn = iter([fast]), attempts.channel_slot

    def waits_for_a_turn(channel_id):
        for other in requests_of_slow:
            other.opens(order_no)
        return turn(channel_id)

    monkeypatch.setattr(attempts, "channel_slot", waits_for_a_turn)
    assert "Try again" in slow.opens(order_no)
    assert [made["trade_state"] for made in wechat.orders.values()] == ["CLOSED", "CLOSED"]
    later(61)
    assert (api.status(order_no), exceptions()) == ("pending", {})
    assert 'class="qr"' in fast.opens(order_no)
    wechat.pay(f"{order_no}_3")
    later(121)
    assert (api.status(order_no), exceptions()) == ("completed", {})


def test_the_openid_is_on_no_page_and_its_hash_can_be_erased(
    wechat, sign_in, wechat_channel, placed, phone, instance, due, flask, shop, caplog, pays
):
    order_no = placed(wechat_channel)
    assert sign_in.openid not in phone().views(order_no) + caplog.text
    assert all(sign_in.openid.encode() not in file.read_bytes() for file in instance.glob("*.sqlite*"))
    pays(wechat, order_no)
    due()
    assert "erased in 1 of 1 orders" in flask("privacy", "erase", order_no, "--yes").output
    assert "erased in 0 of 1 orders" in flask("privacy", "erase", order_no, "--yes").output


def test_a_sign_in_that_this_browser_did_not_begin_opens_nothing(wechat, sign_in, wechat_channel, placed, phone):
    order_no = placed(wechat_channel)
    sign_in.codes["1"] = sign_in.openid
    for query in (
        "",
        "&code=1",
        "&code=1&state=",
        "&code=1&state=x",
        "&code=1&state=%F0%9F",
        "&code=1&state=%E5%BC%A0",
    ):
        page = phone().get(f"{SIGNED_IN}?order_no={order_no}{query}")
        assert "Payment could not be started" in page, query
    stranger, state = phone(), f"{1:048x}"
    stranger.client.set_cookie("sign_in", state, path=PAGES)  # that no page of ours set
    page = stranger.get(f"{SIGNED_IN}?order_no={order_no}&code=1&state={state}")
    assert "Payment could not be started" in page
    assert (sign_in.calls, wechat.orders) == ([], {})


def test_a_failed_sign_in_is_tried_again_once_and_then_by_the_payer(sign_in, wechat_channel, placed, phone, caplog):
    for number, error in enumerate(FAILURES):
        order_no, payer = placed(wechat_channel), phone("wechat", f"203.0.113.{number}")
        sign_in.errors += [error, error]
        page = payer.views(order_no)
        assert "Payment could not be started" in page
        assert f'href="{CASHIER}?order_no={order_no}"' in page
        assert caplog.text.count(error[1]) == 2
        sign_in.errors.append(error)
        assert bridge(payer.views(order_no)), "the second sign-in succeeds"
    for fault in ("unheard", "half", "garbage", "broken"):
        order_no, payer = placed(wechat_channel), phone("wechat", f"198.51.100.{len(fault)}")
        sign_in.fails("", fault, "", fault)
        assert "Payment could not be started" in payer.views(order_no), fault
        assert bridge(payer.views(order_no)), fault


def test_a_sign_in_that_wechat_loads_twice_leads_to_the_payment(wechat, wechat_channel, placed, phone):
    order_no, payer = placed(wechat_channel), phone()
    payer.views(order_no)
    [used] = [address for address in payer.visited if SIGNED_IN in address and "code=" in address]
    second = phone()  # this load begins before the browser has the cookie of the first
    began = payer.client.get_cookie("sign_in", path=PAGES)
    second.client.set_cookie("sign_in", began.value, path=PAGES)
    assert bridge(second.get(used))
    assert list(wechat.orders) == [order_no]


def test_a_refusal_in_wechat_is_shown_and_the_payer_can_try_again(wechat, wechat_channel, placed, phone):
    order_no, payer = placed(wechat_channel), phone()
    wechat.refuses.append((400, {"code": "NO_AUTH", "message": "商户未开通JSAPI支付"}))
    page = payer.views(order_no)
    assert "商户未开通JSAPI支付" in page
    again = f"{CASHIER}?order_no={order_no}&again=1"
    assert f'href="{again}"' in unescape(page)
    assert bridge(payer.get(again))
    assert [made["way"] for made in wechat.orders.values()] == ["jsapi"]


def test_without_a_response_the_page_in_wechat_waits_and_then_tries_again(wechat, wechat_channel, placed, phone, ahead):
    order_no, payer = placed(wechat_channel), phone()
    wechat.fails("broken")
    page = payer.views(order_no)
    assert "responding slowly" in page
    assert '<meta http-equiv="refresh" content="20">' in page
    assert len(payer.visited) == 4, "it does not sign in again at once"
    ahead(20)
    assert bridge(payer.views(order_no))
    assert list(wechat.orders) == [order_no]


def test_after_the_expiry_no_page_leads_to_a_payment(
    wechat, sign_in, wechat_channel, alipay_channel, placed, phone, ahead
):
    in_wechat, by_alipay, payer = placed(wechat_channel), placed(alipay_channel, "alipay"), phone("mobile")
    payer.opens(by_alipay)
    ahead(900)
    page, form = payer.goes(by_alipay)
    assert (form, "Payment time expired" in page) == ({}, True)
    assert "Payment time expired" in phone().views(in_wechat)
    assert (sign_in.calls, wechat.calls) == ([], [])


@pytest.mark.parametrize("state", ["another amount", "an unknown part was returned"])
def test_a_payer_whose_money_is_being_checked_is_not_led_to_pay_again(
    state, wechat, wechat_channel, placed, phone, later
):
    order_no = placed(wechat_channel)
    phone("mobile").opens(order_no)
    wechat.pay(order_no, 9_000)
    if state == "an unknown part was returned":
        wechat.orders[order_no]["trade_state"] = "REFUND"
    later(61)
    wechat.calls.clear()
    for browser in ("wechat", "mobile"):
        payer = phone(browser)
        page = payer.opens(order_no) + payer.goes(order_no)[0]
        assert page.count('data-state="checking"') == 2
        assert {urlsplit(address).path for address in payer.visited} <= {CASHIER, GO}, "not to WeChat"
    assert wechat.calls == []


def test_an_order_opened_before_the_settings_changed_keeps_its_code(
    wechat, sign_in, alipay, add_channel, placed, phone, flask
):
    before = {}
    for driver, config, method in (
        ("wechatpay", sign_in.config(h5="true"), "wxpay"),
        ("alipay", {"wap": "true", "page": "true"}, "alipay"),
    ):
        upstream = wechat if driver == "wechatpay" else alipay
        channel = add_channel(driver, upstream.config() if driver == "wechatpay" else upstream.config("key"))
        before[placed(channel, method)] = channel
        flask("channel", "set", channel, *(part for pair in config.items() for part in ("--config", "=".join(pair))))
    for order_no in before:
        for browser in ("mobile", "wechat"):
            payer = phone(browser, f"203.0.113.{order_no[-2:]}")
            assert 'class="qr"' in payer.opens(order_no)
            assert 'class="qr"' in payer.goes(order_no)[0]


def test_a_page_learns_that_the_payment_was_opened_in_another_browser(wechat_channel, placed, phone):
    order_no, computer = placed(wechat_channel), phone("pc")
    computer.opens(order_no)
    phone("qq").opens(order_no)
    assert computer.has_moved(order_no) is False, "both show the same code"
    for browser, moved in (("mobile", True), ("pc", False)):
        phone(browser).opens(order_no)
        assert (computer.has_moved(order_no), computer.is_ready(order_no)) == (moved, not moved)


@pytest.mark.parametrize("viewed", [False, True], ids=["not viewed", "viewed in WeChat"])
def test_an_order_stays_payable_when_the_settings_are_switched_off(
    viewed, wechat, wechat_channel, placed, phone, flask, later, api, pays
):
    order_no = placed(wechat_channel)
    if viewed:
        phone().views(order_no)
    flask("channel", "set", wechat_channel, "--config", "jsapi=false", "--config", "h5=false")
    later(60)
    for browser in ("pc", "wechat"):
        assert 'class="qr"' in phone(browser).opens(order_no)
    ways = [(number, made["way"], made["trade_state"]) for number, made in wechat.orders.items()]
    number = f"{order_no}_2" if viewed else order_no
    assert ways == [*([(order_no, "jsapi", "CLOSED")] if viewed else []), (number, "native", "NOTPAY")]
    pays(wechat, number)
    later(5)
    assert api.status(order_no) == "completed"


def test_on_a_phone_a_link_opens_wechat_and_returns_to_the_page(wechat, wechat_channel, placed, phone):
    order_no, payer = placed(wechat_channel), phone("mobile")
    assert f'href="{GO}?order_no={order_no}"' in payer.opens(order_no)
    scene = wechat.orders[order_no]["asked"]["scene_info"]
    assert scene == {"payer_client_ip": "203.0.113.7", "h5_info": {"type": "Wap"}}
    link, _ = payer.goes(order_no)
    assert link.startswith("https://wx.tenpay.com/cgi-bin/mmpayweb-bin/checkmweb?prepay_id=")
    [back] = parse_qs(urlsplit(link).query)["redirect_url"]
    assert back.endswith(f"{CASHIER}?order_no={order_no}")


@pytest.mark.parametrize("settings_of_app", [{"buy_expiry": 1_500}])
def test_a_link_is_renewed_under_its_own_number_until_it_is_paid(
    wechat, wechat_channel, placed, phone, ahead, due, api
):
    order_no, payer = placed(wechat_channel), phone("mobile")
    payer.opens(order_no)
    for _ in range(5):
        ahead(200)
        assert payer.goes(order_no)[0].startswith("https://wx.tenpay.com")
        ahead(40)
        assert 'id="open"' in payer.goes(order_no)[0], "the page opens the payment again"
        payer.opens(order_no)
        assert payer.goes(order_no)[0].startswith("https://wx.tenpay.com")
    assert states(wechat) == {order_no: "NOTPAY"}
    wechat.pay(order_no)
    ahead(250)
    payer.opens(order_no)
    due()
    assert (api.status(order_no), states(wechat)) == ("completed", {order_no: "SUCCESS"})


@pytest.mark.parametrize("code", ["INVALID_REQUEST", "OUT_TRADE_NO_USED"])
def test_a_link_that_wechat_does_not_renew_is_replaced_by_one_under_a_new_number(
    code, wechat, wechat_channel, placed, phone, ahead, exceptions
):
    order_no, payer = placed(wechat_channel), phone("mobile")
    payer.opens(order_no)
    ahead(250)
    wechat.refuses.append((400, {"code": code, "message": "201 商户订单号重复"}))
    payer.opens(order_no)
    assert payer.goes(order_no)[0].startswith("https://wx.tenpay.com")
    assert states(wechat) == {order_no: "CLOSED", f"{order_no}_2": "NOTPAY"}
    assert exceptions() == {}


def test_people_open_a_link_in_a_group_chat_and_the_last_one_pays(
    wechat, sign_in, wechat_channel, placed, phone, ahead, later, api, pays
):
    order_no = placed(wechat_channel)
    for member in range(7):
        sign_in.openid = f"oMemberOfTheGroup{member:011d}"
        ahead(10)
        assert bridge(phone().views(order_no))
    *others, last = wechat.orders
    assert wechat.orders[last]["asked"]["payer"] == {"openid": sign_in.openid}
    assert states(wechat) == dict.fromkeys(others, "CLOSED") | {f"{order_no}_7": "NOTPAY"}
    wechat.calls.clear()
    later(61)
    assert [call.path.rpartition("/")[2] for call in wechat.calls] == [last], "closed attempts are not checked again"
    pays(wechat, last)
    later(1)
    assert api.status(order_no) == "completed"


def test_an_order_whose_attempts_are_all_closed_stays_open_for_the_next_payer(
    wechat, wechat_channel, placed, phone, later, api, monkeypatch
):
    order_no = placed(wechat_channel)
    phone("pc").opens(order_no)
    with monkeypatch.context() as patch:
        patch.setattr(
            wechat, "_create", lambda way, order: wechat._error(403, {"code": "NO_AUTH", "message": "无权限"})
        )
        phone("mobile").opens(order_no)
    assert states(wechat) == {order_no: "CLOSED"}
    wechat.calls.clear()
    later(61)
    assert (api.status(order_no), wechat.calls) == ("pending", [])
    phone("pc").opens(order_no)
    assert states(wechat) == {order_no: "CLOSED", f"{order_no}_3": "NOTPAY"}
    later(900)
    assert (api.status(order_no), states(wechat)[f"{order_no}_3"]) == ("cancelled", "CLOSED")


@pytest.mark.parametrize("paid", ["the closed one", "the open one"])
def test_an_attempt_that_was_closed_stops_no_other_and_is_checked_after_its_notice(
    paid, wechat, alipay, wechat_channel, alipay_channel, placed, phone, later, api, exceptions, pays
):
    order_no, by_alipay = placed(wechat_channel), placed(alipay_channel, "alipay")
    phone("pc").opens(order_no)
    if paid == "the open one":
        wechat.orders[order_no]["trade_state"] = "CLOSED"  # by WeChat itself
    phone("mobile").opens(order_no)
    assert phone("mobile").goes(order_no)[0].startswith("https://wx.tenpay.com")
    assert states(wechat) == {order_no: "CLOSED", f"{order_no}_2": "NOTPAY"}
    number = order_no if paid == "the closed one" else f"{order_no}_2"
    pays(wechat, number)
    later(1)
    assert (api.status(order_no), exceptions()) == ("completed", {})

    phone("qq").opens(by_alipay)
    alipay.scan(by_alipay)
    alipay.trades[by_alipay]["trade_status"] = "TRADE_CLOSED"
    phone("mobile").opens(by_alipay)
    _, fields = phone("mobile").goes(by_alipay)
    assert json.loads(fields["biz_content"])["out_trade_no"] == f"{by_alipay}_2"


def test_wechat_is_asked_about_few_sign_ins_of_one_order_in_a_minute(sign_in, wechat_channel, placed, phone, clock):
    order_no, payer = placed(wechat_channel), phone()
    began = payer.client.get(f"{CASHIER}?order_no={order_no}", headers={"User-Agent": AGENTS["wechat"]})
    [state] = parse_qs(urlsplit(began.headers["Location"]).query)["state"]
    for second in range(16):
        clock(second)
        page = payer.get(f"{SIGNED_IN}?order_no={order_no}&code={second}&state={state}&retried=1")
    assert len(sign_in.calls) == 10
    assert "Too many requests" in page
    clock(120)
    assert bridge(phone().views(order_no))


def test_paid_by_two_ways_the_second_payment_needs_an_operator(
    wechat, wechat_channel, placed, phone, api, later, balances, exceptions
):
    order_no = placed(wechat_channel)
    phone().views(order_no)
    wechat.fails("", "lost")  # the status check has a response, closing has none, so the first attempt stays open
    phone("pc").opens(order_no)
    wechat.orders[order_no]["trade_state"] = "NOTPAY"
    later(60)
    phone("mobile").opens(order_no)
    for number in wechat.orders:
        wechat.orders[number]["trade_state"] = "NOTPAY"
        wechat.pay(number)
    assert len(wechat.orders) == 2
    wechat.notice(order_no).to(api.send, order_no)
    later(5, 60)
    assert (api.status(order_no), balances()[0], exceptions()) == ("completed", PAID, {order_no: "paid_twice"})


def test_without_the_settings_everyone_gets_the_same_code(wechat, add_channel, placed, phone):
    order_no = placed(add_channel("wechatpay", wechat.config()))
    assert all('class="qr"' in phone(browser).views(order_no) for browser in AGENTS)
    assert [made["way"] for made in wechat.orders.values()] == ["native"]


def test_a_check_of_the_channel_tests_the_appsecret(wechat, sign_in, add_channel, flask):
    def found(fails, **config):
        channel = add_channel("wechatpay", wechat.config(**sign_in.config(**config)))
        rows = json.loads(flask("channel", "check", channel, "--json", fails=fails).output)
        return [(row["result"], row["detail"].partition(",")[0]) for row in rows if row["check"] == "jsapi"]

    assert found(False) == [("ok", "WeChat accepts the AppSecret.")]
    assert found(True, app_secret="0" * 32) == [("problem", "WeChat rejects the sign-in: invalid appsecret")]


def test_the_domain_file_of_a_channel_is_served(wechat, sign_in, add_channel, http):
    add_channel("wechatpay", wechat.config(**sign_in.config(domain_file="MP_verify_0123456789abcdef.txt")))
    served = http("GET", "/MP_verify_0123456789abcdef.txt")
    assert (served.status, served.text) == (200, "0123456789abcdef")
    assert http("GET", "/MP_verify_0123456789abcdee.txt").status == 404


# --- Alipay


def test_the_payers_browser_decides_how_alipay_is_paid(alipay, alipay_channel, placed, phone, api, pays):
    page, wap = "alipay.trade.page.pay", "alipay.trade.wap.pay"
    for browser, way in {"mobile": wap, "alipay": wap, "pc": page, "wechat": None, "qq": None}.items():
        order_no, payer = placed(alipay_channel, "alipay"), phone(browser)
        assert ('class="qr"' in payer.opens(order_no)) == (way is None)
        if way:
            address, form = payer.goes(order_no)
            assert "<b>100.00</b>" in requests.post(address, data=form, timeout=10).text
        assert alipay.codes[order_no].get("way") == way
        pays(alipay, order_no)
        assert api.status(order_no) == "completed"


def test_alipays_codes_name_the_product_of_the_contract(alipay, add_channel, placed):
    for order_code, product in (("true", "QR_CODE_OFFLINE"), ("false", None)):
        order_no = placed(add_channel("alipay", alipay.config("key", order_code=order_code)), "alipay")
        assert alipay.codes[order_no].get("product_code") == product


def test_alipays_form_is_signed_when_it_is_used_and_its_page_returns_to_ours(
    alipay, alipay_channel, placed, phone, api, ahead
):
    order_no, payer = placed(alipay_channel, "alipay"), phone("mobile")
    payer.opens(order_no)
    assert alipay.calls == [], "nothing is sent to Alipay by the service"
    ahead(11 * 60)  # Alipay refuses a form that is older than ten minutes
    address, form = payer.goes(order_no)
    assert "<b>100.00</b>" in requests.post(address, data=form, timeout=10).text
    made = alipay.codes[order_no]
    assert made["quit_url"].endswith(f"{CASHIER}?order_no={order_no}")
    assert made["notify_url"].endswith(f"/addons/paychannel/notify/{order_no}")
    assert re.fullmatch(r"[0-9-]{10} [0-9:]{8}", made["time_expire"])
    back = alipay.return_address(order_no)  # with fields that Alipay adds
    assert urlsplit(back).path == f"{CASHIER}/{order_no}", "Alipay allows no query of ours"
    assert order_no in payer.get(back)
    assert payer.visited[-1] == f"{CASHIER}?order_no={order_no}"
    assert api.status(order_no) == "pending"


def test_a_second_payment_is_found_although_its_notice_was_lost_and_the_settings_were_switched_off(
    alipay, alipay_channel, placed, phone, api, later, exceptions, balances, flask, pays
):
    order_no = placed(alipay_channel, "alipay")
    for browser in ("pc", "mobile"):
        payer = phone(browser)
        payer.opens(order_no)
        address, form = payer.goes(order_no)
        assert requests.post(address, data=form, timeout=10).status_code == 200
    flask("channel", "set", alipay_channel, "--config", "wap=false", "--config", "page=false")
    pays(alipay, f"{order_no}_2")
    later(5)
    assert (api.status(order_no), exceptions()) == ("completed", {})
    alipay.pay(order_no)
    later(601)
    assert (balances()[0], exceptions()) == (PAID, {order_no: "paid_twice"})


def test_an_order_with_several_attempts_is_checked_three_times_after_it_completed(
    alipay, alipay_channel, placed, phone, api, later, order_details, pays
):
    order_no = placed(alipay_channel, "alipay")
    for browser in ("wechat", "mobile"):
        phone(browser).opens(order_no)
    pays(alipay, order_no)
    later(5)
    assert api.status(order_no) == "completed"
    alipay.calls.clear()
    for seconds in (601, 3_000, 83_000):
        later(seconds)
    assert len(alipay.calls) == 3 * 2
    assert order_details(order_no)["due_at"] is None


# --- the vendors' SDKs


@pytest.fixture
def runtime_for_drivers():
    """Drivers without an app; the other sides are on this machine."""
    Runtime(Settings(private_channels=True)).enter()


def _payment(browser, openid=""):
    pages = ("https://shop.example.com/notify", "https://shop.example.com/pay?order_no=sdk-0001", 2_000_000_000)
    return Payment("sdk-0001", 100, "wxpay", "Order", *pages, Payer("203.0.113.7", browser, openid))


@pytest.mark.parametrize(("browser", "way"), [("wechat", "JSAPI"), ("mobile", "H5"), ("pc", "NATIVE")])
def test_the_sdk_and_the_driver_send_the_same_order(browser, way, wechat, sign_in, wechat_sdk, runtime_for_drivers):
    openid = {"openid": sign_in.openid} if way == "JSAPI" else None
    scene = {"payer_client_ip": "203.0.113.7", "h5_info": {"type": "Wap"}} if way == "H5" else None
    driver = registry.build("wechatpay", wechat.config(**sign_in.config(), h5="true"))
    driver.open_payment(_payment(browser, sign_in.openid))
    amount, until = {"total": 100, "currency": "CNY"}, "2033-05-18T11:33:20+08:00"
    kind = WeChatPayType[way]
    code, _ = wechat_sdk().pay("Order", "sdk-0001", amount, openid, until, scene_info=scene, pay_type=kind)
    ours, theirs = wechat.calls
    assert (code, ours.path) == (200, theirs.path)
    assert json.loads(ours.get_data()) == json.loads(theirs.get_data())


def test_the_sdk_verifies_what_the_page_gives_to_wechat(wechat, sign_in, wechat_sdk, runtime_for_drivers):
    driver = registry.build("wechatpay", wechat.config(**sign_in.config()))
    given = driver.open_payment(_payment("wechat", sign_in.openid)).bridge
    signed = [given[name] for name in ("appId", "timeStamp", "nonceStr", "package")]
    assert given["signType"] == "RSA"
    assert given["paySign"] == wechat_sdk().sign(signed)


@pytest.mark.parametrize(("browser", "page"), [("mobile", "wap"), ("pc", "page")])
def test_the_sdk_signs_alipays_page_as_the_driver_does(browser, page, alipay, runtime_for_drivers):
    opened = registry.build("alipay", alipay.config("key", wap="true", page="true")).open_payment(_payment(browser))
    ours = dict(parse_qsl(urlsplit(opened.redirect).query)) | opened.fields
    sdk = AliPay(APP_ID, "", alipay.app_private, alipay.public)
    sign = {"wap": sdk.api_alipay_trade_wap_pay, "page": sdk.api_alipay_trade_page_pay}[page]
    of_wap = {"product_code": "QUICK_WAP_WAY", "quit_url": "https://shop.example.com/pay?order_no=sdk-0001"}
    signed = sign(
        subject="Order",
        out_trade_no="sdk-0001",
        total_amount="1.00",
        return_url="https://shop.example.com/pay/sdk-0001",
        notify_url="https://shop.example.com/notify",
        time_expire="2033-05-18 11:33:20",
        **(of_wap if page == "wap" else {}),
    )
    theirs = dict(parse_qsl(signed))
    assert json.loads(ours["biz_content"]) == json.loads(theirs["biz_content"])
    assert {**theirs, "format": "JSON"}.keys() == ours.keys()
    again = {name: value for name, value in ours.items() if name != "sign"}
    assert parse_qs(sdk.sign_data(again))["sign"] == [ours["sign"]]


def test_a_group_takes_payers_in_wechat_past_the_sign_in_of_a_member_that_was_disabled(
    wechat, sign_in, add_channel, platform, flask, flask_json, api, payer
):
    first = add_channel("wechatpay", wechat.config(**sign_in.config()))
    second = add_channel("epay", platform.config("1", open_on_view="true"))
    group = flask_json("channel", "add", "--category", "gateway_b", "--driver", "group", "--name", "Group")["id"]
    flask("channel", "link", group, "demo")
    for channel in (first, second):
        flask("group", "add", group, channel)
    order_no = api.buy(channel=group).data["order_no"]
    flask("channel", "set", first, "--disabled")
    browser = payer("wechat")
    browser.opens(order_no)
    assert (browser.is_ready(order_no), list(platform.orders)) == (True, [order_no])
    assert not any("/sign-in/" in address for address in browser.visited)
