"""After 0.4.0: groups of channels, what they passed on to their members, and how channels respond."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """ALTER TABLE "channel" ADD COLUMN "hours" {text} NOT NULL DEFAULT ''""",
    """ALTER TABLE "channel" ADD COLUMN "takes_orders" {bool} NOT NULL DEFAULT TRUE""",
    'ALTER TABLE "order" ADD COLUMN "group_id" {int} REFERENCES "channel" ("id")',
    """CREATE INDEX "order_group" ON "order" ("group_id", "channel_id", "createtime")
    WHERE ("group_id" IS NOT NULL)""",
    'ALTER TABLE "payment_exception" ADD COLUMN "channel_id" {int} REFERENCES "channel" ("id")',
    """UPDATE "payment_exception" SET "channel_id" =
    (SELECT "channel_id" FROM "order" WHERE "order"."id" = "payment_exception"."order_id")""",
    'ALTER TABLE "attempt" ADD COLUMN "channel_id" {int} REFERENCES "channel" ("id")',
    'ALTER TABLE "attempt" ADD COLUMN "sent" {bool} NOT NULL DEFAULT TRUE',
    """UPDATE "attempt" SET "channel_id" =
    (SELECT "channel_id" FROM "order" WHERE "order"."id" = "attempt"."order_id")""",
    """CREATE TABLE "channel_member" ("id" {id},
    "group_id" {int} NOT NULL,
    "channel_id" {int} NOT NULL,
    "position" {int} NOT NULL,
    "weight" {int} NOT NULL CHECK (weight > 0),
    "min_amount" {int},
    "max_amount" {int},
    "daily_amount" {int},
    "daily_count" {int},
    "hours" {text} NOT NULL,
    FOREIGN KEY ("group_id") REFERENCES "channel" ("id"),
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"))""",
    'CREATE UNIQUE INDEX "channel_member_pair" ON "channel_member" ("group_id", "channel_id")',
    'CREATE INDEX "channel_member_channel_id" ON "channel_member" ("channel_id")',
    """CREATE TABLE "member_day" ("id" {id},
    "member_id" {int} NOT NULL,
    "day" {text} NOT NULL,
    "amount" {int} NOT NULL,
    "count" {int} NOT NULL,
    FOREIGN KEY ("member_id") REFERENCES "channel_member" ("id") ON DELETE CASCADE)""",
    'CREATE UNIQUE INDEX "member_day_key" ON "member_day" ("member_id", "day")',
    """CREATE TABLE "channel_health" ("id" {id},
    "channel_id" {int} NOT NULL,
    "method" {text} NOT NULL,
    "results" {text} NOT NULL,
    "level" {int} NOT NULL,
    "off_until" {int},
    "trial_until" {int},
    "since" {int},
    "updatetime" {int} NOT NULL,
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"))""",
    'CREATE UNIQUE INDEX "channel_health_pair" ON "channel_health" ("channel_id", "method")',
)

REVISED = tuple(
    f'CREATE TRIGGER {name}_{verb.lower()}_revised AFTER {verb} ON "{name}" '
    "BEGIN UPDATE revision SET number = number + 1; END"
    for name in ("channel_member", "channel_health")
    for verb in ("INSERT", "UPDATE", "DELETE")
)
REVISED_POSTGRES = tuple(
    f'CREATE TRIGGER {name}_revised AFTER INSERT OR UPDATE OR DELETE ON "{name}" '
    "FOR EACH STATEMENT EXECUTE FUNCTION move_revision()"
    for name in ("channel_member", "channel_health")
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, (*STATEMENTS, *(REVISED_POSTGRES if database.is_shared else REVISED)))
