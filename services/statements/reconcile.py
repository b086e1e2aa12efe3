"""Compare a channel's statement with the orders, and list the differences (docs/reconciling.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

from models.tables.channel import Channel
from models.tables.order import CANCELLED, CONFIRMED, MONEY_IN, PAYOUT_CONFLICT, REVERSED
from models.tables.refund import lives
from runtime.clock import CHINA, in_china
from runtime.money import hundredths
from runtime.texts import N_, Coded
from services.deposits.money import DepositMoney
from services.orders.lifecycle import ANSWERED
from services.orders.verdict import COMPLETE, CREDIT
from services.statements.book_side import Days, Recorded, recorded
from services.statements.parse import FAILED, PAID, REFUNDED, Line, Parsed
from services.statements.records import EDGE, DepositRecord, Payment, Record, payments_of
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
MANY = 10  # fees that differ, from which on the rate may be another one


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
    REPEATED = "repeated", N_("the statement has the same line twice: it is also line %(line)s")
    OTHERS = "others", N_("lines without an order number of this service: %(count)s")
    MORE = "more", N_("further differences, which only the file shows: %(count)s")
    RATE = "rate", N_("the fees of %(count)s payments differ from the rates of this channel")


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


def difference_from(facts: dict[str, Any]) -> Difference:
    """Return a difference that was stored as JSON."""
    notes = tuple(Note(Remark(code), values) for code, values in facts["notes"])
    exceptions = tuple((kind, ended) for kind, ended in facts["exceptions"])
    return Difference(**(facts | {"notes": notes, "exceptions": exceptions}))


@dataclass(frozen=True)
class Beyond:
    """What a statement has of other days than its own: a notice was late, or the clocks differ.

    `payments` are order numbers with the channel's number for the payment, `refunds` this service's refund numbers.
    """

    payments: frozenset[tuple[str, str]] = frozenset()
    refunds: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Costs:
    """What the channel kept of the deposits of a statement, in fen: `there` by its lines, less the fees that it
    returned with refunds, and `here` by the estimates of these orders."""

    there: int = 0
    here: int = 0


@dataclass(frozen=True)
class Comparison:
    """The result: `matched` lines belong to an order of the channel; `sums` in fen.

    `orders` are the ids of the orders of lines, by line. `refunds` are lines of refunds that this service did not
    request, with the number of the refunded payment. `costs` is None if the statement has no fees.
    """

    lines: int
    matched: int
    sums: dict[str, dict[str, int]]
    differences: list[Difference]
    orders: dict[int, int]
    refunds: list[tuple[Line, str]]
    beyond: Beyond
    costs: Costs | None


def compare(
    channel: Channel,
    statement: Parsed,
    days: Days,
    types: Collection[int],
    fee_rate: int | None,
    *,
    elsewhere: Beyond = Beyond(),
    only: Collection[int] | None = None,
    same_account: Collection[int] = (),
) -> Comparison:
    """Compare a statement's lines with the channel's orders; nothing is changed.

    Args:
        days: the days of the statement.
        types: the order types that the statement lists.
        fee_rate: the channel's contractual fee on deposits, in basis points; None for the estimates of the orders.
        elsewhere: what statements of other days have of these days.
        only: the ids of the orders that can be missing in the statement; None for all of its days.
        same_account: other channels with the account of this one, whose orders are in its statements, too.
    """
    repeated, lines = _repeated(statement.lines)
    here = recorded(channel, lines, days, types, fee_rate, only)
    by_order: dict[int, list[Line]] = {}
    for line in lines:
        if line.at in here.by_line:
            by_order.setdefault(here.by_line[line.at].order.id, []).append(line)
    records = {record.order.id: record for record in (*here.by_line.values(), *here.within)}
    payments = {row: payments_of(record, by_order.get(row, [])) for row, record in records.items()}
    with_lines = list(chain.from_iterable(payments[row] for row in by_order))
    costs = _costs(with_lines)
    unknown = [
        (line, payment.reference)
        for payment in with_lines
        for line in payment.back
        if payment.record.order.is_buy and line.state == REFUNDED and payment.refund_of(line) is None
    ]
    within = {record.order.id for record in here.within}
    beyond = _beyond(with_lines, within)
    unmatched = [line for line in lines if line.at not in here.by_line]
    others = [line for line in unmatched if here.elsewhere.get(line.at) not in same_account]
    differences = [_missing_here(line, here.elsewhere.get(line.at)) for line in others]
    differences += [
        _repetition(line, first, here.by_line[line.at].order.order_no if line.at in here.by_line else line.number)
        for line, first in repeated
    ]
    differences += _fee_differences(with_lines, fee_rate)
    reported = set()
    for payment in with_lines:
        of_payment = list(_judged(payment))
        differences += of_payment
        reported |= {id(payment)} if of_payment else set()
    differences.sort(key=lambda difference: difference.line or 0)
    for payment in chain.from_iterable(payments[row] for row in within):
        # A deposit's refund is next to its payment, so a refund that agrees is no line of the payment.
        is_back = payment.back and (id(payment) in reported or not payment.record.order.is_buy)
        has_line = payment.paid or is_back or (payment.order_no, payment.reference) in elsewhere.payments
        if not has_line:
            differences += _missing_there(payment, days)
    if statement.lists_refunds:
        for payment in chain.from_iterable(payments.values()):
            differences += _missing_refunds(payment, days, elsewhere.refunds)
    return Comparison(
        len({line.at for line in statement.lines}),
        len(here.by_line),
        {"there": _sums(lines, here), "here": here.sums},
        differences,
        orders={at: record.order.id for at, record in here.by_line.items()},
        refunds=unknown,
        beyond=beyond,
        costs=costs,
    )


def _repeated(lines: list[Line]) -> tuple[list[tuple[Line, int]], list[Line]]:
    """Return the lines that repeat an earlier one, each with that one's place, and the other lines.

    Two payments never have the same number of the channel and the same time, and two refunds never the same number.
    """
    first: dict[tuple[object, ...], int] = {}
    repeated, others = [], []
    for line in lines:
        says = (line.number, line.reference, line.refund_number, line.amount, line.fee, line.state, line.time)
        is_named = line.refund_number if line.state == REFUNDED else line.reference and line.time is not None
        if is_named and says in first and first[says] != line.at:
            repeated.append((line, first[says]))
        else:
            first.setdefault(says, line.at)
            others.append(line)
    return repeated, others


def _repetition(line: Line, first: int, order_no: str) -> Difference:
    notes = (note(Remark.REPEATED, line=str(first)),)
    return Difference(AMOUNT, order_no, line.reference, line.at, {}, _in_statement(line), notes)


def _costs(payments: list[Payment]) -> Costs | None:
    """Return what the channel kept of deposits; None if no line has a fee.

    An estimate is posted with the credit of the order's own payment. A payment that the channel refunded before is
    never credited, so its estimate ends with the last refund.
    """
    there, here, is_known = 0, 0, False
    for payment in payments:
        record = payment.record
        if not isinstance(record, DepositRecord):
            continue
        listed = [(line, payment.refund_of(line)) for line in payment.back + payment.apart if line.state == REFUNDED]
        # The fee of a refund that failed after all was not returned.
        back = [line for line, refund in listed if not (line.is_unproven and refund and refund.status == CANCELLED)]
        is_known |= any(line.fee is not None for line in payment.paid + back)
        there += sum(line.fee or 0 for line in payment.paid) - sum(line.fee or 0 for line in back)
        if payment.is_own:
            here += record.order.cost_amount * (bool(payment.paid) - _end_the_estimate(record, payment, back))
    return Costs(there, here) if is_known else None


def _end_the_estimate(record: DepositRecord, payment: Payment, back: list[Line]) -> bool:
    """Return whether the last refund of a payment that is not credited is in these lines.

    If refunds in progress are to take all of it, it is credited only if one fails, and then its fee is not returned.
    """
    order, refunds = record.order, lives(payment.refunds)
    is_to_end = order.status == CONFIRMED and sum(each.amount for each in refunds) >= order.received
    if not back or not (record.was_taken_back or is_to_end):
        return False
    return not refunds or any(payment.refund_of(line) is refunds[-1] for line in back)


def _beyond(payments: list[Payment], within: Collection[int]) -> Beyond:
    """Return what these payments' lines show of other days than the statement's."""
    late = [each for each in payments if each.paid and each.record.order.id not in within]
    refunds = [
        refund.refund_no
        for payment in payments
        for line in payment.back
        if (refund := payment.refund_of(line)) and refund.id not in payment.record.must_list
    ]
    return Beyond(frozenset((each.order_no, each.reference) for each in late), frozenset(refunds))


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
    if event is None or not days.have(record.order, at) or (event.code is Remark.REVERSED and payment.back):
        return
    notes = [event]
    if step := days.neighbour(record.order, at):
        neighbour = in_china(days.moment(record.order, at)).date() + timedelta(days=step)
        notes.append(note(Remark.AT_EDGE, day=str(neighbour)))
    order_no, here = record.order.order_no, _on_record(payment)
    yield Difference(MISSING_THERE, order_no, payment.reference, None, here, {}, tuple(notes), _exceptions(record))


def _missing_refunds(payment: Payment, days: Days, elsewhere: Collection[str]) -> Iterator[Difference]:
    """Report the payment's refunds by this service, completed in these days, without a line here or `elsewhere`."""
    record = payment.record
    for refund in payment.missing_refunds():
        if refund.refund_no in elsewhere:
            continue
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


def _fee_differences(payments: list[Payment], fee_rate: int | None) -> list[Difference]:
    """Return the fees that differ: one by one, or as one sum if most of many do, as the channel's rate is another."""
    compared = [
        (payment, line, expected)
        for payment in payments
        for line in payment.paid
        if line.fee is not None and (expected := payment.record.fee(abs(line.amount), fee_rate)) is not None
    ]
    differing = [(payment, line, expected) for payment, line, expected in compared if line.fee != expected]
    if fee_rate is None and len(differing) >= MANY and 2 * len(differing) > len(compared):
        notes = (note(Remark.RATE, count=str(len(differing))),)
        here = {"fee": hundredths(sum(expected for _, _, expected in differing))}
        there = {"fee": hundredths(sum(line.fee or 0 for _, line, _ in differing))}
        return [Difference(FEE, "", "", None, here, there, notes)]
    return [
        replace(
            _difference(FEE, payment, line),
            here={"fee": hundredths(expected)},
            there={"fee": hundredths(line.fee or 0)},
        )
        for payment, line, expected in differing
    ]


def _judged(payment: Payment) -> Iterator[Difference]:
    """Yield the differences between the lines of one payment and the ledger."""
    for line in [line for line in payment.paid if payment.is_of_another_day(line)]:
        booked = in_china(payment.record.moved_elsewhen or 0).date()
        yield _difference(AMOUNT, payment, line, note(Remark.OTHER_DAY, day=str(booked)))
        payment.paid.remove(line)
    for line, refund in [(line, payment.refund_of(line)) for line in payment.back]:
        if refund is None or (refund.status != CANCELLED and abs(line.amount) == refund.amount):
            continue
        is_cancelled = refund.status == CANCELLED
        if is_cancelled and line.is_unproven:  # it was in progress then, and failed later
            payment.back.remove(line)
            payment.apart.append(line)
            continue
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
