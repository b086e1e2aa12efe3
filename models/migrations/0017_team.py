"""After 0.4.0: the role administrator, when an account was last used, changed fields in the audit log, failed sign-ins.

Operators become administrators.
"""

from typing import Any

from models.migrations import execute

SQLITE = (
    # The runner has switched foreign keys off: the tables that refer to "operator" find the new one.
    """CREATE TABLE "member" ("id" INTEGER NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "password" TEXT NOT NULL,
    "role" TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'administrator')),
    "session" TEXT NOT NULL,
    "enabled" INTEGER NOT NULL,
    "createtime" INTEGER NOT NULL,
    "updatetime" INTEGER NOT NULL,
    "seentime" INTEGER)""",
    """INSERT INTO "member" SELECT id, name, password,
    CASE role WHEN 'operator' THEN 'administrator' ELSE role END, session, enabled, createtime, updatetime, NULL
    FROM "operator" """,
    'DROP TABLE "operator"',
    'ALTER TABLE "member" RENAME TO "operator"',
    'CREATE UNIQUE INDEX "operator_name" ON "operator" ("name")',
    'CREATE UNIQUE INDEX "operator_session" ON "operator" ("session")',
)
POSTGRES = (
    'ALTER TABLE "operator" DROP CONSTRAINT "operator_role_check"',
    "UPDATE \"operator\" SET role = 'administrator' WHERE role = 'operator'",
    """ALTER TABLE "operator" ADD CHECK (role IN ('viewer', 'operator', 'administrator')),
    ADD COLUMN "seentime" BIGINT""",
)
THEN = (
    """UPDATE "operator" SET seentime =
    (SELECT MAX(seentime) FROM "session" WHERE "session"."operator_id" = "operator"."id")""",
    'ALTER TABLE "audit_entry" ADD COLUMN "changed" {text}',
    """CREATE TABLE "failed_sign_in" ("id" {id},
    "address" {text} NOT NULL,
    "hour" {int} NOT NULL,
    "passwords" {int} NOT NULL,
    "codes" {int} NOT NULL)""",
    'CREATE UNIQUE INDEX "failed_sign_in_hour" ON "failed_sign_in" ("hour", "address")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, POSTGRES if database.is_shared else SQLITE)
    execute(database, THEN)
