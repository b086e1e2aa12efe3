"""After 0.4.0: comparisons of channels' statements, made in the console."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "reconciliation" ("id" {id},
    "channel_id" {int} NOT NULL,
    "hash" {text} NOT NULL,
    "file" {text} NOT NULL,
    "since" {text} NOT NULL,
    "until" {text} NOT NULL,
    "lines" {int} NOT NULL,
    "matched" {int} NOT NULL,
    "differences" {int} NOT NULL,
    "result" {text} NOT NULL,
    "who" {text} NOT NULL,
    "createtime" {int} NOT NULL,
    "updatetime" {int} NOT NULL,
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"))""",
    'CREATE UNIQUE INDEX "reconciliation_channel_id_hash" ON "reconciliation" ("channel_id", "hash")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
