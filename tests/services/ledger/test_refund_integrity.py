"""Ledger integrity check of refunds: their postings agree with their statuses, and open ones with the reserve."""

from functools import partial

import pytest

from models.tables.ledger import Posting
from models.tables.merchant import PROPORTIONAL
from models.tables.order import Order
from models.tables.refund import Refund
from services.ledger import integrity
from services.refunds import place
from services.refunds.place import Wanted
from tests.databases import unguarded
from tests.refunds import allow, refunded
from tests.support import completed

HELD = "reserved balances equal the open withdrawals and refunds"
REFUNDS = "refunds match their postings"
CHAINED = "entries are chained without gaps up to the account's checkpoint"
ZERO = "postings sum to zero"
SUMS = "balances equal their entries"
DAY = 86_400


@pytest.fixture(autouse=True)
def proportional(app):
    """Fees go back with refunds, so that every account moves."""
    allow(fees=PROPORTIONAL)


@pytest.fixture
def refund(api):
    """`refund(order_no, "40.00", "silent")` requests a refund with this outcome; its number."""
    return partial(refunded, api)


@pytest.fixture
def uncredited(api, flask):
    """`uncredited()`: the number of a deposit that is credited in a day."""

    def place_one():
        flask("channel", "set", "2", "--settlement-days", "1")
        order_no = completed(api)
        assert api.status(order_no) == "confirmed"
        return order_no

    return place_one


@pytest.fixture
def refunds(api, refund, uncredited, later):
    """The numbers of refunds of each state, by name."""
    found = {
        "completed": refund(completed(api), "40.00"),
        "confirmed": refund(completed(api), "30.00", "silent"),
        "cancelled": refund(completed(api), "20.00", "fail"),
    }
    paid_by_platform = place.place(
        Order.find(completed(api)), Wanted(1_000, "operator ann", approved_by="operator ann", by_platform=True)
    )
    found["platform"] = paid_by_platform.refund_no
    later(61)
    order_no = uncredited()
    found["uncredited"] = refund(order_no, "10.00")
    later(DAY, 2)
    assert api.status(order_no) == "completed"
    order_no = uncredited()
    found["waiting"] = refund(order_no, "50.00")
    assert api.status(order_no) == "confirmed"
    found["whole"] = refund(uncredited())
    states = {name: Refund.find(number).status for name, number in found.items()}
    expected = {"confirmed": "confirmed", "cancelled": "cancelled"}
    assert states == {name: expected.get(name, "completed") for name in found}
    return found


@pytest.fixture
def failed(app):
    """`failed()`: the failures of the integrity check, by check."""
    return lambda: {name: lines for name, lines in integrity.verify() if lines}


def test_refunds_of_every_state_agree_with_their_postings(refunds, failed):
    purposes = {purpose.partition(" ")[0] for (purpose,) in Posting.select(Posting.purpose).tuples()}
    assert purposes >= {"refund_hold", "refund", "refund_release"}
    assert failed() == {}


def test_a_deposit_that_was_completed_with_other_money_does_not_owe_its_earlier_refund(
    api, flask, uncredited, refund, failed
):
    order_no = uncredited()
    refund(order_no)
    assert api.status(order_no) == "cancelled"
    api.notice(order_no, 10_000, reference="R-2")
    flask("order", "settle", order_no, "--complete", typed="y\n")
    assert api.status(order_no) == "completed"
    assert failed() == {}


CHANGE = "UPDATE refund SET {} WHERE refund_no = '{}'"
# By damage: the refund, the changed columns, and the checks that find it.
DAMAGE = {
    "a completed one is open again": ("completed", "status = 'confirmed'", {HELD, REFUNDS}),
    "a completed one is cancelled": ("completed", "status = 'cancelled'", {REFUNDS}),
    "an open one is completed": ("confirmed", "status = 'completed'", {HELD, REFUNDS}),
    "an open one is cancelled": ("confirmed", "status = 'cancelled'", {HELD, REFUNDS}),
    "a cancelled one is completed": ("cancelled", "status = 'completed'", {REFUNDS}),
    "a cancelled one is open": ("cancelled", "status = 'pending'", {HELD, REFUNDS}),
    "an amount": ("completed", "amount = amount - 1", {REFUNDS}),
    "a deducted amount": ("completed", "merchant_actual_amount = 1", {REFUNDS}),
    "a reserved amount": ("confirmed", "merchant_actual_amount = 1", {HELD, REFUNDS}),
    "a returned fee": ("completed", "service_amount = 0", {REFUNDS}),
    "who pays": ("platform", "paid_from = 'balance'", {REFUNDS}),
    "who pays an open one": ("confirmed", "paid_from = 'platform'", {HELD, REFUNDS}),
    "one before the credit": ("uncredited", "status = 'cancelled'", {REFUNDS}),
    "one before the credit is of the balance": ("waiting", "paid_from = 'balance'", {REFUNDS}),
}


@pytest.mark.breaks_the_ledger
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_changed_refund_is_found(refunds, failed, instance, damage):
    name, change, checks = DAMAGE[damage]
    with unguarded(instance) as ledger:
        assert ledger.execute(CHANGE.format(change, refunds[name])).rowcount == 1
    found = failed()
    assert set(found) == checks
    assert all(f"order {Refund.find(refunds[name]).order.order_no}: its refunds" in line for line in found[REFUNDS])


@pytest.mark.breaks_the_ledger
def test_the_failure_names_the_account_and_both_amounts(refunds, failed, instance):
    with unguarded(instance) as ledger:
        ledger.execute(CHANGE.format("amount = 4001, merchant_actual_amount = 3977", refunds["completed"]))
    order_no = Refund.find(refunds["completed"]).order.order_no
    assert failed()[REFUNDS] == [
        f"order {order_no}: its refunds moved -3976 fen of account available 1, not -3977",
        f"order {order_no}: its refunds moved 4000 fen of account clearing 2, not 4001",
    ]


@pytest.mark.breaks_the_ledger
def test_a_refund_without_its_row_is_found(refunds, failed, instance):
    number, order_no = refunds["completed"], Refund.find(refunds["completed"]).order.order_no
    with unguarded(instance) as ledger:
        ledger.execute("DELETE FROM refund_history")
        assert ledger.execute(f"DELETE FROM refund WHERE refund_no = '{number}'").rowcount == 1
    found = failed()
    assert set(found) == {REFUNDS}
    assert f"order {order_no}: its refunds moved 4000 fen of account clearing 2, not 0" in found[REFUNDS]


@pytest.mark.breaks_the_ledger
def test_the_changed_entry_of_a_refund_is_found(refunds, failed, instance):
    with unguarded(instance) as ledger:
        last = "(SELECT MIN(id) FROM posting WHERE purpose = 'refund 1')"
        assert ledger.execute(f"UPDATE entry SET amount = amount - 1 WHERE posting_id = {last} AND amount > 0").rowcount
    assert set(failed()) == {CHAINED, ZERO, SUMS, REFUNDS}
