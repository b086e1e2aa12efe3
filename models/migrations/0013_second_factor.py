"""After 0.3.0: the second factor of operators."""

from typing import Any

# The column types on SQLite and on Postgres.
SQLITE = {"id": "INTEGER NOT NULL PRIMARY KEY", "text": "TEXT", "int": "INTEGER"}
POSTGRES = {"id": "BIGSERIAL NOT NULL PRIMARY KEY", "text": 'TEXT COLLATE "C"', "int": "BIGINT"}
STATEMENTS = (
    """CREATE TABLE "second_factor" ("id" {id},
    "operator_id" {int} NOT NULL,
    "secret" {text} NOT NULL,
    "timecode" {int} NOT NULL,
    "createtime" {int} NOT NULL,
    FOREIGN KEY ("operator_id") REFERENCES "operator" ("id"))""",
    'CREATE UNIQUE INDEX "second_factor_operator_id" ON "second_factor" ("operator_id")',
    """CREATE TABLE "recovery_code" ("id" {id},
    "operator_id" {int} NOT NULL,
    "key" {text} NOT NULL,
    FOREIGN KEY ("operator_id") REFERENCES "operator" ("id"))""",
    'CREATE UNIQUE INDEX "recovery_code_key" ON "recovery_code" ("operator_id", "key")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    types = POSTGRES if database.is_shared else SQLITE
    for statement in STATEMENTS:
        database.execute_sql(statement.format(**types))
