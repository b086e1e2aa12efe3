"""Verified notices about orders that the database does not have, as after a restore from an older backup."""

from __future__ import annotations

from typing import Any

from peewee import ForeignKeyField, TextField, fn

from models.db.base import Fen, Table, Timestamp
from models.tables.channel import Channel
from models.tables.order import Order

KEPT = 10_000  # the newest


class UnknownNotice(Table):
    """A channel's report on one payment, stored once. `amount` in fen, `reference` is the channel's number."""

    channel = ForeignKeyField(Channel, index=False)
    order_no = TextField()
    state = TextField()
    amount = Fen()
    reference = TextField()
    at = Timestamp()

    @classmethod
    def keep(cls, **notice: Any) -> bool:
        """Store a notice, in the caller's transaction; False if it is stored already."""
        if not cls.insert(**notice).on_conflict_ignore().as_rowcount().execute():
            return False
        too_old = cls.select(cls.id).order_by(cls.id.desc()).offset(KEPT).limit(1).scalar()
        if too_old:
            cls.delete().where(cls.id <= too_old).execute()
        return True

    @classmethod
    def still_unknown(cls) -> Any:
        """Return the notices whose order is still not in the database, newest first."""
        known = fn.EXISTS(Order.select(Order.id).where(Order.order_no == cls.order_no))
        return cls.select().where(~known).order_by(cls.id.desc())


UnknownNotice.add_index(
    UnknownNotice.index(
        *(UnknownNotice.channel, UnknownNotice.order_no, UnknownNotice.state),
        *(UnknownNotice.reference, UnknownNotice.amount),
        unique=True,
        name="unknown_notice_same",
    )
)
