"""Compare a channel's statement with the orders, and list the differences (docs/reconciling.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import NamedTuple

from models.tables.channel import Channel
from models.tables.order import CANCELLED, MONEY_IN, PAYOUT_CONFLICT, REVERSED
from runtime.clock import CHINA, in_china
from runtime.money import hundredths
from runtime.texts import N_, Coded
from services.deposits.money import DepositMoney
from services.orders.lifecycle import ANSWERED
from services.orders.verdict import COMPLETE, CREDIT
from services.statements.book_side import Days, Recorded, recorded
from services.statements.parse import FAILED, PAID, REFUNDED, Line, Parsed
from services.statements.records import EDGE, Payment, Record, payments_of
from services.withdrawals.money import WithdrawalMoney

MISSING_HERE, MISSING_THERE, AMOUNT, STATUS, FEE = ("missing_here", "missing_there", "amount", "status", "fee")
OPEN = "open"
MONEY = (*MONEY_IN, PAYOUT_CONFLICT)
# States in which the ledger counts the money, for an order of any status.
BOOKED = (
    DepositMoney.TO_CREDIT,
    DepositMoney.CREDITED,
    DepositMoney.SENT_BACK,
    WithdrawalMoney.SPENT,
    WithdrawalMoney.SPENT_TWICE,
)
IN_EXCEPTION = (DepositMoney.QUESTIONED, DepositMoney.OPEN)
IN_RESERVE = (WithdrawalMoney.IN_FLIGHT, WithdrawalMoney.HELD_AGAIN)
TIME = "%Y-%m-%d %H:%M:%S"


class Remark(Coded):
    """A remark on a difference: its code, as results store it, and its text in English."""

    OTHER_CHANNEL = "other_channel", N_("an order of channel %(channel)s")
    NO_NUMBER = "no_number", N_("no order number")
    MOVED = "moved", N_("moved here at %(time)s")
    REVERSED = "reversed", N_("reported here as reversed at %(time)s")
    CREDITED_AS = "credited_as", N_("credited as %(kind)s; told of here at %(time)s")
    COMPLETED_WITH = "completed_with", N_("completed with %(kind)s; told of here at %(time)s")
    AT_EDGE = "at_edge", N_("at the edge of the day: it may stand in the statement of %(day)s")
    PAID_TWICE = "paid_twice", N_("paid more than once")
    OTHER_DAY = "other_day", N_("paid more than once, or booked on another day: %(day)s")
    FROZEN = "frozen", N_("the channel holds the money back: ask its staff why, and until when")
    UNSIZED = (
        "unsized",
        N_("some of it went back there, and the statement does not say how much; here nothing did"),
    )
    NOT_BOOKED = "not_booked", N_("the money moved there and is not booked here")
    REFUND_OPEN = "refund_open", N_("the exception about what went back is open")
    BACK_BOOKED = "back_booked", N_("the money went back there and is booked here")
    BACK_OPEN = "back_open", N_("the money went back there and is in an open exception here")
    BACK_HELD = "back_held", N_("the money went back there and is held here")
    FAILED_BOOKED = "failed_booked", N_("the money did not move there and is booked here")
    FAILED_OPEN = "failed_open", N_("the money did not move there and is in an open exception here")
    FAILED_HELD = "failed_held", N_("the money did not move there and is held here")
    REFUNDED = "refunded", N_("refund %(number)s completed here at %(time)s")
    REFUND_AMOUNT = "refund_amount", N_("refund %(number)s has another amount here")
    REFUND_CANCELLED = "refund_cancelled", N_("refund %(number)s is cancelled here")
    COMPARED_WITH = "compared_with", N_("compared with what %(kind)s recorded")


class Note(NamedTuple):
    """A remark with its arguments, which are texts: `time` is in China, as results store it."""

    code: Remark
    values: dict[str, str]

    @property
    def at(self) -> int | None:
        """The argument `time` as a Unix time; None without it."""
        text = self.values.get("time")
        return int(datetime.strptime(text, TIME).replace(tzinfo=CHINA).timestamp()) if text else None

    def __str__(self) -> str:
        """The text in English, with the time in the machine's zone."""
        time = {"time": f"{datetime.fromtimestamp(self.at):{TIME}}"} if self.at else {}
        return self.code.template % (self.values | time) if self.values else self.code.template


def note(code: Remark, **values: str) -> Note:
    """Return a remark with its arguments."""
    return Note(code, values)


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
        told = [str(each) for each in self.notes]
        if self.exceptions:
            exceptions = ", ".join(f"{kind} ({resolution})" for kind, resolution in self.exceptions)
            told.append(f"exceptions: {exceptions}")
        return "; ".join(told)

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
    channel: Channel, statement: Parsed, days: Days, types: Collection[int], fee_rate: int | None
) -> Comparison:
    """Compare a statement's lines with the channel's orders; nothing is changed.

    Args:
        days: the days of the statement.
        types: the order types that the statement lists.
        fee_rate: the channel's contractual fee on deposits, in basis points; None to skip the comparison.
    """
    lines = statement.lines
    here = recorded(channel, lines, days, types, fee_rate)
    by_order: dict[int, list[Line]] = {}
    for line in lines:
        if line.at in here.by_line:
            by_order.setdefault(here.by_line[line.at].order.id, []).append(line)
    records = {record.order.id: record for record in (*here.by_line.values(), *here.within)}
    payments = {row: payments_of(record, by_order.get(row, [])) for row, record in records.items()}
    differences = [_missing_here(line, here.elsewhere.get(line.at)) for line in lines if line.at not in here.by_line]
    for payment in chain.from_iterable(payments[row] for row in by_order):
        differences += _judged(payment, fee_rate)
    differences.sort(key=lambda difference: difference.line or 0)
    for payment in chain.from_iterable(payments[record.order.id] for record in here.within):
        if not payment.paid and not payment.back:
            differences += _missing_there(payment, days)
    if statement.lists_refunds:
        for payment in chain.from_iterable(payments.values()):
            differences += _missing_refunds(payment, days)
    return Comparison(
        len({line.at for line in lines}),
        len(here.by_line),
        {"there": _sums(lines, here), "here": here.sums},
        differences,
    )


def _missing_here(line: Line, elsewhere: int | None) -> Difference:
    notes = []
    if elsewhere:
        notes.append(note(Remark.OTHER_CHANNEL, channel=str(elsewhere)))
    elif not line.number:
        notes.append(note(Remark.NO_NUMBER))
    return Difference(MISSING_HERE, line.number, line.reference, line.at, {}, _in_statement(line), tuple(notes))


def _missing_there(payment: Payment, days: Days) -> Iterator[Difference]:
    """Report money of these days that the channel must have, without a line."""
    record, (event, at) = payment.record, _moved(payment)
    if event is None or not days.have(record.order, at):
        return
    notes = [event]
    if step := days.neighbour(record.order, at):
        neighbour = in_china(days.moment(record.order, at)).date() + timedelta(days=step)
        notes.append(note(Remark.AT_EDGE, day=str(neighbour)))
    order_no, here = record.order.order_no, _on_record(payment)
    yield Difference(MISSING_THERE, order_no, payment.reference, None, here, {}, tuple(notes), _exceptions(record))


def _missing_refunds(payment: Payment, days: Days) -> Iterator[Difference]:
    """Report the payment's refunds by this service, completed in these days, without a line."""
    record = payment.record
    for refund in payment.missing_refunds():
        at = int(refund.completedtime)
        notes = [note(Remark.REFUNDED, number=refund.refund_no, time=_time(at))]
        # The channel may have completed it on an earlier day than this service learned.
        earlier = not days.by_creation and min(int(refund.senttime or at), at - EDGE) < days.since
        step = -1 if earlier else 0 if days.by_creation else days.neighbour(record.order, at)
        if step:
            neighbour = in_china(days.since if step < 0 else at).date() + timedelta(days=step)
            notes.append(note(Remark.AT_EDGE, day=str(neighbour)))
        here = {"status": refund.status, "amount": hundredths(refund.amount)}
        order_no, exceptions = record.order.order_no, _exceptions(record)
        yield Difference(MISSING_THERE, order_no, payment.reference, None, here, {}, tuple(notes), exceptions)


def _moved(payment: Payment) -> tuple[Note | None, int]:
    """Return a note on the event that should have a line, and its time; None if there was none."""
    record, exception = payment.record, payment.exception
    for each in payment.position.open:
        if each.kind == REVERSED:
            return note(Remark.REVERSED, time=_time(each.createtime)), int(each.createtime)
    if not record.is_expected(payment):
        return None, 0
    if exception is not None and (not payment.is_own or exception.resolution == COMPLETE):
        code = Remark.CREDITED_AS if exception.resolution == CREDIT else Remark.COMPLETED_WITH
        return note(code, kind=exception.kind, time=_time(exception.createtime)), int(exception.createtime)
    if payment.is_own and record.moved_at:
        return note(Remark.MOVED, time=_time(record.moved_at)), record.moved_at
    return None, 0


def _time(at: int) -> str:
    return f"{in_china(at):{TIME}}"


def _judged(payment: Payment, fee_rate: int | None) -> Iterator[Difference]:
    """Yield the differences between the lines of one payment and the ledger."""
    for line in payment.paid:
        expected = payment.record.fee(abs(line.amount), fee_rate)
        if line.fee is not None and expected is not None and line.fee != expected:
            found = _difference(FEE, payment, line)
            yield replace(found, here={"fee": hundredths(expected)}, there={"fee": hundredths(line.fee)})
    for line in [line for line in payment.paid if payment.is_of_another_day(line)]:
        booked = in_china(payment.record.moved_elsewhen or 0).date()
        yield _difference(AMOUNT, payment, line, note(Remark.OTHER_DAY, day=str(booked)))
        payment.paid.remove(line)
    for line, refund in [(line, payment.refund_of(line)) for line in payment.back]:
        if refund is None or (refund.status != CANCELLED and abs(line.amount) == refund.amount):
            continue
        is_cancelled = refund.status == CANCELLED
        kind, code = (STATUS, Remark.REFUND_CANCELLED) if is_cancelled else (AMOUNT, Remark.REFUND_AMOUNT)
        found = _difference(kind, payment, line, note(code, number=refund.refund_no))
        yield replace(found, here={"status": refund.status, "amount": hundredths(refund.amount)})
        payment.back.remove(line)
        payment.apart.append(line)
    differs = list(_difference_of_sums(payment)) if payment.paid or payment.back else []
    yield from differs
    # A certain or possible refund of this payment may be recorded.
    is_refunded = payment.least < payment.received or any(e.kind == REVERSED for e in payment.position.exceptions)
    for line in payment.paid:
        if line.is_frozen:
            yield _difference(STATUS, payment, line, note(Remark.FROZEN))
        if line.is_unsized and not differs and not is_refunded:
            yield _difference(STATUS, payment, line, note(Remark.UNSIZED))


def _difference_of_sums(payment: Payment) -> Iterator[Difference]:
    """Yield the difference of amount or status, if there is one."""
    record, position = payment.record, payment.position
    paid, last = payment.paid[-1:], [*payment.paid, *payment.back][-1]
    if payment.agrees():
        if any(each.kind == REVERSED or not each.amount for each in position.open):
            yield _difference(STATUS, payment, last, note(Remark.REFUND_OPEN))
        elif position.open and paid and not record.has(payment):
            yield _difference(STATUS, payment, last, note(Remark.NOT_BOOKED))
    elif payment.back and (not paid or payment.gross == payment.received):
        has_failed = last.state == FAILED
        if position.money in IN_EXCEPTION:
            code = Remark.FAILED_OPEN if has_failed else Remark.BACK_OPEN
        elif position.money in IN_RESERVE:
            code = Remark.FAILED_HELD if has_failed else Remark.BACK_HELD
        else:
            code = Remark.FAILED_BOOKED if has_failed else Remark.BACK_BOOKED
        yield _difference(STATUS, payment, last, note(code))
    elif position.money not in BOOKED and not record.is_booked:
        yield _difference(STATUS, payment, paid[0], note(Remark.NOT_BOOKED))
    elif not payment.received:
        yield _difference(AMOUNT, payment, paid[0], note(Remark.PAID_TWICE))
    else:
        kinds = " and ".join(dict.fromkeys(each.kind for each in position.exceptions if each.kind in MONEY))
        notes = [note(Remark.COMPARED_WITH, kind=kinds)] if kinds else []
        yield _difference(AMOUNT, payment, paid[0], *notes)


def _difference(kind: str, payment: Payment, line: Line, *notes: Note) -> Difference:
    here, there = _on_record(payment), _in_statement(line)
    order_no, exceptions = payment.record.order.order_no, _exceptions(payment.record)
    return Difference(kind, order_no, line.reference, line.at, here, there, notes, exceptions)


def _in_statement(line: Line) -> dict[str, str]:
    return {"status": line.state, "amount": hundredths(line.amount)}


def _on_record(payment: Payment) -> dict[str, str]:
    order = payment.record.order
    return {"status": order.status, "amount": hundredths(payment.received or order.amount)}


def _exceptions(record: Record) -> tuple[tuple[str, str], ...]:
    told = [each for each in record.exceptions if each.resolution != ANSWERED]
    return tuple((str(each.kind), str(each.resolution or OPEN)) for each in told)


def _sums(lines: list[Line], here: Recorded) -> dict[str, int]:
    """Return the received amounts, the paid-out amounts less returns, the refunds of deposits, and the fees, in fen.

    `unknown` is for lines without an order.
    """
    sums = dict.fromkeys(("in", "out", "refunds", "fees", "unknown"), 0)
    for line in lines:
        record = here.by_line.get(line.at)
        sign = {PAID: 1, REFUNDED: -1, FAILED: 0}[record.meaning(line) if record else line.state]
        if record is None:
            sums["unknown"] += line.amount if sign == 1 else sign * abs(line.amount)
        elif sign < 0 and record.direction == "in":
            sums["refunds"] += abs(line.amount)
        else:
            sums[record.direction] += sign * abs(line.amount)
        sums["fees"] += sign * (line.fee or 0)
    return sums
