"""One transfer counts once: its reference for another order of the channel is refused, unless that is intended."""

import pytest

from models.db.writer import transaction
from models.tables.order import Order, PaymentException
from services.channels import payment_numbers
from tests.turns import together

START = 1_000_000
SANDBOX, MANUAL = 2, 3


@pytest.fixture
def deposit(api):
    """`deposit()`: the number of a new deposit of 100 yuan on the manual channel."""
    return lambda channel=MANUAL: api.buy(channel=channel).data["order_no"]


@pytest.fixture
def withdrawal(api, flask):
    """`withdrawal()`: the number of an approved withdrawal of 50 yuan on the manual channel."""

    def place():
        order_no = api.sell("50.00", MANUAL).data["order_no"]
        flask("order", "accept", order_no)
        return order_no

    return place


@pytest.fixture
def paid(flask):
    """`paid(order_no, reference)` marks an order as paid."""
    return lambda order_no, reference, *more: flask("order", "paid", order_no, "--reference", reference, *more).output


@pytest.fixture
def refused(refuses, rows):
    """`refused(order_no, reference)`: the text of the refusal to mark an order as paid, which changes nothing."""

    def mark(order_no, reference, *more):
        before = rows()
        told = refuses("order", "paid", order_no, "--reference", reference, *more)
        assert rows() == before
        return told

    return mark


@pytest.mark.parametrize("second", ["deposit", "withdrawal"])
@pytest.mark.parametrize("first", ["deposit", "withdrawal"])
def test_a_recorded_reference_is_refused_and_its_first_order_named(request, paid, refused, api, first, second):
    first, second = request.getfixturevalue(first)(), request.getfixturevalue(second)()
    paid(first, "BANK-1")
    told = refused(second, "BANK-1")
    assert f"BANK-1 is already recorded for order {first}" in told
    assert "--shared-reference" in told
    assert api.status(second) in ("pending", "confirmed")
    paid(second, "BANK-2")
    assert api.status(second) == "completed"


def test_blanks_around_a_reference_do_not_count(deposit, paid, refused, order_details):
    for first, second in (("BANK-1", " BANK-1"), (" BANK-2\t", "BANK-2"), ("BANK-3 ", " BANK-3 ")):
        order_no = deposit()
        paid(order_no, first)
        assert order_details(order_no)["channel_reference"] == first.strip()
        assert "already" in paid(order_no, second)
        assert order_no in refused(deposit(), second)


def test_money_of_an_exception_counts_too_also_once_it_is_resolved(deposit, paid, refused, flask):
    for number, amounts in enumerate((("99.00", "100.00"), ("100.00", "99.00"), ("99.00", "98.00"))):
        order_no = deposit()
        paid(order_no, f"BANK-{number}", "--amount", amounts[0])
        assert order_no in refused(deposit(), f"BANK-{number}", "--amount", amounts[1])
    flask("order", "settle", order_no, "--refund", "--reference", "BACK-1")
    assert order_no in refused(deposit(), f"BANK-{number}")


def test_a_shared_reference_counts_for_each_confirmed_order(deposit, paid, refused, balances):
    orders = [deposit() for _ in range(3)]
    paid(orders[0], "BANK-1")
    assert "completed" in paid(orders[1], "BANK-1", "--shared-reference")
    assert balances() == (START + 2 * 9_940, 0)
    assert orders[0] in refused(orders[2], "BANK-1")  # the first of the orders with this number
    for order_no in orders[:2]:
        assert "already" in paid(order_no, "BANK-1")
    assert balances() == (START + 2 * 9_940, 0)


def test_an_amount_is_corrected_under_a_shared_reference(deposit, paid):
    first, second = deposit(), deposit()
    paid(first, "BANK-1")
    paid(second, "BANK-1", "--shared-reference", "--amount", "99.00")
    assert "completed" in paid(second, "BANK-1")


def test_an_empty_reference_is_never_a_duplicate(deposit, paid, api):
    orders = [deposit() for _ in range(2)]
    for order_no, reference in zip(orders, ("", "  "), strict=True):
        paid(order_no, reference)
        assert api.status(order_no) == "completed"


def test_another_channel_has_numbers_of_its_own(deposit, paid, flask, flask_json, api):
    new = ("channel", "add", "--category", "gateway_b", "--driver", "manual", "--name", "Another bank")
    channel = flask_json(*new, "--config", "qr_wxpay=wxp://own-static-code")["id"]
    flask("channel", "link", channel, "demo")
    paid(deposit(), "BANK-1")
    there = deposit(channel)
    paid(there, "BANK-1")
    assert api.status(there) == "completed"


def test_of_two_simultaneous_operators_with_the_same_reference_one_is_refused(deposit, app, balances):
    orders = [deposit() for _ in range(4)]

    def mark(order_no):
        return app.test_cli_runner().invoke(args=["order", "paid", order_no, "--reference", "BANK-1"])

    results = together(*((mark, order_no) for order_no in orders))
    assert sorted(result.exit_code != 0 for result in results) == [False, True, True, True]
    assert balances() == (START + 9_940, 0)


def test_the_oldest_order_with_a_number_is_found(deposit):
    """For the channel's own reports; deposits and withdrawals, with their payment or with an exception."""
    orders = [Order.get(Order.order_no == deposit()) for _ in range(4)]
    first_with = transaction(payment_numbers.first_with)
    assert first_with(orders[3], "BANK-1") is None
    Order.update(channel_reference="BANK-1").where(Order.id == orders[2].id).execute()
    assert first_with(orders[3], "BANK-1") == orders[2]
    assert first_with(orders[2], "BANK-1") is None  # it is its own
    facts = {"order": orders[1], "channel": orders[1].channel_id, "kind": "reversed", "code": "payout_returned"}
    PaymentException.create(**facts, reference="BANK-1", createtime=1)
    assert first_with(orders[3], "BANK-1") == orders[1]
    assert first_with(orders[3], "BANK-10") is None
    assert first_with(orders[3], "") is None


# Reports of a channel


def test_a_channels_number_recorded_for_another_order_opens_an_exception(api, flask, exceptions, balances):
    first, second = (api.buy().data["order_no"] for _ in range(2))
    for order_no in (first, second, second):
        assert api.notice(order_no, 10_000, reference="R-9").text == "success"
    assert (exceptions(), balances()) == ({second: "shared_reference"}, (START + 9_940, 0))
    told = flask("order", "show", second).output
    assert f"R-9 is already recorded for order {first}" in told
    flask("order", "settle", second, "--complete", "--yes")
    assert (exceptions(), balances()) == ({}, (START + 2 * 9_940, 0))


def test_a_payout_under_a_number_of_another_order_is_not_spent_automatically(api, flask, exceptions, balances):
    first, second = (api.sell("50.00").data["order_no"] for _ in range(2))
    for order_no in (first, second):
        flask("order", "accept", order_no)
        api.notice(order_no, 5_000, reference="R-9")
    assert (exceptions(), balances()) == ({second: "payout_conflict"}, (START - 2 * 5_010, 5_010))
