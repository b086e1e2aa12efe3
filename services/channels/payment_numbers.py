"""Banks' and channels' numbers of payments: one number identifies one transfer."""

from __future__ import annotations

from zlib import crc32

from peewee import SQL

from models.db.base import database
from models.tables.order import Order, PaymentException

_NONE = SQL("''")  # written out, so that both databases can use the partial indexes


def is_on_record(order: Order, reference: str) -> bool:
    """Return whether this number is recorded for the order, with its payment or with an exception."""
    if order.channel_reference == reference:
        return True
    mine = (PaymentException.order == order, PaymentException.reference == reference)
    return PaymentException.select().where(*mine).exists()


def first_with(order: Order, reference: str) -> Order | None:
    """Return the oldest other order of the channel with this number, or None. Call it in a transaction.

    Deposits and withdrawals both count. Until the transaction ends, other transactions wait with the same number. Lock
    the order first (`Order.for_update`), so that no two transactions wait for each other.
    """
    if not reference:
        return None
    database.advisory_lock("reference", crc32(f"{order.channel_id} {reference}".encode()))
    others = Order.select().where(Order.channel == order.channel_id, Order.id != order.id)
    paid = others.where(Order.channel_reference == reference, Order.channel_reference != _NONE)
    reported = others.join(PaymentException).where(
        PaymentException.reference == reference, PaymentException.reference != _NONE
    )
    oldest = (paid.order_by(Order.id).first(), reported.order_by(PaymentException.order).first())
    return min((order for order in oldest if order), key=lambda order: int(order.id), default=None)
