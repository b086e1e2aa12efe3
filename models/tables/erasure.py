"""How far the erasure of personal data has come (services/console/erasure.py)."""

from __future__ import annotations

from peewee import BigIntegerField, ForeignKeyField

from models.db.base import Table, Timestamp
from models.tables.order import Order


class ErasureProgress(Table):
    """At most one row: the id of the last order that was examined."""

    order_id = BigIntegerField()

    @classmethod
    def reached(cls) -> int:
        """Return the id of the last order that was examined, 0 before the first."""
        return cls.select(cls.order_id).scalar() or 0

    @classmethod
    def reach(cls, order_id: int) -> None:
        """Store that the orders up to this id were examined."""
        if not cls.update(order_id=order_id).execute():
            cls.add(order_id=order_id)


class ErasureDelayed(Table):
    """An order that was examined before it could be erased; `due_at` is when it is examined again."""

    order = ForeignKeyField(Order, unique=True)
    due_at = Timestamp(index=True)
