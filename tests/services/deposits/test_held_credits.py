"""Every order that has not ended has a next step: a due time, an open exception, or an operator's queue."""

import pytest

DAY, START = 86_400, 1_000_000
CHANNEL, MANUAL = 2, 3


@pytest.fixture
def delayed(api, flask):
    """`delayed(days)`: the number of a deposit of 100 yuan that was paid and is credited days later."""

    def place(days=2):
        flask("channel", "set", CHANNEL, "--settlement-days", days)
        order_no = api.buy().data["order_no"]
        assert api.notice(order_no, 10_000, reference="R-1").status == 200
        assert api.status(order_no) == "confirmed"
        return order_no

    return place


@pytest.fixture
def correct(api):
    """`correct(order_no, fen)`: the channel reports another amount for the same payment."""
    return lambda order_no, fen: api.notice(order_no, fen, reference="R-1")


# --- deposits with a settlement delay


@pytest.mark.parametrize(("how", "more"), [("credit", 1_988), ("refund", 0)])
def test_a_corrected_deposit_is_credited_at_its_settlement_time_after_the_decision(
    delayed, correct, api, flask, later, balances, how, more
):
    order_no = delayed(2)
    correct(order_no, 12_000)
    flask("order", "resolve", order_no, f"--{how}")
    later(2 * DAY - 60)
    assert (api.status(order_no), balances()[0] - START) == ("confirmed", more)
    later(60)
    assert (api.status(order_no), balances()[0] - START) == ("completed", more + 9_940)


def test_a_decision_after_the_settlement_time_credits_it_at_once(delayed, correct, api, flask, later, balances):
    order_no = delayed(1)
    correct(order_no, 12_000)
    later(DAY, 3)
    assert (api.status(order_no), balances()[0]) == ("confirmed", START)
    flask("order", "resolve", order_no, "--refund")
    later(0)
    assert (api.status(order_no), balances()[0]) == ("completed", START + 9_940)


@pytest.mark.parametrize("passed", [60, 2 * DAY])
def test_a_correction_that_the_channel_takes_back_delays_nothing_further(
    delayed, correct, api, later, exceptions, balances, passed
):
    order_no = delayed(1)
    correct(order_no, 12_000)
    later(passed)
    assert exceptions() == {order_no: "amount_corrected"}
    correct(order_no, 10_000)
    assert exceptions() == {}
    later(DAY)
    assert (api.status(order_no), balances()[0]) == ("completed", START + 9_940)


def test_two_exceptions_about_one_deposit_hold_it_until_the_second_is_resolved(
    delayed, correct, api, flask, later, order_details, balances
):
    order_no = delayed(1)
    correct(order_no, 12_000)
    api.notice(order_no, 5_000, reference="R-2")
    corrected, twice = [each["id"] for each in order_details(order_no)["exceptions"]]
    flask("order", "resolve", order_no, "--refund", "--exception", twice)
    later(DAY)
    assert api.status(order_no) == "confirmed"
    flask("order", "resolve", order_no, "--refund", "--exception", corrected)
    later(0)
    assert (api.status(order_no), balances()[0]) == ("completed", START + 9_940)


def test_a_second_payment_holds_no_credit(delayed, api, later, balances):
    order_no = delayed(1)
    api.notice(order_no, 5_000, reference="R-2")
    later(DAY)
    assert (api.status(order_no), balances()[0]) == ("completed", START + 9_940)


# --- deposits that wait for their money


def test_a_pending_deposit_with_two_wrong_payments_waits_until_the_last_is_gone(
    api, monkeypatch, flask, later, exceptions
):
    order_no = api.buy().data["order_no"]
    for reference, fen in (("R-1", 7_000), ("R-2", 6_000)):
        api.notice(order_no, fen, reference=reference)
    later(1_000)
    assert (api.status(order_no), exceptions()) == ("pending", {order_no: "wrong_amount,wrong_amount"})
