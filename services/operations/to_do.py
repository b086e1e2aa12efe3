"""Queues of orders and callbacks that await action, each read up to a fixed number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from peewee import fn

from models.tables import bill
from models.tables.bill import StatementDifference
from models.tables.channel import Channel, ChannelLink
from models.tables.merchant import Merchant
from models.tables.operator import PayoutRequest
from models.tables.order import BUY, CONFIRMED, PAID, PENDING, SELL, UNKNOWN_OUTCOME, Order, PaymentException
from models.tables.order_counts import OrderCount
from models.tables.outbox import DEAD, WAITING, Callback
from models.tables.payout_batch import PayoutBatchLine
from models.tables.refund import OPEN, Refund
from runtime import clock
from services.callbacks import epay_notices
from services.console.order_list import MOST
from services.console.record_lists import RECENT
from services.orders import next_step
from services.orders.next_step import manual_channels

FEW = 5  # orders or refunds that a finding names
LATE_REFUND = 3_600  # seconds without a result after which a refund is late


@dataclass(frozen=True)
class Queue:
    """The number of waiting items, the Unix time of the oldest, and their total in fen.

    With `more`, the total is that of MOST items only.
    """

    count: int = 0
    oldest: int | None = None
    amount: int = 0
    more: bool = False

    def __add__(self, other: Queue) -> Queue:
        times = [each.oldest for each in (self, other) if each.oldest is not None]
        total = self.amount + other.amount
        return Queue(self.count + other.count, min(times, default=None), total, self.more or other.more)


@dataclass(frozen=True)
class Waiting:
    """All open items.

    `approve` are withdrawals to approve, `send` approved ones to send manually, `requests` payouts that a second
    operator must approve, which are among them. `in_files` are withdrawals that ended although a bank file without a
    result may still pay them. `claims` are deposits on the manual channels `by_hand` that the payer claims to have
    paid. `exceptions` are the open ones, `silent` those of them about a channel's silence, by channel id, and
    `decisions` the others.
    `differences` are those between statements and orders that remain. `retried` are callbacks that failed and are
    tried again, `failed` those that failed after all retries since `dead_since`, and `dead` their number by merchant's
    key. `stuck` are open orders without a next step, which an error of the service has caused, and `stuck_orders` the
    numbers of the oldest; the same of `stuck_refunds`. `refund_approve` are refunds that an operator must approve,
    `refund_send` approved ones to send manually, and `refund_late` those that have been approved or sent for an hour,
    without a result.
    """

    approve: Queue
    send: Queue
    requests: Queue
    in_files: Queue
    claims: Queue
    exceptions: Queue
    decisions: Queue
    differences: Queue
    retried: int
    failed: Queue
    dead: dict[str, int]
    dead_since: int
    silent: dict[int, Queue]
    by_hand: list[int]
    stuck: Queue
    stuck_orders: list[str]
    refund_approve: Queue
    refund_send: Queue
    refund_late: Queue
    stuck_refunds: Queue
    stuck_refund_numbers: list[str]

    @property
    def queues(self) -> dict[str, Queue]:
        """The queues that await an operator, by name, in the order in which they are shown."""
        names = (
            *("approve", "send", "requests", "in_files", "refund_approve", "refund_send"),
            *("claims", "exceptions", "differences", "failed"),
        )
        return {name: getattr(self, name) for name in names}

    @property
    def payouts(self) -> Queue:
        """The withdrawals to approve or to send."""
        return self.approve + self.send

    @property
    def refunds(self) -> Queue:
        """The refunds to approve or to send."""
        return self.refund_approve + self.refund_send


def _of_all(order_type: int, status: str) -> Any:
    """A condition for all orders of a type and status; the index begins with the merchant."""
    every = Order.merchant.in_(Merchant.select(Merchant.id))
    return every & (Order.order_type == order_type) & (Order.status == status)


def _sums(wanted: Any) -> tuple[int, int | None, int]:
    """Return the number, the oldest time and the total of the wanted orders; of MOST of them if there are more."""
    found = Order.select(Order.createtime, Order.amount).where(wanted).limit(MOST).alias("found")
    columns = (fn.COUNT(found.c.amount), fn.MIN(found.c.createtime), fn.COALESCE(fn.SUM(found.c.amount), 0))
    count, oldest, amount = Order.select(*columns).from_(found).tuples().get()
    return count, oldest, amount


def _on_channels(order_type: int, status: str, channels: list[int]) -> Queue:
    if not channels:
        return Queue()
    count, oldest, amount = _sums(_of_all(order_type, status) & Order.channel.in_(channels))
    return Queue(count, oldest, amount, count == MOST)


def _to_approve() -> Queue:
    every = OrderCount.merchant.in_(Merchant.select(Merchant.id))
    cell = every & (OrderCount.order_type == SELL) & (OrderCount.status == PENDING)
    count = OrderCount.select(fn.COALESCE(fn.SUM(OrderCount.count), 0)).where(cell).scalar()
    if not count:
        return Queue()
    oldest = (
        Order.select(Order.createtime)
        .where(Order.merchant == Merchant.id, Order.order_type == SELL, Order.status == PENDING)
        .order_by(Order.seq)
        .limit(1)
    )
    first = min((at for (at,) in Merchant.select(oldest).tuples() if at is not None), default=None)
    read, _, amount = _sums(_of_all(SELL, PENDING))
    return Queue(count, first, amount, count > read)


def _requests() -> Queue:
    valid = PayoutRequest.status == Order.status
    columns = (fn.COUNT(PayoutRequest.id), fn.MIN(PayoutRequest.at), fn.COALESCE(fn.SUM(Order.amount), 0))
    return Queue(*PayoutRequest.select(*columns).join(Order).where(valid).tuples().get())


def _in_files() -> Queue:
    line = PayoutBatchLine
    columns = (fn.COUNT(line.id), fn.MIN(line.filetime), fn.COALESCE(fn.SUM(Order.amount), 0))
    wanted = (line.result.is_null(), line.filetime.is_null(False), Order.status != CONFIRMED)
    return Queue(*line.select(*columns).join(Order).where(*wanted).tuples().get())


def _exceptions() -> tuple[Queue, dict[int, Queue]]:
    """Return the open exceptions that are not about a channel's silence, and those that are, by channel id."""
    table, silence = PaymentException, PaymentException.kind == UNKNOWN_OUTCOME
    counted = (fn.COUNT(table.id), fn.MIN(table.createtime), fn.SUM(table.amount))
    rows = table.select(silence, table.channel, *counted).where(table.resolution.is_null())
    others, silent = Queue(), dict[int, Queue]()
    for is_silence, channel, *queue in rows.group_by(table.kind, table.channel).tuples():
        if is_silence:
            silent[channel] = Queue(*queue)
        else:
            others += Queue(*queue)
    return others, silent


def _differences() -> Queue:
    table = StatementDifference
    columns = (fn.COUNT(table.id), fn.MIN(table.createtime), fn.COALESCE(fn.SUM(table.fen), 0))
    return Queue(*table.select(*columns).where(table.state == bill.OPEN).tuples().get())


def _refunds(time: Any, *wanted: Any) -> Queue:
    """Return the number, the oldest time and the total of the wanted refunds; of MOST of them if there are more."""
    found = Refund.select(time.alias("at"), Refund.amount).where(*wanted).limit(MOST).alias("found")
    columns = (fn.COUNT(found.c.amount), fn.MIN(found.c.at), fn.COALESCE(fn.SUM(found.c.amount), 0))
    count, oldest, amount = Refund.select(*columns).from_(found).tuples().get()
    return Queue(count, oldest, amount, count == MOST)


def _late_refunds(hand: list[int]) -> Queue:
    sent = (Refund.status == CONFIRMED) & Refund.channel.not_in(hand)
    since = clock.now() - LATE_REFUND
    queued = (Refund.status == PENDING) & (Refund.approved_by != "")
    return _refunds(Refund.updatetime, Refund.status.in_(OPEN), sent | queued, Refund.updatetime < since)


def _retried() -> int:
    failed = (Callback.due_at.is_null(False)) & (Callback.attempts > 0) & (Callback.state == WAITING)
    every = Callback.merchant.in_(Merchant.select(Merchant.id))
    return int(Callback.select(fn.COUNT(Callback.id)).where(every, failed).scalar())


def _failed(since: int) -> dict[str, Queue]:
    """Return the callbacks that failed after all retries since then, by merchant's key."""
    given_up = (Callback.merchant == Merchant.id) & (Callback.state == DEAD) & (Callback.createtime >= since)
    # Callbacks of a merchant without an address fail immediately, and need no action. An epay notice has its own.
    given_up &= (Merchant.callback_url != "") | (Callback.type == epay_notices.TYPE)
    sums = [Callback.select(each).where(given_up) for each in (fn.COUNT(Callback.id), fn.MIN(Callback.createtime))]
    rows = Merchant.select(Merchant.key, *sums).tuples()
    return {key: Queue(count, oldest) for key, count, oldest in rows if count}


def waiting_counts() -> Waiting:
    """Read all queues now."""
    hand = manual_channels()
    decisions, silent = _exceptions()
    since = clock.now() - RECENT
    failed = _failed(since)
    stuck, stuck_refunds = next_step.missing(MOST), next_step.missing_refunds(MOST)
    return Waiting(
        approve=_to_approve(),
        send=_on_channels(SELL, CONFIRMED, hand),
        requests=_requests(),
        in_files=_in_files(),
        claims=_on_channels(BUY, PAID, hand),
        exceptions=sum(silent.values(), decisions),
        decisions=decisions,
        differences=_differences(),
        retried=_retried(),
        failed=sum(failed.values(), Queue()),
        dead={key: queue.count for key, queue in failed.items()},
        dead_since=since,
        silent=silent,
        by_hand=hand,
        stuck=Queue(
            len(stuck), min((order.createtime for order in stuck), default=None), sum(order.amount for order in stuck)
        ),
        stuck_orders=[order.order_no for order in stuck[:FEW]],
        refund_approve=_refunds(Refund.createtime, Refund.status == PENDING, Refund.approved_by == ""),
        refund_send=_refunds(Refund.updatetime, Refund.status == CONFIRMED, Refund.channel.in_(hand)),
        refund_late=_late_refunds(hand),
        stuck_refunds=Queue(
            len(stuck_refunds),
            min((each.createtime for each in stuck_refunds), default=None),
            sum(each.amount for each in stuck_refunds),
        ),
        stuck_refund_numbers=[each.refund_no for each in stuck_refunds[:FEW]],
    )


STEPS = {"channel": Channel, "merchant": Merchant, "link": ChannelLink, "order": Order}


def onboarding_steps() -> dict[str, bool]:
    """Return each step, in order, and whether it is done: channel, merchant, link, order."""
    return {name: table.select().exists() for name, table in STEPS.items()}
