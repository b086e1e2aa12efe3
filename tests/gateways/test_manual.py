"""The manual channel: the payer claims the payment on the payment page, and an operator confirms it."""

import pytest

from tests.support import heard, sandbox_notice

START = 1_000_000
UNPAID, PAID = (START, 0), (START + 9_940, 0)
SANDBOX, MANUAL = 2, 3
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def order_no(api):
    """The number of a new deposit of 100 yuan on the manual channel."""
    return api.buy(channel=MANUAL).data["order_no"]


@pytest.fixture
def claim(http):
    """`claim(order_no)`: the payer presses 'I have paid'."""
    return lambda order_no: http("POST", "/addons/paychannel/pay/paid", f"order_no={order_no}".encode(), FORM)


def test_a_claim_credits_nothing_until_the_operator_confirms_it_and_then_counts_once(
    order_no, claim, flask, steps, order_details, balances, outcome
):
    for _ in range(2):
        back = claim(order_no)
        assert back.status == 303
        assert back.headers["Location"].endswith(f"pay/index?order_no={order_no}")
        assert outcome(order_no) == ("paid", UNPAID, {})
    assert steps(order_no)[-1] == ("payer", "pending", "paid")
    assert "completed" in flask("order", "paid", order_no).output
    assert outcome(order_no) == ("completed", PAID, {})
    assert steps(order_no)[2:] == [("operator", "paid", "confirmed"), ("service", "confirmed", "completed")]
    details = order_details(order_no)
    claim(order_no)
    assert "already" in flask("order", "paid", order_no).output
    assert (order_details(order_no), balances()) == (details, PAID)


def test_the_operator_needs_no_claim_and_a_second_payment_is_visible(
    order_no, flask, steps, order_details, balances, exceptions, outcome
):
    flask("order", "paid", order_no, "--reference", "BANK-1")
    assert order_details(order_no)["channel_reference"] == "BANK-1"
    assert outcome(order_no) == ("completed", PAID, {})
    assert steps(order_no)[1:3] == [("operator", "pending", "paid"), ("operator", "paid", "confirmed")]
    flask("order", "paid", order_no, "--reference", "BANK-2")
    assert (balances(), exceptions()) == (PAID, {order_no: "paid_twice"})


@pytest.mark.parametrize(
    ("how", "money"), [(["--credit"], (START + 9_939, 0)), (["--refund", "--reference", "BACK-1"], UNPAID)]
)
def test_an_amount_other_than_the_orders_credits_nothing_until_it_is_resolved(
    how, money, order_no, claim, flask, outcome
):
    claim(order_no)
    flask("order", "paid", order_no, "--amount", "99.99", "--reference", "BANK-1")
    assert outcome(order_no) == ("paid", UNPAID, {order_no: "wrong_amount"})
    flask("order", "settle", order_no, *how)
    assert outcome(order_no) == ("cancelled", money, {})


def test_after_the_expiry_a_claim_changes_nothing_and_money_is_visible(
    order_no, later, claim, flask, order_details, outcome
):
    later(900)
    details = order_details(order_no)
    assert claim(order_no).status == 303
    assert order_details(order_no) == details
    assert "late_payment" in flask("order", "paid", order_no).output
    assert outcome(order_no) == ("cancelled", UNPAID, {order_no: "late_payment"})


def test_only_a_deposit_of_this_channel_can_be_claimed(api, claim):
    others = [api.buy(channel=SANDBOX).data["order_no"], api.sell(channel=MANUAL).data["order_no"], "1" * 24, ""]
    for order_no in others:
        assert (claim(order_no).status, claim(order_no).code) == (404, 40401)
    assert {row["status"] for row in api.listed().data["list"]} == {"pending"}


def test_this_channel_has_no_notices_and_no_status_check(api, order_no, claim, order_details, refuses):
    claim(order_no)
    details = order_details(order_no)
    body, headers = sandbox_notice(order_no, 10_000)
    refused = api.send("POST", f"/addons/paychannel/notify/{order_no}", body, headers)
    assert (refused.status, refused.text) == (400, "fail")
    assert heard(order_details(order_no)) == (details, ["manual sends no notices"])
    assert "is manual and has no status check" in refuses("order", "ask", order_no)


def test_an_operator_can_not_confirm_payments_of_a_channel_that_reports_them(api, refuses, outcome):
    order_no = api.buy(channel=SANDBOX).data["order_no"]
    assert "reports payments itself" in refuses("order", "paid", order_no)
    assert outcome(order_no) == ("pending", UNPAID, {})
