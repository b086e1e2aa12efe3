"""After 0.4.0: notes of orders, and QR code images of manual channels."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "order_note" ("id" {id},
    "order_id" {int} NOT NULL,
    "text" {text} NOT NULL,
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    'CREATE UNIQUE INDEX "order_note_order_id" ON "order_note" ("order_id")',
    """CREATE TABLE "channel_picture" ("id" {id},
    "channel_id" {int} NOT NULL,
    "method" {text} NOT NULL CHECK (method IN ('wxpay', 'alipay', 'bank')),
    "content_type" {text} NOT NULL CHECK (content_type IN ('image/png', 'image/jpeg')),
    "content" {text} NOT NULL,
    "digest" {text} NOT NULL,
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"))""",
    'CREATE UNIQUE INDEX "channel_picture_method" ON "channel_picture" ("channel_id", "method")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
