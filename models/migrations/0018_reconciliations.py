"""After 0.4.0: comparisons of channels' statements, made in the console."""

from typing import Any

# The column types on SQLite and on Postgres.
SQLITE = {"id": "INTEGER NOT NULL PRIMARY KEY", "text": "TEXT", "int": "INTEGER"}
POSTGRES = {"id": "BIGSERIAL NOT NULL PRIMARY KEY", "text": 'TEXT COLLATE "C"', "int": "BIGINT"}
STATEMENTS = (
    """CREATE TABLE "reconciliation" ("id" {id},
    "channel_id" {int} NOT NULL,
    "hash" {text} NOT NULL,
    "file" {text} NOT NULL,
    "since" {text} NOT NULL,
    "until" {text} NOT NULL,
    "lines" {int} NOT NULL,
    "matched" {int} NOT NULL,
    "differences" {int} NOT NULL,
    "result" {text} NOT NULL,
    "who" {text} NOT NULL,
    "createtime" {int} NOT NULL,
    "updatetime" {int} NOT NULL,
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"))""",
    'CREATE UNIQUE INDEX "reconciliation_channel_id_hash" ON "reconciliation" ("channel_id", "hash")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    types = POSTGRES if database.is_shared else SQLITE
    for statement in STATEMENTS:
        database.execute_sql(statement.format(**types))
