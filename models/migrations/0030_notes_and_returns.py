"""After 0.4.0: operators' notes on orders; by which transfer, and on which day, an operator or the bank returned
money; the payout account of each line of a bank file."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "internal_note" ("id" {id},
    "order_id" {int} NOT NULL,
    "who" {text} NOT NULL,
    "text" {text} NOT NULL,
    "createtime" {int} NOT NULL,
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    'CREATE INDEX "internal_note_order_id" ON "internal_note" ("order_id")',
    'ALTER TABLE "payment_exception" ADD COLUMN "return_reference" {text}',
    'ALTER TABLE "payment_exception" ADD COLUMN "returned_on" {text}',
    """CREATE INDEX "exception_return_reference" ON "payment_exception" ("return_reference", "order_id")
    WHERE ("return_reference" IS NOT NULL)""",
    'ALTER TABLE "refund" ADD COLUMN "returned_on" {text}',
)
# SQLite would write the new column behind the foreign keys, so the table is made again.
SQLITE = (
    """CREATE TABLE "payout_batch_line_new" ("id" INTEGER NOT NULL PRIMARY KEY,
    "batch_id" INTEGER NOT NULL,
    "line" INTEGER NOT NULL,
    "order_id" INTEGER NOT NULL,
    "result" TEXT CHECK (result IN ('sent', 'failed', 'discarded')),
    "reason" TEXT NOT NULL,
    "reference" TEXT,
    "filetime" INTEGER,
    "account_id" INTEGER,
    FOREIGN KEY ("batch_id") REFERENCES "payout_batch" ("id"),
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"),
    FOREIGN KEY ("account_id") REFERENCES "receiving_account" ("id"))""",
    """INSERT INTO "payout_batch_line_new"
    ("id", "batch_id", "line", "order_id", "result", "reason", "reference", "filetime")
    SELECT "id", "batch_id", "line", "order_id", "result", "reason", "reference", "filetime" FROM "payout_batch_line"
    ORDER BY "id\"""",
    'DROP TABLE "payout_batch_line"',
    'ALTER TABLE "payout_batch_line_new" RENAME TO "payout_batch_line"',
    'CREATE UNIQUE INDEX "payout_batch_line_number" ON "payout_batch_line" ("batch_id", "line")',
    'CREATE UNIQUE INDEX "payout_batch_line_open" ON "payout_batch_line" ("order_id") WHERE ("result" IS NULL)',
    'CREATE INDEX "payout_batch_line_order" ON "payout_batch_line" ("order_id")',
)
POSTGRES = ('ALTER TABLE "payout_batch_line" ADD COLUMN "account_id" BIGINT REFERENCES "receiving_account" ("id")',)
THEN = (
    """UPDATE "payout_batch_line" SET "account_id" =
    (SELECT "account_id" FROM "order" WHERE "order"."id" = "payout_batch_line"."order_id")""",
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
    execute(database, POSTGRES if database.is_shared else SQLITE)
    execute(database, THEN)
