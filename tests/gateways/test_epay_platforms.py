"""epay, version 1 and 2: undocumented responses of real platforms, sent by the loopback platform."""

import json
import time

import pytest
from werkzeug import Response

from gateways.base import ChannelRefused, ChannelUnknown, Opened, Payment
from gateways.registry import build
from models.tables.order import Order
from services.channels.order_numbers import payout_number
from tests.gateways.adapters import error_page
from tests.upstreams.epay import EpayPlatform

START = 1_000_000


@pytest.fixture
def ends(platform):
    """`ends(order_no, endtime="")`: the platform gives the order status 2 and these facts."""

    def end(order_no, **facts):
        platform.orders[order_no] |= {"status": "2", **facts}

    return end


# --- a page instead of a response


def test_a_page_in_response_to_a_status_check_proves_nothing_about_the_order(
    placed, api, platform, later, exceptions, monkeypatch
):
    order_no = placed()
    monkeypatch.setattr(platform, "answer", lambda path, request: Response(error_page("订单号不存在"), 200))
    later(450, times=3)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "unknown_outcome"})


def test_money_for_an_order_refused_by_a_page_is_visible(api, channel, platform, flask_json, exceptions, notify):
    platform.page = error_page("支付方式(type)不存在")
    api.buy(channel=channel)
    order_no = flask_json("order", "list")[0]["order_no"]
    order = {"pid": "1001", "trade_no": "EP1", "out_trade_no": order_no, "type": "wxpay", "name": "x"}
    platform.orders[order_no] = order | {"money": "100.00", "status": "1"}
    assert notify(order_no).text == "success"
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
ON_SITE = {
    "/pay/qrcode/1/?d=1": "https://pay.example.com/pay/qrcode/1/?d=1",
    "./pay/1": f"{PLATFORM}/pay/1",
    "../pay/1": "https://pay.example.com/pay/1",
    "//cdn.example.com/pay/1": "https://cdn.example.com/pay/1",
}
ELSEWHERE = ("https://q.example.com/1?a=b", "http://q.example.com/1")
CODES = (
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
)
NO_PAGES = ("pay/1", "javascript:alert(1)", "weixin://x", "wxp://f2f0", "/pay/1 2", "//[x/1")
NO_LINKS = ("/pay/1", "./pay/1", "//x.example.com/1", "javascript:alert(1)")


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


def test_a_code_is_shown_as_it_is_but_with_the_full_address_on_the_platforms_site(made):
    shown = ON_SITE | {code: code for code in CODES}
    assert {code: made("qrcode", code) for code in shown} == {code: Opened(qr=text) for code, text in shown.items()}
    with pytest.raises(ChannelRefused):
        made("qrcode", f"/9j/{'4AAQSkZJRgAB' * 100}")  # an image


def test_a_page_is_shown_with_its_full_address_if_it_is_one(version, platform, made):
    shown = ON_SITE | {page: page for page in ELSEWHERE}
    kinds = ["jump"] if version == "2" else ["jump", "payurl2"]
    for kind in kinds:
        assert {page: made(kind, page) for page in shown} == {
            page: Opened(redirect=address) for page, address in shown.items()
        }
    for page in NO_PAGES:
        with pytest.raises(ChannelUnknown):
            made("jump", page)
    platform.adds = {"payurl2": "https://second.example.com/"}
    assert made("jump", ELSEWHERE[0]) == Opened(redirect=ELSEWHERE[0])


def test_an_apps_link_stays_as_it_is_and_is_no_address(made):
    for link in ("weixin://dl/business/?t=1", "alipays://platformapi/startapp?a=/b"):
        assert made("urlscheme", link) == Opened(scheme=link)
    for link in NO_LINKS:
        with pytest.raises(ChannelUnknown):
            made("urlscheme", link)


# --- an amount other than the order's

PAGE = "https://pay.example.com/pay/"


@pytest.mark.parametrize("name", ["money", "realmoney", "payment_amount"])
def test_for_another_amount_to_pay_only_the_platforms_page_is_shown(name, placed, version, platform, shown):
    platform.gives, platform.adds = "jump", {name: "100.03"}
    page = shown(placed())
    assert (f'href="{PAGE}EP' in page, "Scan with" in page) == (True, False)
    if version == "1":
        platform.gives, platform.adds = "qrcode", {name: 100.03, "payurl": f"{PAGE}1/"}
        page = shown(placed())
        assert (f'href="{PAGE}1/"' in page, "Scan with" in page) == (True, False), "a code in addition to a page"


def test_the_orders_own_amount_is_shown_as_a_code(placed, platform, shown):
    for amount in ("100", "100.00", 100, 100.0, ""):
        platform.adds = {"money": amount, "payment_amount": amount}
        assert "Scan with WeChat to pay" in shown(placed()), amount


# --- "not found" in all its forms

NOT_THERE = [
    (200, -1, "订单号不存在"),
    (200, -1, "当前订单不存在！"),
    (200, "-1", "Order not found"),
    (200, -1, "The order does not exist."),
    (200, -1, "未找到该订单"),
    (200, -1, "没有找到订单"),
    (200, -1, "未查询到订单"),
    (200, -1, "查询不到该订单"),
    (200, -1, "支付订单不存在"),
    (200, -1, "交易订单号不存在"),
    (200, -1, "订单信息不存在"),
    (200, -1, "該訂單不存在"),
    (200, -1, "No such order"),
    (200, -1, "Order not exists"),
    (404, -1, "Order not found"),
    (404, 404, "订单不存在"),
    (404, -1, "订单不存在或已完成"),
    (404, -1, "服务不存在或已完成"),
]
AMBIGUOUS = [
    (200, -1, "商户不存在！"),
    (200, -1, "商户ID不能为空"),
    (200, -1, "商户已被封禁"),
    (200, -1, "支付通道不存在"),
    (200, -1, "接口订单号不存在"),
    (200, -1, "支付记录不存在"),
    (200, -1, "订单不存在或已支付"),
    (200, -1, "No such merchant order type"),
    (200, -1, "Invalid merchant credentials"),
    (200, -1, "RSA签名校验失败"),
    (200, -1, "请求过于频繁"),
    (200, -1, "系统维护中，订单不存在"),
    (200, -1, ""),
    (200, -3, "商户ID不存在"),
    (200, -3, "订单号不存在"),
    (200, -4, "订单号不能为空"),
    (404, -1, "Route not found"),
    (403, -1, "订单号不存在"),
    (500, -1, "订单号不存在"),
    # "or completed" means "not there" with 404 only.
    *((status, -1, f"{what}不存在或已完成") for what in ("订单", "服务") for status in (200, 400, 500)),
    (404, -1, "商户信息不存在"),
    (404, -1, "订单不存在或已完成支付"),
    (404, -1, "已完成"),
    (404, -1, "系统错误：订单不存在或已完成"),
]
AS_NO_ANSWER_IN_2 = (200, 0, "订单不存在")  # in version 2, code 0 is a success


def test_only_a_response_about_the_order_itself_lets_it_expire(
    version, placed, api, platform, later, exceptions, monkeypatch
):
    orders = {placed(): said for said in (*NOT_THERE, AS_NO_ANSWER_IN_2, *AMBIGUOUS)}
    named, bare = placed(), placed()

    def answer(fields, said):
        number = fields.get("out_trade_no")
        if number == bare:
            return Response("<h1>404 Not Found</h1>", 404)
        status, code, text = orders.get(number, (200, -1, "订单号不存在"))
        told = {"code": code, "msg": text} | ({"trade_no": "EP1"} if number == named else {})
        return Response(json.dumps(told), status, content_type="text/html; charset=utf-8")

    monkeypatch.setattr(platform, "_unless_absent", answer)
    platform.orders.clear()
    later(450, times=2)
    expired = [said for order_no, said in orders.items() if api.status(order_no) == "cancelled"]
    assert expired == NOT_THERE + ([AS_NO_ANSWER_IN_2] if version == "1" else [])
    waiting = [order_no for order_no in (*orders, named, bare) if api.status(order_no) == "pending"]
    assert exceptions() == dict.fromkeys(waiting, "unknown_outcome")
    assert {named, bare} <= set(waiting)


NO_PAYOUT = ("转账交易号不存在", "付款记录不存在", "当前转账订单不存在", "代付订单不存在！")
NOT_ABOUT_IT = ("订单号不存在", "当前订单不存在！", "记录不存在", "Order not found", "支付通道不存在")


@pytest.mark.parametrize("version", ["2"], indirect=True)
def test_only_a_text_about_the_payout_itself_lets_it_be_sent_again(
    version, api, add_channel, platform, later, monkeypatch
):
    channel = add_channel("epay", platform.config(version), "--auto-accept-max", "1000")
    texts = {}
    for text in (*NO_PAYOUT, *NOT_ABOUT_IT):
        order_no = api.sell("10.00", channel=channel, paychannel_paymethod="alipay").data["order_no"]
        texts[payout_number(Order.get(Order.order_no == order_no))] = text
    platform.fails(*["unheard"] * len(texts))
    later(1)

    def answer(fields):
        return {"code": -1, "msg": texts[fields.get("out_biz_no") or fields["biz_no"]]}

    monkeypatch.setattr(platform, "_ask_transfer", answer)
    for seconds in (700, 700, 700):
        later(seconds)
        assert sorted(texts[number] for number in platform.payouts) == sorted(NO_PAYOUT)


# --- status 2: refunded, or expired


def test_an_order_that_expired_at_the_platform_is_not_a_payment_and_expires_here(
    placed, api, ends, later, exceptions, balances
):
    orders = [placed() for _ in range(3)]
    for order_no, facts in zip(orders, ({}, {"endtime": ""}, {"endtime": "0000-00-00 00:00:00"}), strict=True):
        ends(order_no, **facts)
    later(60)
    assert ({api.status(order_no) for order_no in orders}, exceptions()) == ({"pending"}, {})
    later(450, times=2)
    later(601)
    assert ({api.status(order_no) for order_no in orders}, exceptions()) == ({"cancelled"}, {})
    assert balances() == (START, 0)


def test_a_refunded_order_with_a_payment_is_a_refund_of_unknown_amount(placed, api, ends, later, exceptions):
    orders = [placed() for _ in range(3)]
    paid = ({"endtime": "2026-05-01 12:00:00"}, {"api_trade_no": "42000001"}, {"buyer": "o-1"})
    for order_no, facts in zip(orders, paid, strict=True):
        ends(order_no, **facts)
    later(60)
    assert {api.status(order_no) for order_no in orders} == {"pending"}
    assert exceptions() == dict.fromkeys(orders, "wrong_amount")


def test_an_order_expired_at_the_platform_and_paid_after_all_is_credited(
    placed, ends, platform, later, outcome, notify
):
    order_no = placed()
    ends(order_no)
    later(60)
    platform.pay(order_no)
    notify(order_no)
    assert outcome(order_no) == ("completed", (START + 9_940, 0), {})


@pytest.mark.parametrize(("paid", "kind"), [("100.00", "reversed"), ("90.00", "wrong_amount")])
def test_recorded_money_with_status_2_at_the_platform_is_of_unknown_amount(
    paid, kind, placed, ends, platform, flask, order_details, notify
):
    order_no = placed()
    platform.pay(order_no, paid)
    notify(order_no)
    ends(order_no, endtime="")
    flask("order", "ask", order_no)
    found = [(each["kind"], each["amount"], each["resolution"]) for each in order_details(order_no)["exceptions"]]
    assert found == [(kind, "0.00", None)]
