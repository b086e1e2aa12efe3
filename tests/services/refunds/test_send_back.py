"""Money of exceptions that goes back by a refund: what reports, decisions and failures do meanwhile and afterwards."""

import json

import pytest

from gateways.base import Report, State
from gateways.sandbox.records import books
from models.tables.order import Order, PaymentException
from models.tables.refund import Refund
from services import kinds
from tests.support import sandbox_signed
from tests.trial_service import Trial

START, CREDITED = 1_000_000, 1_009_940
DAY = 86_400


@pytest.fixture
def open_ones(order_details):
    """`open_ones(order_no)`: kind and amount of the open exceptions of an order."""

    def read(order_no):
        every = order_details(order_no)["exceptions"]
        return [(each["kind"], each["amount"]) for each in every if each["resolution"] is None]

    return read


@pytest.fixture
def wrong(api):
    """`wrong(5_000)`: a deposit of 100.00 of which another amount was received as R-1."""

    def paid(fen):
        order_no = api.buy().data["order_no"]
        api.notice(order_no, fen)
        return order_no

    return paid


@pytest.fixture
def sent_back(flask, due, plays):
    """`sent_back(order_no, "silent")`: an operator sends the money back, with this outcome at the channel."""

    def refunded(order_no, outcome="success"):
        plays(outcome)
        flask("order", "resolve", order_no, "--refund")
        due.orders()
        return Refund.select().order_by(Refund.id.desc()).get()

    return refunded


def report(order_no, state, fen=0):
    return kinds.DEPOSIT.apply(Order.find(order_no), Report(state, fen, "R-1"), "channel", kinds.ASKED)


def test_money_that_is_going_back_does_not_pay_for_its_order(api, wrong, sent_back, later, open_ones, balances):
    order_no = wrong(5_000)
    refund = sent_back(order_no, "silent")
    report(order_no, State.PAID, 10_000)  # the order's amount, of which half is going back
    assert (api.status(order_no), open_ones(order_no)) == ("pending", [("wrong_amount", "100.00")])
    books().set_refund_outcome(refund.refund_no, "success")
    later(301)
    assert (open_ones(order_no), balances()) == ([("wrong_amount", "50.00")], (START, 0))


def test_a_corrected_amount_pays_for_its_order_once_the_refund_has_failed(api, wrong, sent_back, later, balances):
    order_no = wrong(5_000)
    refund = sent_back(order_no, "silent")
    report(order_no, State.PAID, 10_000)
    books().set_refund_outcome(refund.refund_no, "fail")
    later(301)
    report(order_no, State.PAID, 10_000)
    assert (api.status(order_no), balances()) == ("completed", (CREDITED, 0))


def test_the_rest_of_a_payment_goes_back_by_a_second_refund_of_the_same_payment(wrong, sent_back, later, open_ones):
    order_no = wrong(15_000)
    first = sent_back(order_no, "silent")
    report(order_no, State.PAID, 17_000)
    books().set_refund_outcome(first.refund_no, "success")
    later(301)
    assert open_ones(order_no) == [("wrong_amount", "20.00")]
    second = sent_back(order_no)
    assert (first.total, second.amount, second.total) == (15_000, 2_000, 17_000)
    for state, fen in ((State.PAID, 17_000), (State.PAID, 2_000), (State.RETURNED, 0), (State.FAILED, 0)):
        report(order_no, state, fen)
    assert open_ones(order_no) == []
    report(order_no, State.PAID, 18_000)
    assert open_ones(order_no) == [("amount_corrected", "10.00")]


def test_a_refund_of_a_correction_after_a_credit_names_the_whole_payment(api, flask, later, sent_back, open_ones):
    order_no = api.buy().data["order_no"]
    later(901)
    api.notice(order_no, 10_000)
    flask("order", "resolve", order_no, "--credit")
    api.notice(order_no, 12_000)
    refund = sent_back(order_no)
    assert (refund.amount, refund.total) == (2_000, 12_000)
    report(order_no, State.RETURNED)  # the channel does not say how much
    assert open_ones(order_no) == []


def test_a_refund_of_a_corrected_payment_names_all_of_it(api, paid, flask, refund):
    reference = Order.find(paid).channel_reference
    api.notice(paid, 12_000, reference=reference)
    flask("order", "resolve", paid, "--credit")
    refund(paid, "40.00")
    assert Refund.get().total == 12_000


def test_a_refund_of_a_second_payment_does_not_delay_the_credit(api, flask, sent_back, later, balances):
    flask("channel", "set", "2", "--settlement-days", "1")
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000)
    api.notice(order_no, 5_000, reference="R-2")
    sent_back(order_no, "silent")
    later(DAY)
    assert (api.status(order_no), balances()) == ("completed", (CREDITED, 0))


def notice_of(refund, http, state):
    said = {"order_no": refund.order.order_no, "refund_no": refund.refund_no, "state": state, "amount": refund.amount}
    body, headers = sandbox_signed(json.dumps(said | {"reference": "SBR1"}).encode())
    assert http("POST", f"/addons/paychannel/notify/{refund.order.order_no}", body, headers).status == 200


def test_money_that_came_back_after_all_is_decided_again(
    wrong, sent_back, http, flask, due, open_ones, balances, order_details
):
    order_no = wrong(15_000)
    refund = sent_back(order_no)
    notice_of(refund, http, "failed")
    assert open_ones(order_no) == [("refund_conflict", "150.00")]
    books().set_refund_outcome(refund.refund_no, "fail")
    flask("order", "resolve", order_no, "--cancel")
    assert open_ones(order_no) == [("wrong_amount", "150.00")]
    assert order_details(order_no)["exceptions"][-1]["code"] == "paid_other_amount"
    flask("order", "resolve", order_no, "--credit")
    assert (open_ones(order_no), balances()) == ([], (START + 14_910, 0))


def test_a_part_that_came_back_is_added_to_what_waits_for_a_decision(
    wrong, sent_back, http, flask, later, open_ones, order_details
):
    order_no = wrong(15_000)
    refund = sent_back(order_no, "silent")
    report(order_no, State.PAID, 17_000)
    notice_of(refund, http, "paid")
    assert open_ones(order_no) == [("wrong_amount", "20.00")]
    notice_of(refund, http, "failed")
    conflict = PaymentException.get(PaymentException.kind == "refund_conflict")
    flask("order", "resolve", order_no, "--cancel", "--exception", conflict.id)
    assert open_ones(order_no) == [("wrong_amount", "170.00")]


def test_credited_money_whose_refund_succeeded_after_all_is_reversed(wrong, sent_back, http, flask, open_ones):
    order_no = wrong(15_000)
    refund = sent_back(order_no, "fail")
    flask("order", "resolve", order_no, "--credit")
    notice_of(refund, http, "paid")
    assert open_ones(order_no) == [("refund_conflict", "150.00")]
    flask("order", "resolve", order_no, "--complete")
    assert open_ones(order_no) == [("reversed", "150.00")]
    report(order_no, State.FAILED)
    assert open_ones(order_no) == [("reversed", "150.00")]


@pytest.mark.parametrize("status", ["pending", "completed"])
def test_a_report_that_a_refund_is_stuck_changes_nothing_about_the_payment(api, status, kept, open_ones):
    order_no = api.buy().data["order_no"]
    if status == "completed":
        api.notice(order_no, 10_000)
    before = kept()
    assert api.notice(order_no, 10_000, state="stuck").status == 200
    assert kept() == before


def test_the_command_says_that_the_exception_is_not_resolved_yet(wrong, flask):
    order_no = wrong(15_000)
    assert "a refund was requested" in flask("order", "resolve", order_no, "--refund").output


@pytest.mark.parametrize("status", ["late", "confirmed"])
def test_money_that_went_back_otherwise_is_missing_once_the_refund_has_failed(
    api, flask, plays, due, later, open_ones, monkeypatch, status
):
    """The channel does not say how much is left, so the refund that was on its way seemed to explain it."""
    flask("channel", "set", "2", "--settlement-days", "3")
    order_no = api.buy().data["order_no"]
    if status == "late":
        later(901)
    api.notice(order_no, 10_000)
    if status == "confirmed":
        api.notice(order_no, 12_000)
    plays("fail")
    flask("order", "resolve", order_no, "--refund")
    report(order_no, State.RETURNED)
    due.orders()
    before = [("late_payment", "100.00")] if status == "late" else [("amount_corrected", "20.00")]
    assert open_ones(order_no) == before
    monkeypatch.setattr(Trial, "query", lambda driver, payment: Report(State.RETURNED, reference="R-1"))
    later(601)
    after = [("late_payment", "0.00")] if status == "late" else [*before, ("reversed", "0.00")]
    assert open_ones(order_no) == after
