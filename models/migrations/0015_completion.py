"""After 0.4.0: the time of completion of orders, with an index, from their history; saved views of lists."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    'ALTER TABLE "order" ADD COLUMN "completedtime" {int}',
    """UPDATE "order" SET "completedtime" = COALESCE((SELECT MAX(at) FROM "history"
    WHERE "history"."order_id" = "order"."id" AND "after" = 'completed' AND "before" <> 'completed'), "updatetime")
    WHERE "status" = 'completed'""",
    'CREATE INDEX "order_completed" ON "order" ("merchant_id", "completedtime", "id") '
    'WHERE ("completedtime" IS NOT NULL)',
    """CREATE TABLE "saved_view" ("id" {id},
    "operator_id" {int} NOT NULL,
    "list_name" {text} NOT NULL,
    "name" {text} NOT NULL,
    "query" {text} NOT NULL,
    "createtime" {int} NOT NULL,
    FOREIGN KEY ("operator_id") REFERENCES "operator" ("id"))""",
    'CREATE UNIQUE INDEX "saved_view_name" ON "saved_view" ("operator_id", "list_name", "name")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
