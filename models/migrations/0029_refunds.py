"""After 0.4.0: refunds, with their history, and the merchants' settings for them."""

from typing import Any

from models.migrations import execute

STATEMENTS = (
    """ALTER TABLE "merchant" ADD COLUMN "refund_mode" {text} NOT NULL DEFAULT 'off'
    CHECK (refund_mode IN ('off', 'approval', 'automatic'))""",
    """ALTER TABLE "merchant" ADD COLUMN "refund_auto_max" {int} NOT NULL DEFAULT 0 CHECK (refund_auto_max >= 0)""",
    """ALTER TABLE "merchant" ADD COLUMN "refund_fees" {text} NOT NULL DEFAULT 'keep'
    CHECK (refund_fees IN ('keep', 'proportional', 'full_only'))""",
    """CREATE TABLE "refund" ("id" {id},
    "refund_no" {text} NOT NULL,
    "order_id" {int} NOT NULL,
    "merchant_id" {int} NOT NULL,
    "channel_id" {int} NOT NULL,
    "exception_id" {int},
    "merchant_refund_no" {text},
    "reference" {text} NOT NULL,
    "amount" {int} NOT NULL CHECK (amount > 0),
    "total" {int} NOT NULL CHECK (total > 0),
    "service_amount" {int} NOT NULL CHECK (service_amount >= 0),
    "merchant_actual_amount" {int} NOT NULL CHECK (merchant_actual_amount >= 0),
    "paid_from" {text} NOT NULL CHECK (paid_from IN ('balance', 'uncredited', 'platform', 'exception')),
    "status" {text} NOT NULL CHECK (status IN ('pending', 'confirmed', 'completed', 'cancelled')),
    "reason" {text} NOT NULL,
    "who" {text} NOT NULL,
    "approved_by" {text} NOT NULL,
    "refunded_before" {int},
    "channel_reference" {text} NOT NULL,
    "senttime" {int},
    "due_at" {int},
    "asks" INTEGER NOT NULL,
    "createtime" {int} NOT NULL,
    "updatetime" {int} NOT NULL,
    "completedtime" {int},
    FOREIGN KEY ("order_id") REFERENCES "order" ("id"),
    FOREIGN KEY ("merchant_id") REFERENCES "merchant" ("id"),
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"),
    FOREIGN KEY ("exception_id") REFERENCES "payment_exception" ("id"),
    CHECK (amount <= total),
    CHECK ((paid_from = 'exception') = (exception_id IS NOT NULL)))""",
    'CREATE UNIQUE INDEX "refund_refund_no" ON "refund" ("refund_no")',
    'CREATE INDEX "refund_order_id" ON "refund" ("order_id")',
    'CREATE INDEX "refund_merchant" ON "refund" ("merchant_id", "id")',
    """CREATE UNIQUE INDEX "refund_merchant_number" ON "refund" ("merchant_id", "merchant_refund_no")
    WHERE ("merchant_refund_no" IS NOT NULL)""",
    'CREATE INDEX "refund_due" ON "refund" ("channel_id", "due_at") WHERE ("due_at" IS NOT NULL)',
    'CREATE INDEX "refund_status" ON "refund" ("status", "createtime")',
    """CREATE INDEX "refund_reference" ON "refund" ("channel_id", "channel_reference")
    WHERE ("channel_reference" != '')""",
    """CREATE TABLE "refund_history" ("id" {id},
    "refund_id" {int} NOT NULL,
    "before" {text} NOT NULL,
    "after" {text} NOT NULL,
    "who" {text} NOT NULL,
    "at" {int} NOT NULL,
    "code" {text} NOT NULL,
    "args" {text},
    FOREIGN KEY ("refund_id") REFERENCES "refund" ("id"))""",
    'CREATE INDEX "refund_history_refund_id" ON "refund_history" ("refund_id")',
)
REFUSE = "BEGIN SELECT RAISE(ABORT, 'refund_history is append-only'); END"
SQLITE_TRIGGERS = (
    f'CREATE TRIGGER refund_history_no_update BEFORE UPDATE ON "refund_history" {REFUSE}',
    f'CREATE TRIGGER refund_history_no_delete BEFORE DELETE ON "refund_history" {REFUSE}',
    'CREATE TRIGGER refund_history_no_replace BEFORE INSERT ON "refund_history" '
    f'WHEN EXISTS (SELECT 1 FROM "refund_history" WHERE id = NEW.id) {REFUSE}',
)
POSTGRES_TRIGGERS = (
    'CREATE TRIGGER refund_history_no_change BEFORE UPDATE OR DELETE ON "refund_history" '
    "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
    'CREATE TRIGGER refund_history_no_truncate BEFORE TRUNCATE ON "refund_history" '
    "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    execute(database, STATEMENTS)
    execute(database, POSTGRES_TRIGGERS if database.is_shared else SQLITE_TRIGGERS)
