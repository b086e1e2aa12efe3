"""From 0.1.0 to 0.2.0: orders are numbered by time and counted; a version number tracks merchants and channels."""

from typing import Any

# A new table replaces "order": ADD COLUMN would leave a DEFAULT behind and rewrite each row as well.
NUMBERED = """CREATE TABLE "numbered" ("id" INTEGER NOT NULL PRIMARY KEY,
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
    FOREIGN KEY ("merchant_id") REFERENCES "merchant" ("id"),
    FOREIGN KEY ("channel_id") REFERENCES "channel" ("id"),
    FOREIGN KEY ("account_id") REFERENCES "receiving_account" ("id"))"""
KEPT = """id, order_no, merchant_id, channel_id, account_id, order_type, status, merchant_order_no, customer_name,
    payment_method, amount, service_rate, service_amount, passage_rate, passage_amount, deposit_rate, deposit_amount,
    channel_amount, merchant_actual_amount, opened, channel_reference, expires_at, due_at, asks,
    createtime, updatetime"""
# By id, so that the new table is written from its first page to its last.
COPY = f"""WITH ranked AS MATERIALIZED (
        SELECT id AS ranked_id, ROW_NUMBER() OVER (PARTITION BY merchant_id ORDER BY createtime, id) AS seq FROM "order"
    )
    INSERT INTO numbered ({KEPT}, seq)
    SELECT {KEPT}, seq FROM ranked JOIN "order" ON id = ranked_id ORDER BY id"""
# The runner has switched foreign keys off: the tables that refer to "order" find the new one under the old name.
ORDERS = (
    NUMBERED,
    COPY,
    'DROP TABLE "order"',
    'ALTER TABLE "numbered" RENAME TO "order"',
    'CREATE UNIQUE INDEX "order_order_no" ON "order" ("order_no")',
    'CREATE UNIQUE INDEX "order_seq" ON "order" ("merchant_id", "seq")',
    'CREATE INDEX "order_createtime" ON "order" ("merchant_id", "createtime", "seq")',
    'CREATE INDEX "order_cell" ON "order" ("merchant_id", "order_type", "status", "seq")',
    'CREATE INDEX "order_merchant_order_no" ON "order" ("merchant_id", "merchant_order_no", "seq")',
    'CREATE INDEX "order_due" ON "order" ("channel_id", "order_type", "due_at") WHERE ("due_at" IS NOT NULL)',
)

ONE_MORE = """INSERT INTO tally (merchant_id, order_type, status, bucket, count)
    VALUES (NEW.merchant_id, NEW.order_type, NEW.status, NEW.seq / 8192, 1)
    ON CONFLICT (merchant_id, order_type, status, bucket) DO UPDATE SET count = count + 1;"""
COUNTS = (
    """CREATE TABLE "tally" ("merchant_id" INTEGER NOT NULL,
    "order_type" INTEGER NOT NULL,
    "status" TEXT NOT NULL,
    "bucket" INTEGER NOT NULL,
    "count" INTEGER NOT NULL,
    PRIMARY KEY ("merchant_id", "order_type", "status", "bucket"),
    FOREIGN KEY ("merchant_id") REFERENCES "merchant" ("id")) WITHOUT ROWID""",
    """INSERT INTO tally (merchant_id, order_type, status, bucket, count)
    SELECT merchant_id, order_type, status, seq / 8192, COUNT(*) FROM "order" GROUP BY 1, 2, 3, 4""",
    f'CREATE TRIGGER order_counted AFTER INSERT ON "order" BEGIN {ONE_MORE} END',
    f"""CREATE TRIGGER order_recounted AFTER UPDATE OF status ON "order" WHEN OLD.status <> NEW.status BEGIN
    UPDATE tally SET count = count - 1 WHERE merchant_id = OLD.merchant_id AND order_type = OLD.order_type
        AND status = OLD.status AND bucket = OLD.seq / 8192;
    {ONE_MORE} END""",
)
# The service itself fills the index, from the first order on.
SEARCH = (
    """CREATE VIRTUAL TABLE order_search USING fts5(
    merchant_order_no, content='', columnsize=0, detail='none', tokenize='trigram')""",
    'CREATE TABLE "search_progress" ("id" INTEGER NOT NULL PRIMARY KEY, "order_id" INTEGER NOT NULL)',
    "INSERT INTO search_progress (order_id) VALUES (0)",
)
REVISION = (
    'CREATE TABLE "revision" ("id" INTEGER NOT NULL PRIMARY KEY, "number" INTEGER NOT NULL)',
    "INSERT INTO revision (number) VALUES (0)",
    *(
        f'CREATE TRIGGER {table}_{verb.lower()}_revised AFTER {verb} ON "{table}" '
        "BEGIN UPDATE revision SET number = number + 1; END"
        for table in ("merchant", "channel", "channel_link")
        for verb in ("INSERT", "UPDATE", "DELETE")
    ),
)
FOUND = (
    'CREATE INDEX "payment_exception_order_id" ON "payment_exception" ("order_id")',
    'CREATE INDEX "callback_state" ON "callback" ("merchant_id", "state", "createtime")',
    'DROP INDEX "receiving_account_merchant_id"',
    'CREATE INDEX "receiving_account_on_file" ON "receiving_account" ("merchant_id", "id") WHERE "on_file"',
)


def up(migrator: Any, database: Any) -> None:
    """Apply the step, in the runner's transaction."""
    for statement in (*ORDERS, *COUNTS, *SEARCH, *REVISION, *FOUND):
        database.execute_sql(statement)
