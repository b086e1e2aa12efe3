"""The next step of each order that has not ended.

The invariant: an order that has not ended is due at a time, or has an open exception, or is in a queue of an operator.
The queues are withdrawals to approve, payouts to send on a manual channel (also those in a bank file or with a request
to a second operator), and claims on a manual channel.
"""

from __future__ import annotations

from peewee import SQL, fn

from gateways.registry import DRIVERS
from models.tables.channel import Channel
from models.tables.order import (
    BUY,
    CONFIRMED,
    HOLDING,
    IS_OPEN,
    PAID,
    PENDING,
    SELL,
    Order,
    PaymentException,
)
from services.orders.lifecycle import exceptions_of


def manual_channels() -> list[int]:
    """Return the ids of the manual channels."""
    return [row.id for row in Channel.select(Channel.id, Channel.driver) if DRIVERS[row.driver].by_hand]


def missing(limit: int) -> list[Order]:
    """Return number, amount and time of the orders that break the invariant, oldest first. There should be none."""
    manual = Order.channel.in_(manual_channels())
    in_queue = (
        ((Order.order_type == SELL) & (Order.status == PENDING))
        | ((Order.order_type == SELL) & (Order.status == CONFIRMED) & manual)
        | ((Order.order_type == BUY) & (Order.status == PAID) & manual)
    )
    open_ones = PaymentException.select(SQL("1")).where(
        PaymentException.order == Order.id, PaymentException.resolution.is_null()
    )
    wanted = (Order.due_at.is_null(), IS_OPEN, ~in_queue, ~fn.EXISTS(open_ones))
    return list(
        Order.select(Order.order_no, Order.amount, Order.createtime)
        .where(*wanted)
        .order_by(Order.createtime)
        .limit(limit)
    )


def is_held(order: Order, reference: str | None = None) -> bool:
    """Return whether the order waits for a decision about its money, or about that with this number of the channel."""
    holding = [each for each in exceptions_of(order) if each.is_open and each.kind in HOLDING]
    return any(reference in (None, each.reference) for each in holding)
