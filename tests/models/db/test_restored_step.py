"""The step 0006 makes of an older database what a new one is, on SQLite and on Postgres."""

import pytest

from models import schema
from models.db.base import database
from tests import postgres

OLDER = (
    "DROP TABLE webhook_key",
    "DROP TABLE restoration",
    "DROP TABLE unknown_notice",
    "DROP INDEX callback_order_id",
    'CREATE UNIQUE INDEX "callback_order_id_type" ON "callback" ("order_id", "type")',
    "DELETE FROM schema_migration WHERE name = '0006_restored'",
)
CATALOG = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name "
    "FROM information_schema.columns WHERE table_schema = 'public'",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = 'public'::regnamespace",
)


def _catalog():
    queries = CATALOG if postgres.IN_USE else ("SELECT type, name, tbl_name FROM sqlite_master",)
    return [sorted(map(str, database.execute_sql(query).fetchall())) for query in queries]


@pytest.fixture
def older(app):
    """The database as it was before the step; `older` is the catalog that it had after it."""
    new = _catalog()
    for statement in OLDER:
        database.execute_sql(statement)
    return new


def test_a_migrated_database_has_the_schema_of_a_new_one(older, flask):
    assert "applied: 0006_restored" in flask("db", "migrate").stdout
    assert _catalog() == older


def test_a_migrated_database_has_a_key_of_its_own(older, flask):
    flask("db", "migrate")
    ((key,),) = database.execute_sql("SELECT key FROM webhook_key").fetchall()
    assert len(bytes.fromhex(key)) == 32
    assert not schema.missing()
