"""After 0.3.0: until when a withdrawal is left alone is kept with it."""

# On SQLite, a table of its own takes the place of "order": ADD COLUMN would put the column after the foreign keys.
WITH_PROMISES = """CREATE TABLE "with_promises" ("id" INTEGER NOT NULL PRIMARY KEY,
    "order_no" TEXT NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "seq" INTEGER NOT NULL,
    "channel_id" INTEGER NOT NULL,
    "account_id" INTEGER,
    "order_type" INTEGER NOT NULL CHECK (order_type IN (1, 2)),
    "status" TEXT NOT NULL CHECK (status IN ('pending', 'paid', 'confirmed', 'completed', 'cancelled')),
    "merchant_order_no" TEXT NOT NULL,
    "customer_name" TEXT NOT NULL,
    "payment_method" TEXT NOT NULL,
    "amount" INTEGER NOT NULL CHECK (amount > 0),
    "service_rate" INTEGER NOT NULL,
    "service_amount" INTEGER NOT NULL CHECK (service_amount >= 0),
    "passage_rate" INTEGER NOT NULL,
    "passage_amount" INTEGER NOT NULL,
    "deposit_rate" INTEGER NOT NULL,
    "deposit_amount" INTEGER NOT NULL CHECK (deposit_amount >= 0),
    "channel_amount" INTEGER NOT NULL CHECK (channel_amount >= 0),
    "merchant_actual_amount" INTEGER NOT NULL CHECK (merchant_actual_amount >= 0),
    "opened" TEXT NOT NULL,
    "channel_reference" TEXT NOT NULL,
    "expires_at" INTEGER,
    "due_at" INTEGER,
    "asks" INTEGER NOT NULL,
    "createtime" INTEGER NOT NULL,
    "updatetime" INTEGER NOT NULL,
    "left_alone_until" INTEGER,
    FOREIGN KEY ("merchant_id") REFERENCES "merchant" ("id"),
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"),
    FOREIGN KEY ("account_id") REFERENCES "receiving_account" ("id"))"""
KEPT = """id, order_no, merchant_id, seq, channel_id, account_id, order_type, status, merchant_order_no, customer_name,
    payment_method, amount, service_rate, service_amount, passage_rate, passage_amount, deposit_rate, deposit_amount,
    channel_amount, merchant_actual_amount, opened, channel_reference, expires_at, due_at, asks,
    createtime, updatetime"""
ONE_MORE = """INSERT INTO tally (merchant_id, order_type, status, bucket, count)
    VALUES (NEW.merchant_id, NEW.order_type, NEW.status, NEW.seq / 8192, 1)
    ON CONFLICT (merchant_id, order_type, status, bucket) DO UPDATE SET count = count + 1;"""
ON_SQLITE = (
    WITH_PROMISES,
    f'INSERT INTO with_promises ({KEPT}) SELECT {KEPT} FROM "order" ORDER BY id',
    'DROP TABLE "order"',
    'ALTER TABLE "with_promises" RENAME TO "order"',
    'CREATE UNIQUE INDEX "order_order_no" ON "order" ("order_no")',
    'CREATE UNIQUE INDEX "order_seq" ON "order" ("merchant_id", "seq")',
    'CREATE INDEX "order_cell" ON "order" ("merchant_id", "order_type", "status", "seq")',
    'CREATE INDEX "order_merchant_order_no" ON "order" ("merchant_id", "merchant_order_no", "seq")',
    'CREATE INDEX "order_due" ON "order" ("channel_id", "order_type", "due_at") WHERE ("due_at" IS NOT NULL)',
    f'CREATE TRIGGER order_counted AFTER INSERT ON "order" BEGIN {ONE_MORE} END',
    f"""CREATE TRIGGER order_recounted AFTER UPDATE OF status ON "order" WHEN OLD.status <> NEW.status BEGIN
    UPDATE tally SET count = count - 1 WHERE merchant_id = OLD.merchant_id AND order_type = OLD.order_type
        AND status = OLD.status AND bucket = OLD.seq / 8192;
    {ONE_MORE} END""",
)
ON_POSTGRES = ('ALTER TABLE "order" ADD COLUMN "left_alone_until" BIGINT',)


def up(migrator, database):
    """Apply it; the runner's transaction holds it all."""
    for statement in ON_POSTGRES if database.is_shared else ON_SQLITE:
        database.execute_sql(statement)
