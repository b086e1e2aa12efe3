"""`tillbook refund`: refunds of deposits on a manual channel, from the request to the operator's transfer."""

import pytest

from models.tables.operator import AuditEntry
from services.security import second_operator

MANUAL = 3
FEE = 60  # fen that the merchant `demo` pays on a deposit of 100 yuan


@pytest.fixture
def paid(flask, deposit):
    """The number of a completed deposit of 100 yuan on the manual channel."""
    flask("order", "paid", deposit, "--reference", "BANK-1")
    return deposit


@pytest.fixture
def refund(flask_json, paid):
    """`refund("40.00", ...)`: the number of a new refund of the deposit."""

    def create(*arguments):
        return flask_json("refund", "create", paid, *arguments)["refund_no"]

    return create


def test_a_part_is_refunded_by_an_operator_once(flask, flask_json, refuses, refund, paid, balances, due):
    before = balances()[0]
    number = refund("40.00", "--reason", "broken")
    assert balances() == (before - 4_000, 4_000)
    due.orders()
    assert flask("refund", "check", number, fails=True).output.endswith("it has no status checks.\n")
    assert "completed" in flask("refund", "paid", number, "--reference", "BANK-7").output
    assert "Only an approved refund" in refuses("refund", "paid", number)
    assert balances() == (before - 4_000, 0)
    told = flask_json("refund", "show", number)
    assert (told["status"], told["cny_amount"], told["channel_reference"]) == ("completed", "40.00", "BANK-7")
    assert [step["code"] for step in told["history"]] == ["refund_requested", "refund_by_hand", "refund_marked"]
    assert "BANK-7" in flask("refund", "show", number).output
    (listed,) = flask_json("order", "show", paid)["refunds"]
    assert (listed["refund_no"], listed["status"], listed["requested_by"]) == (number, "completed", "operator")


def test_all_that_is_left_is_refunded_after_a_confirmation(flask, flask_json, refund, paid, balances):
    refund("40.00")
    declined = flask("refund", "create", paid, typed="n\n", fails=True)
    assert "refund 60.00: the merchant pays 60.00 and gets a fee of 0.00 back" in declined.output
    assert flask_json("refund", "create", paid, "--yes")["cny_amount"] == "60.00"
    assert "can be refunded: 0.00" in flask("refund", "create", paid, "0.01", fails=True).output


def test_the_same_amount_within_ten_minutes_is_confirmed(refund, refuses, paid, ahead):
    refund("10.00")
    assert "within the last ten minutes" in refuses("refund", "create", paid, "10.00")
    refund("10.00", "--again")
    ahead(601)
    refund("10.00")


def test_the_platform_pays_although_the_balance_does_not_cover_it(flask, refuses, paid, balances, refund, due):
    balance = balances()[0]
    flask("ledger", "adjust", "demo", f"-{balance / 100:.2f}", "--reason", "paid out")
    assert "does not cover" in refuses("refund", "create", paid, "50.00")
    number = refund("50.00", "--platform")
    due.orders()
    flask("refund", "paid", number, "--reference", "BANK-7")
    assert balances() == (0, 0)


def test_a_rejection_returns_the_reserve_and_an_approval_of_another_is_refused(
    flask, flask_json, refuses, refund, balances
):
    before = balances()
    number = refund("40.00")
    assert "Only a refund that needs review" in refuses("refund", "approve", number)
    assert "cancelled" in flask("refund", "reject", number, "--reason", "not agreed").output
    assert balances() == before
    assert "not agreed" in flask("refund", "show", number).output
    assert "can no longer be rejected" in refuses("refund", "reject", number, "--reason", "again")


def test_the_list_is_filtered(flask, flask_json, refund, paid, due):
    first = refund("10.00")
    due.orders()
    flask("refund", "paid", first, "--reference", "BANK-7")
    second = refund("20.00")
    for filters, found in {
        (): [second, first],
        ("--status", "completed"): [first],
        ("--state", "refunded"): [first],
        ("--state", "under_way"): [second],
        ("--order", paid): [second, first],
        ("--order", "1"): [],
        ("--merchant", "other"): [],
    }.items():
        assert [row["refund_no"] for row in flask_json("refund", "list", *filters)] == found, filters


class TestWithASecondOperator:
    @pytest.fixture
    def settings_of_app(self):
        return {"second_operator_above": 5_000}

    def test_the_command_line_needs_none_and_that_is_recorded(self, refund, flask_json):
        small = refund("20.00")
        assert not AuditEntry.select().where(AuditEntry.detail == second_operator.ALONE).exists()
        refund("40.00")  # with the other one, above the limit
        entry = AuditEntry.get(AuditEntry.detail == second_operator.ALONE)
        assert (entry.who, entry.action, entry.about) == ("command line", "refund", "order")
        assert {row["approved_by"] for row in flask_json("refund", "list")} == {"operator"}
        assert flask_json("refund", "show", small)["status"] == "pending"
