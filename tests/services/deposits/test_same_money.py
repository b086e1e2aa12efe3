"""The same money never counts twice, in whatever order it is reported, corrected and resolved."""

import pytest

from gateways.base import Report, State
from gateways.sandbox.driver import SandboxDriver
from tests.services.walks import MANUAL, SANDBOX, buy_claimed

START = 1_000_000
PAID = (START + 9_940, 0)


@pytest.fixture
def tried(app):
    """Runs a command that may be refused: only its effect matters."""
    return lambda *arguments: app.test_cli_runner().invoke(args=list(arguments))


@pytest.fixture
def expired(api, later):
    """`expired()`: the number of a deposit that was cancelled unpaid."""

    def place(channel=SANDBOX):
        order_no = api.buy(channel=channel).data["order_no"]
        later(900)
        return order_no

    return place


@pytest.fixture(params=["late", "wrong", "twice"])
def unexpected(request, api, expired):
    """The number of a deposit with unexpected money under the transaction ID R-1, and its amount."""
    if request.param == "late":
        order_no, fen = expired(), 10_000
    else:
        order_no = api.buy().data["order_no"]
        fen = 9_999 if request.param == "wrong" else 10_000
    if request.param == "twice":
        api.notice(order_no, 10_000, reference="R-0")
    api.notice(order_no, fen)
    return order_no, fen


# --- under one transaction ID


@pytest.mark.parametrize("settled", [False, True])
def test_unexpected_money_reported_again_changes_nothing(unexpected, api, flask, order_details, balances, settled):
    order_no, fen = unexpected
    if settled:
        flask("order", "settle", order_no, "--credit")
    details, money = order_details(order_no), balances()
    for _ in range(2):
        assert api.notice(order_no, fen).text == "success"
    assert (order_details(order_no), balances()) == (details, money)


def test_unexpected_money_corrected_to_another_amount_counts_as_that(
    unexpected, api, flask, order_details, about, balances
):
    order_no, _ = unexpected
    before = balances()[0]
    api.notice(order_no, 9_500)
    details = order_details(order_no)
    [exception] = details["exceptions"]
    assert exception["amount"] == "95.00"
    why = f"Exception {exception['kind']}: 95.00 under the same transaction ID, not"
    assert why in details["history"][-1]["why"]
    flask("order", "settle", order_no, "--credit")
    assert balances()[0] - before == 9_500 - 57
    api.notice(order_no, 9_400)
    assert about(order_no)[1:] == [("reversed", "1.00", None)]


def test_unexpected_money_that_was_returned_is_not_corrected_to_less(unexpected, api, flask, about):
    order_no, _ = unexpected
    flask("order", "settle", order_no, "--refund")
    before = about(order_no)
    for fen in (9_500, 9_400):
        assert api.notice(order_no, fen).text == "success"
    assert about(order_no) == before


def test_an_amount_corrected_by_the_channel_is_not_credited_in_addition(api, tried, balances):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 5_000)
    api.notice(order_no, 10_000)
    assert api.status(order_no) == "completed"
    tried("order", "settle", order_no, "--credit")
    assert balances() == PAID


@pytest.mark.parametrize("reference", ["", "BANK-1"])
def test_an_amount_corrected_by_the_operator_is_not_credited_in_addition(api, tried, balances, reference):
    order_no = api.buy(channel=MANUAL).data["order_no"]
    tried("order", "paid", order_no, "--amount", "99.00", "--reference", reference)
    tried("order", "paid", order_no, "--reference", reference)
    tried("order", "settle", order_no, "--credit")
    assert balances()[0] in (START + 9_940, START + 9_841)


def test_a_mistyped_amount_is_corrected_by_another_confirmation(api, flask, balances):
    order_no = api.buy(channel=MANUAL).data["order_no"]
    for amount, is_known in (("90", False), ("95", False), ("95", True)):
        said = flask("order", "paid", order_no, "--amount", amount, "--reference", "BANK-1").output
        assert ("already" in said) is is_known
    flask("order", "settle", order_no, "--credit")
    assert balances() == (START + 9_443, 0)


SENT_BACK = ("--refund", "--reference", "BACK-1")


@pytest.mark.parametrize(("how", "credited"), [(("--credit",), 9_841), (SENT_BACK, 0)])
def test_resolved_money_does_not_complete_its_order_afterwards(world, tried, balances, how, credited):
    order_no = buy_claimed(world)
    tried("order", "paid", order_no, "--amount", "99.00", "--reference", "BANK-1")
    assert tried("order", "settle", order_no, *how).exit_code == 0
    tried("order", "paid", order_no, "--reference", "BANK-1")
    assert balances() == (START + credited, 0)


# --- under several, or none


def test_money_without_a_number_is_not_corrected_by_possibly_other_money(api, expired, flask, refuses, balances):
    paid = api.buy(channel=MANUAL).data["order_no"]
    flask("order", "paid", paid, "--reference", "BANK-1")
    for order_no in (paid, expired(MANUAL)):
        flask("order", "paid", order_no, "--amount", "20")
        before = balances()[0]
        assert "already" in flask("order", "paid", order_no, "--amount", "20").output
        assert "Enter a transaction ID for this one" in refuses("order", "paid", order_no)
        flask("order", "settle", order_no, "--credit")
        assert balances()[0] - before == 2_000 - 12


def test_two_unexpected_payments_are_two_exceptions_to_be_named(api, expired, flask, order_details, balances):
    order_no = expired()
    for reference in ("R-1", "R-2"):
        api.notice(order_no, 10_000, reference=reference)
    first, second = [row["id"] for row in order_details(order_no)["exceptions"]]
    assert str(second) in flask("order", "settle", order_no, "--credit", fails=True).output
    assert balances() == (START, 0)
    flask("order", "settle", order_no, "--credit", "--exception", second)
    flask("order", "settle", order_no, "--credit", "--exception", second, fails=True)
    flask("order", "settle", order_no, "--refund", "--exception", first)
    assert balances() == PAID


def test_another_payment_of_the_right_amount_completes_an_order_with_a_wrong_payment(api, flask, balances, exceptions):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 5_000, reference="R-1")
    api.notice(order_no, 10_000, reference="R-2")
    assert (api.status(order_no), exceptions()) == ("completed", {order_no: "wrong_amount"})
    flask("order", "settle", order_no, "--credit")
    assert balances() == (START + 9_940 + 4_970, 0)


@pytest.mark.parametrize("returned", [0, 3_000])
def test_a_failure_of_an_unrecorded_payment_closes_no_exception_about_another(
    api, expired, flask, exceptions, monkeypatch, returned
):
    order_no = expired()
    api.notice(order_no, 10_000, reference="R-1")
    report = Report(State.FAILED, reference="R-9", returned=returned)
    monkeypatch.setattr(SandboxDriver, "query", lambda driver, payment: report)
    flask("order", "check", order_no)
    assert exceptions() == {order_no: "late_payment"}
    flask("order", "resolve", order_no, "--credit")
    flask("order", "check", order_no)
    assert exceptions() == {}


def test_a_failure_of_an_unrecorded_payment_takes_no_confirmed_one_away(api, flask, later, now):
    flask("channel", "set", SANDBOX, "--settlement-days", 1)
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000, reference="R-1")
    api.notice(order_no, 10_000, state="failed", reference="R-9")
    later(86_400)
    assert now(order_no) == ("completed", PAID, {})
