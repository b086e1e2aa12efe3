"""After 0.3.0: orders and exceptions are found by the number of their payment."""

from typing import Any

INDEXES = (
    'CREATE INDEX "order_reference" ON "order" ("channel_id", "channel_reference", "id") '
    "WHERE (\"channel_reference\" != '')",
    'CREATE INDEX "exception_reference" ON "payment_exception" ("reference", "order_id") WHERE ("reference" != \'\')',
)


def up(migrator: Any, database: Any) -> None:
    """Apply it; the runner's transaction holds it all."""
    for statement in INDEXES:
        database.execute_sql(statement)
