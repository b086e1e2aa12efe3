"""The step 0014 upgrades a Postgres database with sentences to the same state as a new one."""

import pytest

from models.db.base import database
from tests import postgres
from tests.models.db.catalog import catalog

pytestmark = pytest.mark.skipif(not postgres.IN_USE, reason="on SQLite the kept databases show it")

OLDER = (
    """ALTER TABLE history ADD COLUMN why TEXT COLLATE "C" NOT NULL DEFAULT '', ALTER COLUMN code DROP NOT NULL""",
    """ALTER TABLE payment_exception ADD COLUMN detail TEXT COLLATE "C" NOT NULL DEFAULT '',
    ALTER COLUMN code DROP NOT NULL, DROP COLUMN history_id""",
    "DELETE FROM schema_migration WHERE name = '0014_codes'",
)
LINE = (
    'INSERT INTO history (order_id, "before", "after", who, why, at, code, args) VALUES (1, %s, %s, %s, %s, 1, %s, %s)'
)
RAISED = (
    "INSERT INTO payment_exception (order_id, kind, amount, reference, detail, createtime, code) "
    "VALUES (1, %s, 100, 'R-1', %s, 1, %s)"
)


@pytest.fixture
def order_no(api):
    """The number of the first order."""
    return api.buy().data["order_no"]


@pytest.fixture
def new(order_no):
    """The catalog of a new database, which is then made an older one."""
    made = catalog()
    for statement in OLDER:
        database.execute_sql(statement)
    return made


def test_a_migrated_database_has_the_schema_of_a_new_one(new, flask):
    assert "applied: 0014_codes" in flask("db", "migrate").stdout
    assert catalog() == new


def test_sentences_become_codes_and_exceptions_name_their_lines(new, order_no, flask, order_details):
    for line in (
        ("pending", "pending", "payer", "the payer says that it is paid", None, None),
        ("pending", "pending", "service", "exception wrong_amount: paid an amount that does not match", None, None),
        ("pending", "pending", "operator", "wrong card 卡号 100%", None, None),
        ("pending", "pending", "service", "", "paid_after_end", '{"kind":"late_payment","opened":"2"}'),
    ):
        database.execute_sql(LINE, line)
    database.execute_sql(RAISED, ("wrong_amount", "paid an amount that does not match", None))
    database.execute_sql(RAISED, ("late_payment", "", "paid_after_end"))
    flask("db", "migrate")
    told = order_details(order_no)
    assert [(line["code"], line["why"]) for line in told["history"]] == [
        ("created", "Order created"),
        ("claimed", "The payer says they paid"),
        ("paid_other_amount", "Exception wrong_amount: Paid a different amount"),
        ("text", "wrong card 卡号 100%"),
        ("paid_after_end", "Exception late_payment: Paid after cancellation"),
    ]
    assert [each["code"] for each in told["exceptions"]] == ["paid_other_amount", "paid_after_end"]
