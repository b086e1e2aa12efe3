"""Sending refunds: each outcome at the channel, repeated requests, silence, and what may never happen twice."""

import pytest

from gateways.base import ChannelRefused, ChannelUnknown, Report, State
from gateways.sandbox.records import books
from models.tables.order import Order, PaymentException
from models.tables.refund import Refund, RefundHistory
from services.backups import after_restore
from services.jobs import sweep
from services.refunds import approve, place, send
from services.refunds.place import Wanted
from tests.support import CrashedPool, InlinePool
from tests.trial_service import Trial

BEFORE = 1_009_940


@pytest.fixture
def channel(monkeypatch):
    """A channel whose requests and status checks of refunds are scripted, the last response for all later ones.

    `channel.requests` and `channel.checks` list the numbers that it received.
    """

    class Scripted:
        answers, checks_answers = [Report(State.OPEN)], [Report(State.ABSENT)]
        repeats = True
        requests: list[str] = []
        checks: list[str] = []
        sums = [0]

        @staticmethod
        def next(script):
            answer = script.pop(0) if len(script) > 1 else script[0]
            if isinstance(answer, BaseException):
                raise answer
            return answer

    script = Scripted()
    script.requests, script.checks = [], []

    def refund(self, request):
        script.requests.append(request.refund_no)
        return script.next(script.answers)

    def query_refund(self, request):
        script.checks.append((request.refund_no, request.refunded_before))
        return script.next(script.checks_answers)

    monkeypatch.setattr(Trial, "refund", refund)
    monkeypatch.setattr(Trial, "query_refund", query_refund)
    monkeypatch.setattr(Trial, "repeats_refund", lambda self, request: script.repeats)
    monkeypatch.setattr(Trial, "refunded_sum", lambda self, request: script.next(script.sums))
    return script


def success(fen=10_000):
    return Report(State.PAID, fen, "CH-1")


def kinds_open():
    return [each.kind for each in PaymentException.select().where(PaymentException.resolution.is_null())]


@pytest.mark.parametrize(
    ("outcome", "at_first", "in_the_end"),
    [
        ("success", "completed", "completed"),
        ("processing", "confirmed", "completed"),
        ("timeout", "confirmed", "completed"),
        ("silent", "confirmed", "confirmed"),
        ("abnormal", "confirmed", "confirmed"),
        ("not_enough", "confirmed", "confirmed"),
    ],
)
def test_each_outcome_of_the_channel(paid, refund, plays, state, later, outcome, at_first, in_the_end):
    plays(outcome)
    data = refund(paid).data
    assert data["status"] == at_first
    later(301, 6)
    assert state(data["refund_no"]) == in_the_end
    assert len(books().refunds(paid)) == 1


def test_a_low_balance_at_the_channel_is_not_a_refusal(paid, refund, plays, state, later):
    plays("not_enough")
    refund_no = refund(paid).data["refund_no"]
    later(301, 3)
    assert state(refund_no) == "confirmed"
    books().set_refund_outcome(refund_no, "success")
    later(301, 2)
    assert state(refund_no) == "completed"


def test_a_silent_request_is_repeated_under_the_same_number_after_a_status_check(paid, refund, channel, later, state):
    channel.answers = [ChannelUnknown("timeout"), success()]
    refund_no = refund(paid).data["refund_no"]
    assert (channel.requests, channel.checks) == ([refund_no], [])
    later(61)
    assert channel.requests == [refund_no, refund_no]
    assert [number for number, _ in channel.checks] == [refund_no]
    assert state(refund_no) == "completed"


def test_a_refund_that_the_channel_has_is_not_sent_again(paid, refund, channel, later, state):
    channel.answers = [ChannelUnknown("timeout")]
    channel.checks_answers = [Report(State.OPEN), success()]
    refund_no = refund(paid).data["refund_no"]
    later(301, 2)
    assert (channel.requests, state(refund_no)) == ([refund_no], "completed")


def test_a_refund_that_stays_open_is_neither_failed_nor_repeated(paid, refund, channel, later, state, balances):
    channel.checks_answers = [Report(State.OPEN)]
    refund_no = refund(paid).data["refund_no"]
    later(3_601, 60)
    assert (channel.requests, state(refund_no)) == ([refund_no], "confirmed")
    assert balances() == (BEFORE - 10_000, 10_000)


def test_a_status_that_the_driver_does_not_know_is_checked_again(paid, refund, channel, later, state):
    channel.checks_answers = [ChannelUnknown("status 'NEW_WORD'"), success()]
    refund_no = refund(paid).data["refund_no"]
    later(301, 2)
    assert state(refund_no) == "completed"


def test_after_a_day_without_a_response_an_operator_may_decide(paid, refund, channel, later, state, flask, balances):
    channel.answers = channel.checks_answers = [ChannelUnknown("down")]
    refund_no = refund(paid).data["refund_no"]
    later(301, 3)
    assert kinds_open() == []
    later(86_400)
    assert (kinds_open(), state(refund_no)) == (["refund_abnormal"], "confirmed")
    channel.checks_answers = [Report(State.ABSENT)]
    flask("order", "resolve", paid, "--cancel")
    assert (state(refund_no), balances()) == ("cancelled", (BEFORE, 0))


def test_a_channel_that_answers_again_completes_it_and_closes_the_exception(paid, refund, channel, later, state):
    channel.answers = channel.checks_answers = [ChannelUnknown("down")]
    refund_no = refund(paid).data["refund_no"]
    later(86_500, 2)
    channel.checks_answers = [success()]
    later(3_601)
    assert (kinds_open(), state(refund_no)) == ([], "completed")


def test_a_refund_that_can_not_be_repeated_is_never_sent_twice(paid, refund, channel, later, state):
    channel.repeats = False
    channel.answers = [ChannelUnknown("timeout")]
    refund_no = refund(paid, "40.00").data["refund_no"]
    later(61)
    assert channel.checks == [(refund_no, 0)]
    assert (kinds_open(), state(refund_no)) == (["refund_abnormal"], "confirmed")
    later(3_601, 30)
    assert channel.requests == [refund_no]
    channel.checks_answers = [success(4_000)]
    later(3_601)
    assert (kinds_open(), state(refund_no)) == ([], "completed")


def test_without_the_sum_before_a_refund_that_can_not_be_repeated_is_not_sent(paid, refund, channel, later, state):
    channel.repeats, channel.sums = False, [ChannelUnknown("down"), 0]
    refund_no = refund(paid, "40.00").data["refund_no"]
    assert (channel.requests, state(refund_no)) == ([], "pending")
    later(301)
    assert (channel.requests, state(refund_no)) == ([refund_no], "confirmed")


def test_an_abnormal_refund_keeps_its_hold_until_an_operator_decides(paid, refund, plays, state, flask, balances):
    plays("abnormal")
    refund_no = refund(paid).data["refund_no"]
    assert (kinds_open(), balances()) == (["refund_abnormal"], (BEFORE - 10_000, 10_000))
    assert refund(paid, "1.00").data["reason"] == "exception"
    flask("order", "resolve", paid, "--complete")
    assert (kinds_open(), state(refund_no), balances()) == ([], "completed", (BEFORE - 10_000, 0))


def test_an_abnormal_refund_that_came_back_is_cancelled(paid, refund, plays, state, flask, balances, shop, due):
    plays("abnormal")
    refund_no = refund(paid).data["refund_no"]
    flask("order", "resolve", paid, "--cancel")
    assert (kinds_open(), state(refund_no), balances()) == ([], "cancelled", (BEFORE, 0))
    due.callbacks()
    assert shop.got[-1].event["type"] == "refund.cancelled"


def test_an_abnormal_refund_that_the_channel_completed_meanwhile_does_not_come_back(
    paid, refund, plays, state, refuses, balances
):
    plays("abnormal")
    refund_no = refund(paid).data["refund_no"]
    books().set_refund_outcome(refund_no, "success")
    assert "successful" in refuses("order", "resolve", paid, "--cancel")
    assert (kinds_open(), state(refund_no), balances()) == ([], "completed", (BEFORE - 10_000, 0))


ENDS = [("--complete", "completed", 10_000), ("--cancel", "cancelled", 0)]


@pytest.mark.parametrize(("decision", "status", "left"), ENDS)
def test_a_result_that_the_channel_contradicts_waits_for_an_operator(
    paid, refund, plays, state, flask, balances, later, decision, status, left
):
    plays("late_fail")
    refund_no = refund(paid).data["refund_no"]
    assert state(refund_no) == "completed"
    later(601)
    assert (kinds_open(), state(refund_no)) == (["refund_conflict"], "completed")
    flask("order", "resolve", paid, decision)
    assert (state(refund_no), balances()) == (status, (BEFORE - left, 0))
    later(3_601, 30)
    assert kinds_open() == []


def test_another_amount_than_requested_is_a_conflict(paid, refund, channel, later, state):
    channel.checks_answers = [success(9_000)]
    refund_no = refund(paid).data["refund_no"]
    later(61)
    assert (kinds_open(), state(refund_no)) == (["refund_conflict"], "confirmed")


def test_money_that_left_after_a_refusal_is_a_conflict(paid, refund, channel, later, state, flask, balances):
    channel.answers, channel.checks_answers = [ChannelRefused("no")], [success()]
    refund_no = refund(paid).data["refund_no"]
    assert state(refund_no) == "cancelled"
    later(601)
    assert kinds_open() == ["refund_conflict"]
    flask("order", "resolve", paid, "--complete")
    assert (state(refund_no), balances()) == ("completed", (BEFORE - 10_000, 0))


def test_refunds_of_a_payment_go_one_after_the_other_a_minute_apart(paid, refund, channel, later, state):
    channel.checks_answers = [Report(State.OPEN), success(1_000), success(2_000)]
    first = refund(paid, "10.00").data["refund_no"]
    second = refund(paid, "20.00").data
    assert (second["status"], channel.requests) == ("pending", [first])
    later(61)  # the first is still in progress
    assert channel.requests == [first]
    later(301)
    assert (state(first), channel.requests) == ("completed", [first])
    later(61)
    assert channel.requests == [first, second["refund_no"]]


def test_a_crash_after_the_first_commit_sends_it_later(paid, later, channel, state):
    order = Order.find(paid)
    row = place.place(order, Wanted(None, "merchant", "service", claimed_until=0))
    assert row.status == "pending"
    later(61)
    assert (channel.requests, state(row.refund_no)) == ([row.refund_no], "confirmed")


def test_a_crash_before_the_response_asks_first(paid, refund, channel, later, state):
    channel.answers = [SystemExit()]
    with pytest.raises(SystemExit):
        refund(paid)
    channel.answers, channel.checks_answers = [success()], [success()]
    row = Refund.get()
    assert row.status == "confirmed"
    later(61)
    assert (channel.requests, state(row.refund_no)) == ([row.refund_no], "completed")


def test_a_killed_worker_leaves_the_refund_to_the_next_one(paid, channel, ahead, state):
    place.place(Order.find(paid), Wanted(None, "merchant", "service"))
    row = Refund.get()
    sweep.sweep(CrashedPool())
    sweep.sweep(InlinePool())
    assert channel.requests == []
    ahead(46)
    sweep.sweep(InlinePool())
    assert channel.requests == [row.refund_no]


def test_after_a_restore_refunds_pause_and_a_sent_one_is_found(paid, refund, channel, later, state, flask, balances):
    """The backup is from before the request: the database knows the refund as pending."""
    place.place(Order.find(paid), Wanted(None, "merchant", "service"))
    row = Refund.get()
    after_restore.mark()
    later(301, 3)
    assert (channel.requests, state(row.refund_no)) == ([], "pending")
    channel.checks_answers = [success()]
    later(301)
    assert (channel.requests, state(row.refund_no), balances()) == ([], "completed", (BEFORE - 10_000, 0))
    flask("db", "resume")


def test_after_a_restore_unsent_refunds_are_sent_once_it_is_resumed(paid, channel, later, state, flask):
    place.place(Order.find(paid), Wanted(None, "merchant", "service"))
    row = Refund.get()
    after_restore.mark()
    later(301, 2)
    flask("db", "resume")
    later(301)
    assert (channel.requests, state(row.refund_no)) == ([row.refund_no], "confirmed")


def test_a_rejected_refund_is_never_sent(paid, refund, refunds_on, channel, later, state, balances):
    refunds_on("approval")
    refund_no = refund(paid).data["refund_no"]
    assert (state(refund_no), balances()) == ("pending", (BEFORE - 10_000, 10_000))
    approve.reject(Refund.find(refund_no), "not agreed", "operator ann")
    later(301, 3)
    assert (channel.requests, state(refund_no), balances()) == ([], "cancelled", (BEFORE, 0))
    assert "not agreed" in RefundHistory.select().order_by(RefundHistory.id.desc()).get().args


def test_a_refund_that_is_sent_can_not_be_rejected(paid, refund, channel, state):
    refund_no = refund(paid).data["refund_no"]
    with pytest.raises(Exception, match="at the channel"):
        approve.reject(Refund.find(refund_no), "too late", "operator ann")
    assert state(refund_no) == "confirmed"


def test_a_refund_that_was_sent_meanwhile_is_not_rejected(paid, refunds_on, refund, channel, state):
    refunds_on("approval")
    refund_no = refund(paid).data["refund_no"]
    seen = Refund.find(refund_no)
    approve.approve(seen, "operator ben")
    sweep.sweep(InlinePool())
    with pytest.raises(Exception, match="changed just now"):
        approve.reject(seen, "no", "operator ann")
    assert (channel.requests, state(refund_no)) == ([refund_no], "confirmed")


def test_a_refund_is_sent_by_one_worker_only(paid, channel):
    place.place(Order.find(paid), Wanted(None, "merchant", "service"))
    first, second = (Refund.select().get() for _ in range(2))
    first.order = second.order = Order.find(paid)
    assert first.claim(2_000_000_000)
    assert not second.claim(2_000_000_000)
    assert send.advance(second)
    assert channel.requests == []


def test_a_refusal_of_a_repeated_request_proves_nothing_about_the_first(paid, refund, channel, later, state, balances):
    channel.answers = [ChannelUnknown("timeout"), ChannelRefused("refunds are turned off")]
    refund_no = refund(paid).data["refund_no"]
    later(61)
    assert (kinds_open(), state(refund_no)) == (["refund_abnormal"], "confirmed")
    assert balances() == (BEFORE - 10_000, 10_000)


def test_a_refund_that_can_not_be_repeated_comes_to_an_operator_within_hours(paid, refund, channel, later):
    channel.repeats = False
    channel.answers = channel.checks_answers = [ChannelUnknown("down")]
    refund(paid, "40.00")
    later(301, 3)
    assert kinds_open() == []
    later(3_601)
    assert kinds_open() == ["refund_abnormal"]


def test_checks_of_an_ended_refund_end_although_its_channel_stays_silent(paid, refund, channel, later):
    channel.answers, channel.checks_answers = [success()], [ChannelUnknown("down")]
    refund(paid)
    later(86_500, 4)
    count = len(channel.checks)
    later(86_500, 4)
    assert (len(channel.checks), kinds_open()) == (count, [])


def test_a_success_without_an_amount_proves_nothing(paid, refund, channel, later, state):
    channel.checks_answers = [Report(State.PAID, 0, "CH-1")]
    refund_no = refund(paid).data["refund_no"]
    later(301, 3)
    assert state(refund_no) == "confirmed"
    channel.checks_answers = [success()]
    later(301)
    assert state(refund_no) == "completed"
