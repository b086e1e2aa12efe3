"""Exceptions about a deposit's money: a report opens, changes or closes them by its difference to the ledger."""

from __future__ import annotations

from gateways.base import Report, State
from models.tables.order import (
    AMOUNT_CORRECTED,
    LATE_PAYMENT,
    MONEY_IN,
    PAID_TWICE,
    PENDING,
    REVERSED,
    SHARED_REFERENCE,
    WRONG_AMOUNT,
    Order,
    PaymentException,
)
from services.callbacks import outbox
from services.channels import payment_numbers
from services.orders.lifecycle import close_exception, note, raise_exception
from services.orders.positions import CORRECTED, RETURNED, Position
from services.orders.reasons import Reason, Why, because
from services.orders.verdicts import ADJUST, CLOSE, Books


def record(order: Order, what: str, report: Report, reference: str, position: Position, who: str) -> bool:
    """Open, change or close the exception about one payment, in the caller's transaction; True if anything changed.

    Args:
        what: the kind to open, ADJUST or CLOSE.
        reference: the channel's number for the payment.
    """
    if what == CLOSE:
        end = CORRECTED if report.state is State.PAID else RETURNED
        # If money was credited, `reversed` stays open until an operator has deducted it.
        ended = [each for each in position.open if each.kind in MONEY_IN or position.books is Books.TO_CREDIT]
        closed = [each for each in ended if close_exception(each, end, who)]
        for each in closed:
            if end == RETURNED and each.kind in MONEY_IN:
                outbox.enqueue(order, "order.refunded", each.id)
        return bool(closed)
    money = [each for each in position.open if each.kind in MONEY_IN]
    if report.is_unsized:
        # A repeated report of unknown size does not undo the amount that such an exception got since.
        sized = [each for each in position.open if each.kind == what and each.code != Why.RETURNED_UNKNOWN]
        if same := money if what == ADJUST else sized:
            return change(same[0], 0, report, who)
        return raise_exception(order, what, because(Why.RETURNED_UNKNOWN), 0, reference)
    there = report.amount if report.state is State.PAID else 0
    off = max(there - position.most, 0)
    if there < position.least:
        return _less(order, position.least - there, report, reference, position, who)
    same = [each for each in money if what in (ADJUST, each.kind)]
    if same:
        return change(same[0], same[0].amount + off, report, who)
    returned = report.returned if report.returned and not position.most else None  # the refund of this payment
    return raise_exception(order, what, _cause(order, what, off, position, reference), off, reference, returned)


def _less(order: Order, fen: int, report: Report, reference: str, position: Position, who: str) -> bool:
    """Record that the channel has `fen` less than the ledger: reduce open exceptions first, and reverse the rest."""
    changed = False
    for each in position.open:
        if each.kind in MONEY_IN:
            taken = min(int(each.amount), fen)
            changed |= change(each, each.amount - taken, report, who)
            fen -= taken
    if not fen:
        return changed
    earlier = [each for each in position.open if each.kind == REVERSED]
    if earlier:
        return change(earlier[0], earlier[0].amount + fen, report, who) or changed
    if report.state in (State.OPEN, State.ABSENT):
        cause = because(Why.NOT_PAID_THERE, status=order.status)
    else:
        cause = because(Why.RETURNED_AFTER_CREDIT, amount=fen, booked=position.least)
    return raise_exception(order, REVERSED, cause, fen, reference) or changed


def change(exception: PaymentException, amount: int, report: Report, who: str) -> bool:
    """Change an open exception's amount, in the caller's transaction; it closes if nothing is left."""
    before, unsized = exception.amount, report.is_unsized
    if amount == before:
        return False
    if not amount and not unsized:
        outbox.enqueue(exception.order, "order.refunded", exception.id)
        return close_exception(exception, RETURNED, who)
    facts: dict[str, object] = dict(because(Why.RETURNED_UNKNOWN).columns) if unsized else {}
    if report.returned:
        facts["returned"] = report.returned
    exception.change(amount=amount, **facts)
    about: dict[str, str | int] = {"kind": exception.kind, "exception": str(exception.id), "before": before}
    code = Why.EXCEPTION_UNSIZED if unsized else Why.EXCEPTION_CORRECTED
    note(exception.order, who, Reason(code, {**about, "amount": amount}))
    return True


def shared(order: Order, reference: str) -> Reason:
    """Return the reason that the channel's number is recorded for another order."""
    first = payment_numbers.first_with(order, reference)
    return because(Why.SHARED_REFERENCE, reference=reference, order_no=first.order_no if first else "")


def _cause(order: Order, kind: str, more: int, position: Position, reference: str) -> Reason:
    causes = {WRONG_AMOUNT: Why.PAID_OTHER_AMOUNT, LATE_PAYMENT: Why.PAID_AFTER_END}
    if kind == PAID_TWICE:
        return because(Why.PAID_AGAIN if order.status != PENDING and order.channel_reference else Why.PAID_AFTER_CREDIT)
    if kind == AMOUNT_CORRECTED:
        return because(Why.MORE_RECEIVED, reported=position.most + more, booked=position.most)
    return shared(order, reference) if kind == SHARED_REFERENCE else because(causes[kind])
