"""After 0.3.0: the second factor of operators."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "second_factor" ("id" {id},
    "operator_id" {int} NOT NULL,
    "secret" {text} NOT NULL,
    "timecode" {int} NOT NULL,
    "createtime" {int} NOT NULL,
    FOREIGN KEY ("operator_id") REFERENCES "operator" ("id"))""",
    'CREATE UNIQUE INDEX "second_factor_operator_id" ON "second_factor" ("operator_id")',
    """CREATE TABLE "recovery_code" ("id" {id},
    "operator_id" {int} NOT NULL,
    "key" {text} NOT NULL,
    FOREIGN KEY ("operator_id") REFERENCES "operator" ("id"))""",
    'CREATE UNIQUE INDEX "recovery_code_key" ON "recovery_code" ("operator_id", "key")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
