"""`tillbook ledger`: balances and manual adjustments. tests/services/ledger/test_integrity.py has the check."""

from contextlib import suppress

import pytest
from peewee import OperationalError, PostgresqlDatabase

from models.tables.ledger import Posting
from tests.support import completed

START = 1_000_000


def test_balances_are_fen_by_merchant_and_the_table_has_yuan_and_the_operators_own_accounts(flask, flask_json, api):
    completed(api)
    api.sell("50.00")
    held = {"available": START + 9_940 - 5_010, "held": 5_010}
    assert flask_json("ledger", "balances") == {"demo": held, "other": {"available": 0, "held": 0}}
    lines = [line.split() for line in flask("ledger", "balances").output.splitlines()]
    for line in (
        *(["demo", "10,049.30", "50.10"], ["fee", "income", "0.60"], ["channel", "cost", "0.00"]),
        ["receivable", "from", "channel", "2", "100.00"],
    ):
        assert line in lines


@pytest.mark.parametrize(
    ("amount", "fen"), [("12.50", 1_250), ("-12.5", -1_250), ("-10000", -START), ("0.01", 1), ("1e2", 10_000)]
)
def test_an_adjustment_credits_or_deducts_and_has_a_reason(flask, balances, amount, fen):
    said = flask("ledger", "adjust", "demo", amount, "--reason", "bank fee 退回").output
    assert balances() == (START + fen, 0)
    assert f"available balance of demo: {balances()[0] / 100:,.2f}" in said
    newest = Posting.select().order_by(Posting.id.desc()).get()
    assert (newest.purpose, newest.who, newest.memo) == ("adjustment", "operator", "bank fee 退回")


@pytest.mark.parametrize(
    ("amount", "through", "line"),
    [
        ("12.50", (), "fee income -12.50"),
        ("12.50", ("--channel", "3"), "receivable from channel 3 12.50"),
        ("-12.50", ("--channel", "3"), "payable to channel 3 12.50"),
    ],
)
def test_the_other_side_of_an_adjustment_is_the_channel_or_the_operator(flask, amount, through, line):
    flask("ledger", "adjust", "demo", amount, "--reason", "test", *through)
    assert line in [" ".join(each.split()) for each in flask("ledger", "balances").output.splitlines()]


def test_an_invalid_adjustment_moves_nothing(refuses, nothing_changes):
    for arguments, words in (
        (("demo", "0"), "AMOUNT"),
        (("demo", "1.005"), "decimals"),
        (("demo", "NaN"), "AMOUNT"),
        (("demo", "much"), "AMOUNT"),
        (("demo", "--5"), "AMOUNT"),
        (("demo", "1e30"), "AMOUNT"),
        (("demo", "-10000.01"), "is too low"),
        (("nobody", "5"), "no merchant nobody"),
        (("demo", "5", "--channel", "99"), "no channel 99"),
        (("demo", "5", "--channel", "0"), "0 is not in the range"),
        (("demo", "5", "--channel", "99999999999999999999"), "channel"),
        (("demo", "5", "--nope", "1"), ""),
    ):
        assert words in refuses("ledger", "adjust", *arguments, "--reason", "test"), arguments
    for reason in (("--reason", " "), ("--reason", ""), ()):
        assert "reason" in refuses("ledger", "adjust", "demo", "5", *reason)


def test_a_repeated_adjustment_needs_a_confirmation_for_ten_minutes(flask, refuses, balances, ahead):
    same = ("ledger", "adjust", "demo", "1.00", "--reason", "rent")
    flask(*same)
    assert "--again" in refuses(*same)
    assert balances() == (START + 100, 0)
    flask(*same, "--again")
    flask("ledger", "adjust", "demo", "1.01", "--reason", "rent")
    flask("ledger", "adjust", "demo", "1.00", "--reason", "another")
    flask("ledger", "adjust", "other", "1.00", "--reason", "rent")
    assert (balances(), balances("other")) == ((START + 401, 0), (100, 0))
    ahead(601)
    flask(*same)
    assert balances() == (START + 501, 0)


@pytest.fixture
def lost_commits(monkeypatch):
    """`lost_commits(stored)`: the server stores the next transaction, or not, and then closes the connection."""
    commit = PostgresqlDatabase.commit

    def lose(stored):
        def lost(self):
            monkeypatch.undo()
            if stored:
                commit(self)
            with suppress(OperationalError):
                self.execute_sql("SELECT pg_terminate_backend(pg_backend_pid())")
            commit(self)

        monkeypatch.setattr(PostgresqlDatabase, "commit", lost)

    return lose


@pytest.mark.usefixtures("postgres_url")
@pytest.mark.parametrize("stored", [True, False])
def test_an_adjustment_whose_commit_was_lost_counts_once_when_it_is_repeated(
    flask, refuses, balances, lost_commits, stored
):
    same = ("ledger", "adjust", "demo", "1.00", "--reason", "rent")
    lost_commits(stored)
    said = refuses(*same)
    assert "the command may have taken effect" in said
    assert "tillbook ledger balances" in said
    assert balances() == (START + 100 * stored, 0)
    flask(*same, fails=stored)
    assert balances() == (START + 100, 0)


@pytest.mark.usefixtures("postgres_url")
def test_other_commands_also_report_a_lost_commit(api, refuses, flask, lost_commits):
    order_no = api.sell("50.00").data["order_no"]
    lost_commits(True)
    assert "the command may have taken effect" in refuses("order", "accept", order_no)
    assert "needs review" in refuses("order", "accept", order_no)


def test_a_recorded_balance_is_compared_with_the_books(flask, flask_json, api):
    completed(api)
    assert "difference: 900.00, unexplained: 900.00" in flask("ledger", "record-balance", 2, "1000").output
    rows = {row["channel"]: row for row in flask_json("ledger", "account-balances")}
    found = rows[2]
    parts = ("booked", "uncredited", "questioned", "under_way", "expected", "uncounted")
    assert [found[name] for name in parts] == [10_000, 0, 0, 0, 10_000, 0]
    figure = ("source", "balance", "difference", "unexplained")
    assert [found[name] for name in figure] == ["operator", 100_000, 90_000, 90_000]
    assert found["since"] == found["day"]
    assert [rows[3][name] for name in (*figure, "since")] == [None] * 5
    said = flask("ledger", "record-balance", 2, "1000", "--note", "opening balance").output
    assert "difference: 900.00, unexplained: 0.00" in said
    assert "1,000.00" in flask("ledger", "account-balances").output


def test_a_balance_can_be_zero_or_negative_and_of_an_earlier_day(flask, flask_json):
    for amount in ("0", "-3.20"):
        flask("ledger", "record-balance", 2, amount, "--day", "2026-05-01")
    found = next(row for row in flask_json("ledger", "account-balances") if row["channel"] == 2)
    assert (found["day"], found["balance"]) == ("2026-05-01", -320)


def test_an_invalid_balance_is_not_recorded(refuses, flask_json):
    for arguments, words in (
        ((2, "1.005"), "decimals"),
        ((2, "1e5"), "decimal number"),
        ((2, "5", "--day", "20260501"), "such as 2026-05-01"),
        ((2, "5", "--day", "1999-12-31"), "such as 2026-05-01"),
        ((99, "5"), "no channel 99"),
        ((2, "5", "--day", "2999-01-01"), "in the future"),
        ((2, "5", "--day", "May"), "such as 2026-05-01"),
    ):
        assert words in refuses("ledger", "record-balance", *arguments), arguments
    assert {row["balance"] for row in flask_json("ledger", "account-balances")} == {None}
