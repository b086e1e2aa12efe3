"""After 0.4.0: sign-ins that wait for their second factor, and counted tries of passwords and codes."""

from typing import Any

# The column types on SQLite and on Postgres.
SQLITE = {"id": "INTEGER NOT NULL PRIMARY KEY", "text": "TEXT", "int": "INTEGER"}
POSTGRES = {"id": "BIGSERIAL NOT NULL PRIMARY KEY", "text": 'TEXT COLLATE "C"', "int": "BIGINT"}
STATEMENTS = (
    """CREATE TABLE "pending_sign_in" ("id" {id},
    "key" {text} NOT NULL,
    "operator_id" {int} NOT NULL,
    "createtime" {int} NOT NULL,
    FOREIGN KEY ("operator_id") REFERENCES "operator" ("id"))""",
    'CREATE UNIQUE INDEX "pending_sign_in_key" ON "pending_sign_in" ("key")',
    'CREATE INDEX "pending_sign_in_operator_id" ON "pending_sign_in" ("operator_id")',
    """CREATE TABLE "sign_in_try" ("id" {id},
    "who" {text} NOT NULL,
    "hour" {int} NOT NULL,
    "tries" {int} NOT NULL)""",
    'CREATE UNIQUE INDEX "sign_in_try_hour" ON "sign_in_try" ("hour", "who")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    types = POSTGRES if database.is_shared else SQLITE
    for statement in STATEMENTS:
        database.execute_sql(statement.format(**types))
