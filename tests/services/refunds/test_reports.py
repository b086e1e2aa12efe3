"""The channel's reports on a refunded payment: own refunds explain what is missing, and any excess is an exception."""

import json
from dataclasses import replace

import pytest

from gateways.base import Report, State
from gateways.sandbox.records import books
from models.tables.order import Order, PaymentException
from models.tables.refund import Refund
from services import kinds
from services.refunds import place
from tests.support import sandbox_signed
from tests.trial_service import Trial

BEFORE = 1_009_940
DAY = 86_400


def open_ones():
    rows = PaymentException.select().where(PaymentException.resolution.is_null()).order_by(PaymentException.id)
    return [(each.kind, each.amount) for each in rows]


def report(order_no, state, fen=0, **facts):
    reference = Order.find(order_no).channel_reference
    return kinds.DEPOSIT.apply(Order.find(order_no), Report(state, fen, reference, **facts), "channel", kinds.ASKED)


def refund_notice(http, order_no, number, fen, state="paid"):
    """The notice of a refund, which arrives at the address of the payment's notices."""
    said = {"order_no": order_no, "refund_no": number, "state": state, "amount": fen, "reference": f"SBR{number}"}
    body, headers = sandbox_signed(json.dumps(said).encode())
    return http("POST", f"/addons/paychannel/notify/{order_no}", body, headers)


@pytest.mark.parametrize("outcome", ["success", "silent"])
def test_an_own_refund_also_in_flight_opens_no_exception(paid, refund, plays, outcome):
    plays(outcome)
    refund(paid, "40.00")
    for fen in (6_000, 10_000, 6_000):
        report(paid, State.PAID, fen)
    report(paid, State.RETURNED)
    assert open_ones() == []


def test_any_excess_over_own_refunds_opens_an_exception_about_the_excess(paid, refund):
    refund(paid, "40.00")
    report(paid, State.PAID, 5_000)
    assert open_ones() == [("reversed", 1_000)]
    report(paid, State.FAILED)
    assert open_ones() == [("reversed", 6_000)]


def test_more_than_the_payment_opens_an_exception_after_a_refund_too(paid, refund):
    refund(paid, "40.00")
    report(paid, State.PAID, 10_100)
    assert open_ones() == [("amount_corrected", 100)]


@pytest.mark.parametrize("state", [State.FAILED, State.RETURNED, State.ENDED])
def test_a_full_refund_explains_that_nothing_is_left(paid, refund, state):
    refund(paid)
    report(paid, state)
    assert open_ones() == []


def test_a_refund_that_failed_does_not_explain_a_return(paid, refund, plays):
    plays("fail")
    refund(paid)
    report(paid, State.FAILED)
    assert open_ones() == [("reversed", 10_000)]


def test_a_full_refund_before_the_credit_is_not_taken_for_a_return(api, flask, refund, plays, later, balances):
    flask("channel", "set", "2", "--settlement-days", "1")
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    plays("silent")
    refund_no = refund(order_no).data["refund_no"]
    report(order_no, State.FAILED)
    assert (api.status(order_no), open_ones()) == ("confirmed", [])
    books().set_refund_outcome(refund_no, "success")
    later(301)
    assert api.status(order_no) == "cancelled"
    for state, fen in ((State.FAILED, 0), (State.RETURNED, 0), (State.PAID, 10_000)):
        report(order_no, state, fen)
    assert (api.status(order_no), open_ones()) == ("cancelled", [])
    later(DAY, 3)
    assert balances() == (1_000_000, 0)


def test_the_notice_of_a_refund_arrives_at_the_address_of_the_payment(paid, refund, plays, http, state):
    plays("silent")
    refund_no = refund(paid, "40.00").data["refund_no"]
    assert refund_notice(http, paid, refund_no, 4_000).status == 200
    assert state(refund_no) == "completed"
    assert refund_notice(http, paid, refund_no, 4_000).status == 200
    assert open_ones() == []


def test_a_notice_may_overtake_the_response_of_the_request(paid, refund, http, state, monkeypatch, balances):
    def slow(self, request):
        refund_notice(http, paid, request.refund_no, request.amount)
        return Report(State.OPEN)

    monkeypatch.setattr(Trial, "refund", slow)
    data = refund(paid, "40.00").data
    assert data["status"] == state(data["refund_no"]) == "completed"
    assert balances() == (BEFORE - 4_000, 0)


def test_a_failure_may_overtake_the_response_of_the_request(paid, refund, http, state, monkeypatch, balances):
    def slow(self, request):
        refund_notice(http, paid, request.refund_no, 0, "failed")
        return Report(State.OPEN)

    monkeypatch.setattr(Trial, "refund", slow)
    answer = refund(paid, "40.00")
    assert (answer.code, state(answer.data["refund_no"])) == (50201, "cancelled")
    assert (open_ones(), balances()) == ([], (BEFORE, 0))


def test_a_notice_that_takes_a_success_back_within_the_same_second_is_a_conflict(paid, refund, http, state):
    refund_no = refund(paid, "40.00").data["refund_no"]
    refund_notice(http, paid, refund_no, 0, "failed")
    assert (state(refund_no), open_ones()) == ("completed", [("refund_conflict", 4_000)])
    refund_notice(http, paid, refund_no, 0, "failed")
    assert len(PaymentException.select()) == 1


def test_a_notice_with_a_forged_signature_changes_nothing(paid, refund, plays, http, state):
    plays("silent")
    refund_no = refund(paid, "40.00").data["refund_no"]
    assert http("POST", f"/addons/paychannel/notify/{paid}", b"{}", {"X-Sandbox-Signature": "0"}).status == 400
    assert state(refund_no) == "confirmed"


def test_a_refund_made_in_the_channels_console_opens_an_exception_once(paid, refund, http):
    refund(paid, "40.00")
    for _ in range(2):
        refund_notice(http, paid, "CONSOLE-1", 1_000)
    assert open_ones() == [("reversed", 1_000)]
    refund_notice(http, paid, "CONSOLE-2", 500)
    assert open_ones() == [("reversed", 1_500)]
    report(paid, State.PAID, 4_500)
    assert open_ones() == [("reversed", 1_500)]


def test_a_console_refund_of_money_in_an_open_exception_reduces_the_exception(api, http, monkeypatch):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 15_000)
    read = Trial.read_notice
    monkeypatch.setattr(Trial, "read_notice", lambda self, incoming: replace(read(self, incoming), payment="R-1"))
    refund_notice(http, order_no, "CONSOLE-1", 5_000)
    assert open_ones() == [("wrong_amount", 10_000)]
    refund_notice(http, order_no, "CONSOLE-2", 10_000)
    assert open_ones() == []


def test_a_refund_of_another_order_is_not_taken_for_this_one(paid, refund, plays, http, api, state):
    plays("silent")
    other = api.buy().data["order_no"]
    api.play(other, "success")
    refund_no = refund(paid, "40.00").data["refund_no"]
    refund_notice(http, other, refund_no, 4_000)
    assert state(refund_no) == "confirmed"


def test_an_old_notice_of_the_payment_changes_nothing_after_a_refund(paid, refund, api, balances):
    refund(paid)
    api.play(paid, "success")
    report(paid, State.PAID, 10_000)
    assert (open_ones(), balances()) == ([], (BEFORE - 10_000, 0))


# --- send back: the money of an exception goes back by a refund


def wrong(api, fen=15_000):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, fen)
    return order_no


def test_sending_back_a_wrong_amount_is_a_refund_at_the_channel(api, flask, due, balances, shop):
    order_no = wrong(api)
    flask("merchant", "set", "demo", "--events", "refunded")
    flask("order", "resolve", order_no, "--refund")
    row = Refund.get()
    assert (row.paid_from, row.amount, row.reference) == ("exception", 15_000, "R-1")
    assert open_ones() == [("wrong_amount", 15_000)]
    due.orders()
    assert (Refund.get().status, api.status(order_no), open_ones()) == ("completed", "cancelled", [])
    assert balances() == (1_000_000, 0)
    due.callbacks()
    assert {each.event["type"] for each in shop.got} == {"order.cancelled", "order.refunded", "refund.completed"}


def test_an_exception_stays_open_until_its_refund_has_succeeded(api, flask, plays, later, refuses):
    plays("silent")
    order_no = wrong(api)
    flask("order", "resolve", order_no, "--refund")
    later(61)
    assert open_ones() == [("wrong_amount", 15_000)]
    assert "in progress" in refuses("order", "resolve", order_no, "--credit")
    assert "in progress" in refuses("order", "resolve", order_no, "--refund")
    books().set_refund_outcome(Refund.get().refund_no, "success")
    later(301)
    assert (open_ones(), api.status(order_no)) == ([], "cancelled")


def test_an_exception_whose_refund_was_refused_can_be_decided_again(api, flask, plays, due, balances):
    plays("fail")
    order_no = wrong(api)
    flask("order", "resolve", order_no, "--refund")
    due.orders()
    assert (Refund.get().status, open_ones()) == ("cancelled", [("wrong_amount", 15_000)])
    flask("order", "resolve", order_no, "--credit")
    assert open_ones() == []
    assert balances() == (1_000_000 + 14_910, 0)


def test_money_that_is_going_back_is_not_reported_as_returned(api, flask, plays, due, later):
    plays("silent")
    order_no = wrong(api)
    flask("order", "resolve", order_no, "--refund")
    due.orders()
    for state, fen in ((State.FAILED, 0), (State.RETURNED, 0), (State.PAID, 15_000)):
        kinds.DEPOSIT.apply(Order.find(order_no), Report(state, fen, "R-1"), "channel", kinds.ASKED)
    assert open_ones() == [("wrong_amount", 15_000)]
    books().set_refund_outcome(Refund.get().refund_no, "success")
    later(301)
    assert (open_ones(), api.status(order_no)) == ([], "cancelled")


def test_more_that_arrives_while_money_goes_back_stays_in_the_exception(api, flask, plays, due, later):
    plays("silent")
    order_no = wrong(api)
    flask("order", "resolve", order_no, "--refund")
    due.orders()
    kinds.DEPOSIT.apply(Order.find(order_no), Report(State.PAID, 17_000, "R-1"), "channel", kinds.ASKED)
    assert open_ones() == [("wrong_amount", 17_000)]
    books().set_refund_outcome(Refund.get().refund_no, "success")
    later(301)
    assert open_ones() == [("wrong_amount", 2_000)]


def test_a_second_payment_goes_back_and_the_order_stays_credited(api, paid, flask, due, balances):
    api.notice(paid, 10_000, reference="R-2")
    assert open_ones() == [("paid_twice", 10_000)]
    flask("order", "resolve", paid, "--refund")
    due.orders()
    assert (Refund.get().reference, open_ones(), api.status(paid)) == ("R-2", [], "completed")
    assert balances() == (BEFORE, 0)


def test_an_exception_of_the_payment_blocks_refunds_and_one_of_another_payment_does_not(api, paid, refund):
    api.notice(paid, 10_000, reference="R-2")
    assert refund(paid, "1.00").code == 1
    report(paid, State.PAID, 5_000)
    answer = refund(paid, "1.00")
    assert (answer.code, answer.data["reason"]) == (40904, "exception")


def test_a_manual_channels_money_is_sent_back_by_the_operator_as_before(api, flask):
    order_no = api.buy(channel=3).data["order_no"]
    flask("order", "paid", order_no, "--amount", "99.00")
    flask("order", "resolve", order_no, "--refund", "--reference", "BACK-1")
    assert (open_ones(), Refund.select().count(), api.status(order_no)) == ([], 0, "cancelled")


def test_the_rest_that_came_back_after_a_full_refund_before_the_credit_has_an_owner(api, flask, plays, later, refund):
    flask("channel", "set", "2", "--settlement-days", "1")
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    plays("late_fail")
    refund(order_no)
    assert api.status(order_no) == "cancelled"
    later(601)
    flask("order", "resolve", order_no, "--cancel")
    assert open_ones() == [("late_payment", 10_000)]


def test_a_refund_that_a_restored_database_lacks_is_not_charged_twice(paid, refund, http, flask, balances):
    """The backup is from before the refund. Its notice names a number that only a repeated request would get."""
    order = Order.find(paid)
    number = place.merchants_refund_no(order.merchant_id, "R-1")
    refund_notice(http, paid, number, 4_000)
    assert open_ones() == [("reversed", 4_000)]
    assert refund(paid, "40.00", number="R-1").data["reason"] == "exception"
    flask("order", "resolve", paid, "--refund")
    assert refund(paid, "40.00", number="R-1").data["reason"] == "exception"
    assert refund(paid, "10.00", number="R-2").code == 1
    assert balances()[0] == BEFORE - 1_000


def test_the_same_number_of_a_merchant_always_has_the_same_refund_number(paid, refund, other):
    data = refund(paid, "40.00", number="R-1").data
    assert data["refund_no"] == place.merchants_refund_no(Order.find(paid).merchant_id, "R-1")
    assert data["refund_no"] != place.merchants_refund_no(Order.find(paid).merchant_id, "R-2")


def test_a_refund_that_failed_after_its_order_was_completed_with_other_money_posts_nothing(
    api, flask, plays, later, refund, balances
):
    flask("channel", "set", "2", "--settlement-days", "1")
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    plays("late_fail")
    refund(order_no)
    api.notice(order_no, 10_000, reference="R-2")
    flask("order", "resolve", order_no, "--complete", typed="y\n")
    later(601)
    assert open_ones() == [("refund_conflict", 10_000)]
    flask("order", "resolve", order_no, "--cancel")
    assert (open_ones(), balances()) == ([("late_payment", 10_000)], (BEFORE, 0))
    flask("order", "resolve", order_no, "--credit")
    assert balances() == (BEFORE + 9_940, 0)


def test_a_deposit_that_was_completed_with_other_money_can_be_refunded_again(api, flask, refund):
    flask("channel", "set", "2", "--settlement-days", "1")
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    refund(order_no)
    api.notice(order_no, 10_000, reference="R-2")
    flask("order", "resolve", order_no, "--complete", typed="y\n")
    assert place.quote(Order.find(order_no), None).left == 10_000


def test_money_that_went_back_elsewhere_is_not_refunded_again(paid, refund, flask):
    report(paid, State.PAID, 7_000)
    flask("order", "resolve", paid, "--refund")
    answer = refund(paid, "80.00")
    assert (answer.code, answer.data) == (40904, {"reason": "amount", "left": "70.00"})
    assert refund(paid, "70.00").code == 1
