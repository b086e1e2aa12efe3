"""An order with what the ledger has of it, as a statement is compared with it: a record for each kind of order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from gateways.base import Report
from models.tables.ledger import AVAILABLE, HELD
from models.tables.order import (
    BUY,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAID,
    PAYOUT_CONFLICT,
    REVERSED,
    SELL,
    Order,
    PaymentException,
)
from services.deposits import money as deposit_money
from services.ledger.fees import apply_rate
from services.orders.verdict import CANCEL, COMPLETE, CREDIT, FAILED, NONE, PAID_OUT, Position, Verdict
from services.statements import parse
from services.statements.parse import Line
from services.withdrawals import money as withdrawal_money
from services.withdrawals.money import WithdrawalMoney


@dataclass
class Record:
    """An order, its exceptions, and the time that its money moved here, if within or near the statement's days.

    If an operator completed the order with money from an exception, that is the time of the channel's report.
    `moved_elsewhen` is the time if it was on other days and a line belongs to the order.
    """

    order: Order
    exceptions: list[PaymentException] = field(default_factory=list)
    moved_at: int | None = None
    moved_elsewhen: int | None = None

    direction: ClassVar[str]  # of its money in the sums: in or out
    booked_in: ClassVar[tuple[str, ...]]  # the statuses in which the ledger has its money, or is about to

    @property
    def is_booked(self) -> bool:
        """True if the ledger has the order's money, or is about to."""
        return self.order.status in self.booked_in

    @property
    def may_have_moved(self) -> bool:
        """True if its money may have moved at the channel."""
        return self.is_booked

    @property
    def is_counted(self) -> bool:
        """True if its money was posted."""
        return True

    def fee(self, amount: int, fee_rate: int | None) -> int | None:
        """Return the channel's expected fee on this amount, in fen; None if it is not known."""
        raise NotImplementedError

    def meaning(self, line: Line) -> str:
        """Return the meaning of a line."""
        return line.state

    def payments(self) -> Iterator[Payment]:
        """Yield the recorded payments, the order's own first."""
        raise NotImplementedError

    def position(self, reference: str) -> Position:
        """Return the position in the ledger of the payment with this number."""
        raise NotImplementedError

    def failed(self, line: Line, found: list[Payment]) -> list[Payment]:
        """Return the payments that a line without moved money may be about: by its number, or the order's own."""
        about = [each for each in found if line.reference and each.reference == line.reference]
        return about + [each for each in found if each.is_own]

    def has(self, payment: Payment) -> bool:
        """Return whether the ledger has the money of this payment."""
        raise NotImplementedError

    def is_expected(self, payment: Payment) -> bool:
        """Return whether the channel must have the money of this payment."""
        raise NotImplementedError

    def returned_elsewhere(self, payment: Payment) -> bool:
        """Return whether the return of this payment is recorded, and is in another statement."""
        return False

    def position_by(self, payment: Payment, gross: int) -> Position:
        """Return the position with the amounts of the channel according to this statement's lines alone.

        A certain or possible refund can be in another day's statement.

        Args:
            gross: the amount received or paid by its lines, in fen.
        """
        raise NotImplementedError

    def verdict_on(self, report: Report, position: Position) -> Verdict:
        """Return what a report of the sum of its lines would do."""
        raise NotImplementedError


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
    def gross(self) -> int:
        """The total amount of its lines. A payment without any is in another statement, with its recorded amount."""
        return sum(abs(line.amount) for line in self.paid) if self.paid else self.received

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


@dataclass
class DepositRecord(Record):
    """A deposit. The fee of its channel is a rate; a line without a status and with a negative amount is a refund."""

    direction = "in"
    booked_in = (CONFIRMED, COMPLETED)

    @property
    def _was_taken_back(self) -> bool:
        """True if the channel confirmed it and refunded it before it was credited."""
        return self.order.status == CANCELLED and bool(self.moved_at or self.moved_elsewhen)

    @property
    def may_have_moved(self) -> bool:
        """True if it is booked, or the channel may have refunded it."""
        return self.is_booked or self.order.status == CANCELLED

    def fee(self, amount: int, fee_rate: int | None) -> int | None:
        """Return the expected fee by the channel's rate."""
        return None if fee_rate is None else apply_rate(amount, fee_rate)

    def meaning(self, line: Line) -> str:
        """Return the meaning of a line."""
        return parse.REFUNDED if line.state == parse.PAID and line.amount < 0 else line.state

    def payments(self) -> Iterator[Payment]:
        """Yield the recorded payments, the order's own first."""
        own = [self.order.channel_reference] if self.is_booked or self._was_taken_back else []
        others = [each.reference for each in self.exceptions if each.kind in MONEY_IN]
        for reference in dict.fromkeys(own + others):
            received = deposit_money.received(self.order, reference, self.exceptions)
            if self._was_taken_back and reference in own:
                received += self.order.amount
            yield Payment(self, reference, received, self.position(reference), reference in own)

    def position(self, reference: str) -> Position:
        """Return the position of the payment with this number."""
        return deposit_money.position_of(self.order, reference, self.exceptions)

    def failed(self, line: Line, found: list[Payment]) -> list[Payment]:
        """Return the payments that a line without moved money may be about.

        A payment with another number is another attempt, about which the unpaid one proves nothing.
        """
        about = super().failed(line, found)
        return [each for each in about if not (line.reference and each.reference not in ("", line.reference))]

    def has(self, payment: Payment) -> bool:
        """Return whether the ledger has the order's money."""
        return self.is_booked

    def is_expected(self, payment: Payment) -> bool:
        """Return whether the channel must have any of it."""
        return payment.least > 0

    def position_by(self, payment: Payment, gross: int) -> Position:
        """Return the position with the amounts by this statement's lines."""
        if gross == payment.received:
            return replace(payment.position, least=payment.least, most=payment.received)
        if not payment.back:
            return replace(payment.position, least=payment.received, most=payment.received)
        return payment.position

    def verdict_on(self, report: Report, position: Position) -> Verdict:
        """Return what the report would do: nothing if the ledger does not know the amount."""
        if any(not each.amount and each.kind in MONEY_IN for each in position.exceptions):
            return NONE
        return deposit_money.verdict_on(self.order, report, position)


@dataclass
class WithdrawalRecord(Record):
    """A withdrawal. `postings` are the sums of its postings on its merchant's accounts, by kind, in fen.

    Its fee at the channel is stored with the order.
    """

    postings: dict[str, int] = field(default_factory=dict)

    direction = "out"
    booked_in = (PAID, COMPLETED)

    @property
    def is_counted(self) -> bool:
        """True if its money was posted; for a cancelled one, if it was deducted later."""
        return self.order.status != CANCELLED or self.left_on(AVAILABLE, HELD) < 0

    def left_on(self, *kinds: str) -> int:
        """Return the sum of the postings on accounts of these kinds, in fen."""
        return sum(self.postings.get(kind, 0) for kind in kinds)

    def fee(self, amount: int, fee_rate: int | None) -> int | None:
        """Return the stored fee."""
        return self.order.channel_amount

    def payments(self) -> Iterator[Payment]:
        """Yield the recorded payouts, without those that an operator declared as not sent: the statement may disprove
        that."""
        conflicts = [each for each in self.exceptions if each.kind == PAYOUT_CONFLICT and each.resolution != CANCEL]
        own = [self.order.channel_reference] if self.is_booked or self.order.channel_reference else []
        if not self.is_booked:
            own += [each.reference for each in conflicts if each.resolution in (COMPLETE, PAID_OUT)]
        for reference in dict.fromkeys(own + [each.reference for each in conflicts]):
            about = [each for each in conflicts if each.reference == reference]
            amount = self.order.amount if reference in own else about[-1].amount
            yield Payment(self, reference, amount, self.position(reference), reference in own)

    def position(self, reference: str) -> Position:
        """Return the position of the payout with this number."""
        kept = [each for each in self.exceptions if (each.kind, each.resolution) != (PAYOUT_CONFLICT, CANCEL)]
        return withdrawal_money.position_of(self.order, reference, kept, self.left_on)

    def failed(self, line: Line, found: list[Payment]) -> list[Payment]:
        """Return the payouts that a line without moved money may be about; a new one if there is none."""
        about = super().failed(line, found)
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
        """Return whether the return of this payout is recorded."""
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
        """Return what the report would do."""
        return withdrawal_money.verdict_on(self.order, report, position)


NEW = "\0"  # the number of a payment that is not recorded: no payment has it
RECORDS: dict[int, type[Record]] = {BUY: DepositRecord, SELL: WithdrawalRecord}


def record_of(order: Order) -> Record:
    """Return a record of an order, to be completed."""
    return RECORDS[order.order_type](order)
