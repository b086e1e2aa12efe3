"""What is on record here about a statement: the orders of its lines, and whose money moved here in its days."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from peewee import fn

from gateways.base import CHINA
from models.base import database
from models.channel import Channel
from models.ledger import AVAILABLE, HELD, Entry, LedgerAccount, Posting
from models.order import BUY, CANCELLED, COMPLETED, CONFIRMED, MONEY_IN, PAID, SELL, History, Order, PaymentException
from services.fees import share
from services.numbers import payout_number
from services.positions import COMPLETE, CREDIT
from services.statements import Line

AT_ONCE = 1_000  # values that one query names
EDGE = 600  # seconds by which the clocks of an upstream and of this service may say different days
BOOKED = {BUY: (CONFIRMED, COMPLETED), SELL: (PAID, COMPLETED)}

_COLUMNS = (
    *(Order.id, Order.order_no, Order.merchant, Order.channel, Order.order_type, Order.status, Order.amount),
    *(Order.received_amount, Order.channel_amount, Order.channel_reference, Order.createtime),
)
_PAYOUT = re.compile(r"[0-9]{19}", re.ASCII)


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
        """Is the order's own money in the books, or about to be?"""
        return self.order.status in BOOKED[self.order.order_type]

    @property
    def was_taken_back(self) -> bool:
        """Did the channel confirm the deposit's money, and take it back before it was credited?"""
        moved = self.moved_at or self.moved_elsewhen
        return bool(self.order.is_buy and self.order.status == CANCELLED and moved)

    @property
    def may_have_moved(self) -> bool:
        """Is it booked, or a deposit that the channel may have taken back?"""
        return self.is_booked or bool(self.order.is_buy and self.order.status == CANCELLED)

    def left_on(self, *kinds: str) -> int:
        """What the postings left on accounts of these kinds, in fen."""
        return sum(self.postings.get(kind, 0) for kind in kinds)


@dataclass
class Recorded:
    """`by_line` has the record of each line that belongs to an order of the channel, `elsewhere` the channel of others.

    `within` are the records of orders, with lines or without, whose money moved in the statement's days, in the order
    of that, and of those other money of which the channel told in these days and an operator credited. `sums` is all
    that moved then: `in`, `out` and `fees`, in fen.
    """

    by_line: dict[int, Record]
    elsewhere: dict[int, int]
    within: list[Record] = field(default_factory=list)
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("in", "out", "fees"), 0))


def fee_of(order: Order, amount: int, fee_rate: int | None) -> int | None:
    """What the channel should have kept of this amount (fen): of deposits a rate, of withdrawals what was stored."""
    if not order.is_buy:
        return order.channel_amount
    return None if fee_rate is None else share(amount, fee_rate)


def recorded(
    channel: Channel, lines: list[Line], since: int, until: int, types: Collection[int], fee_rate: int | None
) -> Recorded:
    """What is on record as of one moment; it holds no lock that would keep anybody from writing.

    Args:
        since: when the statement's days begin, in Unix seconds.
        until: when they end; that second is not theirs any more.
        types: of orders that the statement has at all; no others are missed.
        fee_rate: the share of deposits that the channel keeps, in basis points.
    """
    with database.snapshot():
        orders = _orders_of(channel, lines)
        records = {order.id: Record(order) for order in orders.values()}
        found = Recorded(
            {at: records[order.id] for at, order in orders.items() if order.channel_id == channel.id},
            {at: order.channel_id for at, order in orders.items() if order.channel_id != channel.id},
        )
        moved, told = _of_days(channel, since - EDGE, until + EDGE, types)
        for order, at in moved:
            if order.id in records or (since <= at < until and order.order_type in types):
                records.setdefault(order.id, Record(order)).moved_at = at
            if since <= at < until and order.id in records:
                found.sums["in" if order.is_buy else "out"] += order.received
                found.sums["fees"] += fee_of(order, order.received, fee_rate) or 0
        for order, at in told:
            if since <= at < until:
                records.setdefault(order.id, Record(order))
        inside = dict.fromkeys(order.id for order, at in moved + told if since <= at < until)
        found.within = [records[row] for row in inside if row in records]
        _complete(records)
    return found


def _of_days(
    channel: Channel, since: int, until: int, types: Collection[int]
) -> tuple[list[tuple[Order, int]], list[tuple[Order, int]]]:
    """The orders whose money moved then, and those with other money that was told of then and credited; with when."""
    days = (History.at >= since, History.at < until)
    moved = [(order, order.moved_at) for order in _moved(Order.channel == channel, *days)]
    told = list(_credited(channel, since, until)) if BUY in types else []
    moved += [(order, order.told_at) for order in told if order.ended == COMPLETE]
    return moved, [(order, order.told_at) for order in told if order.ended == CREDIT]


def _complete(records: dict[int, Record]) -> None:
    """Read what else there is of these orders: exceptions, when the money moved, and withdrawals' postings."""
    for chunk in _chunks(records):
        exceptions = PaymentException.select().where(PaymentException.order.in_(chunk))
        for exception in exceptions.order_by(PaymentException.id):
            record = records[exception.order_id]
            record.exceptions.append(exception)
            if record.order.is_buy and exception.resolution == COMPLETE and record.moved_at is None:
                record.moved_elsewhen = exception.createtime
    unknown = [row for row, record in records.items() if record.moved_at is None and record.may_have_moved]
    for chunk in _chunks(unknown):
        for order in _moved(History.order.in_(chunk)):
            records[order.id].moved_elsewhen = order.moved_at
    for chunk in _chunks(row for row, record in records.items() if not record.order.is_buy):
        for order in _posted(chunk):
            records[order.id].postings[order.kind] = int(order.total)


def _posted(rows: list[int]) -> Iterator[Any]:
    """What these orders' postings left on accounts of their merchants, by `kind`: `total`, in fen."""
    entries = Order.select(Order.id, LedgerAccount.kind.alias("kind"), fn.SUM(Entry.amount).alias("total"))
    entries = entries.join(Posting, on=(Posting.order == Order.id)).join(Entry, on=(Entry.posting == Posting.id))
    entries = entries.join(LedgerAccount, on=(Entry.account == LedgerAccount.id))
    mine = LedgerAccount.kind.in_((AVAILABLE, HELD)) & (LedgerAccount.owner == Order.merchant)
    yield from entries.where(Order.id.in_(rows), mine).group_by(Order.id, LedgerAccount.kind).objects().iterator()


def _chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(values)
    while chunk := list(islice(rest, AT_ONCE)):
        yield chunk


def _orders_of(channel: Channel, lines: list[Line]) -> dict[int, Order]:
    """The orders of lines, by line: by the order number, by a payout's other number, by the channel's reference."""
    numbers = {line.number for line in lines} - {""}
    known = {order.order_no: order for order in _named(Order.order_no, numbers)}
    known |= _payouts(channel, numbers - set(known))
    references = {line.reference for line in lines if line.number not in known} - {""}
    by_reference: dict[str, list[Order]] = {}
    for order in _named(Order.channel_reference, references, Order.channel == channel):
        by_reference.setdefault(order.channel_reference, []).append(order)
    found = {line.at: known.get(line.number) or _only(by_reference.get(line.reference, [])) for line in lines}
    return {at: order for at, order in found.items() if order is not None}


def _only(orders: list[Order]) -> Order | None:
    return orders[0] if len(orders) == 1 else None


def _named(column: Any, values: Iterable[str], *conditions: Any) -> Iterator[Order]:
    for chunk in _chunks(values):
        yield from Order.select(*_COLUMNS).where(column.in_(chunk), *conditions)


def _payouts(channel: Channel, numbers: set[str]) -> dict[str, Order]:
    """The withdrawals that have these other numbers, by them."""
    times = [time for number in numbers if (time := _payout_time(number)) is not None]
    if not times:
        return {}
    payouts = Order.select(*_COLUMNS).where(
        Order.channel == channel, Order.order_type == SELL, Order.createtime.between(min(times), max(times))
    )
    return {number: order for order in payouts.iterator() if (number := payout_number(order)) in numbers}


def _payout_time(number: str) -> int | None:
    """When the withdrawal was placed that has this other number; None where no withdrawal can have it."""
    if not _PAYOUT.fullmatch(number):
        return None
    try:
        return int(datetime.strptime(number[:14], "%Y%m%d%H%M%S").replace(tzinfo=CHINA).timestamp())
    except ValueError:
        return None


def _moved(*conditions: Any) -> Iterator[Any]:
    """The orders of which these hold and whose money moved here, each with `moved_at`."""
    # Money that an operator completed an order with moved before: `_credited` has it.
    step = ((Order.order_type == BUY) & (History.after == CONFIRMED) & Order.received_amount.is_null()) | (
        (Order.order_type == SELL) & (History.after == PAID)
    )
    moves = Order.select(*_COLUMNS, History.at.alias("moved_at")).join(History, on=(History.order == Order.id))
    moves = moves.where(step, History.before != History.after, *conditions).order_by(History.at, History.id)
    yield from moves.objects().iterator()


def _credited(channel: Channel, since: int, until: int) -> Iterator[Any]:
    """The channel's deposits of which it told money meanwhile that an operator credited, or completed the order with.

    In the order of that, each with when it told so (`told_at`) and how the exception ended (`ended`).
    """
    by_hand = PaymentException.kind.in_(MONEY_IN) & PaymentException.resolution.in_((CREDIT, COMPLETE))
    meanwhile = (PaymentException.createtime >= since) & (PaymentException.createtime < until)
    columns = (PaymentException.createtime.alias("told_at"), PaymentException.resolution.alias("ended"))
    told = Order.select(*_COLUMNS, *columns).join(PaymentException, on=(PaymentException.order == Order.id))
    told = told.where(Order.channel == channel, by_hand, meanwhile)
    yield from told.order_by(PaymentException.createtime, PaymentException.id).objects().iterator()
