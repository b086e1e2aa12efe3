"""After 0.4.0: what the account of each channel holds by the channel's own figures."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "account_balance" ("id" {id},
    "channel_id" {int} NOT NULL,
    "day" {text} NOT NULL,
    "amount" {int} NOT NULL,
    "expected" {int} NOT NULL,
    "source" {text} NOT NULL CHECK (source IN ('bill', 'operator')),
    "who" {text} NOT NULL,
    "note" {text} NOT NULL,
    "createtime" {int} NOT NULL,
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"))""",
    'CREATE UNIQUE INDEX "account_balance_channel_id_day" ON "account_balance" ("channel_id", "day")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
