"""The payments of an order as the ledger has them, and whether the lines of a statement agree with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from gateways.base import Report, State
from models.tables.ledger import AVAILABLE, HELD
from models.tables.order import (
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAID,
    PAYOUT_CONFLICT,
    REVERSED,
    Order,
    PaymentException,
)
from models.tables.refund import Refund, lives
from runtime.clock import in_china
from services.deposits import money as deposit_money
from services.deposits.money import DepositMoney
from services.ledger.fees import apply_rate
from services.orders.verdict import CANCEL, CLOSE, COMPLETE, CREDIT, FAILED, NONE, PAID_OUT, Position, Verdict
from services.statements import parse
from services.statements.parse import Line
from services.withdrawals import money as withdrawal_money
from services.withdrawals.money import WithdrawalMoney

EDGE = 600  # seconds by which the clocks of an upstream and this service may differ about the day
NEW = "\0"  # the number of a payment that is not recorded: no payment has it


@dataclass
class Payment:
    """One payment of a deposit, or one payout of a withdrawal, with its lines. Amounts in fen.

    `received` is the recorded total that the channel received or paid out: 0 if the payment is not recorded.
    `paid` are lines of money that moved, `back` those of money that was returned or never moved. `apart` are lines that
    differ from the refund that they name.
    """

    record: Record
    reference: str
    received: int
    position: Position
    is_own: bool = False
    paid: list[Line] = field(default_factory=list)
    back: list[Line] = field(default_factory=list)
    apart: list[Line] = field(default_factory=list)

    @property
    def gross(self) -> int:
        """The total amount of its lines. A payment without any is in another statement, with its recorded amount."""
        return sum(abs(line.amount) for line in self.paid) if self.paid else self.received

    @property
    def order_no(self) -> str:
        """The number of its order."""
        return str(self.record.order.order_no)

    @property
    def least(self) -> int:
        """The minimum amount that the channel must have."""
        return max(self.position.least, 0)

    @property
    def exception(self) -> PaymentException | None:
        """The exception by which it was credited, or by which the order was completed."""
        money = (each for each in self.position.exceptions if each.kind in MONEY_IN)
        return next((each for each in money if each.resolution in (CREDIT, COMPLETE)), None)

    @property
    def refunds(self) -> list[Refund]:
        """The refunds of this payment by this service, the oldest first."""
        return [each for each in self.record.refunds if each.reference == self.reference]

    def refund_of(self, line: Line) -> Refund | None:
        """Return the refund that a line names, by this service's number or the channel's."""
        for each in self.refunds:
            if each.refund_no == line.refund_number or (
                each.channel_reference and not line.refund_number and each.channel_reference == line.reference
            ):
                return each
        return None

    @property
    def refunded_elsewhere(self) -> int:
        """The sum of this service's refunds whose lines are in other statements."""
        named = {refund.id for line in self.back if (refund := self.refund_of(line))}
        others = [each for each in lives(self.refunds) if each.id not in named]
        if any(not line.refund_number and self.refund_of(line) is None for line in self.back):
            # A line without a number may be any refund that this statement can list.
            others = [each for each in others if each.id not in self.record.listed]
        return sum(each.amount for each in others)

    def missing_refunds(self) -> list[Refund]:
        """Return the refunds that must have a line and have none."""
        named = {refund.id for line in self.back + self.apart if (refund := self.refund_of(line))}
        missing = [each for each in self.refunds if each.id in self.record.must_list and each.id not in named]
        without = [line for line in self.back if not line.refund_number and self.refund_of(line) is None]
        amounts = [abs(line.amount) for line in without if line.state != parse.FAILED]
        for refund in list(missing):
            if refund.amount in amounts:
                amounts.remove(refund.amount)
                missing.remove(refund)
        left = sum(amounts)  # one line may have the sum of several refunds
        for refund in list(missing):
            if refund.amount <= left:
                left -= refund.amount
                missing.remove(refund)
        return missing

    def is_of_another_day(self, line: Line) -> bool:
        """Return whether the order's money was booked on another day than the line's and has another number."""
        moved, known = self.record.moved_elsewhen, line.reference and line.reference == self.reference
        if known or not self.is_own or moved is None or line.time is None:
            return False
        return in_china(line.time).date() not in {in_china(moved + step).date() for step in (-EDGE, 0, EDGE)}

    def agrees(self) -> bool:
        """Return whether its lines agree with the ledger, as a report of their sum would."""
        gross, back = self.gross, sum(abs(line.amount) for line in self.back)
        if self.received and back > gross:
            return False
        if any(line.state == parse.FAILED for line in self.back):
            back = gross
        elif self.back:
            back += self.refunded_elsewhere
            if self.received and back > gross:
                return False
        if not back and gross == self.received and self.record.returned_elsewhere(self):
            back = gross
        left = gross - back
        report = Report(State.PAID, left, self.reference) if left > 0 else Report(State.FAILED)
        position = self.record.position_by(self, gross)
        verdict = self.record.verdict_on(report, position)
        if verdict.exception == CLOSE and not position.open:
            verdict = verdict._replace(exception="")
        # Cancelling an order without a payment moves no money.
        return verdict == NONE or (position.money is DepositMoney.AWAITED and verdict == Verdict(CANCELLED))


@dataclass
class _Record:
    """An order, its exceptions, and the time that its money moved here, if within or near the statement's days.

    If an operator completed the order with money from an exception, that is the time of the channel's report.
    `moved_elsewhen` is the time if it was on other days and a line belongs to the order. Of the order's `refunds` by
    this service, the statement can have those with the ids `listed`, and must have those with the ids `must_list`.
    """

    order: Order
    exceptions: list[PaymentException] = field(default_factory=list)
    moved_at: int | None = None
    moved_elsewhen: int | None = None
    refunds: list[Refund] = field(default_factory=list)
    listed: set[int] = field(default_factory=set)
    must_list: set[int] = field(default_factory=set)

    direction: ClassVar[str]  # of its money in the sums: in or out
    booked_in: ClassVar[tuple[str, ...]]  # the statuses in which the ledger has its money, or is about to

    @property
    def is_booked(self) -> bool:
        """True if the ledger has the order's money, or is about to."""
        return self.order.status in self.booked_in

    def _named_by(self, line: Line, found: list[Payment]) -> list[Payment]:
        """Return the payments with the number of a line, then the order's own."""
        about = [each for each in found if line.reference and each.reference == line.reference]
        return about + [each for each in found if each.is_own]


@dataclass
class DepositRecord(_Record):
    """A deposit. The fee of its channel is a rate; a line without a status and with a negative amount is a refund."""

    direction = "in"
    booked_in = (CONFIRMED, COMPLETED)
    is_counted = True

    @property
    def was_taken_back(self) -> bool:
        """True if the channel confirmed it and refunded it before it was credited."""
        return self.order.status == CANCELLED and bool(self.moved_at or self.moved_elsewhen)

    @property
    def may_have_moved(self) -> bool:
        """True if it is booked, or the channel may have refunded it."""
        return self.is_booked or self.order.status == CANCELLED

    def fee(self, amount: int, fee_rate: int | None) -> int | None:
        """Return the channel's fee on this amount, in fen: by its rate, or the order's estimate; None if unknown."""
        if fee_rate is not None:
            return apply_rate(amount, fee_rate)
        return int(self.order.cost_amount) or None if amount == self.order.received else None

    def meaning(self, line: Line) -> str:
        """Return the state that a line means."""
        return parse.REFUNDED if line.state == parse.PAID and line.amount < 0 else line.state

    def payments(self) -> Iterator[Payment]:
        """Yield the recorded payments, the order's own first."""
        own = [self.order.channel_reference] if self.is_booked or self.was_taken_back else []
        others = [each.reference for each in self.exceptions if each.kind in MONEY_IN]
        for reference in dict.fromkeys(own + others):
            received = deposit_money.received(self.order, reference, self.exceptions, self.refunds)
            if self.was_taken_back and reference in own:
                received += self.order.amount
            yield Payment(self, reference, received, self.position(reference), reference in own)

    def position(self, reference: str) -> Position:
        """Return the position in the ledger of the payment with this number."""
        return deposit_money.position_of(self.order, reference, self.exceptions, self.refunds)

    def failed(self, line: Line, found: list[Payment]) -> list[Payment]:
        """Return the payments that a line without moved money may be about.

        A payment with another number is another attempt, about which the unpaid one proves nothing.
        """
        about = self._named_by(line, found)
        return [each for each in about if not (line.reference and each.reference not in ("", line.reference))]

    def has(self, payment: Payment) -> bool:
        """Return whether the ledger has the order's money."""
        return self.is_booked

    def is_expected(self, payment: Payment) -> bool:
        """Return whether the channel must have any of this payment's money."""
        return payment.least > 0

    def returned_elsewhere(self, payment: Payment) -> bool:
        """Return whether its return is recorded and in another statement: refunds change `received` instead."""
        return False

    def position_by(self, payment: Payment, gross: int) -> Position:
        """Return the position with the channel's amounts by this statement's lines alone, which received `gross` fen.

        A certain or possible refund can be in another day's statement.
        """
        if gross == payment.received:
            return replace(payment.position, least=payment.least, most=payment.received)
        if not payment.back:
            return replace(payment.position, least=payment.received, most=payment.received)
        return payment.position

    def verdict_on(self, report: Report, position: Position) -> Verdict:
        """Return what a report of the lines' sum would do: nothing if the ledger does not know the amount."""
        if any(not each.amount and each.kind in MONEY_IN for each in position.exceptions):
            return NONE
        return deposit_money.verdict_on(self.order, report, position)


@dataclass
class WithdrawalRecord(_Record):
    """A withdrawal. `postings` are the sums of its postings on its merchant's accounts, by kind, in fen.

    Its fee at the channel is stored with the order.
    """

    postings: dict[str, int] = field(default_factory=dict)

    direction = "out"
    booked_in = (PAID, COMPLETED)

    @property
    def may_have_moved(self) -> bool:
        """True if its money may have moved at the channel."""
        return self.is_booked

    @property
    def is_counted(self) -> bool:
        """True if its money was posted; for a cancelled one, if it was deducted later."""
        return self.order.status != CANCELLED or self.left_on(AVAILABLE, HELD) < 0

    def left_on(self, *kinds: str) -> int:
        """Return the sum of the postings on accounts of these kinds, in fen."""
        return sum(self.postings.get(kind, 0) for kind in kinds)

    def fee(self, amount: int, fee_rate: int | None) -> int | None:
        """Return the stored fee, in fen."""
        return self.order.channel_amount

    def meaning(self, line: Line) -> str:
        """Return the state that a line means."""
        return line.state

    def payments(self) -> Iterator[Payment]:
        """Yield the recorded payouts, the order's own first.

        Those that an operator declared as not sent are left out: the statement may disprove that.
        """
        conflicts = [each for each in self.exceptions if each.kind == PAYOUT_CONFLICT and each.resolution != CANCEL]
        own = [self.order.channel_reference] if self.is_booked or self.order.channel_reference else []
        if not self.is_booked:
            own += [each.reference for each in conflicts if each.resolution in (COMPLETE, PAID_OUT)]
        for reference in dict.fromkeys(own + [each.reference for each in conflicts]):
            about = [each for each in conflicts if each.reference == reference]
            amount = self.order.amount if reference in own else about[-1].amount
            yield Payment(self, reference, amount, self.position(reference), reference in own)

    def position(self, reference: str) -> Position:
        """Return the position in the ledger of the payout with this number."""
        kept = [each for each in self.exceptions if (each.kind, each.resolution) != (PAYOUT_CONFLICT, CANCEL)]
        return withdrawal_money.position_of(self.order, reference, kept, self.left_on)

    def failed(self, line: Line, found: list[Payment]) -> list[Payment]:
        """Return the payouts that a line without moved money may be about; a new one, added to `found`, if none."""
        about = self._named_by(line, found)
        if not about:
            about = [Payment(self, line.reference, 0, self.position(NEW))]
            found += about
        return about

    def has(self, payment: Payment) -> bool:
        """Return whether this payout is spent."""
        return payment.position.money in (WithdrawalMoney.SPENT, WithdrawalMoney.SPENT_TWICE)

    def is_expected(self, payment: Payment) -> bool:
        """Return whether the channel must have paid it."""
        return self.has(payment)

    def returned_elsewhere(self, payment: Payment) -> bool:
        """Return whether the return of this payout is recorded, and is in another statement."""
        ends = {(REVERSED, CREDIT), (PAYOUT_CONFLICT, FAILED)}
        about = self.exceptions if payment.is_own else payment.position.exceptions
        return any((each.kind, each.resolution) in ends for each in about)

    def position_by(self, payment: Payment, gross: int) -> Position:
        """Return the position; a payout under another number than the order's own is a second one."""
        position = payment.position
        others = position.money is WithdrawalMoney.SPENT and not payment.is_own
        settled = any(each.resolution == COMPLETE for each in position.exceptions)
        return replace(position, money=WithdrawalMoney.FREE) if others and not settled else position

    def verdict_on(self, report: Report, position: Position) -> Verdict:
        """Return what a report of the lines' sum would do."""
        return withdrawal_money.verdict_on(self.order, report, position)


Record = DepositRecord | WithdrawalRecord


def record_of(order: Order) -> Record:
    """Return a record of an order, to be completed."""
    return DepositRecord(order) if order.is_buy else WithdrawalRecord(order)


def payments_of(record: Record, lines: list[Line]) -> list[Payment]:
    """Return the payments of an order with their statement lines, recorded payments first.

    A paid line belongs to the best recorded payment: by the channel's number, the day, then the amount. Two known,
    different numbers are two payments, whatever their days and amounts. A refund belongs to the payment with its
    number, its amount, or otherwise the order's own. One of this service belongs to the payment that it refunds.
    """
    found = list(record.payments())
    references, free = {payment.reference for payment in found}, list(found)
    paid = [line for line in lines if record.meaning(line) == parse.PAID]
    for line in sorted(paid, key=lambda line: line.reference not in references):
        alike = [each for each in free if each.reference == line.reference or "" in (each.reference, line.reference)]
        if alike:
            payment = min(
                alike,
                key=lambda each: (
                    each.reference != line.reference,
                    each.is_of_another_day(line),
                    each.received != abs(line.amount),
                ),
            )
            free.remove(payment)
        else:
            payment = Payment(record, line.reference, 0, record.position(NEW))
            found.append(payment)
        payment.paid.append(line)

    back = [line for line in lines if record.meaning(line) == parse.REFUNDED]
    for line in back:
        if not found:
            found.append(Payment(record, line.reference, 0, record.position(NEW)))
        min(found, key=lambda payment: _misfit(line, payment)).back.append(line)

    failed = [line for line in lines if record.meaning(line) == parse.FAILED]
    if failed and not back and not any(payment.paid for payment in found):
        for payment in record.failed(failed[0], found)[:1]:
            payment.back.append(failed[0])
    return found


def _misfit(refund: Line, payment: Payment) -> tuple[bool, ...]:
    """Return what speaks against this refund being one of the payment, the strongest reason first."""
    numbers = {payment.reference, *(each.reference for each in payment.paid)} - {""}
    amounts = [abs(each.amount) for each in payment.paid]
    undone = not payment.received and not payment.back and amounts == [abs(refund.amount)]
    # What may still be returned without a difference to the ledger.
    expected = payment.received - payment.least - sum(abs(line.amount) for line in payment.back)
    is_own = payment.refund_of(refund) is not None
    return not is_own, refund.reference not in numbers, not undone, expected != abs(refund.amount), not payment.is_own
