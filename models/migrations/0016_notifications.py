"""After 0.4.0: notifications of findings, and the channel balances below which there is one."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "destination" ("id" {id},
    "name" {text} NOT NULL,
    "kind" {text} NOT NULL CHECK (kind IN ('email', 'wecom', 'dingtalk', 'feishu', 'telegram', 'webhook')),
    "config" {text} NOT NULL,
    "severity" {text} NOT NULL CHECK (severity IN ('urgent', 'soon')),
    "language" {text} NOT NULL CHECK (language IN ('en', 'zh')),
    "digest_hour" {int} CHECK (digest_hour BETWEEN 0 AND 23),
    "digest_day" {int} NOT NULL,
    "failures" {int} NOT NULL,
    "enabled" {bool} NOT NULL,
    "createtime" {int} NOT NULL,
    "updatetime" {int} NOT NULL)""",
    'CREATE UNIQUE INDEX "destination_name" ON "destination" ("name")',
    """CREATE TABLE "known_finding" ("id" {id},
    "key" {text} NOT NULL,
    "kind" {text} NOT NULL,
    "severity" {text} NOT NULL CHECK (severity IN ('', 'urgent', 'soon')),
    "since" {int},
    "texts" {text} NOT NULL)""",
    'CREATE UNIQUE INDEX "known_finding_key" ON "known_finding" ("key")',
    """CREATE TABLE "notification" ("id" {id},
    "destination_id" {int} NOT NULL,
    "event" {text} NOT NULL CHECK (event IN ('findings', 'digest')),
    "lines" {text} NOT NULL,
    "state" {text} NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    "attempts" {int} NOT NULL,
    "due_at" {int},
    "problem" {text} NOT NULL,
    "detail" {text} NOT NULL,
    "createtime" {int} NOT NULL,
    "updatetime" {int} NOT NULL,
    FOREIGN KEY ("destination_id") REFERENCES "destination" ("id"),
    CHECK ((state = 'pending') = (due_at IS NOT NULL)))""",
    'CREATE INDEX "notification_destination_id" ON "notification" ("destination_id")',
    """CREATE TABLE "balance_warning" ("id" {id},
    "channel_id" {int} NOT NULL,
    "amount" {int} NOT NULL CHECK (amount > 0),
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"))""",
    'CREATE UNIQUE INDEX "balance_warning_channel_id" ON "balance_warning" ("channel_id")',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
