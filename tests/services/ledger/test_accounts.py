"""The ledger: append-only in the database itself, and one posting per purpose."""

import pytest
from peewee import IntegrityError

from models.db.base import database
from models.tables.order import Order
from services.ledger import accounts
from tests.databases import ERRORS, raw
from tests.support import completed


@pytest.fixture
def books(instance):
    """The database as an outsider would open it: no peewee, no foreign keys."""
    with raw(instance) as connection:
        yield connection


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


@pytest.mark.parametrize("kind", ["available", "held"])
def test_the_database_itself_refuses_a_negative_balance(app, books, kind):
    with pytest.raises(ERRORS):
        books.execute("UPDATE ledger_account SET balance = -1 WHERE kind = ?", (kind,))


def test_a_second_posting_of_the_same_purpose_is_refused_by_the_database_and_moves_nothing(api, books, balances):
    order, before = Order.get(Order.order_no == completed(api)), balances()
    copy = "SELECT order_id, purpose, 'x', '', 0 FROM posting WHERE purpose = 'credit'"
    with pytest.raises(ERRORS):
        books.execute(f"INSERT INTO posting (order_id, purpose, who, memo, createtime) {copy}")
    with pytest.raises(IntegrityError), database.atomic():
        accounts.post("credit", {("available", 1): 100, ("clearing", 2): -100}, who="operator", order=order)
    assert balances() == before


def test_a_posting_that_does_not_sum_to_zero_is_never_written(app, balances):
    with pytest.raises(ValueError, match="sum to zero"), database.atomic():
        accounts.post("gift", {("available", 1): 100}, who="operator")
    assert balances() == (1_000_000, 0)
