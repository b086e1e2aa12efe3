"""After 0.4.0: the columns of account statements, as operators confirmed them."""

from typing import Any

# The column types on SQLite and on Postgres.
SQLITE = {"id": "INTEGER NOT NULL PRIMARY KEY", "text": "TEXT", "int": "INTEGER"}
POSTGRES = {"id": "BIGSERIAL NOT NULL PRIMARY KEY", "text": 'TEXT COLLATE "C"', "int": "BIGINT"}
STATEMENTS = (
    """CREATE TABLE "statement_layout" ("id" {id},
    "channel_id" {int} NOT NULL,
    "header" {text} NOT NULL,
    "roles" {text} NOT NULL,
    "who" {text} NOT NULL,
    "createtime" {int} NOT NULL,
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"))""",
    'CREATE UNIQUE INDEX "statement_layout_channel_id_header" ON "statement_layout" ("channel_id", "header")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    types = POSTGRES if database.is_shared else SQLITE
    for statement in STATEMENTS:
        database.execute_sql(statement.format(**types))
