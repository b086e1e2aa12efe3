"""Manual adjustments that name their order: numbered, never repeated by mistake, and no part of the order's money."""

import pytest

from models.tables.ledger import Posting
from models.tables.merchant import Merchant
from models.tables.order import Order
from services.console import order_list
from services.errors import OperatorError
from services.ledger import accounts, integrity
from services.withdrawals import money
from services.withdrawals.money import WithdrawalMoney
from tests.support import completed

START = 1_000_000


@pytest.fixture
def merchant(app):
    """The merchant `demo`."""
    return Merchant.get(Merchant.key == "demo")


@pytest.fixture
def order(api):
    """A completed deposit of 100.00, fee 0.60."""
    return Order.find(completed(api))


def purposes(order):
    """The purposes of the order's postings, in the order of writing."""
    return [posting.purpose for posting in Posting.select().where(Posting.order == order).order_by(Posting.id)]


def test_several_adjustments_of_an_order_are_numbered(merchant, order, balances, flask_json):
    accounts.adjust(merchant, -500, "complaint", order=order)
    accounts.adjust(merchant, 200, "half of it back", order=order)
    accounts.adjust(merchant, 100, "of no order")
    assert purposes(order) == ["credit", "adjustment 1", "adjustment 2"]
    assert balances() == (START + 9_940 - 200, 0)
    shown = flask_json("order", "show", order.order_no)["ledger"]
    assert [(each["purpose"], each["yuan"]) for each in shown if each["account"] == "available"] == [
        ("credit", "99.40"),
        ("adjustment 1", "-5.00"),
        ("adjustment 2", "2.00"),
    ]
    assert not any(lines for _, lines in integrity.verify())


def test_the_command_names_an_order_of_this_merchant_only(flask, refuses, other, order, balances):
    flask("ledger", "adjust", "demo", "-5.00", "--reason", "complaint", "--order", order.order_no)
    assert purposes(order) == ["credit", "adjustment 1"]
    foreign = other.buy().data["order_no"]
    assert "is not an order of demo" in refuses("ledger", "adjust", "demo", "5", "--reason", "x", "--order", foreign)
    assert "no order 77" in refuses("ledger", "adjust", "demo", "5", "--reason", "x", "--order", "77")
    assert balances() == (START + 9_440, 0)


def test_only_the_same_adjustment_of_the_same_order_is_refused_within_ten_minutes(
    merchant, order, api, flask, refuses, balances, ahead
):
    def adjust(about):
        accounts.adjust(merchant, 100, "a gift", order=about, once=True)

    adjust(order)
    with pytest.raises(OperatorError, match="just now"):
        adjust(order)
    adjust(None)
    with pytest.raises(OperatorError, match="just now"):
        adjust(None)
    adjust(Order.find(completed(api)))
    assert balances() == (START + 2 * 9_940 + 300, 0)
    ahead(601)
    adjust(order)
    assert purposes(order) == ["credit", "adjustment 1", "adjustment 2"]


def test_a_form_is_outdated_after_any_adjustment_and_after_nothing_else(merchant, order, api):
    shown = accounts.newest_entry(merchant)
    completed(api)
    accounts.check_newest(merchant, shown)
    accounts.adjust(merchant, -500, "complaint", order=order, newest=shown)
    for newest in (shown, -1, 10**19):
        with pytest.raises(OperatorError, match="in the meantime"):
            accounts.check_newest(merchant, newest)
    shown = accounts.newest_entry(merchant)
    accounts.adjust(merchant, -500, "of no order", newest=shown)
    with pytest.raises(OperatorError, match="in the meantime"):
        accounts.adjust(merchant, 1, "late", order=order, newest=shown)


@pytest.mark.parametrize("fen", [-700, 700])
def test_an_adjustment_changes_neither_the_state_of_a_withdrawal_nor_its_amounts(merchant, api, flask, fen):
    numbers = {name: api.sell("50.00", channel=3).data["order_no"] for name in ("held", "spent", "returned")}
    flask("order", "accept", numbers["spent"])
    flask("order", "paid", numbers["spent"])
    flask("order", "reject", numbers["returned"], "--reason", "no")
    orders = {name: Order.find(number) for name, number in numbers.items()}

    def seen():
        states = {name: money.state_of(order) for name, order in orders.items()}
        return states, order_list.Orders({}).exported([order.id for order in orders.values()])

    before, rows = seen()
    assert before["returned"] is WithdrawalMoney.FREE
    for order in orders.values():
        accounts.adjust(merchant, fen, "complaint", order=order)
    after, later = seen()
    assert after == before
    assert [row.moved for row in later] == [row.moved for row in rows]
    assert not any(lines for _, lines in integrity.verify())
