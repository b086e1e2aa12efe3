"""After 0.4.0: the epay gateway of merchants, and its orders."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """CREATE TABLE "epay_account" ("id" {id},
    "merchant_id" {int} NOT NULL,
    "pid" {int} NOT NULL CHECK (pid > 0),
    "key" {text} NOT NULL,
    "previous_key" {text},
    "previous_key_until" {int},
    "public_key" {text} NOT NULL,
    "previous_public_key" {text},
    "previous_public_key_until" {int},
    "platform_key" {text} NOT NULL,
    "types" {text} NOT NULL,
    "hosts" {text} NOT NULL,
    "webhooks" {bool} NOT NULL,
    "enabled" {bool} NOT NULL,
    "createtime" {int} NOT NULL,
    "updatetime" {int} NOT NULL,
    FOREIGN KEY ("merchant_id") REFERENCES "merchant" ("id"))""",
    'CREATE UNIQUE INDEX "epay_account_merchant_id" ON "epay_account" ("merchant_id")',
    'CREATE UNIQUE INDEX "epay_account_pid" ON "epay_account" ("pid")',
    """CREATE TABLE "epay_order" ("id" {id},
    "merchant_id" {int} NOT NULL,
    "out_trade_no" {text} NOT NULL,
    "trade_no" {text} NOT NULL,
    "order_id" {int},
    "version" {int} NOT NULL CHECK (version IN (1, 2)),
    "type" {text} NOT NULL,
    "amount" {int} NOT NULL CHECK (amount > 0),
    "name" {text} NOT NULL,
    "notify_url" {text} NOT NULL,
    "return_url" {text} NOT NULL,
    "param" {text} NOT NULL,
    "createtime" {int} NOT NULL,
    FOREIGN KEY ("merchant_id") REFERENCES "merchant" ("id"),
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"))""",
    'CREATE UNIQUE INDEX "epay_order_number" ON "epay_order" ("merchant_id", "out_trade_no")',
    'CREATE INDEX "epay_order_page" ON "epay_order" ("merchant_id", "id")',
    'CREATE UNIQUE INDEX "epay_order_order_id" ON "epay_order" ("order_id") WHERE ("order_id" IS NOT NULL)',
    'CREATE UNIQUE INDEX "epay_order_open" ON "epay_order" ("trade_no") WHERE ("order_id" IS NULL)',
)
# A change of an account raises the setup version.
SQLITE_TRIGGERS = tuple(
    f'CREATE TRIGGER epay_account_{verb.lower()}_revised AFTER {verb} ON "epay_account" '
    "BEGIN UPDATE revision SET number = number + 1; END"
    for verb in ("INSERT", "UPDATE", "DELETE")
)
POSTGRES_TRIGGERS = (
    'CREATE TRIGGER epay_account_revised AFTER INSERT OR UPDATE OR DELETE ON "epay_account" '
    "FOR EACH STATEMENT EXECUTE FUNCTION move_revision()",
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
    execute(database, POSTGRES_TRIGGERS if database.is_shared else SQLITE_TRIGGERS)
