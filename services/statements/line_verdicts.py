"""The verdict on the statement lines of one payment, by the table of verdicts."""

from __future__ import annotations

from dataclasses import replace

from gateways.base import Report, State
from models.tables.order import CANCELLED, MONEY_IN, PAYOUT_CONFLICT, REVERSED
from services import kinds
from services.deposits.money import DepositMoney
from services.orders.verdict import CLOSE, COMPLETE, CREDIT, NONE, Position, Verdict
from services.orders.verdict import FAILED as BOUNCED
from services.statements.matching import Payment
from services.statements.parse import FAILED
from services.withdrawals.money import WithdrawalMoney


def agrees(payment: Payment) -> bool:
    """Return whether the lines of this payment agree with the ledger, as a report of their sum would."""
    gross, back = gross_of(payment), sum(abs(line.amount) for line in payment.back)
    if payment.received and back > gross:
        return False
    position = _of_statement(payment, gross)
    return _calls_for_nothing(position, _verdict(payment, position, gross, back))


def gross_of(payment: Payment) -> int:
    """Return the total amount in fen. A payment without a line is in another statement, with its recorded amount."""
    return sum(abs(line.amount) for line in payment.paid) if payment.paid else payment.received


def _verdict(payment: Payment, position: Position, gross: int, back: int) -> Verdict:
    """Return the verdict on a report of the sum of these lines."""
    order = payment.record.order
    if any(line.state == FAILED for line in payment.back):
        back = gross
    if not order.is_buy and not back and gross == payment.received and _bounced(payment):
        back = gross  # the return is in another statement
    left = gross - back
    report = Report(State.PAID, left, payment.reference) if left > 0 else Report(State.FAILED)
    if order.is_buy and any(not each.amount and each.kind in MONEY_IN for each in position.exceptions):
        return NONE  # the amount is unknown
    return kinds.of(order).verdict_on(order, report, position)


def _calls_for_nothing(position: Position, verdict: Verdict) -> bool:
    """Return whether the verdict moves no money; cancelling an order without a payment moves none."""
    if verdict.exception == CLOSE and not position.open:
        verdict = verdict._replace(exception="")
    return verdict == NONE or (position.money is DepositMoney.AWAITED and verdict == Verdict(CANCELLED))


def is_booked(payment: Payment) -> bool:
    """Return whether the ledger has the order's money."""
    if payment.record.order.is_buy:
        return payment.record.is_booked
    return payment.position.money in (WithdrawalMoney.SPENT, WithdrawalMoney.SPENT_TWICE)


def _bounced(payment: Payment) -> bool:
    """Return whether the return of this payout is recorded."""
    ends = {(REVERSED, CREDIT), (PAYOUT_CONFLICT, BOUNCED)}
    about = payment.record.exceptions if payment.is_own else payment.position.exceptions
    return any((each.kind, each.resolution) in ends for each in about)


def _of_statement(payment: Payment, gross: int) -> Position:
    """Return the position with the amounts of the channel according to this statement's lines alone.

    A certain or possible refund can be in another day's statement. `gross` is the amount received by its lines, in fen.
    """
    position = payment.position
    if not payment.record.order.is_buy:
        others = position.money is WithdrawalMoney.SPENT and not payment.is_own
        settled = any(each.resolution == COMPLETE for each in position.exceptions)
        return replace(position, money=WithdrawalMoney.FREE) if others and not settled else position
    if gross == payment.received:
        return replace(position, least=payment.least, most=payment.received)
    if not payment.back:
        return replace(position, least=payment.received, most=payment.received)
    return position
