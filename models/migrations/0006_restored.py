"""After 0.3.0: `webhook-id` derived from a key, several callbacks of a type for one order, and a record of restores."""

import secrets
from typing import Any

from models.migrations import execute

STATEMENTS = (
    'CREATE TABLE "webhook_key" ("id" {id}, "key" {text} NOT NULL)',
    # In a restored backup of an older version, `tillbook db restore` has created this table already.
    """CREATE TABLE IF NOT EXISTS "restoration" ("id" {id},
    "at" {int} NOT NULL,
    "first_ids" {text} NOT NULL,
    "resumed" {int})""",
    """CREATE TABLE "unknown_notice" ("id" {id},
    "channel_id" {int} NOT NULL,
    "order_no" {text} NOT NULL,
    "state" {text} NOT NULL,
    "amount" {int} NOT NULL,
    "reference" {text} NOT NULL,
    "at" {int} NOT NULL,
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"))""",
    """CREATE UNIQUE INDEX "unknown_notice_same"
    ON "unknown_notice" ("channel_id", "order_no", "state", "reference", "amount")""",
    'DROP INDEX "callback_order_id_type"',
    'CREATE INDEX "callback_order_id" ON "callback" ("order_id")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
    database.execute_sql(f'INSERT INTO "webhook_key" ("key") VALUES ({database.param})', (secrets.token_hex(32),))
