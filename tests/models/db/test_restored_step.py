"""The step 0006 upgrades an older database to the same state as a new one, on SQLite and on Postgres."""

from models import schema
from models.db.base import database
from tests.models.db.catalog import catalog

OLDER = (
    "DROP TABLE webhook_key",
    "DROP TABLE restoration",
    "DROP TABLE unknown_notice",
    "DROP INDEX callback_order_id",
    'CREATE UNIQUE INDEX "callback_order_id_type" ON "callback" ("order_id", "type")',
    "DELETE FROM schema_migration WHERE name = '0006_restored'",
)


def test_a_migrated_database_has_the_schema_of_a_new_one_and_a_key_of_its_own(app, flask):
    new = catalog()
    for statement in OLDER:
        database.execute_sql(statement)
    assert "applied: 0006_restored" in flask("db", "migrate").stdout
    assert catalog() == new
    ((key,),) = database.execute_sql("SELECT key FROM webhook_key").fetchall()
    assert len(bytes.fromhex(key)) == 32
    assert not schema.missing()
