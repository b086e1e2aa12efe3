"""After 0.4.0: the time of completion of orders, with an index, from their history; saved views of lists."""

from typing import Any

# The column types on SQLite and on Postgres.
SQLITE = {"id": "INTEGER NOT NULL PRIMARY KEY", "text": "TEXT", "int": "INTEGER"}
POSTGRES = {"id": "BIGSERIAL NOT NULL PRIMARY KEY", "text": 'TEXT COLLATE "C"', "int": "BIGINT"}
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
    types = POSTGRES if database.is_shared else SQLITE
    for statement in STATEMENTS:
        database.execute_sql(statement.format(**types))
