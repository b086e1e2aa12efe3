"""The channel's settlement delay (T+N): confirmed immediately, credited N days later, once."""

import pytest

from models.tables.order import Order
from services.deposits import expire
from services.jobs import sweep
from tests.support import InlinePool

START = 1_000_000
DAY = 86_400
SANDBOX, MANUAL = 2, 3


@pytest.fixture
def delayed(flask):
    """`delayed(1)`: the sandbox credits a day after the payment."""
    return lambda days, channel=SANDBOX: flask("channel", "set", channel, "--settlement-days", days)


@pytest.mark.parametrize("days", [1, 2, 7])
def test_a_paid_deposit_is_credited_after_the_delay_and_not_before(api, delayed, later, balances, steps, days):
    delayed(days)
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    assert (api.status(order_no), balances()) == ("confirmed", (START, 0))
    later(days * DAY - 10)
    assert (api.status(order_no), balances()) == ("confirmed", (START, 0))
    later(10)
    assert (api.status(order_no), balances()) == ("completed", (START + 9_940, 0))
    assert steps(order_no)[-1] == ("service", "confirmed", "completed")


def test_without_a_delay_it_is_credited_immediately(api, delayed, balances):
    delayed(0)
    api.play(api.buy().data["order_no"], "success")
    assert balances() == (START + 9_940, 0)


def test_money_not_yet_credited_can_not_be_withdrawn(api, delayed, later):
    delayed(1)
    api.play(api.buy("5000.00").data["order_no"], "success")
    assert api.sell("12000.00").code == 40901
    later(DAY)
    assert api.sell("12000.00").code == 1


def test_it_is_credited_once_however_often_the_notice_arrives_or_the_job_runs(
    api, delayed, later, balances, exceptions
):
    delayed(1)
    order_no = api.buy().data["order_no"]
    api.play(order_no, "duplicate")
    api.play(order_no, "success")
    later(DAY)
    api.play(order_no, "success")
    later(DAY, times=2)
    assert (balances(), exceptions()) == ((START + 9_940, 0), {})


def test_a_manually_confirmed_deposit_waits_too(api, delayed, flask, later, balances):
    delayed(1, MANUAL)
    order_no = api.buy(channel=MANUAL).data["order_no"]
    flask("order", "paid", order_no)
    assert (api.status(order_no), balances()) == ("confirmed", (START, 0))
    later(DAY)
    assert (api.status(order_no), balances()) == ("completed", (START + 9_940, 0))


def test_a_later_change_of_the_delay_changes_no_order(api, delayed, later):
    delayed(2)
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    delayed(5)
    later(2 * DAY)
    assert api.status(order_no) == "completed"


def test_a_second_payment_during_the_delay_is_an_exception(api, delayed, later, flask, balances, exceptions):
    delayed(1)
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    api.notice(order_no, 10_000, reference="R-2")
    assert exceptions() == {order_no: "paid_twice"}
    later(DAY)
    flask("order", "settle", order_no, "--refund")
    assert (api.status(order_no), balances()) == ("completed", (START + 9_940, 0))


def test_a_deposit_fully_refunded_during_the_delay_is_cancelled(api, flask, later, exceptions, balances):
    flask("channel", "set", 2, "--settlement-days", 1)
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    api.play(order_no, "fail")
    later(2 * 86_400)
    assert (api.status(order_no), exceptions(), balances()[0]) == ("cancelled", {}, 1_000_000)


def test_a_deposit_partly_refunded_during_the_delay_waits_for_an_operator(api, flask, later, exceptions, balances):
    flask("channel", "set", 2, "--settlement-days", 1)
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000)
    api.notice(order_no, 8_000)
    later(2 * 86_400)
    assert (api.status(order_no), exceptions()) == ("confirmed", {order_no: "reversed"})
    flask("order", "settle", order_no, "--refund", fails=True)
    assert exceptions() == {order_no: "reversed"}
    flask("order", "settle", order_no, "--credit")
    assert (api.status(order_no), balances()[0] - 1_000_000, exceptions()) == ("completed", 9_940, {})


def test_a_decision_while_a_worker_has_the_held_deposit_does_not_lose_its_credit(
    api, delayed, flask, ahead, later, balances
):
    delayed(1, MANUAL)
    order_no = api.buy(channel=MANUAL).data["order_no"]
    for amount in ("100.00", "150.00"):
        flask("order", "paid", order_no, "--reference", "R1", "--amount", amount)

    class Overtaken(InlinePool):
        """A worker that is overtaken by an operator before it stores when to act again."""

        def submit(self, tenant, work, item):
            again_at = expire.advance(item)
            flask("order", "resolve", order_no, "--credit")
            item.put_off(again_at)

    ahead(DAY)
    assert sweep.sweep(Overtaken()) == 1
    assert Order.get(Order.order_no == order_no).due_at is not None
    later(60)
    assert api.status(order_no) == "completed"
