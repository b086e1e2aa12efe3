"""The recorded payment of each statement line, and that payment's position in the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime

from models.tables.order import MONEY_IN, PAYOUT_CONFLICT, PaymentException
from runtime.clock import CHINA
from services.deposits import money as deposit_money
from services.orders.verdict import CANCEL, COMPLETE, CREDIT, PAID_OUT, Position
from services.statements.book_side import EDGE, Record
from services.statements.parse import FAILED, PAID, REFUNDED, Line
from services.withdrawals import money as withdrawal_money

NEW = "\0"  # the number of a payment that is not recorded: no payment has it


@dataclass
class Payment:
    """One payment of a deposit, or one payout of a withdrawal, with its lines. Amounts in fen.

    `received` is the recorded total that the channel received or paid out: 0 if the payment is not recorded.
    `paid` are lines of money that moved, `back` those of money that was returned or never moved.
    """

    record: Record
    reference: str
    received: int
    position: Position
    is_own: bool = False
    paid: list[Line] = field(default_factory=list)
    back: list[Line] = field(default_factory=list)

    @property
    def least(self) -> int:
        """The minimum amount that the channel must have."""
        return max(self.position.least, 0)

    @property
    def expected_back(self) -> int:
        """The amount that may still be returned without a difference to the ledger."""
        return self.received - self.least - sum(abs(line.amount) for line in self.back)

    @property
    def exception(self) -> PaymentException | None:
        """The exception by which it was credited, or by which the order was completed."""
        money = (each for each in self.position.exceptions if each.kind in MONEY_IN)
        return next((each for each in money if each.resolution in (CREDIT, COMPLETE)), None)


def payments_of(record: Record, lines: list[Line]) -> list[Payment]:
    """Return the payments of an order with their statement lines, recorded payments first."""
    found = list(_known(record))
    _match_paid(record, [line for line in lines if meaning_of(record, line) == PAID], found)
    back = [line for line in lines if meaning_of(record, line) == REFUNDED]
    for line in back:
        _refunded(record, line, found).back.append(line)
    failed = [line for line in lines if meaning_of(record, line) == FAILED]
    if failed and not back and not any(payment.paid for payment in found):
        _failed(record, failed[0], found)
    return found


def meaning_of(record: Record, line: Line) -> str:
    """Return the meaning of a line; without a status, a negative amount is a refund of a deposit."""
    return REFUNDED if line.state == PAID and line.amount < 0 and record.order.is_buy else line.state


def day_of(at: int) -> date:
    """Return the day in China."""
    return datetime.fromtimestamp(at, CHINA).date()


def is_of_another_day(payment: Payment, line: Line) -> bool:
    """Return whether the order's money was booked on another day than this line's and has another number."""
    moved, known = payment.record.moved_elsewhen, line.reference and line.reference == payment.reference
    if known or not payment.is_own or moved is None or line.time is None:
        return False
    return day_of(line.time) not in {day_of(moved + step) for step in (-EDGE, 0, EDGE)}


def _known(record: Record) -> Iterator[Payment]:
    """Yield the recorded payments, the order's own first."""
    order = record.order
    if not order.is_buy:
        yield from _payouts(record)
        return
    own = [order.channel_reference] if record.is_booked or record.was_taken_back else []
    others = [each.reference for each in record.exceptions if each.kind in MONEY_IN]
    for reference in dict.fromkeys(own + others):
        position = deposit_money.position_of(order, reference, record.exceptions)
        received = deposit_money.received(order, reference, record.exceptions)
        if record.was_taken_back and reference in own:
            received += order.amount
        yield Payment(record, reference, received, position, reference in own)


def _payouts(record: Record) -> Iterator[Payment]:
    """Yield the recorded payouts, without those that an operator declared as not sent, which the statement may
    disprove."""
    order = record.order
    conflicts = [each for each in record.exceptions if each.kind == PAYOUT_CONFLICT and each.resolution != CANCEL]
    own = [order.channel_reference] if record.is_booked or order.channel_reference else []
    own += [each.reference for each in conflicts if not record.is_booked and each.resolution in (COMPLETE, PAID_OUT)]
    for reference in dict.fromkeys(own + [each.reference for each in conflicts]):
        about = [each for each in conflicts if each.reference == reference]
        amount = order.amount if reference in own else about[-1].amount
        yield Payment(record, reference, amount, _position(record, reference), reference in own)


def _position(record: Record, reference: str) -> Position:
    """Return the position in the ledger of the payment with this number."""
    if record.order.is_buy:
        return deposit_money.position_of(record.order, reference, record.exceptions)
    kept = [each for each in record.exceptions if (each.kind, each.resolution) != (PAYOUT_CONFLICT, CANCEL)]
    return withdrawal_money.position_of(record.order, reference, kept, record.left_on)


def _new(record: Record, line: Line) -> Payment:
    return Payment(record, line.reference, 0, _position(record, NEW))


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


def _failed(record: Record, line: Line, found: list[Payment]) -> None:
    """Give a line without moved money to the payment with its number, or otherwise to the order's own.

    A deposit's payment with another number is another attempt, about which the unpaid one proves nothing.
    """
    numbered = bool(line.reference) and record.order.is_buy
    about = [each for each in found if line.reference and each.reference == line.reference]
    about += [each for each in found if each.is_own and not (numbered and each.reference)]
    if not about and not record.order.is_buy:
        about = [_new(record, line)]
        found += about
    if about:
        about[0].back.append(line)
