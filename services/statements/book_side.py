"""The books' side of a statement: the orders of its lines, and all orders with postings on its days."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from peewee import fn

from models.db.base import database
from models.tables.channel import Channel
from models.tables.ledger import AVAILABLE, HELD, Entry, LedgerAccount, Posting
from models.tables.order import (
    AT_CHANNEL,
    BUY,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAID,
    REVERSED,
    SELL,
    History,
    Order,
    PaymentException,
)
from runtime import current
from services.ledger.fees import apply_rate
from services.orders.positions import COMPLETE, CREDIT, PAID_OUT
from services.statements.line_orders import COLUMNS, chunks, orders_of
from services.statements.parse import Line

EDGE = 600  # seconds by which the clocks of an upstream and of this service may say different days
BOOKED = {BUY: (CONFIRMED, COMPLETED), SELL: (PAID, COMPLETED)}


@dataclass(frozen=True)
class Days:
    """The days of a statement: from `since` until before `until`, in Unix seconds.

    It has the payments that were made in them or, `by_creation`, the orders that were placed in them. At the channel an
    order may be placed later than here, but not once it is expired.
    """

    since: int
    until: int
    by_creation: bool = False

    def moment(self, order: Order, at: int) -> int:
        """By when it is decided whether the statement has what happened to the order at that time."""
        return int(order.createtime) if self.by_creation else at

    def have(self, order: Order, at: int) -> bool:
        """Whether that time is within these days."""
        return self.since <= self.moment(order, at) < self.until

    def neighbour(self, order: Order, at: int) -> int:
        """-1 or 1 where it may stand in the statement of the day before or after, else 0."""
        moment = self.moment(order, at)
        late = current().settings.buy_expiry if self.by_creation else 0
        return -1 if moment < self.since + EDGE else 1 if moment >= self.until - EDGE - late else 0

    def around(self, at: Any) -> Any:
        """The condition for rows of these days, with their margins, by a column with a time."""
        column = Order.createtime if self.by_creation else at
        return (column >= self.since - EDGE) & (column < self.until + EDGE)


@dataclass
class Record:
    """An order, its exceptions, and when its money moved here, if that was in the statement's days or at their edge.

    Money that an operator completed the order with moved when the channel told of it. `moved_elsewhen` is when it
    moved, if that was on other days and a line belongs to the order. `postings` is what a withdrawal's left on its
    merchant's accounts, by kind, in fen.
    """

    order: Order
    exceptions: list[PaymentException] = field(default_factory=list)
    moved_at: int | None = None
    moved_elsewhen: int | None = None
    postings: dict[str, int] = field(default_factory=dict)

    @property
    def is_booked(self) -> bool:
        """Whether the order's money is in the books, or about to be."""
        return self.order.status in BOOKED[self.order.order_type]

    @property
    def was_taken_back(self) -> bool:
        """Whether the channel confirmed the deposit and refunded it before it was credited."""
        moved = self.moved_at or self.moved_elsewhen
        return bool(self.order.is_buy and self.order.status == CANCELLED and moved)

    @property
    def may_have_moved(self) -> bool:
        """Whether it is booked, or a deposit that the channel may have refunded."""
        return self.is_booked or bool(self.order.is_buy and self.order.status == CANCELLED)

    @property
    def is_counted(self) -> bool:
        """Whether its money was posted; for a cancelled withdrawal, after all."""
        return self.order.is_buy or self.order.status != CANCELLED or self.left_on(AVAILABLE, HELD) < 0

    def left_on(self, *kinds: str) -> int:
        """The sum of the postings on accounts of these kinds, in fen."""
        return sum(self.postings.get(kind, 0) for kind in kinds)


@dataclass
class Recorded:
    """`by_line` has the record of each line that belongs to an order of the channel, `elsewhere` the channel of others.

    `within` are the records of orders, with lines or without, whose money moved in the statement's days, in the order
    of that, and of those of which the channel told other money in these days that an operator credited, or that money
    went back, which is not settled. `sums` is all that moved then: `in`, `out` and `fees`, in fen.
    """

    by_line: dict[int, Record]
    elsewhere: dict[int, int]
    within: list[Record] = field(default_factory=list)
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("in", "out", "fees"), 0))


def fee_of(order: Order, amount: int, fee_rate: int | None) -> int | None:
    """The channel's expected fee on this amount, in fen: a rate of deposits, the stored fee of withdrawals."""
    if not order.is_buy:
        return order.channel_amount
    return None if fee_rate is None else apply_rate(amount, fee_rate)


def recorded(channel: Channel, lines: list[Line], days: Days, types: Collection[int], fee_rate: int | None) -> Recorded:
    """Read the books as of one moment, without a lock against writing.

    Args:
        days: of the statement.
        types: of orders that the statement has at all; no others are missed.
        fee_rate: the share of deposits that the channel keeps, in basis points.
    """
    with database.snapshot():
        orders = orders_of(channel, lines)
        records = {order.id: Record(order) for order in orders.values()}
        found = Recorded(
            {at: records[order.id] for at, order in orders.items() if order.channel_id == channel.id},
            {at: order.channel_id for at, order in orders.items() if order.channel_id != channel.id},
        )
        moved, told = _of_days(channel, days, types)
        for order, at in moved:
            if order.id in records or (days.have(order, at) and order.order_type in types):
                records.setdefault(order.id, Record(order)).moved_at = at
        for order, at in told:
            if days.have(order, at):
                records.setdefault(order.id, Record(order))
        _complete(records)
        inside = dict.fromkeys(order.id for order, at in moved + told if days.have(order, at))
        found.within = [records[row] for row in inside if row in records]
        for record in found.within:
            if record.moved_at is not None and days.have(record.order, record.moved_at) and record.is_counted:
                found.sums["in" if record.order.is_buy else "out"] += record.order.received
                found.sums["fees"] += fee_of(record.order, record.order.received, fee_rate) or 0
    return found


def _of_days(
    channel: Channel, days: Days, types: Collection[int]
) -> tuple[list[tuple[Order, int]], list[tuple[Order, int]]]:
    """The orders whose money moved then, and those of which the channel told other things then; with when."""
    moved = [(order, order.moved_at) for order in _moved(Order.channel == channel, days.around(History.at))]
    told = list(_told(channel, days, types))
    moved += [(order, order.told_at) for order in told if order.ended in (COMPLETE, PAID_OUT)]
    return moved, [(order, order.told_at) for order in told if order.ended in (CREDIT, None)]


def _complete(records: dict[int, Record]) -> None:
    """Read what else there is of these orders: exceptions, when the money moved, and withdrawals' postings."""
    for chunk in chunks(records):
        exceptions = PaymentException.select().where(PaymentException.order.in_(chunk))
        for exception in exceptions.order_by(PaymentException.id):
            record = records[exception.order_id]
            record.exceptions.append(exception)
            if record.order.is_buy and exception.resolution == COMPLETE and record.moved_at is None:
                record.moved_elsewhen = exception.createtime
    unknown = [row for row, record in records.items() if record.moved_at is None and record.may_have_moved]
    for chunk in chunks(unknown):
        for order in _moved(History.order.in_(chunk)):
            records[order.id].moved_elsewhen = order.moved_at
    for chunk in chunks(row for row, record in records.items() if not record.order.is_buy):
        for order in _posted(chunk):
            records[order.id].postings[order.kind] = int(order.total)


def _posted(rows: list[int]) -> Iterator[Any]:
    """The sums of these orders' postings on accounts of their merchants, by `kind`: `total`, in fen."""
    entries = Order.select(Order.id, LedgerAccount.kind.alias("kind"), fn.SUM(Entry.amount).alias("total"))
    entries = entries.join(Posting, on=(Posting.order == Order.id)).join(Entry, on=(Entry.posting == Posting.id))
    entries = entries.join(LedgerAccount, on=(Entry.account == LedgerAccount.id))
    mine = LedgerAccount.kind.in_((AVAILABLE, HELD)) & (LedgerAccount.owner == Order.merchant)
    yield from entries.where(Order.id.in_(rows), mine).group_by(Order.id, LedgerAccount.kind).objects().iterator()


def _moved(*conditions: Any) -> Iterator[Any]:
    """The orders of which these hold and whose money moved here, each with `moved_at`."""
    # Money that an operator completed an order with moved before: `_told` has it.
    step = ((Order.order_type == BUY) & (History.after == CONFIRMED) & Order.received_amount.is_null()) | (
        (Order.order_type == SELL) & (History.after == PAID)
    )
    moves = Order.select(*COLUMNS, History.at.alias("moved_at")).join(History, on=(History.order == Order.id))
    moves = moves.where(step, History.before != History.after, *conditions).order_by(History.at, History.id)
    yield from moves.objects().iterator()


def _told(channel: Channel, days: Days, types: Collection[int]) -> Iterator[Any]:
    """The channel's orders of which it told something meanwhile that counts here without a step of the order.

    Money that an operator credited or completed the order with, a cancelled withdrawal's that is out after all, or what
    went back if nobody has settled that. In the order of that, each with when it told so (`told_at`) and how the
    exception ended (`ended`).
    """
    kind, ended = PaymentException.kind, PaymentException.resolution
    by_hand = kind.in_(MONEY_IN) & ended.in_((CREDIT, COMPLETE))
    out = kind.in_(AT_CHANNEL) & ended.in_((COMPLETE, PAID_OUT))
    counts = by_hand | (out & (Order.status == CANCELLED)) | ((kind == REVERSED) & ended.is_null())
    meanwhile = days.around(PaymentException.createtime)
    columns = (PaymentException.createtime.alias("told_at"), ended.alias("ended"))
    told = Order.select(*COLUMNS, *columns).join(PaymentException, on=(PaymentException.order == Order.id))
    told = told.where(Order.channel == channel, Order.order_type.in_(list(types)), counts, meanwhile)
    yield from told.order_by(PaymentException.createtime, PaymentException.id).objects().iterator()
