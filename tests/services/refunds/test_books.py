"""Refunds in the ledger: who pays, which fee the merchant gets back, and what each end of a refund posts.

The merchant `demo` has 10,000.00 and a deposit of 100.00 with a fee of 0.60, so 10,099.40.
"""

import pytest

from gateways.sandbox.records import books
from models.tables.ledger import CLEARING, FEES, LedgerAccount
from models.tables.order import Order
from models.tables.refund import Refund
from services.errors import OperatorError
from services.orders.returned import Returned
from services.refunds import approve, place
from services.refunds.place import Wanted

BEFORE = 1_009_940
DAY = 86_400


def earned():
    """The operator's fees, and what channel 2 owes, in fen."""
    return LedgerAccount.balance_of(FEES, 0), -LedgerAccount.balance_of(CLEARING, 2)


def test_a_full_refund_takes_the_amount_from_the_balance_and_the_channel(paid, refund, balances):
    assert earned() == (60, 10_000)
    answer = refund(paid)
    assert (answer.code, answer.data["status"]) == (1, "completed")
    assert (answer.data["service_amount"], answer.data["merchant_actual_amount"]) == (0, 10_000)
    assert balances() == (BEFORE - 10_000, 0)
    assert earned() == (60, 0)


def test_an_open_refund_reserves_the_amount_and_its_success_spends_it(paid, refund, plays, balances, later):
    plays("processing")
    answer = refund(paid, "40.00")
    assert answer.data["status"] == "confirmed"
    assert balances() == (BEFORE - 4_000, 4_000)
    later(61)
    assert balances() == (BEFORE - 4_000, 0)
    assert earned() == (60, 6_000)


def test_a_refused_refund_returns_the_reserve_and_names_the_refund(paid, refund, plays, balances):
    plays("fail")
    answer = refund(paid, number="A")
    assert answer.code == 50201
    refund_no = answer.data["refund_no"]
    assert Refund.get(Refund.refund_no == refund_no).status == "cancelled"
    assert balances() == (BEFORE, 0)


def test_a_cancelled_refund_does_not_count_and_can_be_requested_again(paid, refund, plays, balances, ahead):
    plays("fail")
    assert refund(paid).code == 50201
    plays("success")
    ahead(61)
    assert refund(paid).data["status"] == "completed"
    assert balances() == (BEFORE - 10_000, 0)


@pytest.mark.parametrize(
    ("policy", "parts", "fees"),
    [
        ("keep", ["40.00", "60.00"], [0, 0]),
        ("proportional", ["100.00"], [60]),
        ("proportional", ["33.33", "33.33", "33.34"], [20, 20, 20]),
        ("proportional", ["0.01"] * 3 + ["99.97"], [0, 0, 0, 60]),
        ("proportional", ["50.83", "0.01", "49.16"], [30, 1, 29]),
        ("full_only", ["100.00"], [60]),
        ("full_only", ["99.99", "0.01"], [0, 1]),
        ("full_only", ["0.01", "99.99"], [0, 60]),
    ],
)
def test_the_fees_of_parts_add_up_to_that_of_the_whole(paid, refund, refunds_on, balances, later, policy, parts, fees):
    refunds_on(fees=policy)
    given = []
    for part in parts:
        answer = refund(paid, part)
        given.append(answer.data["service_amount"])
        later(61)
    assert given == fees
    later(61, 3)
    assert balances() == (BEFORE - 10_000 + sum(fees), 0)
    assert earned() == (60 - sum(fees), 0)


def test_a_balance_never_becomes_negative(paid, refund, api, balances):
    api.sell("10000.00")
    assert balances()[0] < 10_000
    answer = refund(paid, "100.00", number="B")
    assert answer.code == 40901
    assert Refund.select().count() == 0
    assert refund(paid, "10.00", number="B").code == 1


def test_the_platform_can_pay_for_a_refund(paid, balances, due):
    order = Order.find(paid)
    place.place(order, Wanted(None, "operator ann", approved_by="operator ann", by_platform=True))
    due.orders()
    assert balances() == (BEFORE, 0)
    assert earned() == (60 - 10_000, 0)


@pytest.fixture
def uncredited(api, flask):
    """The number of a deposit of 100.00 that is credited in a day."""
    flask("channel", "set", "2", "--settlement-days", "1")
    order_no = api.buy().data["order_no"]
    api.play(order_no, "success")
    assert api.status(order_no) == "confirmed"
    return order_no


def test_a_full_refund_before_the_credit_cancels_the_deposit_without_a_fee(
    uncredited, refund, api, balances, later, exceptions
):
    answer = refund(uncredited)
    assert (answer.data["status"], answer.data["merchant_actual_amount"]) == ("completed", 0)
    assert api.status(uncredited) == "cancelled"
    later(DAY, 3)
    assert balances() == (1_000_000, 0)
    assert earned() == (0, 0)
    assert exceptions() == {}


def test_a_part_before_the_credit_is_posted_with_the_credit(uncredited, refund, api, balances, later):
    assert refund(uncredited, "40.00").data["status"] == "completed"
    assert (api.status(uncredited), balances()) == ("confirmed", (1_000_000, 0))
    later(DAY)
    assert (api.status(uncredited), balances()) == ("completed", (1_000_000 + 9_940 - 4_000, 0))
    assert earned() == (60, 6_000)


def test_the_credit_waits_for_an_open_refund(uncredited, refund, plays, api, balances, later, due):
    plays("silent")
    refund(uncredited, "40.00")
    later(DAY + 60, 2)
    assert (api.status(uncredited), balances()) == ("confirmed", (1_000_000, 0))
    row = Refund.get()
    books().set_refund_outcome(row.refund_no, "success")
    later(301, 2)
    assert (api.status(uncredited), balances()) == ("completed", (1_000_000 + 5_940, 0))


def test_parts_before_the_credit_that_add_up_to_the_whole_cancel_the_deposit(uncredited, refund, api, balances, later):
    refund(uncredited, "60.00")
    later(61)
    assert refund(uncredited, "40.00").data["status"] == "completed"
    assert api.status(uncredited) == "cancelled"
    later(DAY, 2)
    assert balances() == (1_000_000, 0)


def test_a_part_before_the_credit_is_covered_by_the_credit(uncredited, refund):
    answer = refund(uncredited, "99.99")
    assert (answer.code, answer.data) == (40904, {"reason": "amount", "left": "99.40"})


def test_an_approved_refund_of_a_manual_channel_waits_for_the_operator(api, flask, refund, refunds_on, balances, due):
    order_no = api.buy(channel=3).data["order_no"]
    flask("order", "paid", order_no)
    refunds_on("approval")
    assert refund(order_no).data["status"] == "pending"
    row = approve.approve(Refund.get(), "operator ann")
    due.orders()
    row = Refund.get()
    assert (row.status, row.due_at) == ("confirmed", None)
    approve.mark_refunded(row, Returned("BANK-1"), "operator ann")
    row = Refund.get()
    assert (row.status, row.channel_reference) == ("completed", "BANK-1")
    assert balances() == (1_000_000 - 60, 0)


def test_a_rejected_refund_of_a_manual_channel_returns_its_reserve_for_good(
    api, flask, refund, refunds_on, balances, due, later, exceptions
):
    order_no = api.buy(channel=3).data["order_no"]
    flask("order", "paid", order_no)
    refunds_on("approval")
    refund(order_no)
    approve.approve(Refund.get(), "operator ann")
    due.orders()
    approve.reject(Refund.get(), "not returned to us", "operator ann")
    later(3_601, 30)
    assert (Refund.get().status, balances(), exceptions()) == ("cancelled", (BEFORE, 0), {})


def test_the_unsettled_balance_is_what_will_be_credited(uncredited, refund, plays, api, later):
    def unsettled():
        return api.call("balanceQuery").data["unsettled_amount"]

    assert unsettled() == 9_940
    refund(uncredited, "40.00")
    assert unsettled() == 5_940
    plays("silent")
    later(61)
    refund(uncredited, "10.00")
    assert unsettled() == 0  # it is not certain how much will be credited


def test_one_transfer_counts_for_one_refund(api, flask, refund, refunds_on, due, ahead):
    order_no = api.buy(channel=3).data["order_no"]
    flask("order", "paid", order_no)
    refunds_on("approval")
    rows = []
    for amount in ("10.00", "20.00"):
        refund(order_no, amount)
        row = Refund.select().order_by(Refund.id.desc()).get()
        approve.approve(row, "operator ann")
        ahead(61)
        due.orders()
        rows.append(Refund.get_by_id(row.id))
        if len(rows) == 1:
            approve.mark_refunded(rows[0], Returned("BANK-1"), "operator ann")
    with pytest.raises(OperatorError, match="already recorded for refund"):
        approve.mark_refunded(rows[1], Returned("BANK-1"), "operator ann")
    approve.mark_refunded(rows[1], Returned("BANK-2"), "operator ann")
