"""After 0.4.0: sign-ins that wait for their second factor, and counted tries of passwords and codes."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "pending_sign_in" ("id" {id},
    "key" {text} NOT NULL,
    "operator_id" {int} NOT NULL,
    "createtime" {int} NOT NULL,
    FOREIGN KEY ("operator_id") REFERENCES "operator" ("id"))""",
    'CREATE UNIQUE INDEX "pending_sign_in_key" ON "pending_sign_in" ("key")',
    'CREATE INDEX "pending_sign_in_operator_id" ON "pending_sign_in" ("operator_id")',
    """CREATE TABLE "sign_in_try" ("id" {id},
    "who" {text} NOT NULL,
    "hour" {int} NOT NULL,
    "tries" {int} NOT NULL)""",
    'CREATE UNIQUE INDEX "sign_in_try_hour" ON "sign_in_try" ("hour", "who")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
