"""What channels keep of deposits: estimated when the deposit is placed, posted with its credit, borne by the operator.

Channel 2 keeps 0.60 % by WeChat Pay and 0.38 % by Alipay.
"""

import pytest

from models.tables.ledger import CLEARING, COMMISSION, FEES, LedgerAccount
from models.tables.order import Order
from services.ledger import accounts, integrity
from tests.services import walks

START = 1_000_000
DAY = 86_400
MOVES = "postings match their orders"


@pytest.fixture(autouse=True)
def rates(flask):
    """The rates of the channel."""
    flask("channel", "set", 2, "--cost", "wxpay=0.6", "--cost", "alipay=0.38")


@pytest.fixture
def money():
    """`money()`: the operator's fees and costs, and what channel 2 owes, in fen."""

    def read():
        fees, costs, clearing = ((FEES, 0), (COMMISSION, 0), (CLEARING, 2))
        return LedgerAccount.balance_of(*fees), -LedgerAccount.balance_of(*costs), -LedgerAccount.balance_of(*clearing)

    return read


@pytest.fixture
def entries(order_details):
    """`entries(order_no)`: the order's ledger entries by account."""
    return lambda order_no: {each["account"]: each["yuan"] for each in order_details(order_no)["ledger"]}


def placed(api, method="wxpay", amount="100.00"):
    return api.buy(amount, paychannel_paymethod=method).data["order_no"]


def estimate(order_no):
    return Order.find(order_no).cost_amount


@pytest.mark.parametrize(
    ("method", "amount", "cost"),
    [
        ("wxpay", "100.00", 60),
        ("alipay", "100.00", 38),
        ("bank", "100.00", 0),  # nothing is known of it
        ("wxpay", "0.83", 0),  # 0.498 fen
        ("wxpay", "0.84", 1),  # 0.504 fen
    ],
)
def test_the_estimate_depends_on_the_payment_method_and_is_rounded_half_up(api, money, method, amount, cost):
    order_no = placed(api, method, amount)
    assert (estimate(order_no), money()[1:]) == (cost, (0, 0))
    api.play(order_no, "success")
    fen = int(amount.replace(".", ""))
    assert money()[1:] == (cost, fen - cost)


def test_a_channel_is_never_expected_to_keep_a_whole_payment(api, flask, money):
    flask("channel", "set", 2, "--cost", "100")
    for amount in ("0.01", "100.00"):
        api.play(placed(api, "wxpay", amount), "success")
    assert money()[1:] == (9_999, 2)


def test_a_credit_posts_the_cost_to_the_operator_and_not_to_the_merchant(api, entries, balances):
    order_no = placed(api)
    api.play(order_no, "success")
    assert entries(order_no) == {"available": "99.40", "fees": "0.60", "commission": "-0.60", "clearing": "-99.40"}
    assert balances() == (START + 9_940, 0)


def test_a_credit_without_cost_has_no_entry_for_it(api, entries):
    order_no = placed(api, "bank")
    api.play(order_no, "success")
    assert entries(order_no) == {"available": "99.40", "fees": "0.60", "clearing": "-100.00"}


def test_merchants_do_not_see_the_cost(api):
    order_no = placed(api)
    answers = (api.detail(order_no=order_no).data, *api.call("getPayChannels").data["list"])
    assert not [name for answer in answers for name in answer if "cost" in name]


def test_the_cost_is_posted_with_the_credit_after_a_settlement_delay(api, flask, later, money):
    flask("channel", "set", 2, "--settlement-days", 1)
    order_no = placed(api)
    api.play(order_no, "success")
    assert money() == (0, 0, 0)
    later(DAY)
    assert money() == (60, 60, 9_940)


def test_a_new_rate_counts_for_new_deposits_only(api, flask, money):
    order_no = placed(api)
    flask("channel", "set", 2, "--cost", "5")
    api.play(order_no, "success")
    assert money() == (60, 60, 9_940)
    assert estimate(placed(api)) == 500


@pytest.mark.parametrize("amounts", [["100.00"], ["40.00", "60.00"]])
def test_a_refund_returns_no_cost(api, flask, later, money, amounts):
    flask("merchant", "set", "demo", "--refunds", "automatic", "--refund-auto-max", "1000")
    order_no = placed(api)
    api.play(order_no, "success")
    for number, amount in enumerate(amounts):
        later(61)
        wanted = {"order_no": order_no, "cny_amount": amount, "merchant_refund_no": f"R-{number}"}
        assert api.call("createRefund", wanted).data["status"] == "completed"
    assert money() == (60, 60, -60)  # the channel keeps its cost of money that it no longer has


def test_a_deposit_that_is_refunded_in_full_before_its_credit_posts_no_cost(api, flask, later, money):
    flask("merchant", "set", "demo", "--refunds", "automatic", "--refund-auto-max", "1000")
    flask("channel", "set", 2, "--settlement-days", 1)
    order_no = placed(api)
    api.play(order_no, "success")
    wanted = {"order_no": order_no, "cny_amount": "100.00", "merchant_refund_no": "R-1"}
    assert api.call("createRefund", wanted).data["status"] == "completed"
    later(DAY)
    assert (api.status(order_no), money()) == ("cancelled", (0, 0, 0))


def complete(flask, order_no):
    flask("order", "settle", order_no, "--complete", "--yes")


def test_an_order_that_is_completed_with_more_money_has_the_cost_of_what_was_received(world, flask, money, entries):
    order_no = walks.played("wrong_amount")(world)
    assert estimate(order_no) == 60
    complete(flask, order_no)
    assert (estimate(order_no), money()) == (61, (61, 61, 10_039))
    assert entries(order_no)["commission"] == "-0.61"


def test_an_order_that_is_completed_with_more_money_has_the_present_rate(world, flask, money):
    order_no = walks.played("wrong_amount")(world)
    flask("channel", "set", 2, "--cost", "1")
    complete(flask, order_no)
    assert money() == (61, 101, 9_999)


def test_an_order_that_is_completed_late_with_its_own_amount_keeps_its_estimate(world, flask, money):
    order_no = walks.played("late")(world)
    flask("channel", "set", 2, "--cost", "1")
    complete(flask, order_no)
    assert (estimate(order_no), money()) == (60, (60, 60, 9_940))


def test_other_payments_are_credited_without_an_estimate(world, flask, money):
    order_no = walks.deposit_paid_twice(world)
    flask("order", "settle", order_no, "--credit")
    assert money() == (120, 60, 19_940)


def _off():
    return {name: lines for name, lines in integrity.verify() if lines}


@pytest.mark.breaks_the_ledger
def test_an_estimate_that_was_changed_after_the_credit_is_found(api):
    order_no = placed(api)
    api.play(order_no, "success")
    assert _off() == {}
    Order.update(cost_amount=59).where(Order.order_no == order_no).execute()
    assert _off() == {MOVES: [f"order {order_no}: its credit moved -60 fen of the operator's commission balance"]}


def test_the_ledger_accepts_a_correction_by_a_bill(api):
    api.play(placed(api), "success")
    accounts.post("bill_costs 2 2026-05-01", {(CLEARING, 2): 3, (COMMISSION, 0): -3}, who="service")
    assert _off() == {}
