"""Exceptions about an order's money: visible, and resolved once, by one clear decision of an operator."""

import pytest


def test_a_wrong_amount_credits_nothing_and_is_listed_for_an_operator(flask, flask_json, deposit, balances):
    assert "wrong_amount" in flask("order", "paid", deposit, "--amount", "40").output
    assert balances() == (1_000_000, 0)
    (row,) = flask_json("order", "list", "--exceptions")
    assert (row["order_no"], row["status"], row["exceptions"]) == (deposit, "pending", "wrong_amount")


@pytest.mark.parametrize(("how", "credited"), [("--credit", 4_000 - 24), ("--refund", 0)])
def test_an_exception_is_resolved_with_one_action(flask, flask_json, refuses, deposit, balances, how, credited):
    flask("order", "paid", deposit, "--amount", "40")
    flask("order", "settle", deposit, how)
    assert balances() == (1_000_000 + credited, 0)
    assert flask_json("order", "list", "--exceptions") == []
    assert flask_json("order", "show", deposit)["status"] == "cancelled"
    assert "no such open exception" in refuses("order", "settle", deposit, how)
    assert balances() == (1_000_000 + credited, 0)


def test_one_of_several_exceptions_is_named(flask, flask_json, refuses, deposit, balances, open_exceptions):
    for amount, reference in (("40", "BANK-1"), ("60", "BANK-2")):
        flask("order", "paid", deposit, "--amount", amount, "--reference", reference)
    assert "choose one with --exception" in refuses("order", "settle", deposit, "--refund")
    second = flask_json("order", "show", deposit)["exceptions"][1]["id"]
    flask("order", "settle", deposit, "--credit", "--exception", second)
    assert open_exceptions(deposit) == [("wrong_amount", "40.00")]
    assert balances() == (1_000_000 + 6_000 - 36, 0)


def test_money_received_after_a_refund_is_late(flask, deposit, open_exceptions):
    flask("order", "paid", deposit, "--amount", "40", "--reference", "BANK-1")
    flask("order", "settle", deposit, "--refund")
    flask("order", "paid", deposit)
    assert open_exceptions(deposit) == [("late_payment", "100.00")]


@pytest.mark.parametrize(
    ("settled", "then", "kind"), [(True, [], "late_payment"), (False, ["--amount", "60"], "wrong_amount")]
)
def test_a_second_payment_without_a_reference_must_be_named(
    flask, refuses, deposit, open_exceptions, settled, then, kind
):
    flask("order", "paid", deposit, "--amount", "40")
    if settled:
        flask("order", "settle", deposit, "--refund")
    before = open_exceptions(deposit)
    assert "--reference" in refuses("order", "paid", deposit, *then)
    flask("order", "paid", deposit, *then, "--reference", "BANK-2")
    assert [name for name, _ in open_exceptions(deposit)] == [name for name, _ in before] + [kind]


def test_a_payout_of_a_wrong_amount_is_completed_or_cancelled_by_the_operator(flask, withdrawal, balances, api):
    flask("order", "accept", withdrawal)
    assert "payout_conflict" in flask("order", "paid", withdrawal, "--amount", "49").output
    assert balances() == (1_000_000 - 5_015, 5_015)
    flask("order", "settle", withdrawal, "--cancel")
    assert (api.status(withdrawal), balances()) == ("cancelled", (1_000_000, 0))


@pytest.mark.parametrize("amount", ["-5", "-0.01", "1.005", "abc", "1e99"])
def test_an_impossible_amount_changes_nothing(refuses, flask_json, deposit, amount):
    before = flask_json("order", "show", deposit)
    assert "--amount" in refuses("order", "paid", deposit, "--amount", amount)
    assert flask_json("order", "show", deposit) == before


@pytest.mark.parametrize(
    "how", [(), ("--credit", "--refund"), ("--complete",), ("--cancel",), ("--credit", "--exception", "99")]
)
def test_an_unclear_or_impossible_resolution_changes_nothing(flask, refuses, deposit, balances, open_exceptions, how):
    flask("order", "paid", deposit, "--amount", "40")
    refuses("order", "settle", deposit, *how)
    assert open_exceptions(deposit) == [("wrong_amount", "40.00")]
    assert balances() == (1_000_000, 0)
