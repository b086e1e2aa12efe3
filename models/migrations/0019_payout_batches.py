"""After 0.4.0: batch files of payouts."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "payout_batch" ("id" {id},
    "channel_id" {int} NOT NULL,
    "template" {text} NOT NULL,
    "count" {int} NOT NULL,
    "total" {int} NOT NULL,
    "who" {text} NOT NULL,
    "createtime" {int} NOT NULL,
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"))""",
    'CREATE INDEX "payout_batch_time" ON "payout_batch" ("createtime", "id")',
    """CREATE TABLE "payout_batch_line" ("id" {id},
    "batch_id" {int} NOT NULL,
    "line" {int} NOT NULL,
    "order_id" {int} NOT NULL,
    "result" {text} CHECK (result IN ('sent', 'failed', 'discarded')),
    "reason" {text} NOT NULL,
    FOREIGN KEY ("batch_id") REFERENCES "payout_batch" ("id"),
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    'CREATE UNIQUE INDEX "payout_batch_line_number" ON "payout_batch_line" ("batch_id", "line")',
    'CREATE UNIQUE INDEX "payout_batch_line_open" ON "payout_batch_line" ("order_id") WHERE ("result" IS NULL)',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
