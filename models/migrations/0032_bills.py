"""After 0.4.0: the bills that the service fetches from channels, and the differences between statements and orders."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    'DROP INDEX "reconciliation_channel_id_hash"',
    """CREATE UNIQUE INDEX "reconciliation_channel_id_hash_since_until"
    ON "reconciliation" ("channel_id", "hash", "since", "until")""",
    """CREATE TABLE "bill" ("id" {id},
    "channel_id" {int} NOT NULL,
    "day" {text} NOT NULL,
    "state" {text} NOT NULL CHECK (state IN ('waiting', 'late', 'compared', 'none')),
    "attempts" {int} NOT NULL,
    "due_at" {int},
    "problem" {text} NOT NULL,
    "costs" {int} NOT NULL,
    "reconciliation_id" {int},
    "createtime" {int} NOT NULL,
    "updatetime" {int} NOT NULL,
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"),
    FOREIGN KEY ("reconciliation_id") REFERENCES "reconciliation" ("id"))""",
    'CREATE UNIQUE INDEX "bill_channel_id_day" ON "bill" ("channel_id", "day")',
    'CREATE INDEX "bill_due" ON "bill" ("due_at") WHERE ("due_at" IS NOT NULL)',
    """CREATE TABLE "statement_difference" ("id" {id},
    "channel_id" {int} NOT NULL,
    "name" {text} NOT NULL,
    "state" {text} NOT NULL CHECK (state IN ('checking', 'expected', 'open', 'explained', 'closed')),
    "kind" {text} NOT NULL,
    "order_id" {int},
    "since" {text} NOT NULL,
    "until" {text} NOT NULL,
    "fen" {int} NOT NULL,
    "facts" {text} NOT NULL,
    "lines" {text} NOT NULL,
    "reconciliation_id" {int} NOT NULL,
    "due_at" {int},
    "asked_at" {int},
    "note" {text} NOT NULL,
    "who" {text} NOT NULL,
    "createtime" {int} NOT NULL,
    "updatetime" {int} NOT NULL,
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"),
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"),
    FOREIGN KEY ("reconciliation_id") REFERENCES "reconciliation" ("id"))""",
    'CREATE UNIQUE INDEX "statement_difference_channel_id_name" ON "statement_difference" ("channel_id", "name")',
    """CREATE INDEX "statement_difference_due" ON "statement_difference" ("due_at") WHERE ("due_at" IS NOT NULL)""",
    'CREATE INDEX "statement_difference_state" ON "statement_difference" ("state", "id")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
