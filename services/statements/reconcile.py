"""Compare a channel's statement with the orders, and list the differences (docs/reconciling.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain
from typing import Any

from models.tables.channel import Channel
from models.tables.order import MONEY_IN, PAYOUT_CONFLICT, REVERSED
from runtime.money import hundredths
from services.deposits.money import DepositMoney
from services.orders.lifecycle import ANSWERED
from services.orders.verdict import COMPLETE, CREDIT
from services.statements.book_side import Days, Recorded, recorded
from services.statements.matching import agrees, day_of, is_of_another_day, payments_of
from services.statements.notes import Note, Remark, note, time_of
from services.statements.parse import FAILED, PAID, REFUNDED, Line
from services.statements.records import Payment, Record
from services.withdrawals.money import WithdrawalMoney

MISSING_HERE, MISSING_THERE, AMOUNT, STATUS, FEE = ("missing_here", "missing_there", "amount", "status", "fee")
OPEN = "open"
MONEY = (*MONEY_IN, PAYOUT_CONFLICT)
# States in which the ledger counts the money, for an order of any status.
BOOKED = (
    *(DepositMoney.TO_CREDIT, DepositMoney.CREDITED, DepositMoney.SENT_BACK),
    *(WithdrawalMoney.SPENT, WithdrawalMoney.SPENT_TWICE),
)
# Money that went back at the channel, or did not move there, by its state here. Otherwise it is booked here.
WENT_BACK: dict[Any, Remark] = {
    **dict.fromkeys((DepositMoney.QUESTIONED, DepositMoney.OPEN), Remark.BACK_OPEN),
    **dict.fromkeys((WithdrawalMoney.IN_FLIGHT, WithdrawalMoney.HELD_AGAIN), Remark.BACK_HELD),
}
DID_NOT_MOVE: dict[Any, Remark] = {
    **dict.fromkeys((DepositMoney.QUESTIONED, DepositMoney.OPEN), Remark.FAILED_OPEN),
    **dict.fromkeys((WithdrawalMoney.IN_FLIGHT, WithdrawalMoney.HELD_AGAIN), Remark.FAILED_HELD),
}


@dataclass(frozen=True)
class Difference:
    """One difference between the statement and the orders; `here` and `there` are texts by kind of fact.

    `order_no` is the number in the statement if no order has it. `exceptions` are those of the order: kind, and
    resolution or "open".
    """

    kind: str
    order_no: str
    reference: str
    line: int | None
    here: dict[str, str]
    there: dict[str, str]
    notes: tuple[Note, ...] = ()
    exceptions: tuple[tuple[str, str], ...] = ()

    @property
    def detail(self) -> str:
        """The notes and the exceptions in English."""
        exceptions = ", ".join(f"{kind} ({resolution})" for kind, resolution in self.exceptions)
        return "; ".join([*map(str, self.notes), *([f"exceptions: {exceptions}"] if exceptions else [])])

    @property
    def fen(self) -> int:
        """The amount that differs; the whole amount if only one side has it, or if the statuses differ."""
        facts = [side.get("amount") or side.get("fee") for side in (self.here, self.there)]
        here, there = (int(fact.replace(".", "")) if fact else None for fact in facts)
        if here is None or there is None or self.kind == STATUS:
            return abs(there if there is not None else here or 0)
        return abs(there - here)


@dataclass(frozen=True)
class Comparison:
    """The result: `matched` lines belong to an order of the channel; `sums` in fen."""

    lines: int
    matched: int
    sums: dict[str, dict[str, int]]
    differences: list[Difference]


def compare(
    channel: Channel, lines: list[Line], days: Days, types: Collection[int], fee_rate: int | None = None
) -> Comparison:
    """Compare a statement's lines with the channel's orders; nothing is changed.

    Args:
        days: the days of the statement.
        types: the order types that the statement lists.
        fee_rate: the channel's contractual fee on deposits, in basis points; None to skip the comparison.
    """
    here = recorded(channel, lines, days, types, fee_rate)
    by_order: dict[int, list[Line]] = {}
    for line in lines:
        if line.at in here.by_line:
            by_order.setdefault(here.by_line[line.at].order.id, []).append(line)
    records = {record.order.id: record for record in (*here.by_line.values(), *here.within)}
    payments = {row: payments_of(record, by_order.get(row, [])) for row, record in records.items()}
    differences = [_unknown(line, here.elsewhere.get(line.at)) for line in lines if line.at not in here.by_line]
    for payment in chain.from_iterable(payments[row] for row in by_order):
        differences += _judged(payment, fee_rate)
    differences.sort(key=lambda difference: difference.line or 0)
    for payment in chain.from_iterable(payments[record.order.id] for record in here.within):
        differences += _missing_there(payment, days)
    return Comparison(
        len({line.at for line in lines}),
        len(here.by_line),
        {"there": _sums(lines, here), "here": here.sums},
        differences,
    )


def _in_statement(line: Line) -> dict[str, str]:
    return {"status": line.state, "amount": hundredths(line.amount)}


def _on_record(payment: Payment) -> dict[str, str]:
    order = payment.record.order
    return {"status": order.status, "amount": hundredths(payment.received or order.amount)}


def _difference(kind: str, payment: Payment, line: Line, *notes: Note) -> Difference:
    here, there = _on_record(payment), _in_statement(line)
    order_no, exceptions = payment.record.order.order_no, _exceptions(payment.record)
    return Difference(kind, order_no, line.reference, line.at, here, there, notes, exceptions)


def _exceptions(record: Record) -> tuple[tuple[str, str], ...]:
    told = [each for each in record.exceptions if each.resolution != ANSWERED]
    return tuple((str(each.kind), str(each.resolution or OPEN)) for each in told)


def _unknown(line: Line, elsewhere: int | None) -> Difference:
    notes = [note(Remark.OTHER_CHANNEL, channel=str(elsewhere))] if elsewhere else []
    if not elsewhere and not line.number:
        notes.append(note(Remark.NO_NUMBER))
    return Difference(MISSING_HERE, line.number, line.reference, line.at, {}, _in_statement(line), tuple(notes))


def _missing_there(payment: Payment, days: Days) -> Iterator[Difference]:
    """Report money of these days that the channel must have, without a line."""
    if payment.paid or payment.back:
        return
    record, (event, at) = payment.record, _moved(payment)
    if event is None or not days.have(record.order, at):
        return
    notes = [event]
    if step := days.neighbour(record.order, at):
        neighbour = day_of(days.moment(record.order, at)) + timedelta(days=step)
        notes.append(note(Remark.AT_EDGE, day=str(neighbour)))
    order_no, here = record.order.order_no, _on_record(payment)
    yield Difference(MISSING_THERE, order_no, payment.reference, None, here, {}, tuple(notes), _exceptions(record))


def _moved(payment: Payment) -> tuple[Note | None, int]:
    """Return a note on the event that should have a line, and its time; None if there was none."""
    for each in payment.position.open:
        if each.kind == REVERSED:
            return note(Remark.REVERSED, time=time_of(each.createtime)), int(each.createtime)
    exception = payment.exception
    if not payment.record.is_expected(payment):
        return None, 0
    if exception is not None and (not payment.is_own or exception.resolution == COMPLETE):
        code = Remark.CREDITED_AS if exception.resolution == CREDIT else Remark.COMPLETED_WITH
        return note(code, kind=exception.kind, time=time_of(exception.createtime)), int(exception.createtime)
    at = (payment.is_own and payment.record.moved_at) or 0
    return (note(Remark.MOVED, time=time_of(at)) if at else None), at


def _judged(payment: Payment, fee_rate: int | None) -> Iterator[Difference]:
    """Yield the differences between the lines of one payment and the ledger."""
    for line in payment.paid:
        expected = payment.record.fee(abs(line.amount), fee_rate)
        if line.fee is not None and expected is not None and line.fee != expected:
            found = _difference(FEE, payment, line)
            yield replace(found, here={"fee": hundredths(expected)}, there={"fee": hundredths(line.fee)})
    for line in [line for line in payment.paid if is_of_another_day(payment, line)]:
        booked = day_of(payment.record.moved_elsewhen or 0)
        yield _difference(AMOUNT, payment, line, note(Remark.OTHER_DAY, day=str(booked)))
        payment.paid.remove(line)
    differs = list(_difference_of_sums(payment)) if payment.paid or payment.back else []
    yield from differs
    for line in payment.paid:
        if line.is_frozen:
            yield _difference(STATUS, payment, line, note(Remark.FROZEN))
        if line.is_unsized and not differs and not _knows_of_refund(payment):
            yield _difference(STATUS, payment, line, note(Remark.UNSIZED))


def _difference_of_sums(payment: Payment) -> Iterator[Difference]:
    """Yield the difference of amount or status, if there is one."""
    record, position = payment.record, payment.position
    paid, last = payment.paid[-1:], [*payment.paid, *payment.back][-1]
    if agrees(payment):
        if code := _open(payment):
            yield _difference(STATUS, payment, last, note(code))
    elif payment.back and (not paid or payment.gross == payment.received):
        if last.state == FAILED:
            code = DID_NOT_MOVE.get(position.money, Remark.FAILED_BOOKED)
        else:
            code = WENT_BACK.get(position.money, Remark.BACK_BOOKED)
        yield _difference(STATUS, payment, last, note(code))
    elif position.money not in BOOKED and not record.is_booked:
        yield _difference(STATUS, payment, paid[0], note(Remark.NOT_BOOKED))
    elif not payment.received:
        yield _difference(AMOUNT, payment, paid[0], note(Remark.PAID_TWICE))
    else:
        kinds = " and ".join(dict.fromkeys(each.kind for each in position.exceptions if each.kind in MONEY))
        notes = [note(Remark.COMPARED_WITH, kind=kinds)] if kinds else []
        yield _difference(AMOUNT, payment, paid[0], *notes)


def _knows_of_refund(payment: Payment) -> bool:
    """Return whether a certain or possible refund of this payment is recorded."""
    return payment.least < payment.received or any(each.kind == REVERSED for each in payment.position.exceptions)


def _open(payment: Payment) -> Remark | None:
    """Return the open point of a payment whose amount matches the ledger; None if there is none."""
    if any(each.kind == REVERSED or not each.amount for each in payment.position.open):
        return Remark.REFUND_OPEN
    return Remark.NOT_BOOKED if payment.position.open and payment.paid and not payment.record.has(payment) else None


def _sums(lines: list[Line], here: Recorded) -> dict[str, int]:
    """Return the received and paid-out amounts less refunds, and fees, in fen; `unknown` is for lines without an
    order."""
    sums = dict.fromkeys(("in", "out", "fees", "unknown"), 0)
    for line in lines:
        record = here.by_line.get(line.at)
        sign = {PAID: 1, REFUNDED: -1, FAILED: 0}[record.meaning(line) if record else line.state]
        if record is None:
            sums["unknown"] += line.amount if sign == 1 else sign * abs(line.amount)
        else:
            sums[record.direction] += sign * abs(line.amount)
        sums["fees"] += sign * (line.fee or 0)
    return sums
