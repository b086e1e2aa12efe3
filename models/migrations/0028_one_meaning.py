"""After 0.4.0: until when a channel may not show a payout, and whether a deposit is opened on view, in columns of their
own; the act of a payout request as operators know it."""

from typing import Any

from models.migrations import execute

ORDERS = (
    'ALTER TABLE "order" ADD COLUMN "shown_from" {int}',
    'ALTER TABLE "order" ADD COLUMN "opens_on_view" {bool} NOT NULL DEFAULT FALSE',
    """UPDATE "order" SET "shown_from" = "expires_at" WHERE "order_type" = 2 AND "expires_at" IS NOT NULL""",
    """UPDATE "order" SET "expires_at" = NULL WHERE "order_type" = 2 AND "expires_at" IS NOT NULL""",
    """UPDATE "order" SET "opens_on_view" = TRUE
    WHERE "order_type" = 1 AND "status" = 'pending' AND "opened" = '' AND "due_at" = "expires_at\"""",
)
SQLITE = (
    """CREATE TABLE "payout_request_new" ("id" INTEGER NOT NULL PRIMARY KEY,
    "order_id" INTEGER NOT NULL,
    "action" TEXT NOT NULL CHECK (action IN ('approve', 'paid')),
    "given" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "who" TEXT NOT NULL,
    "at" INTEGER NOT NULL,
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    """INSERT INTO "payout_request_new" ("id", "order_id", "action", "given", "status", "who", "at")
    SELECT "id", "order_id", CASE "action" WHEN 'accept' THEN 'approve' ELSE "action" END, "given", "status", "who",
    "at" FROM "payout_request" ORDER BY "id\"""",
    'DROP TABLE "payout_request"',
    'ALTER TABLE "payout_request_new" RENAME TO "payout_request"',
    'CREATE UNIQUE INDEX "payout_request_order" ON "payout_request" ("order_id")',
)
POSTGRES = (
    'ALTER TABLE "payout_request" DROP CONSTRAINT "payout_request_action_check"',
    """UPDATE "payout_request" SET "action" = 'approve' WHERE "action" = 'accept'""",
    """ALTER TABLE "payout_request" ADD CONSTRAINT "payout_request_action_check"
    CHECK (action IN ('approve', 'paid'))""",
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, (*ORDERS, *(POSTGRES if database.is_shared else SQLITE)))
