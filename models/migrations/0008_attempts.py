"""After 0.3.0: attempts to pay a deposit, for channels that open a payment when the page is viewed."""

from typing import Any

# The column types on SQLite and on Postgres.
SQLITE = {"id": "INTEGER NOT NULL PRIMARY KEY", "text": "TEXT", "int": "INTEGER", "count": "INTEGER"}
POSTGRES = {"id": "BIGSERIAL NOT NULL PRIMARY KEY", "text": 'TEXT COLLATE "C"', "int": "BIGINT", "count": "INTEGER"}
STATEMENTS = (
    """CREATE TABLE "attempt" ("id" {id},
    "order_id" {int} NOT NULL,
    "count" {count} NOT NULL,
    "browser" {text} NOT NULL,
    "opened" {text} NOT NULL,
    "refusal" {text} NOT NULL,
    "triedtime" {int} NOT NULL,
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    'CREATE UNIQUE INDEX "attempt_count" ON "attempt" ("order_id", "count")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    types = POSTGRES if database.is_shared else SQLITE
    for statement in STATEMENTS:
        database.execute_sql(statement.format(**types))
