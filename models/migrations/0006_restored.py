"""After 0.3.0: `webhook-id` is derived from a key, several callbacks of a type per order."""

import secrets

# The types of columns on SQLite and on Postgres.
SQLITE = {"id": "INTEGER NOT NULL PRIMARY KEY", "text": "TEXT"}
POSTGRES = {"id": "BIGSERIAL NOT NULL PRIMARY KEY", "text": 'TEXT COLLATE "C"'}
STATEMENTS = (
    'CREATE TABLE "webhook_key" ("id" {id}, "key" {text} NOT NULL)',
    'DROP INDEX "callback_order_id_type"',
    'CREATE INDEX "callback_order_id" ON "callback" ("order_id")',
)


def up(migrator, database):
    """Apply it; the runner's transaction holds it all."""
    types = POSTGRES if database.is_shared else SQLITE
    for statement in STATEMENTS:
        database.execute_sql(statement.format(**types))
    database.execute_sql(f'INSERT INTO "webhook_key" ("key") VALUES ({database.param})', (secrets.token_hex(32),))
