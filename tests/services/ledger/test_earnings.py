"""What the operator earned: the sums are those of the ledger, by day, merchant, channel and method."""

from datetime import date, datetime

import pytest

from gateways.base import Report, State
from gateways.sandbox.records import books
from models.tables.earnings import EarningsDay
from models.tables.ledger import CLEARING, COMMISSION, LedgerAccount
from models.tables.merchant import PROPORTIONAL
from models.tables.refund import Refund
from runtime.clock import CHINA
from services.errors import OperatorError
from services.ledger import accounts, earnings, integrity
from services.ledger.earnings import Earned
from services.refunds import settle
from services.sandbox import seeded_orders
from tests.earnings import check
from tests.refunds import allow, refunded
from tests.support import completed


@pytest.fixture
def at(time_machine):
    """`at("2026-05-31 23:59:59")` sets the clock, in China."""

    def move(text):
        time_machine.move_to(datetime.fromisoformat(text).replace(tzinfo=CHINA))

    return move


def paid_out(api, flask, amount="50.00"):
    """The number of a withdrawal that was paid out."""
    number = api.sell(amount, channel=3).data["order_no"]
    flask("order", "accept", number)
    flask("order", "paid", number, "--reference", f"R-{number}")
    return number


def test_deposits_and_payouts_count_on_the_day_of_booking_with_fees_and_costs(api, flask, at):
    flask("channel", "set", 3, "--passage-rate", "1", "--commission-rate", "0.2")
    at("2026-05-02 23:59:00")
    completed(api)  # 100.00, fee 0.60
    pending = api.buy("30.00")
    sent = api.sell("50.00", channel=3).data["order_no"]  # fee 0.15, channel fee 0.50, channel cost 0.10
    at("2026-05-03 00:01:00")
    api.play(pending.data["order_no"], "success")  # fee 0.18
    flask("order", "accept", sent)
    flask("order", "paid", sent, "--reference", "R-1")
    assert earnings.by_day(date(2026, 5, 2), date(2026, 5, 3)) == {
        date(2026, 5, 2): Earned(deposits=1, deposited=10_000, fees=60),
        date(2026, 5, 3): Earned(1, 3_000, withdrawals=1, withdrawn=5_000, fees=18 + 15, costs=10),
    }
    by_method = earnings.lines(None, None, ["channel", "method"])
    assert [(line.channel, line.method, line.sums.net) for line in by_method] == [(2, "wxpay", 78), (3, "bank", 5)]
    check()


def test_refunds_give_fees_back_and_one_that_the_platform_paid_is_a_loss(api, flask, later, due):
    allow(fees=PROPORTIONAL)
    order_no = completed(api)  # fee 0.60
    refunded(api, order_no, "40.00")  # gives 0.24 back
    later(61)
    books().set_next_refund(order_no, "success")
    flask("refund", "create", order_no, "10.00", "--platform", "--reason", "goodwill", "--yes")
    due.orders()
    total = check()
    assert (total.refunds, total.refunded, total.given_back) == (2, 5_000, 24 + 1_000)
    assert (total.fees, total.net) == (60 - 24 - 1_000,) * 2


def test_a_refund_and_a_payout_that_came_back_are_taken_out_again(api, flask):
    allow(fees=PROPORTIONAL)
    refund = Refund.find(refunded(api, completed(api), "40.00"))
    settle.apply_report(refund, Report(State.FAILED))
    flask("order", "settle", refund.order.order_no, "--cancel", typed="y\n")
    sent = paid_out(api, flask)
    flask("order", "returned", sent, "--reference", "RET-1", "--yes")
    flask("order", "settle", sent, "--credit")
    assert check() == Earned(deposits=1, deposited=10_000, fees=60)


def test_other_payments_that_were_credited_are_deposits(api, flask):
    late = api.buy().data["order_no"]
    api.notice(late, 9_900, reference="R-1")
    flask("order", "settle", late, "--credit")
    assert check() == Earned(deposits=1, deposited=9_900, fees=59)


def test_manual_adjustments_are_a_line_of_their_own_on_their_day(api, flask, at):
    at("2026-05-02 10:00:00")
    order_no = completed(api)
    flask("ledger", "adjust", "demo", "-12.50", "--reason", "bank fee")
    flask("ledger", "adjust", "demo", "2.00", "--reason", "sorry", "--order", order_no)
    flask("ledger", "adjust", "demo", "3.00", "--reason", "missing", "--channel", 2)  # moves no fees
    deposits, adjustments = earnings.lines(None, None, earnings.GROUPS)
    assert deposits.sums == Earned(deposits=1, deposited=10_000, fees=60)
    assert (adjustments.day, adjustments.merchant, adjustments.channel) == (date(2026, 5, 2), None, None)
    assert (adjustments.is_adjustment, adjustments.sums) == (True, Earned(fees=1_050))
    check()


def test_a_correction_by_a_bill_is_in_the_row_of_its_channel(api):
    completed(api)
    lines = {(CLEARING, 2): 7, (COMMISSION, 0): -7}
    accounts.post("bill_costs 2 2026-05-01", lines, who="service")
    (of_channel,) = earnings.lines(None, None, ["channel"])
    assert (of_channel.channel, of_channel.sums.costs) == (2, 7)
    by_merchant = earnings.lines(None, None, ["channel", "merchant", "method"])
    assert [(line.merchant, line.method, line.channel, line.sums.net) for line in by_merchant] == [
        (None, None, 2, -7),
        (1, "wxpay", 2, 60),
    ]
    check()


def test_kept_sums_and_new_entries_add_up_to_the_postings(api, flask, monkeypatch):
    allow(fees=PROPORTIONAL)
    seeded_orders.seed_orders(200)
    before = check()
    assert not EarningsDay.select().count()
    with monkeypatch.context() as patched:
        patched.setattr(earnings, "AT_ONCE", 7)
        earnings.complete()
    rows = EarningsDay.select().count()
    assert rows
    assert check() == before
    refunded(api, completed(api), "40.00")
    paid_out(api, flask)
    after = check()
    assert after.deposits == before.deposits + 1
    earnings.catch_up()  # so few are left for later
    assert EarningsDay.select().count() == rows
    earnings.complete()
    assert check() == after
    assert all(not lines for _, lines in integrity.verify())


def test_entries_that_another_process_has_added_count_once(api):
    completed(api)
    account = LedgerAccount.get(LedgerAccount.kind == "fees")
    rows = earnings._merged(earnings._rows([(account, 0, 1)]))
    assert earnings._add(account, 0, 1, rows)
    assert not earnings._add(account, 0, 1, rows)
    check()


def test_too_many_new_entries_are_left_to_the_job(api, monkeypatch):
    completed(api)
    monkeypatch.setattr(earnings, "MOST", 1)
    with pytest.raises(OperatorError, match="being prepared"):
        earnings.lines(None, None)
    earnings.complete()
    assert check().deposits == 1


@pytest.mark.breaks_the_ledger
def test_a_wrong_sum_is_found_by_the_integrity_check(api):
    completed(api)
    earnings.complete()
    EarningsDay.update(fees=EarningsDay.fees + 1).execute()
    failed = {name: lines for name, lines in integrity.verify() if lines}
    assert failed == {
        "sums by day equal their entries": [
            "the earnings have 61 fen of account fees, but its first 1 entries sum to 60"
        ]
    }
