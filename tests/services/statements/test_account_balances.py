"""What a channel's account should hold by the books: at the end of a day in China and now, line by line."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from gateways.base import ChannelUnknown, Report, State
from gateways.sandbox.records import books as sandbox_books
from models.tables.account_balance import BILL, BY_OPERATOR, AccountBalance
from models.tables.channel import Channel
from models.tables.order import Order
from services import kinds
from services.errors import OperatorError
from services.ledger import accounts
from services.security.audit import HERE
from services.statements import account_balances
from services.statements.account_balances import Expected
from services.withdrawals import bank_files
from tests.refunds import allow, refunded
from tests.services.walks import sell_paid_out, sell_rejected
from tests.support import completed
from tests.trial_service import Trial

CHINA = timezone(timedelta(hours=8))
SANDBOX, MANUAL = 2, 3
FIRST, SECOND, THIRD = (date(2026, 5, day) for day in (1, 2, 3))
COST = -4_995  # a payout of 50 yuan, less the channel's bonus of 0.1 %


@pytest.fixture(autouse=True)
def first(time_machine):
    """Noon on 1 May 2026 in China."""
    time_machine.move_to(datetime(2026, 5, 1, 12, tzinfo=CHINA))


@pytest.fixture
def to(time_machine):
    """`to(2, 12, 30)`: half past twelve on 2 May in China."""
    return lambda day, *clock: time_machine.move_to(datetime(2026, 5, day, *clock, tzinfo=CHINA))


@pytest.fixture
def books(app):
    """`books(FIRST)`: what the account of the sandbox channel should hold at the end of that day, or now."""

    def read(day=None, channel=SANDBOX):
        return account_balances.expected([Channel.get_by_id(channel)], day)[channel]

    return read


@pytest.fixture
def record(app):
    """`record(FIRST, 10_000)`: record a figure of an operator for the sandbox channel."""

    def write(day, amount, note="", source=BY_OPERATOR, channel=SANDBOX):
        account_balances.record(Channel.get_by_id(channel), day, amount, source, "operator demo", note)
        return account_balances.account(Channel.get_by_id(channel))

    return write


def report(order_no, state, fen=0):
    """The channel reports on a payment."""
    order = Order.find(order_no)
    kinds.DEPOSIT.apply(order, Report(state, fen, order.channel_reference), "channel", kinds.ASKED)


def test_an_account_without_orders_should_hold_nothing(books):
    assert books() == books(FIRST) == Expected()


def test_a_credited_deposit_and_its_refund_are_booked(books, api, to):
    allow()
    order_no = completed(api)
    assert books() == Expected(booked=10_000)
    to(2, 12)
    refunded(api, order_no, "40.00")
    assert (books().total, books(FIRST).total) == (6_000, 10_000)


def test_the_channels_costs_of_a_deposit_are_not_expected(books, api, flask):
    Channel.update(cost_rates='{"wxpay": 60}').where(Channel.id == SANDBOX).execute()
    completed(api)
    assert books() == Expected(booked=9_940)


def test_a_day_ends_at_midnight_in_china(books, api, to):
    to(1, 23, 59, 59)
    completed(api)
    to(2, 0, 0, 0)
    completed(api)
    assert [books(day).booked for day in (FIRST - timedelta(days=1), FIRST, SECOND)] == [0, 10_000, 20_000]
    assert datetime.now(UTC).date() == FIRST


def test_a_deposit_within_the_settlement_delay_is_received_and_not_credited(books, api, flask, later, to):
    flask("channel", "set", SANDBOX, "--settlement-days", 1)
    completed(api)
    assert books() == Expected(uncredited=10_000)
    to(2, 13)
    later(0)
    assert books() == books(SECOND) == Expected(booked=10_000)
    to(3, 12)
    assert (books(FIRST), books(SECOND)) == (Expected(uncredited=10_000), Expected(booked=10_000))


def test_a_partial_refund_before_the_credit_reduces_what_is_not_credited(books, api, flask, later, to):
    allow()
    flask("channel", "set", SANDBOX, "--settlement-days", 2)
    order_no = completed(api)
    refunded(api, order_no, "40.00")
    assert books() == Expected(uncredited=6_000)
    to(4, 12)
    later(0)
    assert books() == Expected(booked=6_000)
    assert books(FIRST) == books(SECOND) == Expected(uncredited=6_000)


def test_a_deposit_that_was_refunded_before_its_credit_was_at_the_channel_until_then(books, api, flask, to):
    allow()
    flask("channel", "set", SANDBOX, "--settlement-days", 5)
    order_no = completed(api)
    to(2, 12)
    refunded(api, order_no, "100.00")
    assert api.status(order_no) == "cancelled"
    assert (books(FIRST), books()) == (Expected(uncredited=10_000), Expected())


def test_a_refund_under_way_that_takes_all_of_a_deposit_before_its_credit_ends_its_costs(books, api, flask, later, to):
    allow()
    Channel.update(cost_rates='{"wxpay": 60}').where(Channel.id == SANDBOX).execute()
    flask("channel", "set", SANDBOX, "--settlement-days", 5)
    part, whole = completed(api), completed(api)
    refunded(api, part, "99.00", "silent")
    assert books() == Expected(uncredited=2 * 9_940, under_way=-9_900)
    refund_no = refunded(api, whole, "100.00", "silent")
    assert books() == Expected(uncredited=9_940 + 10_000, under_way=-19_900)
    to(2, 12)
    sandbox_books().set_refund_outcome(refund_no, "success")
    later(0)
    assert api.status(whole) == "cancelled"
    assert books() == Expected(uncredited=9_940, under_way=-9_900)
    assert books(FIRST) == Expected(uncredited=9_940 + 10_000, under_way=-19_900)


def test_a_payment_in_an_open_exception_is_at_the_channel(books, api, flask, to):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 9_000)
    assert books() == Expected(questioned=9_000)
    to(2, 12)
    flask("order", "resolve", order_no, "--credit")
    assert (books(FIRST), books()) == (Expected(questioned=9_000), Expected(booked=9_000))


def test_money_that_the_channel_took_back_is_booked_and_no_longer_there(books, api):
    order_no = completed(api)
    report(order_no, State.PAID, 7_000)
    assert books() == Expected(booked=10_000, questioned=-3_000)


def test_an_exception_without_an_amount_is_counted_as_unknown(books, api):
    report(completed(api), State.RETURNED)
    assert books() == Expected(booked=10_000, unknown=1)


def test_a_refund_under_way_has_left_the_account(books, api, to):
    allow()
    order_no = completed(api)
    refunded(api, order_no, "40.00", "silent")
    assert books() == Expected(booked=10_000, under_way=-4_000)
    to(2, 12)
    sandbox_books().set_next_refund(order_no, "success")
    assert books(FIRST) == books() == Expected(booked=10_000, under_way=-4_000)


def test_a_payout_under_way_has_left_the_account(books, api, flask, due, to):
    flask("channel", "set", SANDBOX, "--config", "payout=silent")
    order_no = api.sell("50.00").data["order_no"]
    flask("order", "accept", order_no)
    assert books() == Expected()  # it is sent by the next sweep
    due.orders()
    assert books() == Expected(under_way=COST)
    to(2, 12)
    api.notice(order_no, 5_000)
    assert api.status(order_no) == "completed"
    assert (books(FIRST), books()) == (Expected(under_way=COST), Expected(booked=COST))


@pytest.mark.parametrize("state", ["paid", "open"])
def test_a_rejected_withdrawal_that_the_channel_pays_is_in_an_exception(books, world, api, flask, state, to):
    order_no = sell_rejected(world)
    api.notice(order_no, 5_000, state=state)
    assert books() == Expected(questioned=COST)
    to(2, 12)
    api.notice(order_no, 5_000)
    if state == "paid":
        flask("order", "settle", order_no, "--complete")
    assert (books(FIRST), books()) == (Expected(questioned=COST), Expected(booked=COST))


def test_a_payout_that_came_back_is_at_the_channel_again(books, world, api, flask):
    order_no = sell_paid_out(world)
    api.notice(order_no, 5_000, state="failed", reference=f"SB{order_no}")
    assert books() == Expected(booked=COST, questioned=-COST)
    flask("order", "settle", order_no, "--credit")
    assert books() == Expected()


def test_a_payout_of_another_amount_counts_once(books, api, flask, due):
    flask("channel", "set", SANDBOX, "--config", "payout=silent")
    order_no = api.sell("50.00").data["order_no"]
    flask("order", "accept", order_no)
    due.orders()
    api.notice(order_no, 4_000)
    assert books() == Expected(questioned=-4_000)


def test_a_payout_in_a_bank_file_has_left_the_account_and_an_approved_one_has_not(books, api, flask):
    order_no = api.sell("50.00", channel=MANUAL).data["order_no"]
    flask("order", "accept", order_no)
    assert books(channel=MANUAL) == Expected()
    batch = bank_files.create("generic", [order_no], HERE)
    assert books(channel=MANUAL) == Expected()
    bank_files.contents(batch, HERE)
    assert books(channel=MANUAL) == Expected(under_way=-5_003)
    flask("order", "paid", order_no, "--in-bank-file")
    assert books(channel=MANUAL).total == -5_003


def test_a_correction_by_the_bill_of_a_day_belongs_to_that_day(books, api, to):
    completed(api)
    to(2, 10, 30)
    lines = {("clearing", SANDBOX): 60, ("commission", 0): -60}
    accounts.post(f"bill_costs {SANDBOX} {FIRST}", lines, who="service")
    completed(api)
    to(3, 10, 30)
    accounts.post(f"bill_costs {SANDBOX} {SECOND}", lines, who="service")
    assert [books(day).booked for day in (FIRST, SECOND, THIRD)] == [9_940, 19_880, 19_880]


def test_the_end_of_a_day_is_the_same_when_it_is_computed_days_later(books, world, api, flask, later, to):
    allow()
    flask("channel", "set", SANDBOX, "--settlement-days", 2, "--config", "payout=silent")
    seen, waiting = {}, []
    for day in range(1, 8):
        to(day, 20)
        later(0)
        orders = [completed(api) for _ in range(4)]
        refunded(api, orders[0], "30.00", "silent" if day % 2 else "success")
        refunded(api, orders[1])
        api.notice(orders[2], 12_000)
        waiting.append(api.sell("50.00").data["order_no"])
        flask("order", "accept", waiting[-1])
        later(0)
        if day % 2 == 0:
            api.notice(waiting[-2], 5_000)
            flask("order", "resolve", orders[2], "--credit")
        to(day, 23, 59, 59)
        seen[day] = books()
    to(20, 12)
    later(0)
    assert {day: books(date(2026, 5, day)) for day in seen} == seen
    assert all(each.booked and each.uncredited and each.under_way for each in list(seen.values())[2:])


def test_each_figure_keeps_its_difference_and_an_explained_one_is_the_new_base(record, api, to):
    completed(api)
    account = record(FIRST, 1_010_000)
    assert (account.unexplained(account.last), account.since) == (1_000_000, "2026-05-01")
    account = record(FIRST, 1_010_000, "opening balance")
    assert (account.unexplained(account.last), account.since, account.is_explained) == (0, None, True)
    to(2, 12)
    account = record(SECOND, 10_000)
    assert (account.unexplained(account.last), account.since) == (-1_000_000, "2026-05-02")
    to(3, 12)
    account = record(THIRD, 9_900)
    assert (account.unexplained(account.last), account.since) == (-1_000_100, "2026-05-02")
    account = record(THIRD, 9_900, "10,000.00 to the bank, 1.00 fee")
    assert (account.unexplained(account.last), account.since) == (0, None)
    assert [account.unexplained(each) for each in account.figures] == [0, -1_000_000, 0]


def test_the_channels_flow_replaces_figures_that_are_not_explained(record, api, to):
    completed(api)
    record(FIRST, 9_000)
    account = record(FIRST, 9_990, source=BILL)
    assert (account.last.amount, account.last.source) == (9_990, BILL)
    with pytest.raises(OperatorError, match="reports 99"):
        record(FIRST, 9_000, "typo")
    account = record(FIRST, 9_990, "fee")
    assert (account.last.source, account.last.note, account.unexplained(account.last)) == (BILL, "fee", 0)
    account = record(FIRST, 1, source=BILL)
    assert (account.last.amount, AccountBalance.select().count()) == (9_990, 1)


def test_the_same_figure_again_keeps_its_explanation(record, api):
    record(FIRST, 9_000, "opening balance")
    completed(api)
    account = record(FIRST, 9_000)
    assert (account.last.note, account.last.expected) == ("opening balance", 0)
    assert (record(FIRST, 9_100).last.note, record(FIRST, 9_100, "counted").last.note) == ("", "counted")


def test_the_flow_compares_an_unexplained_figure_with_the_present_books(record, api, to):
    completed(api)
    to(2, 10, 30)
    assert record(FIRST, 9_940, source=BILL).last.difference == -60
    lines = {("clearing", SANDBOX): 60, ("commission", 0): -60}
    accounts.post(f"bill_costs {SANDBOX} {FIRST}", lines, who="service")
    assert record(FIRST, 9_940, source=BILL).last.difference == 0


def test_a_day_in_the_future_is_refused(record):
    with pytest.raises(OperatorError, match="future"):
        record(SECOND, 1)


@pytest.fixture
def flow(monkeypatch):
    """`flow(10_000)`: the balance that the upstream's flow has, None or an error."""

    def answer(result):
        def fetch_balance(self, day):
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(Trial, "fetches_balances", True, raising=False)
        monkeypatch.setattr(Trial, "fetch_balance", fetch_balance, raising=False)

    return answer


def test_the_flow_of_a_day_is_fetched_and_recorded(flow, api, to):
    completed(api)
    to(2, 10, 30)
    flow(9_940)
    channel = Channel.get_by_id(SANDBOX)
    account_balances.fetch(channel, FIRST)
    last = account_balances.account(channel).last
    assert (last.day, last.amount, last.expected, last.source, last.who) == (
        *("2026-05-01", 9_940, 10_000, BILL),
        "service",
    )


@pytest.mark.parametrize("result", [None, ChannelUnknown("no answer")])
def test_a_flow_without_a_line_or_an_answer_records_nothing(flow, app, to, result):
    to(2, 10, 30)
    flow(result)
    channel = Channel.get_by_id(SANDBOX)
    if result is None:
        account_balances.fetch(channel, FIRST)
    else:
        with pytest.raises(ChannelUnknown):
            account_balances.fetch(channel, FIRST)
    assert not AccountBalance.select().exists()
