"""Channels that contradict themselves: money is neither lost nor charged twice, before and after credits."""

import time

import pytest

from gateways.base import ChannelRefused, ChannelUnknown, Report, State
from gateways.epay import EpayDriver
from gateways.sandbox.records import books
from models.tables.ledger import CLEARING, LedgerAccount
from models.tables.order import Order, PaymentException
from models.tables.refund import Refund
from services import kinds
from services.errors import OperatorError
from services.jobs import sweep
from services.operations import resolve
from services.refunds import approve, place, send, settle
from services.refunds.place import Wanted
from tests.services.refunds.test_reports import open_ones, refund_notice, report
from tests.support import InlinePool
from tests.trial_service import Trial

BEFORE, START = 1_009_940, 1_000_000
DAY = 86_400


def owed():
    """What channel 2 owes by the books, in fen."""
    return -LedgerAccount.balance_of(CLEARING, 2)


@pytest.fixture
def uncredited(api, flask):
    """The number of a deposit of 100.00 that is credited in a day."""
    flask("channel", "set", "2", "--settlement-days", "1")
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    return order_no


@pytest.mark.parametrize(("amount", "fen"), [("100.00", 10_000), ("40.00", 4_000)])
def test_a_refund_that_failed_before_the_credit_and_happened_after_it_is_paid_by_the_merchant(
    uncredited, refund, plays, later, http, flask, balances, amount, fen
):
    plays("fail")
    refund_no = refund(uncredited, amount).data["refund_no"]
    later(DAY)
    assert balances() == (START + 9_940, 0)
    books().set_refund_outcome(refund_no, "success")
    refund_notice(http, uncredited, refund_no, fen)
    flask("order", "resolve", uncredited, "--complete")
    fee = 60 if fen == 10_000 else 0
    assert (balances(), owed(), open_ones()) == ((START + 9_940 - fen + fee, 0), 10_000 - fen, [])


def test_the_credit_waits_for_a_decision_about_a_refund(uncredited, refund, plays, later, http, flask, api):
    plays("fail")
    refund_no = refund(uncredited, "40.00").data["refund_no"]
    books().set_refund_outcome(refund_no, "success")
    refund_notice(http, uncredited, refund_no, 4_000)
    later(DAY, 2)
    assert (api.status(uncredited), open_ones()) == ("confirmed", [("refund_conflict", 4_000)])
    flask("order", "resolve", uncredited, "--complete")
    later(1)
    assert api.status(uncredited) == "completed"


def test_a_refund_of_the_rest_is_posted_although_an_earlier_part_came_back(
    uncredited, refund, later, due, http, flask, balances, api
):
    first = refund(uncredited, "40.00").data["refund_no"]
    later(61)
    rest = place.place(Order.find(uncredited), Wanted(None, "operator ann"))
    books().set_refund_outcome(first, "fail")
    refund_notice(http, uncredited, first, 4_000, "failed")
    flask("order", "resolve", uncredited, "--cancel")
    approve.approve(rest, "operator ben")
    due.orders()
    later(DAY, 2)
    assert (api.status(uncredited), balances()) == ("completed", (START + 9_940 - 5_940, 0))
    assert owed() == 4_000


def test_a_deposit_that_is_credited_after_all_reserves_its_open_refund(
    uncredited, refund, plays, later, http, flask, balances
):
    plays("silent")
    refund_no = refund(uncredited).data["refund_no"]
    refund_notice(http, uncredited, "CONSOLE-1", 1_000)
    flask("order", "resolve", uncredited, "--credit")
    assert balances() == (START, 9_940)
    books().set_refund_outcome(refund_no, "success")
    later(301)
    assert (balances(), owed()) == ((START, 0), 0)


@pytest.mark.parametrize("decided", ["by an operator", "by the channel"])
def test_an_abnormal_refund_that_came_back_and_then_succeeds_is_a_conflict(
    paid, refund, plays, http, flask, balances, state, decided
):
    plays("abnormal")
    refund_no = refund(paid).data["refund_no"]
    if decided == "by an operator":
        flask("order", "resolve", paid, "--cancel")
    else:
        refund_notice(http, paid, refund_no, 10_000, "failed")
    assert (state(refund_no), balances()) == ("cancelled", (BEFORE, 0))
    refund_notice(http, paid, refund_no, 10_000)
    assert open_ones() == [("refund_conflict", 10_000)]


def test_an_abnormal_refund_that_succeeded_and_then_fails_is_a_conflict(paid, refund, plays, http, state):
    plays("abnormal")
    refund_no = refund(paid).data["refund_no"]
    refund_notice(http, paid, refund_no, 10_000)
    refund_notice(http, paid, refund_no, 10_000, "failed")
    assert (state(refund_no), open_ones()) == ("completed", [("refund_conflict", 10_000)])


def test_a_refund_that_is_being_sent_again_can_not_be_taken_for_returned(
    paid, refund, later, balances, state, monkeypatch
):
    silent, said = [True], []

    def send_it(self, request):
        if silent:
            raise ChannelUnknown("down")
        try:
            resolve.resolve(Order.find(paid), "cancel", "operator ann")
        except OperatorError as refusal:
            said.append(str(refusal))
        return Report(State.PAID, request.amount, "CH")

    def ask(self, request):
        if silent:
            raise ChannelUnknown("down")
        return Report(State.ABSENT)

    monkeypatch.setattr(Trial, "refund", send_it)
    monkeypatch.setattr(Trial, "query_refund", ask)
    refund_no = refund(paid).data["refund_no"]
    later(301)
    later(DAY + 400)
    assert open_ones() == [("refund_abnormal", 10_000)]
    silent.clear()
    later(3_601)
    assert "processing this order" in said[0]
    assert (state(refund_no), balances(), open_ones()) == ("completed", (BEFORE - 10_000, 0), [])


def test_no_worker_sends_a_refund_while_an_operator_decides_about_it(paid, refund, later, state, monkeypatch):
    sent = []

    def down(self, request):
        sent.append(request.refund_no)
        raise ChannelUnknown("down")

    def ask(self, request):
        sweep.sweep(send_pool)
        return Report(State.ABSENT)

    monkeypatch.setattr(Trial, "refund", down)
    monkeypatch.setattr(Trial, "query_refund", down)
    refund_no = refund(paid).data["refund_no"]
    later(DAY + 400, 2)
    assert open_ones() == [("refund_abnormal", 10_000)]
    monkeypatch.setattr(Trial, "query_refund", ask)
    send_pool, before = InlinePool(), len(sent)
    Refund.update(due_at=int(time.time()) + 50).execute()
    resolve.resolve(Order.find(paid), "cancel", "operator ann")
    assert (state(refund_no), len(sent)) == ("cancelled", before)


def test_a_refund_that_the_channel_does_not_accept_for_a_day_comes_to_an_operator(paid, refund, plays, later, state):
    plays("not_enough")
    refund_no = refund(paid).data["refund_no"]
    later(3_601, 20)
    assert open_ones() == []
    later(3_601, 6)
    assert (open_ones(), state(refund_no)) == ([("refund_abnormal", 10_000)], "confirmed")
    books().set_refund_outcome(refund_no, "success")
    later(3_601, 2)
    assert (open_ones(), state(refund_no)) == ([], "completed")


def test_money_of_a_refund_that_happened_after_all_is_charged_once(
    paid, refund, plays, later, flask, balances, monkeypatch
):
    plays("fail")
    refund(paid)
    reference = Order.find(paid).channel_reference
    monkeypatch.setattr(Trial, "query_refund", lambda self, request: Report(State.PAID, request.amount, "CH"))
    monkeypatch.setattr(Trial, "query", lambda self, payment: Report(State.FAILED, 0, reference))
    later(601)
    assert open_ones() == [("refund_conflict", 10_000)]
    report(paid, State.FAILED)
    conflict = PaymentException.get(PaymentException.kind == "refund_conflict")
    flask("order", "resolve", paid, "--complete", "--exception", conflict.id)
    assert (open_ones(), balances()) == ([], (BEFORE - 10_000, 0))
    later(3_601, 30)
    assert open_ones() == []


@pytest.fixture
def sums(monkeypatch):
    """A channel that, as epay, only reports how much of a payment it has refunded."""

    class Sums:
        back: dict[str, int] = {}
        answer = "success"

    channel = Sums()
    channel.back = {}

    def request(self, request):
        if channel.answer == "refuse":
            raise ChannelRefused("turned off")
        if channel.answer == "lost":
            raise ChannelUnknown("timeout")
        channel.back[request.order_no] = channel.back.get(request.order_no, 0) + request.amount
        return Report(State.PAID, request.amount, "RF")

    monkeypatch.setattr(Trial, "refund", request)
    monkeypatch.setattr(Trial, "refunded_sum", lambda self, request: channel.back.get(request.order_no, 0))
    monkeypatch.setattr(Trial, "query_refund", EpayDriver.query_refund)
    monkeypatch.setattr(Trial, "repeats_refund", EpayDriver.repeats_refund)
    return channel


def test_a_later_part_is_not_taken_for_a_refused_one(paid, refund, later, state, sums):
    sums.answer = "refuse"
    first = refund(paid, "40.00").data["refund_no"]
    sums.answer = "success"
    later(61)
    second = refund(paid, "40.00").data["refund_no"]
    later(3_601, 30)
    assert (state(first), state(second), open_ones()) == ("cancelled", "completed", [])


def test_a_sum_that_changed_since_it_was_read_does_not_prove_the_next_part(
    paid, refund, later, state, sums, monkeypatch
):
    sums.answer = "lost"
    first = refund(paid, "40.00").data["refund_no"]
    second = place.place(Order.find(paid), Wanted(4_000, "operator ann", "operator ann")).refund_no
    read = Trial.refunded_sum

    def slowly(self, request):
        before = read(self, request)
        if request.refund_no == second and not before:
            sums.back[paid] = 4_000  # the platform carries out the first one, and another worker finds it
            row = Refund.find(first)
            row.order = Order.find(paid)
            settle.apply_report(row, send.ask(row))
        return before

    monkeypatch.setattr(Trial, "refunded_sum", slowly)
    Refund.update(due_at=2_000_000_000).where(Refund.refund_no == first).execute()
    later(62)
    assert (state(first), state(second), Refund.find(second).refunded_before) == ("completed", "pending", None)


def test_parts_that_come_back_after_their_order_ended_all_have_an_owner(uncredited, refund, later, http, flask):
    first = refund(uncredited, "40.00").data["refund_no"]
    later(61)
    second = refund(uncredited, "60.00").data["refund_no"]
    for refund_no, fen in ((first, 4_000), (second, 6_000)):
        refund_notice(http, uncredited, refund_no, fen, "failed")
    for each in list(PaymentException.select().where(PaymentException.kind == "refund_conflict")):
        flask("order", "resolve", uncredited, "--cancel", "--exception", each.id)
    assert open_ones() == [("late_payment", 10_000)]


def test_a_return_that_a_rejected_refund_seemed_to_explain_is_noticed_although_the_channel_is_silent_about_it(
    paid, refund, refunds_on, later, monkeypatch
):
    refunds_on("approval")
    refund_no = refund(paid).data["refund_no"]
    reference = Order.find(paid).channel_reference
    report(paid, State.FAILED)

    def silent(self, request):
        raise ChannelUnknown("does not tell")

    monkeypatch.setattr(Trial, "query_refund", silent)
    monkeypatch.setattr(Trial, "query", lambda self, payment: Report(State.FAILED, 0, reference))
    approve.reject(Refund.find(refund_no), "already refunded", "operator ann")
    later(601)
    assert open_ones() == [("reversed", 10_000)]


def test_an_open_refund_does_not_wait_for_a_clock_that_was_set_back(paid, time_machine):
    now = int(time.time())
    time_machine.move_to(now + 20 * 3_600)
    place.place(Order.find(paid), Wanted(None, "operator ann", "operator ann"))
    time_machine.move_to(now)
    sweep.release()
    assert Refund.get().due_at <= now + 45


def test_the_platform_pays_only_once_the_deposit_is_credited(uncredited):
    with pytest.raises(OperatorError, match="once the deposit is credited"):
        place.place(Order.find(uncredited), Wanted(4_000, "operator ann", "operator ann", by_platform=True))


def test_money_of_an_exception_that_went_back_twice_is_missing(api, flask, plays, due, later, http):
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    reference = Order.find(order_no).channel_reference
    kinds.DEPOSIT.apply(Order.find(order_no), Report(State.PAID, 12_000, reference), "channel", kinds.ASKED)
    plays("fail")
    flask("order", "resolve", order_no, "--refund")
    due.orders()
    first = Refund.get()
    later(61)
    plays("success")
    flask("order", "resolve", order_no, "--refund")
    due.orders()
    refund_notice(http, order_no, first.refund_no, 2_000)
    flask("order", "resolve", order_no, "--complete")
    assert open_ones() == [("reversed", 2_000)]
