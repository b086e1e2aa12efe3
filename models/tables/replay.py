"""Replay protection: used nonces and idempotency keys."""

from __future__ import annotations

from typing import Any

from peewee import CompositeKey, ForeignKeyField, IntegerField, TextField, Tuple

from models.db.base import LARGEST_ID, Table, Timestamp
from models.db.writer import transaction
from models.tables.merchant import Merchant
from models.tables.order import Order


class Nonce(Table):
    """A nonce that an order was created with."""

    merchant = ForeignKeyField(Merchant, index=False)
    nonce = TextField()
    createtime = Timestamp()

    class Meta:
        primary_key = CompositeKey("merchant", "nonce")


class IdempotencyKey(Table):
    """An Idempotency-Key, the hash of its payload, and the order that it created, if any.

    `outcome` is the code of the first request's response; null while it runs.
    """

    merchant = ForeignKeyField(Merchant, index=False)
    key = TextField()
    payload_hash = TextField()
    order = ForeignKeyField(Order, null=True, index=False)
    outcome = IntegerField(null=True)
    createtime = Timestamp()

    class Meta:
        primary_key = CompositeKey("merchant", "key")


START, END = (0, ""), (LARGEST_ID, "")  # before and after every key of both tables


def drop_old(table: Any, until: int, after: tuple[int, str], most: int) -> tuple[int, str]:
    """Delete the expired rows (from `until` or earlier) among the `most` rows whose keys follow `after`.

    Rows are stored in the order of their keys, so this reads neighbouring rows. An index of their times would cost each
    order a write, and list expired rows that are stored far apart.

    Returns: the key of the last row that was checked; END after the last one.
    """
    key = Tuple(*(getattr(table, name) for name in table._meta.primary_key.field_names))
    ahead = key > Tuple(*after)
    far = table.select(*key.nodes).where(ahead).order_by(*key.nodes).offset(most - 1).limit(1)
    last: tuple[int, str] = far.tuples().first() or END
    _drop(table, (table.createtime <= until) & ahead & (key <= Tuple(*last)))
    return last


@transaction
def _drop(table: Any, which: Any) -> None:
    table.delete().where(which).execute()
