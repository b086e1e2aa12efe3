"""After 0.4.0: an index of open orders that are not due, and due times for deposits that nothing waited for.

A corrected amount took the due time of a confirmed deposit away, and so its credit. It is due again after the present
settlement delay of its channel, because the earlier one was not stored.
"""

from typing import Any

STATEMENTS = (
    'CREATE INDEX "order_waiting" ON "order" ("createtime") '
    "WHERE ((\"due_at\" IS NULL) AND status IN ('pending', 'paid', 'confirmed'))",
    """UPDATE "order" SET "due_at" = "updatetime" + 86400 *
    (SELECT "settlement_days" FROM "channel" WHERE "channel"."id" = "order"."channel_id")
    WHERE "order_type" = 1 AND "due_at" IS NULL AND "status" = 'confirmed'""",
    """UPDATE "order" SET "due_at" = "updatetime"
    WHERE "order_type" = 1 AND "due_at" IS NULL AND "status" IN ('pending', 'paid') AND NOT EXISTS
    (SELECT 1 FROM "payment_exception" WHERE "payment_exception"."order_id" = "order"."id" AND "resolution" IS NULL)""",
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    for statement in STATEMENTS:
        database.execute_sql(statement)
