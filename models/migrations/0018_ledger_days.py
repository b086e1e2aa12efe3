"""After 0.4.0: sums of merchants' ledger entries by day."""

from typing import Any

from models.migrations import execute

TABLE = """CREATE TABLE "ledger_day" ("account_id" {int} NOT NULL,
    "day" {int} NOT NULL,
    "kind" {text} NOT NULL,
    "entries" {int} NOT NULL,
    "amount" {int} NOT NULL,
    "fees" {int} NOT NULL,
    "first" {int} NOT NULL,
    "last" {int} NOT NULL,
    PRIMARY KEY ("account_id", "day", "kind"),
    FOREIGN KEY ("account_id") REFERENCES "ledger_account" ("id"))"""


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, [TABLE])
