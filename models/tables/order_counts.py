"""Counts of orders that database triggers maintain, so that no total is counted row by row."""

from peewee import CompositeKey, ForeignKeyField, IntegerField, TextField

from models.db.base import Table
from models.tables.merchant import Merchant

BUCKET = 8192  # orders of one merchant, neighbours in time, that are counted together


class OrderCount(Table):
    """The number of a merchant's orders of one type and status with `bucket * BUCKET <= seq < (bucket + 1) * BUCKET`.

    Triggers update it in the transaction of the order (models/schema.py).
    """

    merchant = ForeignKeyField(Merchant, index=False)
    order_type = IntegerField()
    status = TextField()
    bucket = IntegerField()
    count = IntegerField()

    class Meta:
        table_name = "tally"
        primary_key = CompositeKey("merchant", "order_type", "status", "bucket")


_CELL = "merchant_id, order_type, status, bucket"
_ONE_MORE = f"""INSERT INTO tally ({_CELL}, count)
    VALUES (NEW.merchant_id, NEW.order_type, NEW.status, NEW.seq / {BUCKET}, 1)
    ON CONFLICT ({_CELL}) DO UPDATE SET count = count + 1;"""
TRIGGERS = (
    f'CREATE TRIGGER order_counted AFTER INSERT ON "order" BEGIN {_ONE_MORE} END',
    f"""CREATE TRIGGER order_recounted AFTER UPDATE OF status ON "order" WHEN OLD.status <> NEW.status BEGIN
    UPDATE tally SET count = count - 1 WHERE merchant_id = OLD.merchant_id AND order_type = OLD.order_type
        AND status = OLD.status AND bucket = OLD.seq / {BUCKET};
    {_ONE_MORE} END""",
)
