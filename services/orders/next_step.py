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
from models.tables.refund import EXCEPTION, OPEN, Refund, refunds_of
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
    # `missing_refunds` finds a refund without a next step.
    holding = (Refund.status.in_(OPEN), Refund.paid_from != EXCEPTION)
    refunded = Refund.select(SQL("1")).where(Refund.order == Order.id, *holding)
    wanted = (Order.due_at.is_null(), IS_OPEN, ~in_queue, ~fn.EXISTS(open_ones), ~fn.EXISTS(refunded))
    return list(
        Order.select(Order.order_no, Order.amount, Order.createtime)
        .where(*wanted)
        .order_by(Order.createtime)
        .limit(limit)
    )


def missing_refunds(limit: int) -> list[Refund]:
    """Return the refunds that break the invariant, oldest first: open, and neither due nor in a queue of an operator.

    The queues are refunds to approve and refunds to send on a manual channel. There should be none.
    """
    in_queue = (Refund.approved_by == "") | (Refund.channel.in_(manual_channels()) & (Refund.status == CONFIRMED))
    wanted = (Refund.due_at.is_null(), Refund.status.in_(OPEN), ~in_queue)
    return list(Refund.select().where(*wanted).order_by(Refund.createtime).limit(limit))


def is_held(order: Order, reference: str | None = None) -> bool:
    """Return whether the order waits for a decision about its money, or about that with this number of the channel."""
    holding = [each for each in exceptions_of(order) if each.is_open and each.kind in HOLDING]
    return any(reference in (None, each.reference) for each in holding)


def has_open_refund(order: Order) -> bool:
    """Return whether a refund of the order's own money has not ended. A deposit is not credited meanwhile."""
    return any(each.is_open and each.paid_from != EXCEPTION for each in refunds_of(order))
