"""The channel's settlement delay (T+N): confirmed immediately, credited N days later, once; an exception about the
deposit's own money holds the credit until an operator has decided."""

import pytest

from models.tables.order import Order
from services.jobs import sweep
from tests.support import InlinePool

START = 1_000_000
WAITING = ("confirmed", (START, 0), {})
CREDITED = ("completed", (START + 9_940, 0), {})
DAY = 86_400
SANDBOX, MANUAL = 2, 3


@pytest.fixture
def delay(flask):
    """`delay(1)`: the channel's deposits are credited a day after their payment."""
    return lambda days, channel=SANDBOX: flask("channel", "set", channel, "--settlement-days", days)


@pytest.fixture
def confirmed(api, delay):
    """`confirmed(2)`: the number of a deposit of 100 yuan that was paid as R-1 and is credited in two days."""

    def place(days):
        delay(days)
        order_no = api.buy().data["order_no"]
        api.notice(order_no, 10_000)
        assert api.status(order_no) == "confirmed"
        return order_no

    return place


@pytest.mark.parametrize("days", [1, 7])
def test_a_paid_deposit_is_credited_after_the_delay_of_its_payment_and_not_before(
    confirmed, delay, now, later, steps, days
):
    order_no = confirmed(days)
    delay(days + 3)  # for later payments
    assert now(order_no) == WAITING
    later(days * DAY - 10)
    assert now(order_no) == WAITING
    later(10)
    assert now(order_no) == CREDITED
    assert steps(order_no)[-1] == ("service", "confirmed", "completed")


def test_money_not_yet_credited_can_not_be_withdrawn(api, delay, later):
    delay(1)
    api.play(api.buy("5000.00").data["order_no"], "success")
    assert api.sell("12000.00").code == 40901
    later(DAY)
    assert api.sell("12000.00").code == 1


def test_it_is_credited_once_however_often_the_notice_arrives_or_the_job_runs(api, delay, later, now):
    delay(1)
    order_no = api.buy().data["order_no"]
    for outcome in ("duplicate", "success"):
        api.play(order_no, outcome)
    later(DAY)
    api.play(order_no, "success")
    later(DAY, times=2)
    assert now(order_no) == CREDITED


def test_a_manually_confirmed_deposit_waits_too(api, delay, flask, later, now):
    delay(1, MANUAL)
    order_no = api.buy(channel=MANUAL).data["order_no"]
    flask("order", "paid", order_no)
    assert now(order_no) == WAITING
    later(DAY)
    assert now(order_no) == CREDITED


# --- exceptions during the delay


def test_a_second_payment_is_an_exception_and_holds_no_credit(confirmed, api, flask, later, now):
    order_no = confirmed(1)
    api.notice(order_no, 5_000, reference="R-2")
    later(DAY)
    assert now(order_no) == (*CREDITED[:2], {order_no: "paid_twice"})
    flask("order", "settle", order_no, "--refund")
    later(0)
    assert now(order_no) == CREDITED


def test_a_fully_refunded_deposit_is_cancelled(confirmed, api, later, now):
    order_no = confirmed(1)
    api.notice(order_no, 10_000, state="failed")
    later(2 * DAY)
    assert now(order_no) == ("cancelled", (START, 0), {})


def test_a_partly_refunded_deposit_waits_for_an_operator(confirmed, api, flask, later, now):
    order_no = confirmed(1)
    api.notice(order_no, 8_000)
    later(2 * DAY)
    flask("order", "settle", order_no, "--refund", fails=True)
    assert now(order_no) == (*WAITING[:2], {order_no: "reversed"})
    flask("order", "settle", order_no, "--credit")
    assert now(order_no) == CREDITED


@pytest.mark.parametrize(("how", "more"), [("credit", 1_988), ("refund", 0)])
def test_a_corrected_deposit_is_credited_at_its_settlement_time_after_the_decision(
    confirmed, api, flask, later, now, how, more
):
    order_no = confirmed(2)
    api.notice(order_no, 12_000)
    flask("order", "resolve", order_no, f"--{how}")
    later(2 * DAY - 60)
    assert now(order_no) == ("confirmed", (START + more, 0), {})
    later(60)
    assert now(order_no) == ("completed", (START + more + 9_940, 0), {})


def test_a_decision_after_the_settlement_time_credits_it_at_once(confirmed, api, flask, later, now):
    order_no = confirmed(1)
    api.notice(order_no, 12_000)
    later(DAY, 3)
    assert now(order_no) == (*WAITING[:2], {order_no: "amount_corrected"})
    flask("order", "resolve", order_no, "--refund")
    later(0, times=2)  # the channel refunds it, and then the rest is due
    assert now(order_no) == CREDITED


@pytest.mark.parametrize("passed", [60, 2 * DAY])
def test_a_correction_that_the_channel_takes_back_delays_nothing_further(
    confirmed, api, later, exceptions, now, passed
):
    order_no = confirmed(1)
    api.notice(order_no, 12_000)
    later(passed)
    assert exceptions() == {order_no: "amount_corrected"}
    api.notice(order_no, 10_000)
    assert exceptions() == {}
    later(DAY)
    assert now(order_no) == CREDITED


def test_two_exceptions_about_one_deposit_hold_it_until_that_about_its_own_money_is_resolved(
    confirmed, api, flask, later, order_details, now
):
    order_no = confirmed(1)
    api.notice(order_no, 12_000)
    api.notice(order_no, 5_000, reference="R-2")
    corrected, twice = [each["id"] for each in order_details(order_no)["exceptions"]]
    flask("order", "resolve", order_no, "--refund", "--exception", twice)
    later(DAY)
    assert api.status(order_no) == "confirmed"
    flask("order", "resolve", order_no, "--refund", "--exception", corrected)
    later(0, times=2)
    assert now(order_no) == CREDITED


def test_a_pending_deposit_with_two_wrong_payments_waits_for_the_decisions(api, later, exceptions):
    order_no = api.buy().data["order_no"]
    for reference, fen in (("R-1", 7_000), ("R-2", 6_000)):
        api.notice(order_no, fen, reference=reference)
    later(1_000)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "wrong_amount,wrong_amount"})


def test_a_decision_while_a_worker_has_the_held_deposit_does_not_lose_its_credit(api, delay, flask, ahead, later):
    delay(1, MANUAL)
    order_no = api.buy(channel=MANUAL).data["order_no"]
    for amount in ("100.00", "150.00"):
        flask("order", "paid", order_no, "--reference", "R1", "--amount", amount)

    class Overtaken(InlinePool):
        """A worker that found the deposit held just before an operator's decision."""

        def submit(self, tenant, work, item):
            work(item)
            flask("order", "resolve", order_no, "--credit")

    ahead(DAY)
    assert sweep.sweep(Overtaken()) == 1
    assert Order.get(Order.order_no == order_no).due_at is not None
    later(60)
    assert api.status(order_no) == "completed"
