"""Our side of a statement: the orders of its lines, and all orders whose money moved on its days."""

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
    CONFIRMED,
    MONEY_IN,
    PAID,
    REVERSED,
    SELL,
    History,
    Order,
    PaymentException,
)
from runtime.state import current
from services.orders.verdict import COMPLETE, CREDIT, PAID_OUT
from services.statements.line_orders import COLUMNS, chunks, orders_of
from services.statements.parse import Line
from services.statements.records import DepositRecord, Record, WithdrawalRecord, record_of

EDGE = 600  # seconds by which the clocks of an upstream and this service may differ about the day


@dataclass(frozen=True)
class Days:
    """The days of a statement: from `since` until before `until`, in Unix seconds.

    It lists the payments of these days or, `by_creation`, the orders placed in them. The channel may place an order
    later than this service, but not after it expires.
    """

    since: int
    until: int
    by_creation: bool = False

    def moment(self, order: Order, at: int) -> int:
        """Return the time that decides whether the statement lists an event of the order at that time."""
        return int(order.createtime) if self.by_creation else at

    def have(self, order: Order, at: int) -> bool:
        """Return whether an event of the order at that time is within these days."""
        return self.since <= self.moment(order, at) < self.until

    def neighbour(self, order: Order, at: int) -> int:
        """Return -1 or 1 if the event may be in the statement of the day before or after, otherwise 0."""
        moment = self.moment(order, at)
        late = current().settings.buy_expiry if self.by_creation else 0
        return -1 if moment < self.since + EDGE else 1 if moment >= self.until - EDGE - late else 0

    def around(self, at: Any) -> Any:
        """The condition for rows of these days and their margins, by a column with a time."""
        column = Order.createtime if self.by_creation else at
        return (column >= self.since - EDGE) & (column < self.until + EDGE)


@dataclass
class Recorded:
    """`by_line` has the record of each line for an order of the channel, `elsewhere` the channel of other lines.

    `within` are the records of orders, with or without lines, whose money moved in the statement's days, by time. It
    also has those with other money, reported in these days, that an operator credited, or that was returned and is
    unresolved. `sums` is all money that moved then: `in`, `out` and `fees`, in fen.
    """

    by_line: dict[int, Record]
    elsewhere: dict[int, int]
    within: list[Record] = field(default_factory=list)
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("in", "out", "fees"), 0))


def recorded(channel: Channel, lines: list[Line], days: Days, types: Collection[int], fee_rate: int | None) -> Recorded:
    """Read the orders and the ledger as of one moment, without a write lock.

    Args:
        days: the days of the statement.
        types: the order types that the statement lists; others are not reported as missing.
        fee_rate: the share of deposits that the channel keeps, in basis points.
    """
    with database.snapshot():
        orders = orders_of(channel, lines)
        records = {order.id: record_of(order) for order in orders.values()}
        found = Recorded(
            {at: records[order.id] for at, order in orders.items() if order.channel_id == channel.id},
            {at: order.channel_id for at, order in orders.items() if order.channel_id != channel.id},
        )
        moved, reported = _of_days(channel, days, types)
        for order, at in moved:
            if order.id in records or (days.have(order, at) and order.order_type in types):
                records.setdefault(order.id, record_of(order)).moved_at = at
        for order, at in reported:
            if days.have(order, at):
                records.setdefault(order.id, record_of(order))
        _complete(records)
        inside = dict.fromkeys(order.id for order, at in moved + reported if days.have(order, at))
        found.within = [records[row] for row in inside if row in records]
        for record in found.within:
            if record.moved_at is not None and days.have(record.order, record.moved_at) and record.is_counted:
                found.sums[record.direction] += record.order.received
                found.sums["fees"] += record.fee(record.order.received, fee_rate) or 0
    return found


def _of_days(
    channel: Channel, days: Days, types: Collection[int]
) -> tuple[list[tuple[Order, int]], list[tuple[Order, int]]]:
    """Return the orders whose money moved then, and those with other reports then; each with the time."""
    moved = [(order, order.moved_at) for order in _moved(Order.channel == channel, days.around(History.at))]
    reported = list(_reported(channel, days, types))
    moved += [(order, order.reported_at) for order in reported if order.ended in (COMPLETE, PAID_OUT)]
    return moved, [(order, order.reported_at) for order in reported if order.ended in (CREDIT, None)]


def _complete(records: dict[int, Record]) -> None:
    """Read the exceptions of these orders, the times that their money moved, and withdrawals' postings."""
    for chunk in chunks(records):
        exceptions = PaymentException.select().where(PaymentException.order.in_(chunk))
        for exception in exceptions.order_by(PaymentException.id):
            record = records[exception.order_id]
            record.exceptions.append(exception)
            if isinstance(record, DepositRecord) and exception.resolution == COMPLETE and record.moved_at is None:
                record.moved_elsewhen = exception.createtime
    unknown = [row for row, record in records.items() if record.moved_at is None and record.may_have_moved]
    for chunk in chunks(unknown):
        for order in _moved(History.order.in_(chunk)):
            records[order.id].moved_elsewhen = order.moved_at
    withdrawals = {row: record for row, record in records.items() if isinstance(record, WithdrawalRecord)}
    for chunk in chunks(withdrawals):
        for order in _posted(chunk):
            withdrawals[order.id].postings[order.kind] = int(order.total)


def _posted(rows: list[int]) -> Iterator[Any]:
    """Yield the sums of these orders' postings on accounts of their merchants, by `kind`: `total`, in fen."""
    entries = Order.select(Order.id, LedgerAccount.kind.alias("kind"), fn.SUM(Entry.amount).alias("total"))
    entries = entries.join(Posting, on=(Posting.order == Order.id)).join(Entry, on=(Entry.posting == Posting.id))
    entries = entries.join(LedgerAccount, on=(Entry.account == LedgerAccount.id))
    mine = LedgerAccount.kind.in_((AVAILABLE, HELD)) & (LedgerAccount.owner == Order.merchant)
    yield from entries.where(Order.id.in_(rows), mine).group_by(Order.id, LedgerAccount.kind).objects().iterator()


def _moved(*conditions: Any) -> Iterator[Any]:
    """Yield the matching orders whose money moved here, each with `moved_at`."""
    # Money with which an operator completed an order moved before that step: `_reported` has it.
    step = ((Order.order_type == BUY) & (History.after == CONFIRMED) & Order.received_amount.is_null()) | (
        (Order.order_type == SELL) & (History.after == PAID)
    )
    moves = Order.select(*COLUMNS, History.at.alias("moved_at")).join(History, on=(History.order == Order.id))
    moves = moves.where(step, History.before != History.after, *conditions).order_by(History.at, History.id)
    yield from moves.objects().iterator()


def _reported(channel: Channel, days: Days, types: Collection[int]) -> Iterator[Any]:
    """Yield the channel's orders with a report in this time that counts here without a step of the order.

    Reports of money that an operator credited or completed the order with, of a cancelled withdrawal that was paid out
    after all, and of unresolved returns. In the order of the reports, each with its time (`reported_at`) and the
    exception's resolution (`ended`).
    """
    kind, ended = PaymentException.kind, PaymentException.resolution
    manual = kind.in_(MONEY_IN) & ended.in_((CREDIT, COMPLETE))
    out = kind.in_(AT_CHANNEL) & ended.in_((COMPLETE, PAID_OUT))
    counts = manual | (out & (Order.status == CANCELLED)) | ((kind == REVERSED) & ended.is_null())
    meanwhile = days.around(PaymentException.createtime)
    columns = (PaymentException.createtime.alias("reported_at"), ended.alias("ended"))
    reported = Order.select(*COLUMNS, *columns).join(PaymentException, on=(PaymentException.order == Order.id))
    reported = reported.where(Order.channel == channel, Order.order_type.in_(list(types)), counts, meanwhile)
    yield from reported.order_by(PaymentException.createtime, PaymentException.id).objects().iterator()
