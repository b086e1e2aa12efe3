"""The job that fetches bills: when it is due, what it stores, and what a second run, host or bill changes."""

from dataclasses import replace
from datetime import date

import pytest

from gateways.wechatpay import WechatpayDriver
from models.tables.account_balance import AccountBalance
from models.tables.bill import Bill, StatementDifference
from models.tables.channel import Channel
from models.tables.ledger import COMMISSION, LedgerAccount
from models.tables.order import PaymentException
from models.tables.reconciliation import Reconciliation
from runtime import clock
from services.platform.worker_pool import claim
from services.statements import bills, kept_results
from services.statements.compare_file import Choices
from tests.refunds import allow
from tests.upstreams.accounts import AlipayAccount, WechatAccount
from tests.upstreams.bills import wechat_tradebill

DAY = date(2026, 5, 1)


@pytest.fixture(autouse=True)
def noon(china, app):
    china("2026-05-01 12:00:00")


@pytest.fixture
def wechat(opened):
    return opened(WechatAccount)


@pytest.fixture
def alipay(opened):
    return opened(AlipayAccount)


@pytest.fixture
def run(china):
    """`run("2026-05-02 10:15:00")`: the state of each bill, by day, after the job has run at this time in China."""

    def at(text):
        china(text)
        bills.run()
        return [(bill.day, bill.state) for bill in Bill.select().order_by(Bill.day, Bill.channel)]

    return at


def fetched(account):
    """The number of bills that the service asked for."""
    paths = [request.path for request in account.calls]
    return sum(path.endswith("/tradebill") for path in paths)


COMPARED, WAITING, LATE, NONE = (
    [("2026-05-01", state)] for state in ("compared", "waiting", "late", "none")
)  # of the only bill


def commission():
    """What the channels have kept by the books, in fen."""
    return -LedgerAccount.balance_of(COMMISSION, 0)


# --- when


@pytest.mark.parametrize("kind", [WechatAccount, AlipayAccount])
def test_a_bill_is_fetched_from_a_quarter_past_ten(kind, opened, paid, run, found):
    account = opened(kind)
    paid(account)
    account.publish(DAY)
    assert run("2026-05-02 10:14:59") == []
    assert run("2026-05-02 10:15:00") == COMPARED
    assert found() == []


def test_a_bill_is_fetched_once(wechat, paid, run):
    paid(wechat)
    wechat.publish(DAY)
    for at in ("10:15", "10:45", "18:00"):
        assert run(f"2026-05-02 {at}:00") == COMPARED
    assert fetched(wechat) == 1


def test_a_bill_with_two_open_differences_of_an_order_is_not_fetched_with_each_check(wechat, paid, run):
    paid(wechat)
    (row,) = wechat.rows(DAY)
    wechat.publish(DAY, [replace(row, amount=9_900), replace(row, reference="4200000000000000000000000009")])
    run("2026-05-02 10:15:00")
    run("2026-05-02 10:15:10")
    before = fetched(wechat)
    for at in ("10:26", "10:37", "10:48"):
        run(f"2026-05-02 {at}:00")
    assert [difference.state for difference in StatementDifference.select()] == ["open", "open"]
    assert fetched(wechat) == before


def test_a_bill_that_is_not_ready_is_fetched_every_half_hour(wechat, paid, run):
    paid(wechat)
    wechat.refuses.append((400, {"code": "STATEMENT_CREATING", "message": "账单生成中"}))
    assert run("2026-05-02 10:15:00") == WAITING
    assert "账单生成中" in Bill.get().problem
    wechat.publish(DAY)
    assert run("2026-05-02 10:44:59") == WAITING
    assert run("2026-05-02 10:45:00") == COMPARED
    assert (Bill.get().problem, Bill.get().attempts) == ("", 2)


@pytest.mark.parametrize("kind", [WechatAccount, AlipayAccount])
def test_a_bill_that_does_not_come_until_the_evening_is_late_and_fetched_every_morning(kind, opened, paid, run):
    account = opened(kind)
    paid(account)
    assert run("2026-05-02 10:15:00") == WAITING
    assert Bill.get().problem == bills.NOT_READY  # the channel has none, and money was booked
    assert run("2026-05-02 17:30:00") == WAITING
    assert run("2026-05-02 18:00:00") == LATE
    account.publish(DAY)
    assert run("2026-05-02 23:00:00") == LATE
    assert run("2026-05-03 10:15:00")[0] == COMPARED[0]


def test_a_late_bill_is_given_up_after_a_week(wechat, paid, run):
    paid(wechat)
    for day in range(2, 11):
        run(f"2026-05-{day:02d} 10:15:00")
        run(f"2026-05-{day:02d} 18:00:00")
    first = Bill.get(Bill.day == str(DAY))
    assert (first.state, first.due_at) == ("late", None)


@pytest.mark.parametrize("kind", [WechatAccount, AlipayAccount])
def test_a_day_without_money_has_no_bill_and_the_last_look_is_in_the_evening(kind, opened, run):
    opened(kind)
    assert run("2026-05-02 10:15:00") == NONE
    assert run("2026-05-02 17:45:00") == NONE
    assert run("2026-05-02 18:00:00") == NONE
    assert Bill.get().due_at is None


@pytest.mark.parametrize("kind", [WechatAccount, AlipayAccount])
def test_a_bill_that_was_not_ready_and_proves_a_payment_is_found_before_the_evening(kind, opened, buy, api, run):
    account = opened(kind)
    order_no = buy(account)
    account.receives(order_no)  # its notice is lost
    assert run("2026-05-02 10:15:00") == NONE
    account.publish(DAY)
    assert run("2026-05-02 10:45:00") == COMPARED
    assert api.status(order_no) == "completed"


def test_a_payment_of_the_last_seconds_that_is_booked_after_midnight_needs_no_second_bill(wechat, buy, api, china, run):
    china("2026-05-01 23:59:55")
    order_no = buy(wechat)
    wechat.receives(order_no)
    china("2026-05-02 00:00:05")
    wechat.notice(order_no).to(api.send, order_no)
    china("2026-05-02 10:15:00")
    wechat.publish(DAY)
    assert run("2026-05-02 10:15:00") == COMPARED
    assert run("2026-05-03 10:15:00")[1] == ("2026-05-02", "none")


def test_the_last_seven_days_are_filled_in_but_none_before_the_channel(china, opened, run):
    china("2026-04-20 12:00:00")
    opened(WechatAccount)
    assert [day for day, _ in run("2026-04-23 10:15:00")] == ["2026-04-20", "2026-04-21", "2026-04-22"]
    days = [day for day, _ in run("2026-05-10 10:15:00")]
    assert days[3:] == [f"2026-05-{day:02d}" for day in range(3, 10)]


def test_a_channel_has_bills_of_the_days_until_it_was_disabled(wechat, paid, run, flask):
    paid(wechat)
    flask("channel", "set", wechat.channel, "--disabled")
    wechat.publish(DAY)
    assert run("2026-05-02 10:15:00") == COMPARED
    assert [day for day, _ in run("2026-05-20 10:15:00")] == [str(DAY)]


def test_an_error_of_the_service_stops_no_other_bill_and_is_an_alert(wechat, alipay, paid, run, monkeypatch):
    for account in (wechat, alipay):
        paid(account)
        account.publish(DAY)

    def fail(*_):
        raise RuntimeError("a fault")

    monkeypatch.setattr(WechatpayDriver, "fetch_balance", fail)
    monkeypatch.setattr(
        bills,
        "_compare",
        lambda bill, *rest, do=bills._compare: fail() if bill.channel_id == wechat.channel else do(bill, *rest),
    )
    assert run("2026-05-02 10:15:00") == [("2026-05-01", "waiting"), ("2026-05-01", "compared")]
    assert run("2026-05-02 18:00:00")[0] == ("2026-05-01", "late")
    assert Bill.get(Bill.channel == wechat.channel).problem == bills.FAULT


# --- once


def test_a_bill_is_claimed_by_one_host(wechat, paid, run, china):
    paid(wechat)
    assert run("2026-05-02 10:15:00") == WAITING
    here, there = Bill.get(), Bill.get()
    assert claim([here], clock.now() + bills.LEASE) == [here]
    assert claim([there], clock.now() + bills.LEASE) == []


def test_a_host_that_is_killed_repeats_nothing_when_it_is_back(wechat, paid, run, china):
    paid(wechat)
    wechat.rate = 50
    paid(wechat)
    assert run("2026-05-02 10:15:00") == WAITING
    wechat.publish(DAY)
    china("2026-05-02 10:45:00")
    killed = Bill.get()
    assert claim([killed], clock.now() + bills.LEASE)
    assert run("2026-05-02 10:59:00") == WAITING
    assert run("2026-05-02 11:00:00") == COMPARED
    assert commission() == 110
    with pytest.raises(bills.Overtaken):
        bills.fetch(killed)  # it was only slow
    assert commission() == 110
    assert Reconciliation.select().count() == 1


def test_an_uploaded_statement_replaces_a_late_bill(wechat, paid, run):
    paid(wechat)
    run("2026-05-02 10:15:00")
    assert run("2026-05-02 18:00:00") == LATE
    wechat.publish(DAY)
    channel = Channel.get_by_id(wechat.channel)
    row = kept_results.compare(channel, "bill.csv", wechat.bills[str(DAY)], Choices(), "operator demo")
    assert run("2026-05-03 10:15:00")[0] == COMPARED[0]
    bill = Bill.get(Bill.day == str(DAY))
    assert (bill.reconciliation_id, bill.due_at, commission()) == (row.id, None, 60)


def test_a_statement_of_several_days_replaces_late_bills_whose_costs_are_posted_once(wechat, paid, run, china):
    paid(wechat)
    china("2026-05-02 12:00:00")
    wechat.rate = 100
    paid(wechat)
    run("2026-05-03 10:15:00")
    channel = Channel.get_by_id(wechat.channel)
    both = wechat_tradebill([*wechat.rows(DAY), *wechat.rows(date(2026, 5, 2))])
    kept_results.compare(channel, "bill.csv", both, Choices(), "operator demo")
    assert commission() == 160
    for day in (DAY, date(2026, 5, 2)):
        wechat.publish(day)
        bills.request(channel, day)
    run("2026-05-03 12:00:00")
    assert (commission(), [bill.costs for bill in Bill.select().order_by(Bill.day)]) == (160, [0, 40])


def test_fetching_a_day_again_keeps_the_differences_of_other_days(wechat, paid, run, china):
    first = paid(wechat)
    china("2026-05-02 12:00:00")
    paid(wechat)
    run("2026-05-03 10:15:00")
    channel = Channel.get_by_id(wechat.channel)
    without = wechat_tradebill(wechat.rows(date(2026, 5, 2)))
    kept_results.compare(channel, "bill.csv", without, Choices(since=DAY, until=date(2026, 5, 2)), "operator demo")
    wechat.publish(date(2026, 5, 2))
    bills.request(channel, date(2026, 5, 2))
    run("2026-05-03 12:00:00")
    assert [(row.state, row.order.order_no) for row in StatementDifference.select()] == [("open", first)]


def test_two_days_with_the_same_file_have_two_results(wechat, paid, run, monkeypatch):
    empty = wechat_tradebill([])
    monkeypatch.setattr(WechatpayDriver, "fetch_statement", lambda self, day: empty)
    paid(wechat)
    run("2026-05-02 10:15:00")
    run("2026-05-03 10:15:00")
    assert [bill.reconciliation.since for bill in Bill.select().order_by(Bill.day)] == ["2026-05-01", "2026-05-02"]


def test_a_bill_on_request_of_an_older_day(china, opened, paid, run):
    china("2026-04-10 12:00:00")
    account = opened(WechatAccount)
    paid(account)
    account.publish(date(2026, 4, 10))
    china("2026-05-02 09:00:00")
    bills.request(Channel.get_by_id(account.channel), date(2026, 4, 10))
    assert run("2026-05-02 09:00:10") == [("2026-04-10", "compared")]


# --- balances


@pytest.mark.parametrize("kind", [WechatAccount, AlipayAccount])
def test_the_balance_of_the_day_is_fetched_with_its_bill(kind, opened, paid, run):
    account = opened(kind)
    paid(account)
    account.publish(DAY)
    run("2026-05-02 10:15:00")
    balance = AccountBalance.get()
    assert (balance.day, balance.amount, balance.expected) == (str(DAY), 9_940, 9_940)


def test_a_balance_that_cannot_be_read_is_fetched_again_and_the_bill_stays_compared(wechat, paid, run):
    paid(wechat)
    wechat.rate = 50
    paid(wechat)
    wechat.publish(DAY)
    flow, wechat.flows[str(DAY)] = wechat.flows[str(DAY)], b"damaged"
    assert run("2026-05-02 10:15:00") == COMPARED
    assert Bill.get().problem != ""
    assert (AccountBalance.select().count(), commission()) == (0, 110)
    wechat.flows[str(DAY)] = flow
    assert run("2026-05-02 10:45:00") == COMPARED
    assert (AccountBalance.get().amount, Bill.get().problem, commission()) == (wechat.funds, "", 110)


# --- costs


def test_the_cost_of_a_payment_that_is_booked_after_its_bill_is_posted_once(wechat, buy, api, run):
    order_no = buy(wechat)
    wechat.receives(order_no)  # its notice is lost
    wechat.publish(DAY)
    run("2026-05-02 10:15:00")
    run("2026-05-02 10:15:10")
    assert (api.status(order_no), commission(), wechat.fees(DAY)) == ("completed", 60, 60)


def test_the_cost_of_a_late_payment_that_an_operator_completes_is_posted_once(wechat, buy, api, china, due, run, flask):
    order_no = buy(wechat)
    china("2026-05-01 14:00:00")
    due.orders()
    wechat.receives(order_no)
    wechat.notice(order_no).to(api.send, order_no)
    wechat.publish(DAY)
    run("2026-05-02 10:15:00")
    flask("order", "resolve", order_no, "--complete", "--yes")
    run("2026-05-02 10:30:00")
    run("2026-05-02 10:30:10")
    assert (commission(), wechat.fees(DAY)) == (60, 60)


def test_a_refund_in_the_vendors_console_before_the_credit_takes_nothing_else_back(
    opened, paid, china, due, run, found
):
    account = opened(AlipayAccount, "--settlement-days", "5")
    order_no = paid(account)
    china("2026-05-01 12:30:00")
    account.gives_back(order_no, 10_000, "CONSOLE-1")
    account.publish(DAY)
    run("2026-05-02 10:15:00")
    run("2026-05-02 10:15:10")
    assert (PaymentException.select().where(PaymentException.resolution.is_null()).count(), commission()) == (0, 0)


@pytest.fixture
def refund(api, due):
    """`refund(account, order_no, "40.00")`: the number of a refund by this service, which the channel has."""

    def request(order_no, amount):
        fields = {"order_no": order_no, "cny_amount": amount, "merchant_refund_no": f"M-{amount}"}
        number = api.call("createRefund", fields).data["refund_no"]
        due.orders()
        return number

    return request


def test_a_refund_before_the_credit_that_is_under_way_in_the_bill_returns_the_whole_cost_once(
    opened, paid, refund, china, found, due
):
    allow()
    account = opened(WechatAccount, "--settlement-days", "3")
    number = refund(paid(account), "100.00")
    china("2026-05-02 10:15:00")
    account.publish(DAY)
    assert found() == []
    china("2026-05-02 12:00:00")
    account.ends(number, paid=True)
    due.orders()
    china("2026-05-05 12:00:00")
    due.orders()
    assert (commission(), account.fees(DAY)) == (0, 0)


def test_two_refunds_before_the_credit_return_the_whole_cost_once(opened, paid, refund, china, found, due):
    allow()
    account = opened(WechatAccount, "--settlement-days", "3")
    account.refunds_begin = "SUCCESS"
    order_no = paid(account)
    china("2026-05-02 10:15:00")
    account.publish(DAY)
    assert found() == []
    china("2026-05-02 12:00:00")
    refund(order_no, "40.00")
    china("2026-05-03 09:00:00")
    refund(order_no, "60.00")
    for day in (2, 3):
        china(f"2026-05-0{day + 1} 10:15:00")
        account.publish(date(2026, 5, day))
        assert found() == []
    china("2026-05-05 12:00:00")
    due.orders()
    assert (commission(), account.fees(date.max)) == (0, 0)


def test_a_bill_that_is_fetched_again_posts_only_what_changed_of_its_costs(wechat, paid, run):
    paid(wechat)
    (row,) = wechat.rows(DAY)
    for at, fee in (("10:15", 60), ("10:20", 75), ("10:25", 75), ("10:30", 38)):
        wechat.publish(DAY, [replace(row, fee=fee)])
        if at != "10:15":
            bills.request(Channel.get_by_id(wechat.channel), DAY)
        assert run(f"2026-05-02 {at}:00") == COMPARED
        assert (commission(), Bill.get().costs) == (fee, fee - 60)


def test_two_channels_of_one_account_have_no_differences(wechat, paid, run, flask, flask_json, found):
    first = wechat.channel
    paid(wechat)
    pairs = [part for name, value in wechat.config("key").items() for part in ("--config", f"{name}={value}")]
    new = ("channel", "add", "--category", "gateway_b", "--driver", wechat.driver, "--name", "second", *pairs)
    wechat.channel = flask_json(*new, "--cost", "0.6")["id"]
    flask("channel", "link", wechat.channel, "demo")
    paid(wechat)
    wechat.publish(DAY)
    assert run("2026-05-02 10:15:00") == [("2026-05-01", "compared")] * 2
    assert (found(), commission(), wechat.channel != first) == ([], 120, True)
