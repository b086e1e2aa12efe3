"""Counts of orders and callbacks that await action, in constant time."""

from __future__ import annotations

from dataclasses import dataclass

from peewee import JOIN, fn

import business_clock
from gateways.registry import DRIVERS
from models.tables.channel import Channel, ChannelLink
from models.tables.merchant import Merchant
from models.tables.operator import PayoutRequest
from models.tables.order import BUY, CONFIRMED, PAID, PENDING, SELL, UNKNOWN_OUTCOME, Order, PaymentException
from models.tables.order_counts import OrderCount
from models.tables.outbox import DEAD, WAITING, Callback

RECENT = 7 * 86_400  # seconds for which a failed callback is reported
MOST = 20_000  # orders that are searched for manual ones


@dataclass(frozen=True)
class Queue:
    """The number of waiting items, and the Unix time of the oldest."""

    count: int = 0
    oldest: int | None = None

    def __add__(self, other: Queue) -> Queue:
        times = [each.oldest for each in (self, other) if each.oldest is not None]
        return Queue(self.count + other.count, min(times, default=None))


@dataclass(frozen=True)
class Waiting:
    """All open items.

    `payouts` are withdrawals to approve or to send manually, `requests` payouts that a second operator must approve,
    `claims` deposits on the manual channels `by_hand` that the payer claims to have paid. `exceptions` are the open
    ones, `silent` those of them about a channel's silence, by channel id. `retried` are callbacks that failed and are
    tried again, `dead` those that failed after all retries since `dead_since`, by merchant's key.
    """

    payouts: Queue
    requests: Queue
    claims: Queue
    exceptions: Queue
    retried: int
    dead: dict[str, int]
    dead_since: int
    silent: dict[int, Queue]
    by_hand: list[int]


def by_hand() -> list[int]:
    """Return the ids of the manual channels."""
    return [row.id for row in Channel.select(Channel.id, Channel.driver) if DRIVERS[row.driver].by_hand]


def _sent_by_hand(order_type: int, status: str, channels: list[int]) -> Queue:
    if not channels:
        return Queue()
    every = Order.merchant.in_(Merchant.select(Merchant.id))  # the index begins with the merchant
    wanted = (Order.order_type == order_type) & (Order.status == status) & every & Order.channel.in_(channels)
    found = Order.select(Order.createtime).where(wanted).limit(MOST).alias("found")
    return Queue(*Order.select(fn.COUNT(found.c.createtime), fn.MIN(found.c.createtime)).from_(found).tuples().get())


def _to_accept() -> Queue:
    cell = (OrderCount.order_type == SELL) & (OrderCount.status == PENDING)
    count = OrderCount.select(fn.COALESCE(fn.SUM(OrderCount.count), 0)).where(cell).scalar()
    if not count:
        return Queue()
    oldest = (
        Order.select(Order.createtime)
        .where(Order.merchant == Merchant.id, Order.order_type == SELL, Order.status == PENDING)
        .order_by(Order.seq)
        .limit(1)
    )
    return Queue(count, min((at for (at,) in Merchant.select(oldest).tuples() if at is not None), default=None))


def _requests() -> Queue:
    valid = PayoutRequest.status == Order.status
    found = PayoutRequest.select(fn.COUNT(PayoutRequest.id), fn.MIN(PayoutRequest.at)).join(Order).where(valid)
    return Queue(*found.tuples().get())


def _exceptions() -> tuple[Queue, dict[int, Queue]]:
    silence = PaymentException.kind == UNKNOWN_OUTCOME
    rows = (
        PaymentException.select(
            silence, Order.channel, fn.COUNT(PaymentException.id), fn.MIN(PaymentException.createtime)
        )
        .join(Order, JOIN.INNER)
        .where(PaymentException.resolution.is_null())
        .group_by(PaymentException.kind, Order.channel)
        .tuples()
    )
    every, silent = Queue(), dict[int, Queue]()
    for is_silence, channel, count, oldest in rows:
        every += Queue(count, oldest)
        if is_silence:
            silent[channel] = Queue(count, oldest)
    return every, silent


def _callbacks(since: int) -> tuple[int, dict[str, int]]:
    failed = (Callback.due_at.is_null(False)) & (Callback.attempts > 0) & (Callback.state == WAITING)
    every = Callback.merchant.in_(Merchant.select(Merchant.id))
    retried = Callback.select(fn.COUNT(Callback.id)).where(every, failed).scalar()
    given_up = (Callback.merchant == Merchant.id) & (Callback.state == DEAD) & (Callback.createtime >= since)
    # Callbacks of a merchant without an address fail immediately, and need no action.
    reached = Merchant.callback_url != ""
    dead = Callback.select(fn.COUNT(Callback.id)).where(given_up)
    counts = Merchant.select(Merchant.key, dead).where(reached).tuples()
    return retried, {key: count for key, count in counts if count}


def waiting_counts() -> Waiting:
    """Count all open items now."""
    hand = by_hand()
    exceptions, silent = _exceptions()
    since = business_clock.now() - RECENT
    retried, dead = _callbacks(since)
    return Waiting(
        payouts=_to_accept() + _sent_by_hand(SELL, CONFIRMED, hand),
        requests=_requests(),
        claims=_sent_by_hand(BUY, PAID, hand),
        exceptions=exceptions,
        retried=retried,
        dead=dead,
        dead_since=since,
        silent=silent,
        by_hand=hand,
    )


STEPS = {"channel": Channel, "merchant": Merchant, "link": ChannelLink, "order": Order}


def onboarding_steps() -> dict[str, bool]:
    """Return each step, in order, and whether it is done: channel, merchant, link, order."""
    return {name: table.select().exists() for name, table in STEPS.items()}
