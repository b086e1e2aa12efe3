"""The same money never counts twice, in whatever order it is reported, corrected and resolved."""

import pytest

from gateways.base import Report, State
from gateways.sandbox.driver import SandboxDriver

START = 1_000_000
MANUAL = 3


@pytest.fixture
def tried(app):
    """Runs a command that may be refused: only its effect matters."""
    return lambda *arguments: app.test_cli_runner().invoke(args=list(arguments))


def late(api, later):
    order_no = api.buy().data["order_no"]
    later(900)
    api.notice(order_no, 10_000)
    return order_no


def wrong(api, later):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000 - 1)
    return order_no


def twice(api, later):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000, reference="R-0")
    api.notice(order_no, 10_000)
    return order_no


@pytest.mark.parametrize("walk", [late, wrong, twice])
@pytest.mark.parametrize("settled", [False, True])
def test_unexpected_money_reported_again_changes_nothing(api, later, flask, order_details, balances, walk, settled):
    order_no = walk(api, later)
    if settled:
        flask("order", "settle", order_no, "--credit")
    details, money = order_details(order_no), balances()
    [exception] = details["exceptions"]
    for _ in range(2):
        assert api.notice(order_no, round(float(exception["amount"]) * 100)).text == "success"
    assert order_details(order_no) == details
    assert balances() == money


@pytest.mark.parametrize("walk", [late, wrong, twice])
@pytest.mark.parametrize("settled", [False, True])
def test_unexpected_money_corrected_to_another_amount_counts_as_that_unless_it_was_returned(
    api, later, flask, order_details, balances, walk, settled
):
    order_no = walk(api, later)
    before = balances()[0]
    if settled:
        flask("order", "settle", order_no, "--refund")
    api.notice(order_no, 9_500)
    details = order_details(order_no)
    [exception] = details["exceptions"]
    assert (exception["amount"] == "95.00") is not settled
    if not settled:
        assert (
            f"Exception {exception['kind']}: 95.00 under the same transaction ID, not" in details["history"][-1]["why"]
        )
        flask("order", "settle", order_no, "--credit")
        assert balances()[0] - before == 9_500 - 57
    assert api.notice(order_no, 9_400).text == "success"
    less = [] if settled else [("reversed", "1.00")]
    assert [(each["kind"], each["amount"]) for each in order_details(order_no)["exceptions"][1:]] == less


def test_a_mistyped_amount_is_corrected_by_another_confirmation(api, flask, order_details, balances):
    order_no = api.buy(channel=MANUAL).data["order_no"]
    for amount in ("90", "95"):
        said = flask("order", "paid", order_no, "--amount", amount, "--reference", "BANK-1").output
        assert "already" not in said
    assert "already" in flask("order", "paid", order_no, "--amount", "95", "--reference", "BANK-1").output
    flask("order", "settle", order_no, "--credit")
    assert balances() == (START + 9_443, 0)


def test_money_without_a_number_is_not_corrected_by_possibly_other_money(api, flask, later, balances):
    paid, expired = (api.buy(channel=MANUAL).data["order_no"] for _ in range(2))
    flask("order", "paid", paid, "--reference", "BANK-1")
    later(900)
    for order_no in (paid, expired):
        flask("order", "paid", order_no, "--amount", "20")
        before = balances()[0]
        assert "already" in flask("order", "paid", order_no).output
        flask("order", "settle", order_no, "--credit")
        assert balances()[0] - before == 2_000 - 12


def test_two_unexpected_payments_are_two_exceptions_to_be_named(api, later, flask, order_details, balances):
    order_no = api.buy().data["order_no"]
    later(900)
    for reference in ("R-1", "R-2"):
        api.notice(order_no, 10_000, reference=reference)
    first, second = [row["id"] for row in order_details(order_no)["exceptions"]]
    assert str(second) in flask("order", "settle", order_no, "--credit", fails=True).output
    assert balances() == (START, 0)
    flask("order", "settle", order_no, "--credit", "--exception", second)
    flask("order", "settle", order_no, "--credit", "--exception", second, fails=True)
    flask("order", "settle", order_no, "--refund", "--exception", first)
    assert balances() == (START + 9_940, 0)


def test_another_payment_of_the_right_amount_completes_an_order_with_a_wrong_payment(api, flask, balances, exceptions):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 5_000, reference="R-1")
    api.notice(order_no, 10_000, reference="R-2")
    assert (api.status(order_no), exceptions()) == ("completed", {order_no: "wrong_amount"})
    flask("order", "settle", order_no, "--credit")
    assert balances() == (START + 9_940 + 4_970, 0)


def test_an_amount_corrected_by_the_channel_is_not_credited_in_addition(api, tried, balances):
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 5_000)
    api.notice(order_no, 10_000)
    assert api.status(order_no) == "completed"
    tried("order", "settle", order_no, "--credit")
    assert balances() == (START + 9_940, 0)


@pytest.mark.parametrize("reference", ["", "BANK-1"])
def test_an_amount_corrected_by_the_operator_is_not_credited_in_addition(api, tried, balances, reference):
    order_no = api.buy(channel=MANUAL).data["order_no"]
    tried("order", "paid", order_no, "--amount", "99.00", "--reference", reference)
    tried("order", "paid", order_no, "--reference", reference)
    tried("order", "settle", order_no, "--credit")
    assert balances()[0] in (START + 9_940, START + 9_841)


@pytest.mark.parametrize(("how", "credited"), [("credit", 9_841), ("refund", 0)])
def test_resolved_money_does_not_complete_its_order_afterwards(api, http, tried, balances, how, credited):
    order_no = api.buy(channel=MANUAL).data["order_no"]
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    http("POST", "/addons/paychannel/pay/paid", f"order_no={order_no}".encode(), form)
    tried("order", "paid", order_no, "--amount", "99.00", "--reference", "BANK-1")
    assert tried("order", "settle", order_no, f"--{how}").exit_code == 0
    tried("order", "paid", order_no, "--reference", "BANK-1")
    assert balances() == (START + credited, 0)


def test_the_same_payout_confirmed_twice_is_spent_once(api, flask, balances, exceptions):
    order_no = api.sell("50.00", MANUAL).data["order_no"]
    flask("order", "accept", order_no)
    flask("order", "paid", order_no, "--reference", "BANK-1")
    assert "already" in flask("order", "paid", order_no, "--reference", "BANK-1").output
    assert (balances(), exceptions()) == ((START - 5_015, 0), {})


def test_a_failure_reported_after_an_unexpected_payout_is_visible_too(api, flask, later, exceptions):
    order_no = api.sell("50.00").data["order_no"]
    api.play(order_no, "wrong_amount")
    flask("order", "accept", order_no)
    later(5, times=2)
    flask("order", "settle", order_no, "--complete")
    assert exceptions() == {}
    api.notice(order_no, 5_000, state="failed", reference=f"SB{order_no}")
    assert exceptions() == {order_no: "reversed"}


def test_a_payout_confirmed_again_with_another_amount_is_a_conflict(api, flask, balances):
    order_no = api.sell("50.00", channel=MANUAL).data["order_no"]
    flask("order", "accept", order_no)
    flask("order", "paid", order_no, "--reference", "BANK-1")
    paid = balances()
    assert "already recorded" in flask("order", "paid", order_no, "--reference", "BANK-1").output
    assert "payout_conflict" in flask("order", "paid", order_no, "--reference", "BANK-1", "--amount", "40").output
    assert balances() == paid


# --- a failure that names another payment


@pytest.mark.parametrize("returned", [0, 3_000])
def test_a_failure_of_an_unrecorded_payment_closes_no_exception_about_another(
    api, later, flask, order_details, exceptions, monkeypatch, returned
):
    order_no = api.buy().data["order_no"]
    later(900)
    api.notice(order_no, 10_000, reference="R-1")
    report = Report(State.FAILED, reference="R-9", returned=returned)
    monkeypatch.setattr(SandboxDriver, "query", lambda driver, payment: report)
    flask("order", "check", order_no)
    assert exceptions() == {order_no: "late_payment"}
    flask("order", "resolve", order_no, "--credit")
    flask("order", "check", order_no)
    assert exceptions() == {}


def test_a_failure_of_an_unrecorded_payment_takes_no_confirmed_one_away(api, flask, later, balances):
    flask("channel", "set", 2, "--settlement-days", 1)
    order_no = api.buy().data["order_no"]
    api.notice(order_no, 10_000, reference="R-1")
    api.notice(order_no, 10_000, state="failed", reference="R-9")
    later(86_400)
    assert (api.status(order_no), balances()[0]) == ("completed", 1_009_940)
