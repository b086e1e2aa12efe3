"""Compare a statement file with the orders of a channel: its columns, its days, and the result."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from typing import Any

from gateways import registry
from models.tables.channel import Channel
from models.tables.reconciliation import Reconciliation
from runtime.clock import CHINA, in_china
from services.channels.calls import driver_of
from services.channels.order_numbers import order_numbers_in
from services.errors import N_, OperatorError
from services.statements import kept_layouts, parse, received, reconcile
from services.statements.book_side import Days
from services.statements.layouts import UnknownLayout
from services.statements.parse import PAID, REFUNDED, Line, Parsed
from services.statements.received import Kind
from services.statements.reconcile import Beyond, Comparison

DAY = 86_400  # seconds: China has no daylight saving time
NEAR = 7  # days between the day of a payment and that of a late notice of it


@dataclass(frozen=True)
class Choices:
    """How to compare a file.

    Args:
        since, until: the days of the statement in China; None for those of its lines.
        order_type: the only type that the statement lists; None for all types of the channel's statements.
        fee_rate: the channel's contractual fee on deposits, in basis points; None to skip the comparison.
        all_paid: each line of a file without a status column is a completed payment.
        columns: names of columns in this file, by the field of `Layout`.
        longest: the most days; None for any number.
    """

    since: date | None = None
    until: date | None = None
    order_type: int | None = None
    fee_rate: int | None = None
    all_paid: bool = False
    columns: dict[str, list[str]] = field(default_factory=dict)
    longest: int | None = None


@dataclass(frozen=True)
class Statement:
    """The lines of a statement, the days and order types that it lists, and the contractual fee rate, if given."""

    parsed: Parsed
    since: date
    until: date
    by_creation: bool
    types: tuple[int, ...]
    fee_rate: int | None
    is_whole: bool = False  # with all order types of the channel's statements
    is_official: bool = False  # the same, and the upstream's own export with all its columns

    def compared(self, channel: Channel, only: list[int] | None = None) -> Comparison:
        """Compare it with the channel's orders as they are now.

        Args:
            only: the ids of the orders that can be missing in it; None for all of its days.
        """
        days = Days(begin_of(self.since), begin_of(self.until) + DAY, self.by_creation)
        elsewhere = _beyond(channel, self.since, self.until)
        return reconcile.compare(
            channel,
            self.parsed,
            days,
            self.types,
            self.fee_rate,
            elsewhere=elsewhere,
            only=only,
            same_account=_same_account(channel),
        )


@dataclass(frozen=True)
class Result:
    """A comparison with a statement."""

    statement: Statement
    comparison: Comparison

    @property
    def since(self) -> date:
        """The first day of the statement."""
        return self.statement.since

    @property
    def until(self) -> date:
        """The last day of the statement."""
        return self.statement.until


def compare(channel: Channel, raw: bytes, chosen: Choices) -> Result:
    """Compare a file with the orders; nothing is changed.

    Raises:
        NoStatus: the file has no status column, and `all_paid` is not confirmed.
        OperatorError: the file can't be read, or its days are unknown, in a wrong order or too many.
    """
    driver = registry.DRIVERS[channel.driver]
    layout = parse.overridden(driver.statement, chosen.columns)
    needed = set(chosen.columns)
    if chosen.fee_rate is not None:
        needed.add("fee")
    parsed = _of_account(channel, raw) if driver.by_hand and not needed else None
    if parsed is None:
        official = not driver.by_hand and not chosen.columns
        parsed = parse.read(raw, layout, needed, all_paid=chosen.all_paid, official=official)
    lines = parsed.lines
    first, last = _days(lines, chosen)
    types = (chosen.order_type,) if chosen.order_type else layout.types
    by_creation = any(line.created for line in lines) if lines else bool(layout.created)
    is_whole = types == layout.types
    is_official = is_whole and not driver.by_hand and not chosen.columns
    statement = Statement(parsed, first, last, by_creation, types, chosen.fee_rate, is_whole, is_official)
    return Result(statement, statement.compared(channel))


def _same_account(channel: Channel) -> set[int]:
    """Return the other channels with the same account at the same upstream."""
    fields = registry.DRIVERS[channel.driver].account_fields

    def account_of(row: Channel) -> list[Any]:
        return [driver_of(row).config.get(name) for name in fields]

    others = Channel.select().where(Channel.driver == channel.driver, Channel.id != channel.id) if fields else []
    return {row.id for row in others if account_of(row) == account_of(channel)}


def _beyond(channel: Channel, first: date, last: date) -> Beyond:
    """Return what the kept results of statements of nearby days have of these days."""
    rows = Reconciliation.select(Reconciliation.result).where(
        Reconciliation.channel == channel,
        Reconciliation.until >= str(date.fromordinal(max(first.toordinal() - NEAR, 1))),
        Reconciliation.since <= str(date.fromordinal(min(last.toordinal() + NEAR, date.max.toordinal()))),
    )
    payments: set[tuple[str, str]] = set()
    refunds: set[str] = set()
    for (text,) in rows.tuples():
        found = json.loads(text).get("beyond", {})
        payments.update((order_no, reference) for order_no, reference in found.get("payments", []))
        refunds.update(found.get("refunds", []))
    return Beyond(frozenset(payments), frozenset(refunds))


def _of_account(channel: Channel, raw: bytes) -> Parsed | None:
    """Return the lines of an account statement with a known layout (docs/guides/bank-files.md); None for other files.

    Raises:
        OperatorError: a row is unclear, because half a comparison would look complete.
    """
    try:
        rows = received.movements(raw, kept_layouts.of(channel)).rows
    except UnknownLayout:
        return None
    lines = []
    for row in rows:
        numbers = set(order_numbers_in(row.note))
        number = numbers.pop() if len(numbers) == 1 else ""
        line = Line(row.at, number, row.reference, row.amount or 0, fee=None, state=PAID, time=row.since)
        reason = row.why.text if row.why else ""
        if row.kind is Kind.RECEIVED or reason in (received.SENT, received.FEE, received.NO_ID):
            lines.append(line)
        elif row.kind is Kind.TAKEN_BACK:
            if line.amount > 0:  # the row is a payment that was returned
                lines.append(line)
            lines.append(replace(line, reference=row.original or row.reference, state=REFUNDED))
        elif row.kind is Kind.UNCLEAR:
            raise OperatorError(N_("line %(line)s is unclear: %(why)s"), line=str(row.at), why=str(row.why))
    return Parsed(lines, lists_refunds=True)


def _days(lines: list[Line], chosen: Choices) -> tuple[date, date]:
    """Return the first and last day of the statement, in China."""
    times = [at for line in lines if (at := line.created or line.time) is not None]
    if chosen.since is None and not times:
        raise OperatorError(N_("the statement has no times: specify its days with --since and --until"))
    first = chosen.since or in_china(min(times)).date()
    last = chosen.until or (in_china(max(times)).date() if times else first)
    if last < first:
        text = N_("the last day (%(last)s) is before the first (%(first)s)")
        raise OperatorError(text, last=str(last), first=str(first))
    if chosen.longest is not None and (last - first).days >= chosen.longest:
        text = N_("The statement has more than %(most)s days. Compare fewer days, or use the command.")
        raise OperatorError(text, most=str(chosen.longest))
    return first, last


def begin_of(day: date) -> int:
    """Return the Unix time at which a day begins in China."""
    return int(datetime.combine(day, time.min, CHINA).timestamp())
