"""After 0.3.0: reasons as codes with arguments, the amount received, and the returned part of an exception's money."""

from typing import Any

from models.migrations import execute

# Nullable, and the last columns of their tables, so that no row is rewritten.
STATEMENTS = (
    'ALTER TABLE "order" ADD COLUMN "received_amount" {int}',
    'ALTER TABLE "order" ADD COLUMN "left_alone_until" {int}',
    'ALTER TABLE "history" ADD COLUMN "code" TEXT',
    'ALTER TABLE "history" ADD COLUMN "args" TEXT',
    'ALTER TABLE "payment_exception" ADD COLUMN "code" TEXT',
    'ALTER TABLE "payment_exception" ADD COLUMN "args" TEXT',
    'ALTER TABLE "payment_exception" ADD COLUMN "returned" {int}',
    'DROP INDEX "exception_money_in"',
    'DROP INDEX "exception_other"',
    'CREATE UNIQUE INDEX "exception_same_money" ON "payment_exception" ("order_id", "reference", "kind") '
    'WHERE ("resolution" IS NULL)',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step on SQLite and on Postgres, in the runner's transaction."""
    execute(database, STATEMENTS)
