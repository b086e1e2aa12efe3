"""After 0.3.0: payout requests, which a second operator must approve."""

from typing import Any

# The column types on SQLite and on Postgres.
SQLITE = {"id": "INTEGER NOT NULL PRIMARY KEY", "text": "TEXT", "int": "INTEGER"}
POSTGRES = {"id": "BIGSERIAL NOT NULL PRIMARY KEY", "text": 'TEXT COLLATE "C"', "int": "BIGINT"}
STATEMENTS = (
    """CREATE TABLE "payout_request" ("id" {id},
    "order_id" {int} NOT NULL,
    "action" {text} NOT NULL CHECK (action IN ('accept', 'paid')),
    "given" {text} NOT NULL,
    "status" {text} NOT NULL,
    "who" {text} NOT NULL,
    "at" {int} NOT NULL,
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    'CREATE UNIQUE INDEX "payout_request_order" ON "payout_request" ("order_id")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    types = POSTGRES if database.is_shared else SQLITE
    for statement in STATEMENTS:
        database.execute_sql(statement.format(**types))
