"""The recorded payment of each statement line, and whether the lines of a payment agree with the ledger."""

from __future__ import annotations

from datetime import date, datetime

from gateways.base import Report, State
from models.tables.order import CANCELLED
from runtime.clock import CHINA
from services.deposits.money import DepositMoney
from services.orders.verdict import CLOSE, NONE, Verdict
from services.statements.book_side import EDGE
from services.statements.parse import FAILED, PAID, REFUNDED, Line
from services.statements.records import NEW, Payment, Record


def payments_of(record: Record, lines: list[Line]) -> list[Payment]:
    """Return the payments of an order with their statement lines, recorded payments first."""
    found = list(record.payments())
    _match_paid(record, [line for line in lines if record.meaning(line) == PAID], found)
    back = [line for line in lines if record.meaning(line) == REFUNDED]
    for line in back:
        _refunded(record, line, found).back.append(line)
    failed = [line for line in lines if record.meaning(line) == FAILED]
    if failed and not back and not any(payment.paid for payment in found):
        for payment in record.failed(failed[0], found)[:1]:
            payment.back.append(failed[0])
    return found


def agrees(payment: Payment) -> bool:
    """Return whether the lines of this payment agree with the ledger, as a report of their sum would."""
    gross, back = payment.gross, sum(abs(line.amount) for line in payment.back)
    if payment.received and back > gross:
        return False
    if any(line.state == FAILED for line in payment.back):
        back = gross
    if not back and gross == payment.received and payment.record.returned_elsewhere(payment):
        back = gross
    left = gross - back
    report = Report(State.PAID, left, payment.reference) if left > 0 else Report(State.FAILED)
    position = payment.record.position_by(payment, gross)
    verdict = payment.record.verdict_on(report, position)
    if verdict.exception == CLOSE and not position.open:
        verdict = verdict._replace(exception="")
    # Cancelling an order without a payment moves no money.
    return verdict == NONE or (position.money is DepositMoney.AWAITED and verdict == Verdict(CANCELLED))


def day_of(at: int) -> date:
    """Return the day in China."""
    return datetime.fromtimestamp(at, CHINA).date()


def is_of_another_day(payment: Payment, line: Line) -> bool:
    """Return whether the order's money was booked on another day than this line's and has another number."""
    moved, known = payment.record.moved_elsewhen, line.reference and line.reference == payment.reference
    if known or not payment.is_own or moved is None or line.time is None:
        return False
    return day_of(line.time) not in {day_of(moved + step) for step in (-EDGE, 0, EDGE)}


def _new(record: Record, line: Line) -> Payment:
    return Payment(record, line.reference, 0, record.position(NEW))


def _match_paid(record: Record, paid: list[Line], found: list[Payment]) -> None:
    """Give each paid line to the best recorded payment: by the channel's number, the day, then the amount.

    Two known, different numbers are two payments, whatever their days and amounts.
    """
    references, free = {payment.reference for payment in found}, list(found)
    for line in sorted(paid, key=lambda line: line.reference not in references):
        alike = [each for each in free if each.reference == line.reference or "" in (each.reference, line.reference)]
        if alike:
            payment = min(
                alike,
                key=lambda each: (
                    each.reference != line.reference,
                    is_of_another_day(each, line),
                    each.received != abs(line.amount),
                ),
            )
            free.remove(payment)
        else:
            payment = _new(record, line)
            found.append(payment)
        payment.paid.append(line)


def _refunded(record: Record, line: Line, found: list[Payment]) -> Payment:
    """Return the payment that this line refunds: by the channel's number, the amount, or otherwise the order's own."""

    def fit(payment: Payment) -> tuple[bool, ...]:
        numbers = {payment.reference, *(each.reference for each in payment.paid)} - {""}
        amounts = [abs(each.amount) for each in payment.paid]
        undone = not payment.received and not payment.back and amounts == [abs(line.amount)]
        awaited = payment.expected_back == abs(line.amount)
        return line.reference not in numbers, not undone, not awaited, not payment.is_own

    if not found:
        found.append(_new(record, line))
    return min(found, key=fit)
