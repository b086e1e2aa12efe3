"""After 0.4.0: sums of the operator's own ledger entries by day, merchant, channel, method and kind."""

from typing import Any

from models.migrations import execute

DAYS = """CREATE TABLE "earnings_day" ("day" {int} NOT NULL,
    "merchant" {int} NOT NULL,
    "channel" {int} NOT NULL,
    "method" {text} NOT NULL,
    "kind" {text} NOT NULL,
    "count" {int} NOT NULL,
    "volume" {int} NOT NULL,
    "fees" {int} NOT NULL,
    "costs" {int} NOT NULL,
    PRIMARY KEY ("day", "merchant", "channel", "method", "kind"))"""
PROGRESS = """CREATE TABLE "earnings_progress" ("account_id" {int} NOT NULL PRIMARY KEY,
    "entries" {int} NOT NULL,
    FOREIGN KEY ("account_id") REFERENCES "ledger_account" ("id"))"""


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    # SQLite keeps the rows in the order of their keys, so that a range of days is read in one piece.
    execute(database, [DAYS if database.is_shared else f"{DAYS} WITHOUT ROWID", PROGRESS])
