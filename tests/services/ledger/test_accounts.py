"""The ledger: append-only in the database itself, one posting per purpose, and a check that finds inconsistencies."""

import json
from contextlib import suppress

import pytest
from peewee import IntegrityError, OperationalError, PostgresqlDatabase

from models.db.base import database
from models.tables.order import Order
from services.ledger import accounts
from tests.databases import ERRORS, raw, unguarded

START = 1_000_000


@pytest.fixture
def books(instance):
    """The database as an outsider would open it: no peewee, no foreign keys."""
    with raw(instance) as connection:
        yield connection


@pytest.fixture
def orders(api, flask, later):
    """One order of each kind that moves money, by name."""
    names = ("credited", "unpaid", "spent", "returned", "held")
    made = {name: (api.sell if n > 1 else api.buy)("50.00").data["order_no"] for n, name in enumerate(names)}
    api.play(made["credited"], "success")
    flask("order", "accept", made["spent"])
    flask("order", "reject", made["returned"], "--reason", "no")
    later(5, times=2)
    assert api.status(made["spent"]) == "completed"
    return made


def test_the_balances_are_by_merchant_in_fen(api, flask_json):
    api.sell("50.00")
    assert flask_json("ledger", "balances") == {
        "demo": {"available": START - 5_010, "held": 5_010},
        "other": {"available": 0, "held": 0},
    }


@pytest.mark.parametrize("table", ["posting", "entry", "history"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {table} SET id = id + 1000000",
        "UPDATE {table} SET {column} = '7'",
        "DELETE FROM {table}",
        pytest.param("UPDATE OR REPLACE {table} SET {column} = 7", marks=pytest.mark.sqlite),
        pytest.param("REPLACE INTO {table} SELECT * FROM {table} LIMIT 1", marks=pytest.mark.sqlite),
    ],
)
def test_the_database_itself_refuses_to_change_entries(api, books, table, statement):
    api.sell("50.00")
    column = {"posting": "memo", "entry": "amount", "history": "who"}[table]
    before = books.execute(f"SELECT * FROM {table}").fetchall()
    with pytest.raises(ERRORS, match="append-only"):
        books.execute(statement.format(table=table, column=column))
    assert books.execute(f"SELECT * FROM {table}").fetchall() == before


@pytest.mark.sqlite
def test_the_database_itself_refuses_a_second_entry_of_the_same_number(api, books):
    api.sell("50.00")
    before = books.execute("SELECT * FROM entry").fetchall()
    columns = "posting_id, account_id, amount, number, hash"
    with pytest.raises(ERRORS, match="append-only"):
        books.execute(f"REPLACE INTO entry ({columns}) SELECT {columns} FROM entry LIMIT 1")
    assert books.execute("SELECT * FROM entry").fetchall() == before


def test_the_database_itself_refuses_a_second_posting_of_the_same_purpose(orders, books):
    copy = "SELECT order_id, purpose, 'x', '', 0 FROM posting WHERE purpose = 'credit'"
    with pytest.raises(ERRORS):
        books.execute(f"INSERT INTO posting (order_id, purpose, who, memo, createtime) {copy}")


@pytest.mark.parametrize("kind", ["available", "held"])
def test_the_database_itself_refuses_a_negative_balance(app, books, kind):
    with pytest.raises(ERRORS):
        books.execute("UPDATE ledger_account SET balance = -1 WHERE kind = ?", (kind,))


def test_a_second_posting_of_the_same_purpose_moves_nothing(orders, balances):
    order, before = Order.get(Order.order_no == orders["credited"]), balances()
    with pytest.raises(IntegrityError), database.atomic():
        accounts.post("credit", {("available", 1): 100, ("clearing", 2): -100}, who="operator", order=order)
    assert balances() == before


def test_a_posting_that_does_not_sum_to_zero_is_never_written(app, balances):
    with pytest.raises(ValueError, match="sum to zero"), database.atomic():
        accounts.post("gift", {("available", 1): 100}, who="operator")
    assert balances() == (START, 0)


def test_a_consistent_ledger_passes_the_check(orders, flask, flask_json):
    assert "FAILED" not in flask("ledger", "verify").output
    assert set(map(tuple, flask_json("ledger", "verify").values())) == {()}


ONLY = "(SELECT id FROM posting WHERE purpose = '{0}' ORDER BY id DESC LIMIT 1)"
CREDIT, HOLD, ADJUSTMENT = (ONLY.format(purpose) for purpose in ("credit", "hold", "adjustment"))
STATUS = "UPDATE \"order\" SET status = '{}' WHERE order_no = :{}"
DAMAGE = {
    "an entry changed": f"UPDATE entry SET amount = amount + 1 WHERE posting_id = {CREDIT} AND amount > 0",
    "an entry gone": f"DELETE FROM entry WHERE posting_id = {CREDIT} AND amount > 0",
    "an entry moved": f"UPDATE entry SET account_id = (SELECT id FROM ledger_account WHERE kind = 'fees') "
    f"WHERE posting_id = {HOLD} AND amount > 0",
    "an entry added": "INSERT INTO entry (posting_id, account_id, amount, number, hash) "
    f"VALUES ({CREDIT}, 1, 1, 99, '')",
    "a posting gone, its entries left": f"DELETE FROM posting WHERE id = {ADJUSTMENT}",
    "a balance changed": "UPDATE ledger_account SET balance = balance + 1 WHERE kind = 'available' AND owner = 1",
    "an operator's balance changed": "UPDATE ledger_account SET balance = balance - 1 WHERE kind = 'fees'",
    "a channel's balance changed": "UPDATE ledger_account SET balance = 0 WHERE kind = 'clearing' AND owner = 2",
    "a balance below zero": "UPDATE ledger_account SET balance = -1 WHERE kind = 'available' AND owner = 2",
    "a hold changed": "UPDATE ledger_account SET balance = balance + 1 WHERE kind = 'held' AND owner = 1",
    "an account gone": "DELETE FROM ledger_account WHERE kind = 'clearing' AND owner = 2",
    "completed, not credited": STATUS.format("completed", "unpaid"),
    "credited, not completed": STATUS.format("confirmed", "credited"),
    "credited, cancelled": STATUS.format("cancelled", "credited"),
    "spent, not completed": STATUS.format("paid", "spent"),
    "completed, not spent": STATUS.format("completed", "held"),
    "cancelled, not returned": STATUS.format("cancelled", "held"),
    "returned, not cancelled": STATUS.format("pending", "returned"),
    "an open withdrawal's amount changed": 'UPDATE "order" SET merchant_actual_amount = 1 WHERE order_no = :held',
}


@pytest.mark.breaks_the_ledger
@pytest.mark.parametrize("damage", DAMAGE)
def test_the_check_finds_each_kind_of_damage(orders, instance, flask, damage):
    statement = DAMAGE[damage]
    used = {name: number for name, number in orders.items() if f":{name}" in statement}
    with unguarded(instance) as books:
        assert books.execute(statement, used).rowcount >= 1
    assert "FAILED" in flask("ledger", "verify", fails=True).output
    found = flask("ledger", "verify", "--json", fails=True)
    assert found.exit_code == 1
    assert any(json.loads(found.stdout).values())


# Manual adjustments


@pytest.mark.parametrize(("amount", "after"), [("12.34", START + 1_234), ("-12.34", START - 1_234), ("-10000.00", 0)])
@pytest.mark.parametrize("channel", [(), ("--channel", 2)])
def test_an_adjustment_moves_the_available_balance_and_has_a_reason(flask, books, balances, amount, after, channel):
    flask("ledger", "adjust", "demo", amount, "--reason", "bank fee returned", *channel)
    assert balances() == (after, 0)
    assert books.execute("SELECT who, memo FROM posting ORDER BY id DESC").fetchone() == (
        "operator",
        "bank fee returned",
    )
    flask("ledger", "verify")


@pytest.mark.parametrize(
    "arguments",
    [
        ("demo", "0", "--reason", "x"),
        ("demo", "1.005", "--reason", "x"),
        ("demo", "much", "--reason", "x"),
        ("demo", "1.00"),
        ("demo", "1.00", "--reason", "  "),
        ("nobody", "1.00", "--reason", "x"),
        ("demo", "-10000.01", "--reason", "x"),
        ("demo", "1.00", "--reason", "x", "--channel", "99"),
    ],
)
def test_an_impossible_adjustment_is_refused_with_a_line(flask, balances, arguments):
    refused = flask("ledger", "adjust", *arguments, fails=True)
    assert isinstance(refused.exception, SystemExit)
    assert "rror" in refused.output
    assert balances() == (START, 0)


def test_a_repeated_adjustment_is_refused_unless_it_is_confirmed(flask, refuses, balances):
    same = ("ledger", "adjust", "demo", "1.00", "--reason", "again")
    flask(*same)
    assert "--again" in refuses(*same)
    assert balances() == (START + 100, 0)
    flask(*same, "--again")
    assert balances() == (START + 200, 0)


@pytest.mark.parametrize(
    ("key", "amount", "reason"), [("demo", "1.01", "again"), ("demo", "1.00", "another"), ("other", "1.00", "again")]
)
def test_another_adjustment_needs_no_confirmation(flask, flask_json, key, amount, reason):
    flask("ledger", "adjust", "demo", "1.00", "--reason", "again")
    flask("ledger", "adjust", key, amount, "--reason", reason)
    assert sum(row["available"] for row in flask_json("ledger", "balances").values()) > START + 199


def test_the_same_adjustment_needs_no_confirmation_after_ten_minutes(flask, ahead, balances):
    for _ in range(2):
        flask("ledger", "adjust", "demo", "1.00", "--reason", "rent")
        ahead(601)
    assert balances() == (START + 200, 0)


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
