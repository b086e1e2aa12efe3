"""After 0.3.0: sessions of the console, which the service can end."""

from typing import Any

from models.migrations import execute

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
    execute(database, STATEMENTS)
