"""After 0.3.0: indexes to find orders and exceptions by their payment's number."""

from typing import Any

INDEXES = (
    'CREATE INDEX "order_reference" ON "order" ("channel_id", "channel_reference", "id") '
    "WHERE (\"channel_reference\" != '')",
    'CREATE INDEX "exception_reference" ON "payment_exception" ("reference", "order_id") WHERE ("reference" != \'\')',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    for statement in INDEXES:
        database.execute_sql(statement)
