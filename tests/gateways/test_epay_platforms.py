"""epay, version 1 and 2: undocumented responses of real platforms, sent by the loopback platform."""

import json
import time

import pytest
from werkzeug import Response

from gateways.base import ChannelRefused, ChannelUnknown, Opened, Payment
from gateways.registry import build
from tests.gateways.adapters import error_page
from tests.upstreams.epay import EpayPlatform

START = 1_000_000


def answer(said, status=200):
    return Response(json.dumps(said, ensure_ascii=False), status, content_type="text/html; charset=utf-8")


# --- a page instead of a response


def test_a_page_in_response_to_a_status_check_proves_nothing_about_the_order(
    api, channel, platform, later, exceptions, monkeypatch
):
    order_no = api.buy(channel=channel).data["order_no"]
    monkeypatch.setattr(platform, "answer", lambda path, request: Response(error_page("订单号不存在"), 200))
    later(450, times=3)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})


def test_money_for_an_order_refused_by_a_page_is_visible(version, api, channel, platform, flask_json, exceptions):
    platform.page = error_page("支付方式(type)不存在")
    api.buy(channel=channel)
    order_no = flask_json("order", "list")[0]["order_no"]
    order = {
        "pid": "1001",
        "trade_no": "EP1",
        "out_trade_no": order_no,
        "type": "wxpay",
        "name": "x",
        "money": "100.00",
    }
    platform.orders[order_no] = order | {"status": "1"}
    assert platform.notice(order_no, version).to(api.send, order_no).text == "success"
    assert exceptions() == {order_no: "late_payment"}


# --- addresses on the platform


@pytest.mark.parametrize("folder", ["", "folder"])
def test_an_address_on_the_platforms_host_is_shown_in_full(folder, version, web_server, api, add_channel, shown):
    platform = EpayPlatform(web_server, f"{folder}/epay".strip("/"))
    platform.gives = "rooted"
    order_no = api.buy(channel=add_channel("epay", platform.config(version))).data["order_no"]
    root = web_server.url_for("/").rstrip("/")
    assert f'href="{root}/pay/qrcode/EP000000000000001/?d=1"' in shown(order_no)


PLATFORM = "https://pay.example.com/folder"  # the address of the platform in the tests below
ON_SITE = [
    ("/pay/qrcode/1/?d=1", "https://pay.example.com/pay/qrcode/1/?d=1"),
    ("./pay/1", f"{PLATFORM}/pay/1"),
    ("../pay/1", "https://pay.example.com/pay/1"),
    ("//cdn.example.com/pay/1", "https://cdn.example.com/pay/1"),
]
ELSEWHERE = ["https://q.example.com/1?a=b", "http://q.example.com/1"]
CODES = [
    *ELSEWHERE,
    "wxp://f2f0abc/def",
    "weixin://wxpay/bizpayurl?pr=1",
    "alipays://platformapi/startapp?a=/b",
    "HTTPS://QR.ALIPAY.COM/BAX1",
    "TTestTronAddress001",
    "usdt.trc20",
    "pay/qrcode/1",
    "张三 6222/0200",
    ".",
]


@pytest.fixture
def made(version, platform, monkeypatch):
    """`made("qrcode", text)`: what the driver shows of a new payment, if the platform gives this text."""

    def open_payment(kind, text):
        driver = build("epay", platform.config(version))
        monkeypatch.setitem(driver.config, "base_url", PLATFORM)
        monkeypatch.setattr(platform, "_pay_info", lambda *_: text)
        platform.gives = kind if version == "2" else {"jump": "payurl"}.get(kind, kind)
        expires_at = int(time.time()) + 600
        return driver.open_payment(Payment("1" * 24, 100, "alipay", "x", "http://a/n", "http://a/p", expires_at))

    return open_payment


@pytest.mark.parametrize(("given", "shown"), ON_SITE)
def test_a_code_with_an_address_on_the_platforms_site_has_the_full_address(given, shown, made):
    assert made("qrcode", given).qr == shown


@pytest.mark.parametrize("code", CODES)
def test_any_other_code_stays_as_it_is(code, made):
    assert made("qrcode", code) == Opened(qr=code)


@pytest.mark.parametrize(("given", "shown"), [*ON_SITE, *((each, each) for each in ELSEWHERE)])
def test_a_page_on_the_platforms_site_has_the_full_address(given, shown, made):
    assert made("jump", given) == Opened(redirect=shown)


@pytest.mark.parametrize("given", ["pay/1", "javascript:alert(1)", "weixin://x", "wxp://f2f0", "/pay/1 2", "//[x/1"])
def test_a_page_that_is_none_is_not_shown(given, made):
    with pytest.raises(ChannelUnknown):
        made("jump", given)


@pytest.mark.parametrize("given", ["weixin://dl/business/?t=1", "alipays://platformapi/startapp?a=/b"])
def test_an_apps_link_stays_as_it_is(given, made):
    assert made("urlscheme", given) == Opened(scheme=given)


@pytest.mark.parametrize("given", ["/pay/1", "./pay/1", "//x.example.com/1", "javascript:alert(1)"])
def test_an_address_is_not_an_apps_link(given, made):
    with pytest.raises(ChannelUnknown):
        made("urlscheme", given)


def test_an_image_instead_of_a_code_is_refused(made):
    with pytest.raises(ChannelRefused):
        made("qrcode", f"/9j/{'4AAQSkZJRgAB' * 100}")


@pytest.mark.parametrize("version", ["1"], indirect=True)
@pytest.mark.parametrize(("given", "shown"), [*ON_SITE, (ELSEWHERE[0], ELSEWHERE[0])])
def test_the_second_page_alone_is_used(given, shown, made):
    assert made("payurl2", given) == Opened(redirect=shown)


@pytest.mark.parametrize("version", ["1"], indirect=True)
def test_the_second_page_is_not_used_if_there_is_a_first(platform, made):
    platform.adds = {"payurl2": "https://second.example.com/"}
    assert made("jump", "https://first.example.com/") == Opened(redirect="https://first.example.com/")


# --- an amount other than the order's

PAGE = "https://pay.example.com/pay/"


@pytest.mark.parametrize("name", ["money", "realmoney", "payment_amount"])
def test_for_another_amount_to_pay_only_the_platforms_page_is_shown(name, api, channel, platform, shown):
    platform.gives, platform.adds = "jump", {name: "100.03"}
    page = shown(api.buy(channel=channel).data["order_no"])
    assert (f'href="{PAGE}EP' in page, "Scan with" in page) == (True, False)


def test_a_code_in_addition_to_such_a_page_is_not_shown(web_server, api, add_channel, shown):
    platform = EpayPlatform(web_server)
    platform.adds = {"payment_amount": 100.03, "payurl": f"{PAGE}1/"}
    page = shown(api.buy(channel=add_channel("epay", platform.config("1"))).data["order_no"])
    assert (f'href="{PAGE}1/"' in page, "Scan with" in page) == (True, False)


@pytest.mark.parametrize("sum_", ["100", "100.00", 100, 100.0, ""])
def test_the_orders_own_amount_is_shown_as_a_code(sum_, api, channel, platform, shown):
    platform.adds = {"money": sum_, "payment_amount": sum_}
    assert "Scan with WeChat to pay" in shown(api.buy(channel=channel).data["order_no"])


# --- "not found" in all its forms

NOT_THERE = [
    (200, {"code": -1, "msg": "订单号不存在"}),
    (200, {"code": -1, "msg": "当前订单不存在！"}),
    (200, {"code": "-1", "msg": "Order not found"}),
    (200, {"code": -1, "msg": "The order does not exist."}),
    *(
        (200, {"code": -1, "msg": text})
        for text in (
            *("未找到该订单", "没有找到订单", "未查询到订单", "查询不到该订单", "支付订单不存在", "交易订单号不存在"),
            *("订单信息不存在", "該訂單不存在", "No such order", "Order not exists"),
        )
    ),
    (404, {"code": -1, "msg": "Order not found"}),
    (404, {"code": 404, "msg": "订单不存在"}),
]
ONLY_VERSION_1 = (200, {"code": 0, "msg": "订单不存在"})
AMBIGUOUS = [
    (200, {"code": -1, "msg": "商户不存在！"}),
    (200, {"code": -1, "msg": "商户ID不能为空"}),
    (200, {"code": -1, "msg": "商户已被封禁"}),
    (200, {"code": -1, "msg": "支付通道不存在"}),
    (200, {"code": -1, "msg": "接口订单号不存在"}),
    (200, {"code": -1, "msg": "支付记录不存在"}),
    (200, {"code": -1, "msg": "订单不存在或已支付"}),
    (200, {"code": -1, "msg": "No such merchant order type"}),
    (200, {"code": -1, "msg": "Invalid merchant credentials"}),
    (200, {"code": -1, "msg": "RSA签名校验失败"}),
    (200, {"code": -1, "msg": "请求过于频繁"}),
    (200, {"code": -1, "msg": "系统维护中，订单不存在"}),
    (200, {"code": -1, "msg": ""}),
    (200, {"code": -3, "msg": "商户ID不存在"}),
    (200, {"code": -3, "msg": "订单号不存在"}),
    (200, {"code": -4, "msg": "订单号不能为空"}),
    (200, {"code": -1, "msg": "订单号不存在", "trade_no": "EP1"}),
    (404, {"code": -1, "msg": "Route not found"}),
    (403, {"code": -1, "msg": "订单号不存在"}),
    (500, {"code": -1, "msg": "订单号不存在"}),
]


def expires(api, platform, order_no, later):
    platform.orders.clear()
    later(450, times=2)
    return api.status(order_no) == "cancelled"


@pytest.mark.parametrize(("status", "said"), NOT_THERE)
def test_an_order_that_the_platform_never_had_expires(status, said, api, channel, platform, later):
    order_no = api.buy(channel=channel).data["order_no"]
    platform.absent = answer(said, status)
    assert expires(api, platform, order_no, later)


def test_code_0_is_not_a_success_in_version_1_and_not_a_response_in_version_2(version, api, channel, platform, later):
    order_no = api.buy(channel=channel).data["order_no"]
    platform.absent = answer(ONLY_VERSION_1[1])
    assert expires(api, platform, order_no, later) is (version == "1")


@pytest.mark.parametrize(("status", "said"), AMBIGUOUS)
def test_a_response_about_the_account_or_the_request_is_not_about_the_order(
    status, said, api, channel, platform, later, exceptions
):
    order_no = api.buy(channel=channel).data["order_no"]
    platform.absent = answer(said, status)
    assert not expires(api, platform, order_no, later)
    assert exceptions() == {order_no: "unknown_outcome"}


def test_a_bare_page_with_404_is_not_about_the_order(api, channel, platform, later):
    order_no = api.buy(channel=channel).data["order_no"]
    platform.absent = Response("<h1>404 Not Found</h1>", 404)
    assert not expires(api, platform, order_no, later)


@pytest.mark.parametrize("msg", ["订单号不存在", "当前订单不存在！", "记录不存在", "Order not found", "支付通道不存在"])
def test_only_a_text_about_the_payout_itself_lets_it_be_sent_again(msg, api, add_channel, platform, later, monkeypatch):
    channel = add_channel("epay", platform.config("2"), "--auto-accept-max", "1000")
    order_no = api.sell(channel=channel, paychannel_paymethod="alipay").data["order_no"]
    later(1)
    platform.fails("unheard")
    later(1)
    monkeypatch.setattr(platform, "_ask_transfer", lambda fields: {"code": -1, "msg": msg})
    later(700, times=3)
    assert (platform.payouts, api.status(order_no)) == ({}, "confirmed")


@pytest.mark.parametrize("msg", ["转账交易号不存在", "付款记录不存在", "当前转账订单不存在", "代付订单不存在！"])
def test_a_payout_that_the_platform_never_had_is_sent_again(msg, api, add_channel, platform, later, monkeypatch):
    channel = add_channel("epay", platform.config("2"), "--auto-accept-max", "1000")
    api.sell(channel=channel, paychannel_paymethod="alipay")
    later(1)
    platform.fails("unheard")
    later(1)
    monkeypatch.setattr(platform, "_ask_transfer", lambda fields: {"code": -1, "msg": msg})
    later(700)
    assert len(platform.payouts) == 1


# --- status 2: refunded, or expired

PAID_THERE = [{"endtime": "2026-05-01 12:00:00"}, {"api_trade_no": "42000001"}, {"buyer": "o-1"}]


def ends(platform, order_no, **facts):
    platform.orders[order_no] |= {"status": "2", **facts}


@pytest.mark.parametrize("facts", [{}, {"endtime": ""}, {"endtime": "0000-00-00 00:00:00"}])
def test_an_order_that_expired_at_the_platform_is_not_a_payment_and_expires_here(
    facts, api, channel, platform, later, exceptions, balances
):
    order_no = api.buy(channel=channel).data["order_no"]
    ends(platform, order_no, **facts)
    later(60)
    assert (api.status(order_no), exceptions()) == ("pending", {})
    later(450, times=2)
    later(601)
    assert (api.status(order_no), exceptions(), balances()) == ("cancelled", {}, (START, 0))


@pytest.mark.parametrize("facts", PAID_THERE)
def test_a_refunded_order_with_a_payment_is_a_refund_of_unknown_amount(
    facts, api, channel, platform, later, exceptions
):
    order_no = api.buy(channel=channel).data["order_no"]
    ends(platform, order_no, **facts)
    later(60)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "wrong_amount"})


def test_an_order_expired_at_the_platform_and_paid_after_all_is_credited(
    version, api, channel, platform, later, balances
):
    order_no = api.buy(channel=channel).data["order_no"]
    ends(platform, order_no)
    later(60)
    platform.pay(order_no)
    platform.notice(order_no, version).to(api.send, order_no)
    assert (api.status(order_no), balances()) == ("completed", (START + 9_940, 0))


def test_credited_money_with_status_2_at_the_platform_is_reversed_by_an_unknown_amount(
    version, api, channel, platform, flask, exceptions, order_details
):
    order_no = api.buy(channel=channel).data["order_no"]
    platform.pay(order_no)
    platform.notice(order_no, version).to(api.send, order_no)
    ends(platform, order_no, endtime="")
    flask("order", "ask", order_no)
    assert exceptions() == {order_no: "reversed"}
    assert [each["amount"] for each in order_details(order_no)["exceptions"]] == ["0.00"]


def test_money_in_an_open_exception_with_status_2_at_the_platform_loses_its_amount(
    version, api, channel, platform, flask, order_details
):
    order_no = api.buy(channel=channel).data["order_no"]
    platform.pay(order_no, "90.00")
    platform.notice(order_no, version).to(api.send, order_no)
    ends(platform, order_no, endtime="")
    flask("order", "ask", order_no)
    assert [(each["kind"], each["amount"]) for each in order_details(order_no)["exceptions"]] == [
        ("wrong_amount", "0.00")
    ]
