"""The sweep of due orders, which starts the act of each, and their times after a change of the clock."""

from __future__ import annotations

from functools import partial
from typing import Any

from peewee import SQL, Case, fn

from models.db.compiled import compiled, compiled_rows
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.order import BUY, CANCELLED, COMPLETED, CONFIRMED, PAID, SELL, Order
from models.tables.refund import OPEN, Refund
from runtime import clock
from services import kinds
from services.channels.calls import LATE, LEASE, LONGEST_PAUSE
from services.platform.worker_pool import WorkerPool, claim
from services.refunds import send
from services.withdrawals.send import adjust_to_clock


@compiled_rows(Channel)
def _channels_due(now: int) -> Any:
    due = (Order.channel == Channel.id, Order.order_type.in_((SELL, BUY)), Order.due_at <= now)
    return Channel.select().where(fn.EXISTS(Order.select(SQL("1")).where(*due)))


@compiled
def _channels_refunding(now: int) -> Any:
    return Refund.select(Refund.channel).where(Refund.due_at <= now).distinct()


@compiled_rows(Order)
def _due_of(channel: int, order_type: int, now: int, limit: int) -> Any:
    due = (Order.channel == channel, Order.order_type == order_type, Order.due_at <= now)
    return Order.select().where(*due).order_by(Order.due_at).limit(limit)


def sweep(pool: WorkerPool) -> int:
    """Start the act of each due order that the pool has a worker for; return the number of started acts."""
    with pool.sweeping:
        pool.take_announced()  # channels are few, so each sweep checks all of them
        now = clock.now()
        channels = {channel.id: channel for channel in _channels_due(now)}
        due = pool.choose(channels, partial(_due_orders, now))
        for order in (claimed := claim(due, now + LEASE)):
            order.channel = channels[order.channel_id]
            pool.submit(order.channel_id, kinds.advance, order)
        refunding = [channel for (channel,) in _channels_refunding(now)]
        refunds = pool.choose(refunding, partial(_due_refunds, now)) if refunding else []
        for refund in (taken := claim(refunds, now + LEASE) if refunds else []):
            pool.submit(refund.channel_id, send.advance, refund)
    return len(claimed) + len(taken)


def _due_refunds(now: int, channel_id: int, limit: int) -> list[Refund]:
    return send.due_of(channel_id, now, limit)


def _due_orders(now: int, channel_id: int, limit: int) -> list[Order]:
    """Return a channel's due orders, longest due first; a withdrawal never waits behind deposits."""
    orders: list[Order] = []
    for order_type in (SELL, BUY):
        orders += _due_of(channel_id, order_type, now, limit - len(orders))
    return orders


@transaction
def release(ahead: int = 0) -> int:
    """Make orders due soon whose pause is longer than any can be, because the clock was set back; return their number.

    Not immediately, because a worker may have claimed them. Dates of expiry are not changed, but the status of
    deposits that were created while the clock was ahead is checked before. If an order took its last step while the
    clock was ahead, its settlement delay or its checks begin now, at its new `updatetime`.

    Args:
        ahead: seconds by which the clock was set ahead instead.
    """
    adjust_to_clock(ahead)
    now = clock.now()
    # By channel, so that an index finds them.
    due = (Order.channel.in_(Channel.select(Channel.id)), Order.order_type.in_((SELL, BUY)))
    ended = Order.status.in_((CANCELLED, COMPLETED))
    began = ended | ((Order.order_type == BUY) & Order.status.in_((PAID, CONFIRMED)))
    begun_again = {"due_at": now + (Order.due_at - Order.updatetime), "updatetime": now}
    Order.update(begun_again).where(*due, Order.due_at > now, Order.updatetime > now, began).execute()
    Order.update(due_at=now + LATE[-1]).where(*due, Order.due_at > now + LATE[-1], ended).execute()
    expires = (Order.due_at == Order.expires_at) & (Order.createtime <= now)
    deposits = (Order.order_type == BUY) & ((Order.status == CONFIRMED) | expires)
    dated = deposits | Order.status.in_((CANCELLED, COMPLETED))
    stuck = Order.update(due_at=now + LEASE).where(*due, Order.due_at > now + LONGEST_PAUSE, ~dated)
    count: int = stuck.execute()
    # An open refund pauses for LATE[1] at most, an ended one for LATE[-1].
    too_late = Refund.due_at > Case(None, [(Refund.status.in_(OPEN), now + LATE[1])], now + LATE[-1])
    late = Refund.update(due_at=now + LEASE).where(too_late)
    count += late.execute()
    return count
