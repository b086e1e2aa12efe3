"""After 0.4.0: what channels keep of deposits: rates by payment method, and the estimate of each deposit."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """ALTER TABLE "channel" ADD COLUMN "cost_rates" {text} NOT NULL DEFAULT '{{}}'""",
    """ALTER TABLE "order" ADD COLUMN "cost_amount" {int} NOT NULL DEFAULT 0 CHECK (cost_amount >= 0)""",
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
