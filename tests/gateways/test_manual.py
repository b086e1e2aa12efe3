"""The manual channel: the payer claims the payment on the payment page, and an operator confirms it."""

import pytest

from tests.support import heard, sandbox_notice

START = 1_000_000
PAID = (START + 9_940, 0)
SANDBOX, MANUAL = 2, 3
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def placed(api):
    """`placed()`: the number of a new deposit of 100 yuan on the manual channel."""
    return lambda: api.buy(channel=MANUAL).data["order_no"]


@pytest.fixture
def claim(http):
    """`claim(order_no)`: the payer presses 'I have paid'."""
    return lambda order_no: http("POST", "/addons/paychannel/pay/paid", f"order_no={order_no}".encode(), FORM)


def test_a_payers_claim_makes_it_paid_and_credits_nothing(api, placed, claim, steps, balances):
    order_no = placed()
    back = claim(order_no)
    assert back.status == 303
    assert back.headers["Location"].endswith(f"pay/index?order_no={order_no}")
    assert (api.status(order_no), balances()) == ("paid", (START, 0))
    assert steps(order_no)[-1] == ("payer", "pending", "paid")


def test_the_operators_confirmation_completes_the_payers_claim(
    api, placed, claim, flask, steps, order_details, balances
):
    order_no = placed()
    claim(order_no)
    assert "completed" in flask("order", "paid", order_no, "--reference", "BANK-1").output
    assert (api.status(order_no), balances()) == ("completed", PAID)
    assert steps(order_no)[2:] == [("operator", "paid", "confirmed"), ("service", "confirmed", "completed")]
    assert order_details(order_no)["channel_reference"] == "BANK-1"


def test_the_operator_needs_no_claim(api, placed, flask, steps, balances):
    order_no = placed()
    flask("order", "paid", order_no)
    assert (api.status(order_no), balances()) == ("completed", PAID)
    assert steps(order_no)[1:3] == [("operator", "pending", "paid"), ("operator", "paid", "confirmed")]


def test_a_repeated_confirmation_changes_nothing(api, placed, claim, flask, order_details, balances):
    order_no = placed()
    for _ in range(2):
        assert claim(order_no).status == 303
    flask("order", "paid", order_no)
    details = order_details(order_no)
    claim(order_no)
    assert "already" in flask("order", "paid", order_no).output
    assert (order_details(order_no), balances()) == (details, PAID)


def test_an_amount_other_than_the_orders_credits_nothing(api, placed, claim, flask, balances, exceptions):
    order_no = placed()
    claim(order_no)
    flask("order", "paid", order_no, "--amount", "99.99")
    assert (api.status(order_no), balances(), exceptions()) == ("paid", (START, 0), {order_no: "wrong_amount"})


@pytest.mark.parametrize("how", ["credit", "refund"])
def test_a_claimed_order_with_a_wrong_amount_ends_when_it_is_resolved(api, placed, claim, flask, exceptions, how):
    order_no = placed()
    claim(order_no)
    flask("order", "paid", order_no, "--amount", "99.99", "--reference", "BANK-1")
    flask("order", "settle", order_no, f"--{how}")
    assert exceptions() == {}
    assert api.status(order_no) != "pending"


def test_a_second_payment_is_visible(api, placed, flask, balances, exceptions):
    order_no = placed()
    flask("order", "paid", order_no, "--reference", "BANK-1")
    flask("order", "paid", order_no, "--reference", "BANK-2")
    assert (balances(), exceptions()) == (PAID, {order_no: "paid_twice"})


def test_money_for_an_expired_order_is_visible(api, placed, later, flask, balances, exceptions):
    order_no = placed()
    later(900)
    assert "late_payment" in flask("order", "paid", order_no).output
    assert (api.status(order_no), balances(), exceptions()) == ("cancelled", (START, 0), {order_no: "late_payment"})


def test_a_claim_for_an_expired_order_changes_nothing(api, placed, later, claim, order_details):
    order_no = placed()
    later(900)
    details = order_details(order_no)
    assert claim(order_no).status == 303
    assert order_details(order_no) == details


def test_only_a_deposit_of_this_channel_can_be_claimed(api, claim):
    others = [api.buy(channel=SANDBOX).data["order_no"], api.sell(channel=MANUAL).data["order_no"], "1" * 24, ""]
    for order_no in others:
        assert (claim(order_no).status, claim(order_no).code) == (404, 40401)
    assert {row["status"] for row in api.listed().data["list"]} == {"pending"}


def test_this_channel_accepts_no_notices(api, placed, claim, order_details):
    order_no = placed()
    claim(order_no)
    details = order_details(order_no)
    body, headers = sandbox_notice(order_no, 10_000)
    refused = api.send("POST", f"/addons/paychannel/notify/{order_no}", body, headers)
    assert (refused.status, refused.text) == (400, "fail")
    assert heard(order_details(order_no)) == (details, ["manual sends no notices"])


def test_an_operator_can_not_confirm_payments_of_a_channel_that_reports_them(api, flask, balances):
    order_no = api.buy(channel=SANDBOX).data["order_no"]
    assert "reports payments itself" in flask("order", "paid", order_no, fails=True).output
    assert (api.status(order_no), balances()) == ("pending", (START, 0))


def test_it_has_no_status_check(placed, refuses):
    assert "is manual and has no status check" in refuses("order", "ask", placed())
