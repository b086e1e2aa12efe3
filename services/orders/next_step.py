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
from runtime import clock

RESUMED = {BUY: (PENDING, PAID, CONFIRMED), SELL: (CONFIRMED,)}  # a pending withdrawal waits for its approval


def by_hand() -> list[int]:
    """Return the ids of the manual channels."""
    return [row.id for row in Channel.select(Channel.id, Channel.driver) if DRIVERS[row.driver].by_hand]


def missing(limit: int) -> list[Order]:
    """Return number, amount and time of the orders that break the invariant, oldest first. There should be none."""
    manual = Order.channel.in_(by_hand())
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


def is_held(order: Order) -> bool:
    """Return whether the order waits for a decision about its money.

    Only an exception about a confirmed deposit's own payment delays its credit: a second payment does not.
    """
    own = PaymentException.reference == order.channel_reference
    about = [own] if order.is_buy and order.status == CONFIRMED else []
    open_ones = (PaymentException.order == order, PaymentException.resolution.is_null())
    return PaymentException.select().where(*open_ones, PaymentException.kind.in_(HOLDING), *about).exists()


def hold_or_resume(order: Order) -> None:
    """Stop what is due for an unpaid deposit that waits for a decision; make a held order due again after the last one.

    Call it in the transaction that opened or closed an exception. A confirmed deposit keeps the time of its credit as
    its due time, and is held when that comes (`due`). So a held one without a due time is due at once.
    """
    if order.status not in RESUMED[order.order_type]:
        return
    order, held = Order.for_update(order.id), is_held(order)
    if held and order.is_buy and order.status != CONFIRMED:
        order.put_off(None)
    elif not held and order.due_at is None:
        order.put_off(clock.now())
