"""After 0.3.0: sessions of the console, which the service can end."""

from typing import Any

# The column types on SQLite and on Postgres.
SQLITE = {"id": "INTEGER NOT NULL PRIMARY KEY", "text": "TEXT", "int": "INTEGER"}
POSTGRES = {"id": "BIGSERIAL NOT NULL PRIMARY KEY", "text": 'TEXT COLLATE "C"', "int": "BIGINT"}
STATEMENTS = (
    """CREATE TABLE "session" ("id" {id},
    "key" {text} NOT NULL,
    "operator_id" {int} NOT NULL,
    "createtime" {int} NOT NULL,
    "seentime" {int} NOT NULL,
    "confirmtime" {int} NOT NULL,
    "address" {text} NOT NULL,
    "browser" {text} NOT NULL,
    FOREIGN KEY ("operator_id") REFERENCES "operator" ("id"))""",
    'CREATE UNIQUE INDEX "session_key" ON "session" ("key")',
    'CREATE INDEX "session_operator_id" ON "session" ("operator_id")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    types = POSTGRES if database.is_shared else SQLITE
    for statement in STATEMENTS:
        database.execute_sql(statement.format(**types))
