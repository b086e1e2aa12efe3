"""After 0.4.0: the columns of account statements, as operators confirmed them."""

from typing import Any

from models.migrations import execute

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
    execute(database, STATEMENTS)
