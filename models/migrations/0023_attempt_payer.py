"""After 0.4.0: the payer of an attempt, for channels that need the payer's id."""

from typing import Any

from models.migrations import execute

# SQLite would write a new column behind the foreign key, so the table is made again.
SQLITE = (
    """CREATE TABLE "attempt_new" ("id" INTEGER NOT NULL PRIMARY KEY,
    "order_id" INTEGER NOT NULL,
    "count" INTEGER NOT NULL,
    "browser" TEXT NOT NULL,
    "payer" TEXT,
    "opened" TEXT NOT NULL,
    "refusal" TEXT NOT NULL,
    "triedtime" INTEGER NOT NULL,
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    """INSERT INTO "attempt_new" ("id", "order_id", "count", "browser", "opened", "refusal", "triedtime")
    SELECT "id", "order_id", "count", "browser", "opened", "refusal", "triedtime" FROM "attempt" ORDER BY "id\"""",
    'DROP TABLE "attempt"',
    'ALTER TABLE "attempt_new" RENAME TO "attempt"',
    'CREATE UNIQUE INDEX "attempt_count" ON "attempt" ("order_id", "count")',
)
POSTGRES = ('ALTER TABLE "attempt" ADD COLUMN "payer" TEXT COLLATE "C"',)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, POSTGRES if database.is_shared else SQLITE)
