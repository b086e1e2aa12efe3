"""epay, version 1 and 2, against a real platform: `make test-epay-platform FOLDER=...` (CONTRIBUTING.md)."""

import hashlib
import html
import json
import re
from datetime import datetime, timedelta, timezone

import pytest

from gateways import registry
from gateways.base import ChannelRefused, ChannelUnknown, Payout, RefundRequest, State
from services.statements import parse
from tests.gateways.live.epay_platform import PID, SYSTEM_KEY
from tests.pages import GO

START = 1_000_000
PAID = (START + 9_940, 0)
HELD, SPENT, BACK = (START - 10_030, 10_030), (START - 10_030, 0), (START, 0)
FULL = "100000.00"  # the merchant's balance at the platform
TEN_MINUTES = 601
CODE = "Scan with WeChat to pay"


@pytest.fixture(params=["1", "2"])
def version(request):
    return request.param


@pytest.fixture
def place(api, add_channel, platform, version):
    """`place(redirect="true")`: the number of a new deposit of 100 yuan, through a channel with this config."""
    return lambda **config: api.buy(channel=add_channel("epay", platform.config(version, **config))).data["order_no"]


@pytest.fixture
def paid(place, platform, listener):
    """The number of a deposit of 100 yuan that the platform's notice completed."""
    order_no = place()
    platform.pay(order_no)
    assert listener.heard == [(200, "success")]
    return order_no


@pytest.fixture
def about(order_details):
    """`about(order_no)`: its exceptions, each as (kind, amount, resolution)."""
    return lambda number: [
        (each["kind"], each["amount"], each["resolution"]) for each in order_details(number)["exceptions"]
    ]


@pytest.fixture
def reasons(order_details):
    """`reasons(order_no)`: the lines of its history."""
    return lambda order_no: [line["why"] for line in order_details(order_no)["history"]]


# --- deposits


def test_a_deposit_is_shown_as_a_code_and_completed_once_by_the_platforms_own_notices(
    place, platform, listener, shown, api, balances, order_details
):
    order_no = place()
    assert CODE in shown(order_no)
    assert platform.order(order_no, "money") == "100.00"
    platform.pay(order_no)
    assert (listener.heard, api.status(order_no), balances()) == ([(200, "success")], "completed", PAID)
    assert order_details(order_no)["channel_reference"] == platform.order(order_no, "trade_no")
    assert (platform.order(order_no, "status"), platform.order(order_no, "notify")) == ("1", "0")
    assert platform.money() == "100099.00"  # less its fee of 1 %
    platform.sql(f"UPDATE pre_order SET notify = 1 WHERE out_trade_no = '{order_no}'")
    platform.tell_again()
    assert (listener.heard, balances()) == ([(200, "success")] * 2, PAID)


def test_deposits_with_lost_notices_are_found_by_status_checks(
    place, platform, listener, flask, later, api, balances, reasons
):
    listener.deaf = True
    by_operator, by_service = orders = place(), place()
    for order_no in orders:
        platform.pay(order_no)
    flask("order", "ask", by_operator)
    assert (api.status(by_operator), api.status(by_service)) == ("completed", "pending")
    later(61)
    assert (api.status(by_service), balances(), listener.heard) == ("completed", (START + 2 * 9_940, 0), [])
    assert all(any("Status check" in line for line in reasons(order_no)) for order_no in orders)


def test_unpaid_and_unknown_deposits_expire_and_later_money_is_an_exception(
    place, platform, listener, later, api, exceptions, about
):
    unpaid, unknown = place(), place()
    platform.sql(f"DELETE FROM pre_order WHERE out_trade_no = '{unknown}'")
    later(450, times=3)
    assert (api.status(unpaid), api.status(unknown), exceptions()) == ("cancelled", "cancelled", {})
    assert platform.order(unpaid, "status") == "0"
    platform.pay(unpaid)
    assert (listener.heard, about(unpaid)) == ([(200, "success")], [("late_payment", "100.00", None)])


def test_a_refusal_cancels_the_order_with_the_platforms_message(
    version, platform, add_channel, api, flask_json, reasons
):
    channel = add_channel("epay", platform.config(version))

    def refusal():
        assert api.buy(channel=channel).code == 50201
        newest = flask_json("order", "list")[0]
        assert newest["status"] == "cancelled"
        return reasons(newest["order_no"])[-1]

    platform.set(pay_verify="3")
    assert "本次支付需要安全验证" in refusal()
    platform.set(pay_verify="0")
    platform.sql("UPDATE pre_type SET status = 0 WHERE name = 'wxpay'")
    assert refusal() == "Rejected: 支付方式(type)不存在"
    platform.sql("UPDATE pre_type SET status = 1 WHERE name = 'wxpay'")
    platform.sql("UPDATE pre_user SET `key` = 'changed', publickey = ''")
    assert "签名校验失败" in refusal()


# --- the payer's own browser


def _fields(page):
    """The address and the fields of the form on a page."""
    [action] = re.findall(r'<form[^>]* action="([^"]*)"', page)
    pairs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page)
    return html.unescape(action), {name: html.unescape(value) for name, value in pairs}


def _goes_to_the_platform(version, order_no, platform, http, shown):
    """The content of the payer's browser there with `redirect`: by a link (version 1), by a form (version 2)."""
    if version == "1":
        [link] = re.findall(rf'href="({re.escape(platform.url)}/submit\.php\?[^"]*)"', shown(order_no))
        return platform.get(html.unescape(link)).text
    return platform.post(*_fields(http("GET", f"{GO}?order_no={order_no}").text)).text


def test_with_redirect_the_platforms_own_page_accepts_the_payment(
    version, place, platform, listener, http, shown, api, balances
):
    order_no = place(redirect="true")
    page = _goes_to_the_platform(version, order_no, platform, http, shown)
    assert f"<p>pay {platform.order(order_no, 'trade_no')} here</p>" in page
    platform.pay(order_no)
    assert (listener.heard, api.status(order_no), balances()) == ([(200, "success")], "completed", PAID)


def test_if_the_platform_requires_a_security_check_the_payer_passes_it_with_redirect(
    version, place, platform, listener, http, shown, later, api, balances
):
    platform.set(pay_verify="3")
    order_no = place(redirect="true")
    page = _goes_to_the_platform(version, order_no, platform, http, shown)
    assert "正在进行支付安全验证" in page
    address, fields = _fields(page)
    passed = hashlib.md5(f"{SYSTEM_KEY}{PID}_{order_no}{SYSTEM_KEY}".encode()).hexdigest()
    page = platform.post(address, fields | {"__defend": f"1234567890{passed}123456"}).text
    assert f"<p>pay {platform.order(order_no, 'trade_no')} here</p>" in page
    platform.pay(order_no)
    if version == "2":  # the check leads to version 1's submit.php, so that the notice is signed with the MD5 key
        assert listener.heard == [(400, "fail")]
        later(61)
    assert (api.status(order_no), balances()) == ("completed", PAID)


def test_one_payers_daily_limit_does_not_stop_another_with_open_on_view(
    place, platform, listener, payer, api, balances
):
    platform.set(pay_iplimit="1")
    one, another = payer("203.0.113.7"), payer("203.0.113.8")
    first = place(open_on_view="true")
    assert CODE in one.opens(first)
    platform.pay(first)
    assert platform.order(first, "ip") == "203.0.113.7"
    second, third = place(open_on_view="true"), place(open_on_view="true")
    assert "你今天已无法再发起支付，请明天再试" in one.opens(second)
    assert CODE in another.opens(third)
    platform.pay(third)
    assert (api.status(second), api.status(third), balances()) == ("pending", "completed", (START + 2 * 9_940, 0))


def test_if_the_platform_increases_the_amount_the_orders_own_is_credited(
    version, place, platform, listener, http, shown, api, balances, exceptions
):
    platform.set(pay_payaddstart="1", pay_payaddmin="0.01", pay_payaddmax="0.09")
    order_no = place(redirect="true")
    _goes_to_the_platform(version, order_no, platform, http, shown)
    platform.pay(order_no)
    assert platform.order(order_no, "realmoney") > "100.00" == platform.order(order_no, "money")
    assert (listener.heard, api.status(order_no), balances()) == ([(200, "success")], "completed", PAID)
    assert exceptions() == {}


# --- after a payment

REFUNDS = {  # the refunded amount, and the exception, by version
    "100.00": {"1": ("reversed", "0.00", None), "2": ("reversed", "100.00", None)},
    "30.00": {"1": ("reversed", "0.00", None), "2": ("reversed", "30.00", None)},
}


@pytest.mark.parametrize("back", REFUNDS)
def test_a_refund_at_the_platform_is_found_by_a_status_check(back, version, paid, platform, flask, about, balances):
    platform.refund(paid, back)
    flask("order", "ask", paid)
    assert (about(paid), balances()) == ([REFUNDS[back][version]], PAID)
    assert platform.order(paid, "refundmoney") == back


@pytest.mark.parametrize("back", REFUNDS)
def test_a_refund_before_the_service_knew_of_the_payment_is_not_credited(
    back, version, place, platform, listener, later, due, api, about, balances
):
    order_no = place()
    listener.deaf = True
    platform.pay(order_no)
    platform.refund(order_no, back)
    later(61)
    rest = {"100.00": ("cancelled", []), "30.00": ("pending", [("wrong_amount", "70.00", None)])}
    expected = ("pending", [("wrong_amount", "0.00", None)]) if version == "1" else rest[back]
    assert (api.status(order_no), about(order_no), balances()) == (*expected, BACK)
    listener.deaf = False
    assert "重新通知成功" in platform.tell_again()
    due.orders()
    assert listener.heard == [(200, "success")]
    assert (api.status(order_no), about(order_no), balances()) == (*expected, BACK)


# --- refunds through the driver

REFUND_NO = "202605010000000000000001"


@pytest.fixture
def driver(app, platform, version):
    return registry.build("epay", platform.config(version))


@pytest.fixture
def request_of(paid, platform):
    """`request_of(3_000)`: the request to refund 30 yuan of a payment of 100 yuan."""

    def make(fen, refund_no=REFUND_NO, before=0):
        return RefundRequest(refund_no, paid, platform.order(paid, "trade_no"), fen, 10_000, "", "", before)

    return make


def test_refunds_of_the_platform_are_done_and_found(version, driver, request_of, platform, paid):
    request = request_of(3_000)
    assert (driver.refunded_sum(request), driver.query_refund(request).state) == (0, State.ABSENT)
    report = driver.refund(request)
    [made] = platform.refunds()
    assert (report.state, report.amount, report.reference) == (State.PAID, 3_000, made["refund_no"])
    assert (made["money"], made["status"], platform.order(paid, "refundmoney")) == ("30.00", "1", "30.00")
    if version == "1":  # it does not report the sum
        assert driver.refunded_sum(request) is None
        with pytest.raises(ChannelUnknown):
            driver.query_refund(request)
        return
    assert made["out_refund_no"] == REFUND_NO
    assert (driver.refunded_sum(request), driver.query_refund(request).state) == (3_000, State.PAID)
    rest = request_of(7_000, REFUND_NO[:-1] + "2", before=3_000)
    assert driver.query_refund(rest).state is State.ABSENT
    assert driver.refund(rest).state is State.PAID
    assert driver.query_refund(rest).state is driver.query_refund(request).state is State.PAID
    assert platform.order(paid, "refundmoney") == "100.00"


@pytest.mark.parametrize("fen", [3_000, 10_000])
def test_a_refund_with_a_lost_response_is_made_once(fen, version, driver, request_of, platform):
    request = request_of(fen)
    assert driver.repeats_refund(request) is (fen == 10_000)
    platform.spoils("api.php" if version == "1" else "pay/refund")
    with pytest.raises(ChannelUnknown):
        driver.refund(request)
    platform.spoils("")
    if version == "2":
        assert driver.query_refund(request).state is State.PAID
        assert driver.refund(request).state is State.PAID  # the same number
    elif fen == 10_000:
        with pytest.raises(ChannelUnknown, match="该订单已全额退款"):
            driver.refund(request)
    assert [each["status"] for each in platform.refunds()] == ["1"]


def test_an_error_of_the_platforms_upstream_is_an_unknown_outcome(driver, request_of, platform):
    request = request_of(3_000)
    platform.set(loopback_refund_error="Operation timed out")
    with pytest.raises(ChannelUnknown, match="退款失败：Operation timed out"):
        driver.refund(request)
    assert (platform.refunds(), driver.query_refund(request).state) == ([], State.ABSENT)


def test_a_low_balance_at_the_platform_is_an_unknown_outcome(driver, request_of, platform):
    request = request_of(3_000)
    platform.sql("UPDATE pre_user SET money = 1")
    with pytest.raises(ChannelUnknown, match="商户余额不足"):
        driver.refund(request)
    platform.sql("UPDATE pre_user SET money = 1000")
    assert driver.refund(request).state is State.PAID


def test_refunds_that_the_platform_does_not_allow_are_refused(version, driver, request_of, platform):
    request = request_of(10_001)
    with pytest.raises(ChannelRefused, match="退款金额不能大于订单金额"):
        driver.refund(request)
    unknown = RefundRequest(REFUND_NO, "1", "2026050112000000001", 3_000, 10_000, "", "", 0)
    assert driver.refunded_sum(unknown) is None
    with pytest.raises(ChannelRefused, match="当前订单不存在"):
        driver.refund(unknown)
    platform.set(user_refund="0")
    with pytest.raises(ChannelRefused, match="未开启商户后台自助退款"):
        driver.refund(request)
    if version == "1":
        platform.set(user_refund="1")
        platform.sql("UPDATE pre_user SET refund = 0")
        with pytest.raises(ChannelRefused, match="商户未开启订单退款API接口"):
            driver.refund(request)
    assert platform.refunds() == []


# --- other states of a payment


def test_a_frozen_payment_is_reported_and_not_credited(place, platform, listener, later, order_details, balances):
    order_no = place()
    listener.deaf = True
    platform.pay(order_no)
    platform.sql(f"UPDATE pre_order SET status = 3 WHERE out_trade_no = '{order_no}'")
    later(61)
    [exception] = order_details(order_no)["exceptions"]
    assert exception["kind"] == "unknown_outcome"
    assert "froze this payment (status 3)" in exception["detail"]
    platform.sql(f"UPDATE pre_order SET status = 1 WHERE out_trade_no = '{order_no}'")
    later(601)
    assert (order_details(order_no)["status"], balances()) == ("completed", PAID)


# --- payouts, version 2


@pytest.fixture
def send(api, add_channel, platform):
    """`send()`: the number of a new, auto-approved withdrawal of 100 yuan."""
    channel = add_channel("epay", platform.config("2"), "--auto-accept-max", "1000")
    return lambda: api.sell(channel=channel, paychannel_paymethod="alipay").data["order_no"]


def test_a_payout_that_the_platform_makes_immediately_is_done(send, platform, api, later, balances, order_details):
    platform.set(loopback_submitted="1")
    order_no = send()
    later(1, times=3)
    [transfer] = platform.transfers()
    assert (transfer["account"], transfer["username"], transfer["money"]) == ("6222020000000000017", "张三", "100.00")
    assert (transfer["status"], platform.money()) == ("1", "99899.50")  # with its fee of 0.5 %
    assert (api.status(order_no), balances()) == ("completed", SPENT)
    assert order_details(order_no)["channel_reference"] == transfer["biz_no"] == transfer["out_biz_no"]


def test_a_payout_in_progress_is_checked_until_it_is_done(send, platform, api, later, balances, exceptions):
    platform.set(loopback_queried="0")
    order_no = send()
    later(60, times=5)
    assert (api.status(order_no), balances(), exceptions()) == ("confirmed", HELD, {})
    platform.set(loopback_queried="1")
    later(300)
    assert (api.status(order_no), balances(), len(platform.transfers())) == ("completed", SPENT, 1)


def test_a_payout_that_fails_is_cancelled_with_the_platforms_reason(send, platform, api, later, balances, reasons):
    platform.set(loopback_queried="2")
    order_no = send()
    later(1, times=4)
    assert (api.status(order_no), balances(), platform.money()) == ("cancelled", BACK, FULL)
    assert any("收款方账户异常" in line for line in reasons(order_no))


def test_a_payout_that_awaits_the_platforms_staff_stays_reserved_until_they_decide(
    send, platform, api, later, balances, reasons
):
    platform.set(transfer_alipay="-1")
    order_no = send()
    later(1, times=2)
    later(700, times=3)
    [transfer] = platform.transfers()
    assert (transfer["status"], api.status(order_no), balances()) == ("3", "confirmed", HELD)
    assert any("it waits for the platform's staff to approve it" in line for line in reasons(order_no))
    platform.sql("UPDATE pre_transfer SET status = 1, paytime = NOW()")
    later(301)
    assert (api.status(order_no), balances(), len(platform.transfers())) == ("completed", SPENT, 1)


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_payout_deleted_at_the_platform_is_not_sent_again(confirmed, send, platform, api, later, balances, about):
    if confirmed:
        platform.set(loopback_queried="0")
    else:
        platform.set(transfer_alipay="-1")
        platform.spoils("transfer/submit")
    order_no = send()
    later(1, times=2)
    platform.spoils("")
    later(300)
    assert len(platform.transfers()) == 1
    platform.sql("TRUNCATE pre_transfer")
    later(TEN_MINUTES, times=3)
    assert (platform.transfers(), api.status(order_no), balances()) == ([], "confirmed", HELD)
    assert about(order_no)[-1] == ("payout_missing", "100.00", None)


def test_a_payout_that_the_platform_refuses_is_not_a_failure_and_is_sent_later(
    send, platform, api, later, balances, order_details
):
    platform.sql("UPDATE pre_user SET money = 50")
    order_no = send()
    later(1, times=3)
    assert (api.status(order_no), balances(), platform.transfers()) == ("confirmed", HELD, [])
    [exception] = order_details(order_no)["exceptions"]
    assert (exception["kind"], "需支付金额大于可转账余额" in exception["detail"]) == ("unknown_outcome", True)
    platform.sql("UPDATE pre_user SET money = 500")
    later(700, times=2)
    assert (api.status(order_no), balances(), platform.money()) == ("completed", SPENT, "399.50")


def test_a_payout_with_a_lost_response_is_one_transfer(send, platform, api, later, balances):
    platform.spoils("transfer/submit")
    order_no = send()
    later(1, times=2)
    later(700, times=2)
    assert (api.status(order_no), balances(), len(platform.transfers())) == ("completed", SPENT, 1)
    assert platform.money() == "99899.50"


def test_the_same_number_twice_is_one_transfer_and_no_failure(platform):
    driver = registry.build("epay", platform.config("2"))
    account = {"card_number": "a@example.com", "real_name": "张三"}
    payout = Payout("1", "2026050112000012345", 10_000, "alipay", account)
    driver.pay_out(payout)
    with pytest.raises(ChannelUnknown, match="该交易号已存在"):
        driver.pay_out(payout)
    assert (len(platform.transfers()), platform.money()) == (1, "99899.50")


# --- a channel's check, the platform's export


@pytest.fixture
def channel(add_channel, platform, version):
    """A channel that `checked` can check."""
    return add_channel("epay", platform.config(version), "--pay-method", "wxpay,alipay", "--min", "2.00")


def test_the_check_of_a_channel_reports_everything(version, checked, platform):
    found = checked()
    assert found["keys"] == ("ok", "The channel responds and accepts your keys.")
    assert found["collect"] == ("ok", f"Enabled. Balance at the platform: {FULL}")
    assert found["wxpay"] == found["alipay"] == ("ok", "An order of 2.00 was accepted.")
    assert found["clock"][0] in ("ok", "-")
    if version == "1":
        assert found["version"] == ("-", "1. The platform also supports version 2, which is more secure.")
    else:
        assert found["version"] == ("ok", "2")
        assert found["pay_out"] == ("ok", f"Enabled. Available: {FULL}, platform fee: 0.5%")


def test_the_check_of_a_channel_finds_a_disabled_payment_type(version, checked, platform):
    platform.sql("UPDATE pre_type SET status = 0 WHERE name = 'alipay'")
    platform.set(user_transfer="0")
    found = checked(fails=True)
    assert found["wxpay"] == ("ok", "An order of 2.00 was accepted.")
    assert found["alipay"] == ("problem", "An order of 2.00 was rejected: 支付方式(type)不存在")
    if version == "2":
        assert found["pay_out"] == ("-", "Not enabled: 管理员未开启代付功能 (code -1)")


@pytest.fixture
def reconciled(platform, tmp_path, flask):
    """`reconciled(channel)`: the platform's export of today against the channel's orders; `fails` if they differ."""

    def compare(channel, fails=False):
        file = tmp_path / "order.csv"
        file.write_bytes(platform.export())
        today = datetime.now(timezone(timedelta(hours=8))).date().isoformat()
        days = ("--since", today, "--until", today)
        return json.loads(flask("reconcile", channel, file, "--type", "buy", *days, "--json", fails=fails).stdout)

    return compare


def test_the_platforms_own_export_agrees_with_the_orders(paid, reconciled, order_details):
    found = reconciled(order_details(paid)["channel"])
    assert (found["lines"], found["matched"], found["differences"]) == (1, 1, [])
    assert found["sums"]["there"]["in"] == found["sums"]["here"]["in"] == "100.00"


def test_the_platforms_list_has_the_orders_of_a_day_with_their_refunds(api, add_channel, platform, listener):
    config = platform.config("2", list_orders="true")
    channel = add_channel("epay", config)
    unpaid, whole, part = (api.buy(channel=channel).data["order_no"] for _ in range(3))
    for order_no in (whole, part):
        platform.pay(order_no)
    platform.refund(part, "30.00")
    columns = [
        name for [name, *_] in platform.sql("SHOW COLUMNS FROM pre_order") if name not in ("trade_no", "addtime")
    ]
    first = platform.order(unpaid, "trade_no")
    copied = ", ".join(f"`{name}`" for name in columns)
    for number in range(120):  # of the day before, on further pages
        platform.sql(
            f"INSERT INTO pre_order (trade_no, addtime, {copied}) SELECT '20200101{number:011d}', "
            f"addtime - INTERVAL 1 DAY, {copied} FROM pre_order WHERE trade_no = '{first}'"
        )
    driver, today = registry.build("epay", config), datetime.now(timezone(timedelta(hours=8))).date()
    lines = parse.read(driver.fetch_statement(today), driver.statement, (), all_paid=False, official=True).lines
    assert {(line.number, line.state, line.amount) for line in lines} == {
        (unpaid, "failed", 10_000),
        (whole, "paid", 10_000),
        (part, "paid", 10_000),
        (part, "refunded", 3_000),
    }
    before = parse.read(
        driver.fetch_statement(today - timedelta(days=1)), driver.statement, (), all_paid=False, official=True
    )
    assert len(before.lines) == 120


def test_the_export_shows_frozen_and_refunded_payments(version, api, add_channel, platform, listener, reconciled):
    channel = add_channel("epay", platform.config(version))
    _, frozen, refunded = (api.buy(channel=channel).data["order_no"] for _ in range(3))
    for order_no in (frozen, refunded):
        platform.pay(order_no)
    platform.sql(f"UPDATE pre_order SET status = 3 WHERE out_trade_no = '{frozen}'")
    platform.refund(refunded, "30.00")
    found = reconciled(channel, fails=True)
    assert {(each["order_no"], each["kind"], each["detail"]) for each in found["differences"]} == {
        (frozen, "status", "the channel holds the money back: ask its staff why, and until when"),
        (refunded, "status", "the money went back there and is booked here"),
    }
    there, here = found["sums"]["there"], found["sums"]["here"]
    assert (there["in"], there["refunds"], here["in"], here["refunds"]) == ("200.00", "30.00", "200.00", "0.00")
