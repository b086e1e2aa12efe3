"""After 0.3.0: the progress of erasing personal data."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    'CREATE TABLE "erasure_progress" ("id" {id}, "order_id" {int} NOT NULL)',
    """CREATE TABLE "erasure_delayed" ("id" {id},
    "order_id" {int} NOT NULL,
    "due_at" {int} NOT NULL,
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    'CREATE UNIQUE INDEX "erasure_delayed_order_id" ON "erasure_delayed" ("order_id")',
    'CREATE INDEX "erasure_delayed_due_at" ON "erasure_delayed" ("due_at")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
