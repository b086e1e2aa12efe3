"""After 0.3.0: attempts to pay a deposit, for channels that open a payment when the page is viewed."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "attempt" ("id" {id},
    "order_id" {int} NOT NULL,
    "count" INTEGER NOT NULL,
    "browser" {text} NOT NULL,
    "opened" {text} NOT NULL,
    "refusal" {text} NOT NULL,
    "triedtime" {int} NOT NULL,
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    'CREATE UNIQUE INDEX "attempt_count" ON "attempt" ("order_id", "count")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
