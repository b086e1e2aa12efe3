"""A channel's statement against the orders: where the two differ, and how (docs/reconciling.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from gateways.base import CHINA
from models.channel import Channel
from models.order import MONEY_IN, PAYOUT_CONFLICT, REVERSED, PaymentException
from schemas.views import hundredths
from services.lifecycle import ANSWERED
from services.recorded import EDGE, Record, Recorded, fee_of, recorded
from services.statements import FAILED, PAID, REFUNDED, Line

MISSING_HERE, MISSING_THERE, AMOUNT, STATUS, FEE = ("missing_here", "missing_there", "amount", "status", "fee")
# How an exception ends that says: the money came back (withdrawals), or went back (deposits).
WENT_BACK = {True: "refund", False: "credit"}


@dataclass(frozen=True)
class Difference:
    """One thing that the statement and the orders say differently; `here` and `there` in texts, by what they are."""

    kind: str
    order_no: str
    reference: str
    line: int | None
    here: dict[str, str]
    there: dict[str, str]
    detail: str = ""


@dataclass(frozen=True)
class Comparison:
    """What came of it: `matched` lines belong to an order of the channel; `sums` in fen."""

    lines: int
    matched: int
    sums: dict[str, dict[str, int]]
    differences: list[Difference]


@dataclass(frozen=True)
class Money:
    """Money that is on record for an order: the order's own, or what an exception tells of. In fen."""

    amount: int
    reference: str
    exception: PaymentException | None = None


@dataclass(frozen=True)
class Matched:
    """Payments of one order, each with the money on record that it is; `left` is in no line, `more` not on record."""

    pairs: list[tuple[Line, Money]]
    left: list[Money]
    more: list[Line]


def compare(
    channel: Channel, lines: list[Line], since: int, until: int, types: Collection[int], fee_rate: int | None = None
) -> Comparison:
    """Compare a statement's lines with the channel's orders; nothing is changed.

    Args:
        since: when the statement's days begin, in Unix seconds; `until`: when the day after the last begins.
        types: of orders that the statement has at all.
        fee_rate: what the channel keeps of deposits by contract, in basis points; None where that is not compared.
    """
    here = recorded(channel, lines, since, until, types, fee_rate)
    by_order: dict[int, list[Line]] = {}
    for line in lines:
        if line.at in here.by_line:
            by_order.setdefault(here.by_line[line.at].order.id, []).append(line)
    records = {record.order.id: record for record in here.by_line.values()}
    differences = [_unknown(line, here.elsewhere.get(line.at)) for line in lines if line.at not in here.by_line]
    for order, own in by_order.items():
        differences += _judged(records[order], own, fee_rate)
    differences.sort(key=lambda difference: difference.line or 0)
    days = since, until
    differences += [_not_there(record, days) for record in here.missing if not _went_back(record)]
    for record in here.credited:
        differences += _credited_not_there(record, by_order.get(record.order.id, []), days)
    return Comparison(len(lines), len(here.by_line), {"there": _sums(lines, here), "here": here.sums}, differences)


def _said(line: Line) -> dict[str, str]:
    return {"status": line.state, "amount": hundredths(line.amount)}


def _on_record(record: Record, money: Money | None = None) -> dict[str, str]:
    return {"status": record.order.status, "amount": hundredths((money or record.order).amount)}


def _difference(kind: str, record: Record, line: Line, detail: str, money: Money | None = None) -> Difference:
    here, there = _on_record(record, money), _said(line)
    detail = _with_exceptions(record, detail)
    return Difference(kind, record.order.order_no, line.reference, line.at, here, there, detail)


def _with_exceptions(record: Record, *details: str) -> str:
    named = [f"{each.kind} ({each.resolution or 'open'})" for each in record.exceptions if each.resolution != ANSWERED]
    exceptions = f"exceptions: {', '.join(named)}" if named else ""
    return "; ".join(filter(None, (*details, exceptions)))


def _unknown(line: Line, elsewhere: int | None) -> Difference:
    detail = f"an order of channel {elsewhere}" if elsewhere else "" if line.number else "no order number"
    return Difference(MISSING_HERE, line.number, line.reference, line.at, {}, _said(line), detail)


def _not_there(record: Record, days: tuple[int, int]) -> Difference:
    money = Money(record.order.amount, record.order.channel_reference)
    return _missing(record, money, "moved here", record.moved_at or 0, days)


def _credited_not_there(record: Record, lines: list[Line], days: tuple[int, int]) -> Iterator[Difference]:
    """Money of these days that an operator credited to the merchant and that none of the order's lines is."""
    for money in _matched(record, lines).left:
        told = money.exception
        if told is not None and told.resolution == "credit" and days[0] <= told.createtime < days[1]:
            yield _missing(record, money, f"credited as {told.kind}; told of here", told.createtime, days)


def _missing(record: Record, money: Money, what: str, at: int, days: tuple[int, int]) -> Difference:
    moment, (since, until) = datetime.fromtimestamp(at, CHINA), days
    details = [f"{what} at {moment:%Y-%m-%d %H:%M:%S}"]
    for near, step in ((at < since + EDGE, -1), (at >= until - EDGE, 1)):
        if near:
            neighbour = moment.date() + timedelta(days=step)
            details.append(f"at the edge of the day: it may stand in the statement of {neighbour}")
    here, detail = _on_record(record, money), _with_exceptions(record, *details)
    return Difference(MISSING_THERE, record.order.order_no, money.reference, None, here, {}, detail)


def _money_of(record: Record, lines: list[Line]) -> list[Money]:
    """The money that is on record for an order and that these lines may be about."""
    order, own = record.order, record.is_booked
    kinds = MONEY_IN if order.is_buy else (PAYOUT_CONFLICT,)
    others = [
        Money(each.amount, each.reference, each)
        for each in record.exceptions
        # A payout that was cancelled is said not to be out; what has the order's own number is its own money by now.
        if each.kind in kinds and each.resolution != "cancel"
        if not (own and each.reference == order.channel_reference)
    ]
    references = {line.reference for line in lines}
    # Money of other days under another number is not what these lines tell of.
    elsewhen = record.moved_at is None and "" not in {order.channel_reference, *references}
    if own and not (elsewhen and order.channel_reference not in references):
        return [Money(order.amount, order.channel_reference), *others]
    return others


def _matched(record: Record, lines: list[Line]) -> Matched:
    """Each payment takes the money on record that it fits best: by the channel's number, the day, then the amount."""
    found = Matched([], _money_of(record, lines), [])
    references = {money.reference for money in found.left}
    paid = [line for line in lines if _went(record, line) == PAID]
    for line in sorted(paid, key=lambda line: line.reference not in references):
        alike = [
            (money.reference != line.reference, _of_another_day(record, line, money), money.amount != abs(line.amount))
            for money in found.left
        ]
        if alike:
            found.pairs.append((line, found.left.pop(alike.index(min(alike)))))
        else:
            found.more.append(line)
    return found


def _of_another_day(record: Record, line: Line, money: Money) -> bool:
    """Was the order's own money booked on another day than this line's, and does no number say that it is that?"""
    moved, known = record.moved_elsewhen, line.reference and line.reference == money.reference
    if known or money.exception or moved is None or line.time is None:
        return False
    return _day(line.time) not in {_day(moved + step) for step in (-EDGE, 0, EDGE)}


def _day(at: int) -> date:
    return datetime.fromtimestamp(at, CHINA).date()


def _judged(record: Record, lines: list[Line], fee_rate: int | None) -> Iterator[Difference]:
    """Where the lines of one order differ from what is on record for it."""
    matched = _matched(record, lines)
    for line, money in matched.pairs:
        yield from _against(record, line, money, fee_rate)
    more = matched.more
    paid = [*matched.pairs, *more]
    back = [line for line in lines if _went(record, line) == REFUNDED]
    if not paid and not back:
        back = [line for line in lines if _went(record, line) == FAILED][:1]
    yield from _judged_back(record, back, more)
    for line in more:
        if record.is_booked:
            yield _difference(AMOUNT, record, line, "paid more than once")
        else:
            yield _difference(STATUS, record, line, "the money moved there and is not booked here")


def _went(record: Record, line: Line) -> str:
    """What a line says of the money; without a status, a negative amount is a deposit's that went back."""
    return REFUNDED if line.state == PAID and line.amount < 0 and record.order.is_buy else line.state


def _against(record: Record, line: Line, money: Money, fee_rate: int | None) -> Iterator[Difference]:
    """Where one payment differs from the money on record that it is."""
    exception = money.exception
    if not record.is_booked and exception is not None and exception.resolution is None:
        yield _difference(STATUS, record, line, "the money moved there and is not booked here", money)
    elif _of_another_day(record, line, money):
        booked = _day(record.moved_elsewhen or 0)
        yield _difference(AMOUNT, record, line, f"paid more than once, or booked on another day: {booked}")
    elif money.amount != abs(line.amount):
        detail = f"compared with what {exception.kind} recorded" if exception else ""
        yield _difference(AMOUNT, record, line, detail, money)
    expected = fee_of(record.order, abs(line.amount), fee_rate)
    if line.fee is not None and expected is not None and line.fee != expected:
        found = _difference(FEE, record, line, "")
        yield replace(found, here={"fee": hundredths(expected)}, there={"fee": hundredths(line.fee)})


def _went_back(record: Record, amount: int | None = None) -> PaymentException | None:
    """A settled exception that says that the money of the order went back, or that other money of this amount did."""
    for each in record.exceptions:
        same = each.kind == REVERSED or (each.kind in MONEY_IN and each.amount == amount)
        if same and each.resolution == WENT_BACK[record.order.is_buy]:
            return each
    return None


def _judged_back(record: Record, back: list[Line], more: list[Line]) -> Iterator[Difference]:
    """Lines by which money went back, or never went; those of `more` that they undo are taken out of it."""
    known = replace(record, exceptions=list(record.exceptions))
    for line in back:
        undone = next((each for each in more if abs(each.amount) == abs(line.amount)), None)
        exception = _went_back(known, abs(line.amount))
        if undone is not None and line.state != FAILED:
            more.remove(undone)
        elif exception is not None:
            known.exceptions.remove(exception)
        elif record.is_booked:
            did = "did not move" if line.state == FAILED else "went back"
            yield _difference(STATUS, record, line, f"the money {did} there and is booked here")


def _sums(lines: list[Line], here: Recorded) -> dict[str, int]:
    """What came in and went out, less what went back, and fees; `unknown`: on lines that no order here has. In fen."""
    sums = dict.fromkeys(("in", "out", "fees", "unknown"), 0)
    for line in lines:
        record = here.by_line.get(line.at)
        sign = {PAID: 1, REFUNDED: -1, FAILED: 0}[_went(record, line) if record else line.state]
        if record is None:
            sums["unknown"] += line.amount if sign == 1 else sign * abs(line.amount)
        else:
            sums["in" if record.order.is_buy else "out"] += sign * abs(line.amount)
        sums["fees"] += sign * (line.fee or 0)
    return sums
