"""What keeps a request from counting twice: spent nonces and idempotency keys."""

from peewee import CompositeKey, ForeignKeyField, IntegerField, TextField

from models.base import Table, Timestamp
from models.merchant import Merchant
from models.order import Order


class Nonce(Table):
    """A nonce that an order was created with."""

    merchant = ForeignKeyField(Merchant, index=False)
    nonce = TextField()
    createtime = Timestamp(index=True)

    class Meta:
        primary_key = CompositeKey("merchant", "nonce")
        without_rowid = True


class IdempotencyKey(Table):
    """An Idempotency-Key, the hash of the payload it came with, and the order it made, if any.

    `outcome` is the code that the first request was answered with; null while it runs.
    """

    merchant = ForeignKeyField(Merchant, index=False)
    key = TextField()
    payload_hash = TextField()
    order = ForeignKeyField(Order, null=True, index=False)
    outcome = IntegerField(null=True)
    createtime = Timestamp(index=True)

    class Meta:
        primary_key = CompositeKey("merchant", "key")
        without_rowid = True
