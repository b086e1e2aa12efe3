"""Refunds at the same moment as other refunds, credits, reversals and withdrawals."""

import pytest

from gateways.base import Report, State
from models.tables.order import Order, PaymentException
from models.tables.refund import Refund
from services.deposits import settle
from services.errors import ApiError
from services.jobs import sweep
from services.refunds import approve, place
from services.refunds.place import NotRefundable, Wanted
from tests.support import Api, InlinePool, through_flask
from tests.turns import together

BEFORE = 1_009_940
DAY = 86_400


def client(app):
    """A merchant's client for a thread of its own."""
    return Api(through_flask(app.test_client()))


def request(app, order_no, amount, number):
    fields = {"order_no": order_no, "cny_amount": amount, "merchant_refund_no": number}
    return client(app).call("createRefund", fields)


def test_the_same_refund_requested_many_times_at_once_is_one_refund(app, paid, balances):
    answers = together(*[(request, app, paid, "40.00", "SAME")] * 6)
    assert {each.code for each in answers} == {1}
    assert len({each.data["refund_no"] for each in answers}) == 1
    assert [each.headers.get("Idempotency-Replayed") for each in answers].count(None) == 1
    assert balances() == (BEFORE - 4_000, 0)


def test_different_refunds_at_once_never_exceed_the_payment(app, paid, balances):
    answers = together(*[(request, app, paid, "60.00", f"R{number}") for number in range(5)])
    assert sorted(each.code for each in answers) == [1, 40904, 40904, 40904, 40904]
    assert sum(balances()) == BEFORE - 6_000


def test_the_same_refund_from_the_api_and_an_operator_at_once_is_not_more_than_the_payment(app, paid, balances):
    def operator():
        try:
            place.place(Order.find(paid), Wanted(None, "operator ann", "operator ann"))
        except NotRefundable:
            return "refused"
        return "placed"

    answers = together((request, app, paid, "100.00", "R1"), (operator,))
    assert (answers[0].code, answers[1]) in [(1, "refused"), (40904, "placed")]
    sweep.sweep(InlinePool())
    assert balances() == (BEFORE - 10_000, 0)


def test_a_withdrawal_and_a_refund_never_overdraw_the_balance_together(app, paid, api, balances):
    api.sell("9970.00")
    left = balances()[0]
    assert 10_000 <= left < 20_000
    together(
        (request, app, paid, "100.00", "R1"),
        (lambda: client(app).sell("100.00"),),
    )
    assert 0 <= balances()[0] < left - 9_000


def test_an_approval_and_a_rejection_at_once_leave_one_decision(app, paid, refunds_on, refund, balances):
    refunds_on("approval")
    seen = Refund.find(refund(paid).data["refund_no"])

    def decide(act, *arguments):
        try:
            act(*arguments)
        except Exception as error:
            return str(error)
        return ""

    said = together(
        (decide, approve.approve, seen, "operator ann"), (decide, approve.reject, seen, "no", "operator ben")
    )
    assert sorted(map(bool, said)) == [False, True]
    sweep.sweep(InlinePool())
    row = Refund.get()
    assert (row.status, sum(balances())) in [("completed", BEFORE - 10_000), ("cancelled", BEFORE)]


def test_a_refund_and_the_credit_at_the_same_moment(app, api, flask, ahead, balances):
    flask("channel", "set", "2", "--settlement-days", "1")
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    ahead(DAY + 1)
    answer, _ = together((request, app, order_no, "100.00", "R1"), (sweep.sweep, InlinePool()))
    assert answer.code == 1
    sweep.sweep(InlinePool())
    credited = {"cancelled": 1_000_000, "completed": 1_000_000 + 9_940 - 10_000}
    assert balances() == (credited[api.status(order_no)], 0)


def test_a_refund_and_a_reversal_at_the_same_moment(app, paid, balances):
    def reverse():
        order = Order.find(paid)
        return settle.apply_report(order, Report(State.PAID, 5_000, order.channel_reference))

    answer, _ = together((request, app, paid, "100.00", "R1"), (reverse,))
    kinds = [each.kind for each in PaymentException.select()]
    # Either the refund was first, and explains the missing part, or the exception was, and refuses the refund.
    assert (answer.code, kinds) in [(1, []), (40904, ["reversed"])]
    assert sum(balances()) == BEFORE - (10_000 if answer.code == 1 else 0)


def test_a_refund_of_an_order_that_another_refund_just_cancelled_is_refused(app, api, flask):
    flask("channel", "set", "2", "--settlement-days", "1")
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    answers = together(*[(request, app, order_no, "100.00", f"R{number}") for number in range(3)])
    assert sorted(each.code for each in answers) == [1, 40904, 40904]
    assert (api.status(order_no), Refund.select().count()) == ("cancelled", 1)


def test_an_error_of_one_request_does_not_leave_its_number_used(app, paid, api):
    api.sell("10000.00")
    assert request(app, paid, "100.00", "R1").code == 40901
    with pytest.raises(ApiError, match="40901"):
        place.place(Order.find(paid), Wanted(10_000, "operator ann", "operator ann"))
    assert Refund.select().count() == 0
