"""After 0.4.0: what is known about each payout of a bank file: its transaction ID, and when it was downloaded."""

from typing import Any

from models.migrations import execute

# SQLite would write new columns behind the foreign keys, so the table is made again. Older lines may have been
# downloaded, so they count as such.
SQLITE = (
    """CREATE TABLE "payout_batch_line_new" ("id" INTEGER NOT NULL PRIMARY KEY,
    "batch_id" INTEGER NOT NULL,
    "line" INTEGER NOT NULL,
    "order_id" INTEGER NOT NULL,
    "result" TEXT CHECK (result IN ('sent', 'failed', 'discarded')),
    "reason" TEXT NOT NULL,
    "reference" TEXT,
    "filetime" INTEGER,
    FOREIGN KEY ("batch_id") REFERENCES "payout_batch" ("id"),
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    """INSERT INTO "payout_batch_line_new" ("id", "batch_id", "line", "order_id", "result", "reason")
    SELECT "id", "batch_id", "line", "order_id", "result", "reason" FROM "payout_batch_line" ORDER BY "id\"""",
    'DROP TABLE "payout_batch_line"',
    'ALTER TABLE "payout_batch_line_new" RENAME TO "payout_batch_line"',
    'CREATE UNIQUE INDEX "payout_batch_line_number" ON "payout_batch_line" ("batch_id", "line")',
    'CREATE UNIQUE INDEX "payout_batch_line_open" ON "payout_batch_line" ("order_id") WHERE ("result" IS NULL)',
)
POSTGRES = (
    'ALTER TABLE "payout_batch_line" ADD COLUMN "reference" TEXT COLLATE "C"',
    'ALTER TABLE "payout_batch_line" ADD COLUMN "filetime" BIGINT',
)
THEN = (
    'CREATE INDEX "payout_batch_line_order" ON "payout_batch_line" ("order_id")',
    """UPDATE "payout_batch_line" SET "filetime" =
    (SELECT "createtime" FROM "payout_batch" WHERE "payout_batch"."id" = "payout_batch_line"."batch_id")""",
    """UPDATE "payout_batch_line" SET "reference" =
    (SELECT "channel_reference" FROM "order" WHERE "order"."id" = "payout_batch_line"."order_id")
    WHERE "result" = 'sent'""",
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, POSTGRES if database.is_shared else SQLITE)
    execute(database, THEN)
