"""A worker that was overtaken: its data is outdated when it writes, and the newer report counts."""

import pytest

from gateways.base import ChannelUnknown, Report, State
from gateways.sandbox.driver import SandboxDriver
from services.jobs import sweep
from tests.services.walks import MANUAL, SANDBOX, claim
from tests.support import InlinePool

START = 1_000_000
PAID = (START + 9_940, 0)
DAY = 86_400


def test_a_deposit_reversed_just_before_its_credit_is_not_credited(api, flask, ahead, due, now):
    flask("channel", "set", SANDBOX, "--settlement-days", 1)
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    ahead(DAY)
    due.orders(meanwhile=lambda: api.play(order_no, "fail"))
    assert now(order_no) == ("cancelled", (START, 0), {})


@pytest.mark.parametrize("days", [0, 1])
def test_a_deposit_paid_just_before_its_expiry_is_credited(api, flask, ahead, later, due, now, days):
    flask("channel", "set", MANUAL, "--settlement-days", days)
    order_no = api.buy(channel=MANUAL).data["order_no"]
    ahead(900)
    due.orders(meanwhile=lambda: flask("order", "paid", order_no))
    later(days * DAY)
    assert now(order_no) == ("completed", PAID, {})


def test_a_deposit_claimed_just_before_its_expiry_does_not_expire(world, api, ahead, due):
    order_no = api.buy(channel=MANUAL).data["order_no"]
    ahead(900)
    due.orders(meanwhile=lambda: claim(world, order_no))
    assert api.status(order_no) == "paid"


def test_a_deposit_paid_with_another_amount_just_before_its_expiry_waits_for_an_operator(api, ahead, due, exceptions):
    order_no = api.buy().data["order_no"]
    ahead(900)
    due.orders(meanwhile=lambda: api.notice(order_no, 9_900))
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "wrong_amount"})


def test_silence_is_recorded_although_another_worker_claimed_the_order_meanwhile(
    api, ahead, due, exceptions, monkeypatch
):
    class AtWork(InlinePool):
        """Starts the work and does not finish it."""

        def submit(self, tenant, work, item):
            taken.append(item)

    def slow_and_silent(self, payment):
        ahead(60)  # longer than a claim
        sweep.sweep(AtWork())
        raise ChannelUnknown("it did not answer")

    order_no, taken = api.buy().data["order_no"], []
    monkeypatch.setattr(SandboxDriver, "query", slow_and_silent)
    ahead(60)
    due.orders()
    assert [order.order_no for order in taken] == [order_no]
    assert exceptions() == {order_no: "unknown_outcome"}


@pytest.mark.parametrize(
    ("outcome", "status", "left_open"), [("success", "completed", set()), ("wrong_amount", "pending", {"wrong_amount"})]
)
def test_silence_about_an_order_that_needs_no_response_leaves_no_exception(
    api, ahead, due, order_details, monkeypatch, outcome, status, left_open
):
    order_no = api.buy().data["order_no"]

    def paid_and_silent(self, payment):
        monkeypatch.undo()
        api.play(order_no, outcome)
        raise ChannelUnknown("it did not answer")

    monkeypatch.setattr(SandboxDriver, "query", paid_and_silent)
    ahead(60)
    due.orders()
    told = order_details(order_no)["exceptions"]
    assert {exception["kind"] for exception in told if not exception["resolution"]} == left_open
    assert api.status(order_no) == status


@pytest.mark.parametrize("state", [State.OPEN, State.ABSENT, State.ENDED])
@pytest.mark.parametrize(("pending", "question"), [("buy", "query"), ("sell", "query_payout")])
def test_a_status_without_a_result_is_ignored_if_the_order_completed_meanwhile(
    api, flask, ahead, due, balances, monkeypatch, now, pending, question, state
):
    order_no = getattr(api, pending)().data["order_no"]
    if pending == "sell":
        flask("order", "accept", order_no)
        due.orders()
    ended = []

    def outdated(self, asked):
        monkeypatch.undo()
        api.notice(order_no, 10_000)
        ended.append((api.status(order_no), balances()))
        return Report(state)

    monkeypatch.setattr(SandboxDriver, question, outdated)
    ahead(60)
    due.orders()
    assert ended[0][0] == "completed"
    assert now(order_no) == (*ended[0], {})
