"""Our side of a statement: the orders of its lines, and all orders whose money moved on its days."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from peewee import fn

from gateways import registry
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
from models.tables.refund import Refund
from runtime.clock import CHINA
from runtime.state import current
from services.channels.order_numbers import order_no_of, payout_number
from services.ledger.accounts import IS_ADJUSTMENT
from services.orders.verdict import COMPLETE, CREDIT, PAID_OUT
from services.statements.parse import Line
from services.statements.records import EDGE, DepositRecord, Record, WithdrawalRecord, record_of

AT_ONCE = 1_000  # values that one query can name
LATE_BOOKED = 3 * 86_400  # seconds by which a bank may date an operator's transfer later than the operator
COLUMNS = (
    Order.id,
    Order.order_no,
    Order.merchant,
    Order.channel,
    Order.order_type,
    Order.status,
    Order.amount,
    Order.received_amount,
    Order.channel_amount,
    Order.channel_reference,
    Order.cost_amount,
    Order.createtime,
)
_PAYOUT = re.compile(r"[0-9]{19}", re.ASCII)


def chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the values in lists that one query can name."""
    every = list(values)
    return (every[start : start + AT_ONCE] for start in range(0, len(every), AT_ONCE))


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

    def may_list(self, refund: Refund, late: int) -> bool:
        """Return whether the statement may list a refund of this service.

        Args:
            late: seconds by which the channel may date it later than this service.
        """
        first, last = refund.senttime or refund.createtime, None if refund.is_open else refund.updatetime
        return self.by_creation or (first - EDGE < self.until and (last is None or last + EDGE + late >= self.since))

    def must_list(self, order: Order, refund: Refund) -> bool:
        """Return whether the statement, made after its days, must list a refund of this service."""
        at = refund.completedtime
        return at is not None and self.since <= at < self.until and self.have(order, at)

    def around(self, at: Any) -> Any:
        """The condition for rows of these days and their margins, by a column with a time."""
        column = Order.createtime if self.by_creation else at
        return (column >= self.since - EDGE) & (column < self.until + EDGE)


@dataclass
class Recorded:
    """`by_line` has the record of each line for an order of the channel, `elsewhere` the channel of other lines.

    `within` are the records of orders, with or without lines, whose money moved in the statement's days, by time. It
    also has those with other money, reported in these days, that an operator credited, or that was returned and is
    unresolved, and those that were refunded in these days. `sums` is all money that moved then: `in`, `out`, `refunds`
    of deposits, and `fees`, in fen.
    """

    by_line: dict[int, Record]
    elsewhere: dict[int, int]
    within: list[Record] = field(default_factory=list)
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("in", "out", "refunds", "fees"), 0))


def recorded(
    channel: Channel,
    lines: list[Line],
    days: Days,
    types: Collection[int],
    fee_rate: int | None,
    only: Collection[int] | None = None,
) -> Recorded:
    """Read the orders and the ledger as of one moment, without a write lock.

    Args:
        days: the days of the statement.
        types: the order types that the statement lists; others are not reported as missing.
        fee_rate: the share of deposits that the channel keeps, in basis points; None for the estimates of the orders.
        only: the ids of the orders to read in addition to those of the lines; None for all of these days.
    """
    chosen = [Order.channel == channel]
    if only is not None:
        chosen.append(Order.id.in_(list(only)))
    with database.snapshot():
        orders = _orders_of(channel, lines)
        records = {order.id: record_of(order) for order in orders.values()}
        found = Recorded(
            {at: records[order.id] for at, order in orders.items() if order.channel_id == channel.id},
            {at: order.channel_id for at, order in orders.items() if order.channel_id != channel.id},
        )
        # Each event of an order with its time: its money moved, or the channel reported something else.
        moved = [(order, order.moved_at) for order in _moved(*chosen, days.around(History.at))]
        reported = list(_reported(chosen, days, types))
        moved += [(order, order.reported_at) for order in reported if order.ended in (COMPLETE, PAID_OUT)]
        others = [(order, order.reported_at) for order in reported if order.ended in (CREDIT, None)]
        for order, at in moved:
            if order.id in records or (days.have(order, at) and order.order_type in types):
                records.setdefault(order.id, record_of(order)).moved_at = at
        refunded = [(order, order.refunded_at) for order in _refunded(chosen, days)] if BUY in types else []
        others += refunded
        for order, at in others:
            if days.have(order, at):
                records.setdefault(order.id, record_of(order))
        _fill_in(records, days, LATE_BOOKED if registry.DRIVERS[channel.driver].by_hand else 0)
        inside = dict.fromkeys(order.id for order, at in moved + others if days.have(order, at))
        found.within = [records[row] for row in inside if row in records]
        for record in found.within:
            if record.moved_at is not None and days.have(record.order, record.moved_at) and record.is_counted:
                found.sums[record.direction] += record.order.received
                found.sums["fees"] += record.fee(record.order.received, fee_rate) or 0
            found.sums["refunds"] += sum(each.amount for each in record.refunds if each.id in record.must_list)
    return found


def _orders_of(channel: Channel, lines: list[Line]) -> dict[int, Order]:
    """Return the orders of lines, by line: by the order number, a payout's second number, or the channel's reference.

    The number of a deposit's second attempt counts as the order's. Otherwise a line belongs to the order of the refund
    that it names.
    """
    named = {line.number: order_no_of(line.number) for line in lines if line.number}
    orders = {
        order.order_no: order
        for chunk in chunks(set(named.values()))
        for order in Order.select(*COLUMNS).where(Order.order_no.in_(chunk))
    }
    known = {number: orders[order_no] for number, order_no in named.items() if order_no in orders}
    # A payout's second number begins with the creation time of its withdrawal.
    seconds = {number: at for number in named.keys() - known.keys() if (at := _payout_time(number)) is not None}
    if seconds:
        payouts = Order.select(*COLUMNS).where(
            Order.channel == channel,
            Order.order_type == SELL,
            Order.createtime.between(min(seconds.values()), max(seconds.values())),
        )
        known |= {number: order for order in payouts.iterator() if (number := payout_number(order)) in seconds}
    by_reference: dict[str, list[Order]] = {}
    for chunk in chunks({line.reference for line in lines if line.number not in known} - {""}):
        for order in Order.select(*COLUMNS).where(Order.channel_reference.in_(chunk), Order.channel == channel):
            by_reference.setdefault(order.channel_reference, []).append(order)
    found: dict[int, Order] = {}
    for line in lines:
        alike = by_reference.get(line.reference, [])
        if line.number in known:
            found[line.at] = known[line.number]
        elif len(alike) == 1:
            found[line.at] = alike[0]
    return found | _orders_of_refunds(channel, [line for line in lines if line.at not in found])


def _orders_of_refunds(channel: Channel, lines: list[Line]) -> dict[int, Order]:
    """Return the orders of lines that name a refund of this service, by its number or the channel's, by line."""
    found: dict[int, Order] = {}
    for column, name in ((Refund.refund_no, "refund_number"), (Refund.channel_reference, "reference")):
        by_text: dict[str, list[Any]] = {}
        for chunk in chunks({getattr(line, name) for line in lines} - {""}):
            orders = Order.select(*COLUMNS, column.alias("named_by")).join(Refund, on=(Refund.order == Order.id))
            for order in orders.where(column.in_(chunk), Refund.channel == channel).objects():
                by_text.setdefault(order.named_by, []).append(order)
        for line in lines:
            alike = by_text.get(getattr(line, name), [])
            if len(alike) == 1:
                found.setdefault(line.at, alike[0])
    return found


def _payout_time(number: str) -> int | None:
    """Return the creation time of the withdrawal with this second number; None if it is not such a number."""
    if not _PAYOUT.fullmatch(number):
        return None
    try:
        return int(datetime.strptime(number[:14], "%Y%m%d%H%M%S").replace(tzinfo=CHINA).timestamp())
    except ValueError:
        return None


def _moved(*conditions: Any) -> Iterator[Any]:
    """Yield the matching orders whose money moved here, each with `moved_at`."""
    # Money with which an operator completed an order moved before that step: `_reported` has it.
    step = ((Order.order_type == BUY) & (History.after == CONFIRMED) & Order.received_amount.is_null()) | (
        (Order.order_type == SELL) & (History.after == PAID)
    )
    moves = Order.select(*COLUMNS, History.at.alias("moved_at")).join(History, on=(History.order == Order.id))
    moves = moves.where(step, History.before != History.after, *conditions).order_by(History.at, History.id)
    yield from moves.objects().iterator()


def _reported(chosen: list[Any], days: Days, types: Collection[int]) -> Iterator[Any]:
    """Yield the chosen orders with a report in this time that counts here without a step of the order.

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
    reported = reported.where(*chosen, Order.order_type.in_(list(types)), counts, meanwhile)
    yield from reported.order_by(PaymentException.createtime, PaymentException.id).objects().iterator()


def _refunded(chosen: list[Any], days: Days) -> Iterator[Any]:
    """Yield the chosen orders with a refund completed in this time, each with that time (`refunded_at`)."""
    columns = (*COLUMNS, Refund.completedtime.alias("refunded_at"))
    refunded = Order.select(*columns).join(Refund, on=(Refund.order == Order.id))
    refunded = refunded.where(*chosen, Refund.status == COMPLETED, days.around(Refund.completedtime))
    yield from refunded.order_by(Refund.completedtime, Refund.id).objects().iterator()


def _fill_in(records: dict[int, Record], days: Days, late: int) -> None:
    """Read the exceptions and refunds of these orders, the times that their money moved, and withdrawals' postings.

    Args:
        late: seconds by which the channel may date a refund later than this service.
    """
    for chunk in chunks(records):
        exceptions = PaymentException.select().where(PaymentException.order.in_(chunk))
        for exception in exceptions.order_by(PaymentException.id):
            record = records[exception.order_id]
            record.exceptions.append(exception)
            if isinstance(record, DepositRecord) and exception.resolution == COMPLETE and record.moved_at is None:
                record.moved_elsewhen = exception.createtime
    deposits = {row: record for row, record in records.items() if isinstance(record, DepositRecord)}
    for chunk in chunks(deposits):
        for refund in Refund.select().where(Refund.order.in_(chunk)).order_by(Refund.id):
            deposit = deposits[refund.order_id]
            deposit.refunds.append(refund)
            if days.may_list(refund, late):
                deposit.listed.add(refund.id)
            if days.must_list(deposit.order, refund):
                deposit.must_list.add(refund.id)
    unknown = [row for row, record in records.items() if record.moved_at is None and record.may_have_moved]
    for chunk in chunks(unknown):
        for order in _moved(History.order.in_(chunk)):
            records[order.id].moved_elsewhen = order.moved_at
    withdrawals = {row: record for row, record in records.items() if isinstance(record, WithdrawalRecord)}
    for chunk in chunks(withdrawals):
        of_merchant = LedgerAccount.kind.in_((AVAILABLE, HELD)) & (LedgerAccount.owner == Order.merchant)
        sums = (
            Order.select(Order.id, LedgerAccount.kind, fn.SUM(Entry.amount))
            .join(Posting, on=(Posting.order == Order.id))
            .join(Entry, on=(Entry.posting == Posting.id))
            .join(LedgerAccount, on=(Entry.account == LedgerAccount.id))
            .where(Order.id.in_(chunk), ~IS_ADJUSTMENT, of_merchant)
            .group_by(Order.id, LedgerAccount.kind)
        )
        for row, kind, total in sums.tuples():
            withdrawals[row].postings[kind] = int(total)
