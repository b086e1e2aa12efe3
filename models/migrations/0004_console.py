"""After 0.3.0: the console's operators, its audit log, and the runs of the ledger integrity check."""

from typing import Any

TABLES = (
    """CREATE TABLE "operator" ("id" INTEGER NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "password" TEXT NOT NULL,
    "role" TEXT NOT NULL CHECK (role IN ('viewer', 'operator')),
    "session" TEXT NOT NULL,
    "enabled" INTEGER NOT NULL,
    "createtime" INTEGER NOT NULL,
    "updatetime" INTEGER NOT NULL)""",
    """CREATE TABLE "audit_entry" ("id" INTEGER NOT NULL PRIMARY KEY,
    "who" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "about" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "detail" TEXT NOT NULL,
    "address" TEXT NOT NULL,
    "at" INTEGER NOT NULL)""",
    """CREATE TABLE "verification" ("id" INTEGER NOT NULL PRIMARY KEY,
    "who" TEXT NOT NULL,
    "started" INTEGER NOT NULL,
    "beat" INTEGER NOT NULL,
    "milliseconds" INTEGER,
    "entries" INTEGER NOT NULL,
    "outcome" TEXT CHECK (outcome IN ('holds', 'off', 'failed')),
    "found" TEXT NOT NULL)""",
    'CREATE UNIQUE INDEX "operator_name" ON "operator" ("name")',
    'CREATE UNIQUE INDEX "operator_session" ON "operator" ("session")',
    'CREATE INDEX "audit_entry_about" ON "audit_entry" ("about", "key", "id")',
)
REFUSE = "BEGIN SELECT RAISE(ABORT, 'audit_entry is append-only'); END"
GUARDS = (
    f'CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON "audit_entry" {REFUSE}',
    f'CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON "audit_entry" {REFUSE}',
    f'CREATE TRIGGER audit_entry_no_replace BEFORE INSERT ON "audit_entry" '
    f'WHEN EXISTS (SELECT 1 FROM "audit_entry" WHERE id = NEW.id) {REFUSE}',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    for statement in (*TABLES, *GUARDS):
        database.execute_sql(statement)
