"""After 0.3.0: payout requests, which a second operator must approve."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "payout_request" ("id" {id},
    "order_id" {int} NOT NULL,
    "action" {text} NOT NULL CHECK (action IN ('accept', 'paid')),
    "given" {text} NOT NULL,
    "status" {text} NOT NULL,
    "who" {text} NOT NULL,
    "at" {int} NOT NULL,
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    'CREATE UNIQUE INDEX "payout_request_order" ON "payout_request" ("order_id")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
