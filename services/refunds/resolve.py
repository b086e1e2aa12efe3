"""The rules by which operators resolve the exceptions of refunds: the payer received it, or the money came back."""

from __future__ import annotations

from typing import Any

from gateways.base import ChannelUnknown, State
from models.tables.ledger import AVAILABLE, LedgerAccount
from models.tables.order import (
    AMOUNT_CORRECTED,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    LATE_PAYMENT,
    OF_REFUNDS,
    PAID_TWICE,
    STATUSES,
    WRONG_AMOUNT,
    Order,
    PaymentException,
)
from models.tables.refund import EXCEPTION, OPEN, UNCREDITED, Refund
from runtime import clock
from services.channels.calls import LEASE, driver_of
from services.errors import N_, OperatorError
from services.ledger import postings
from services.ledger.postings import Lines
from services.orders import lifecycle
from services.orders.reasons import Reason, Why, because, reason_of
from services.orders.resolution import Case, ResolutionRule
from services.orders.verdict import CANCEL, COMPLETE, REFUND
from services.refunds import approve, send, settle
from services.refunds.place import is_too_old, send_back

_REPORTS = {
    State.PAID: N_("The channel reports the refund as successful."),
    State.OPEN: N_("The channel has the refund in progress."),
    State.FAILED: N_("The channel reports that the refund failed."),
}


def refund_of(exception: PaymentException) -> Refund:
    """Return the refund that an exception is about, with its order."""
    refund = Refund.get(Refund.refund_no == exception.reference)
    refund.order = exception.order
    return refund


def _lines(after: str, order: Order, exception: PaymentException) -> Lines:
    refund = refund_of(exception)
    for name, value in _charged(refund, order).items():
        setattr(refund, name, value)
    return {} if refund.status == after else postings.refund(refund, order, refund.status, after)


def _charged(refund: Refund, order: Order) -> dict[str, Any]:
    """Return the columns to change if the deposit was credited after this refund was cancelled: the balance pays."""
    own = refund.reference == order.channel_reference
    if refund.paid_from == UNCREDITED and refund.status == CANCELLED and own and order.status == COMPLETED:
        return refund.charged_to_balance(order)
    return {}


def _complete(order: Order, exception: PaymentException, who: str) -> None:
    refund = settle.lock(refund_of(exception))
    if charged := _charged(refund, order):
        refund.store(**charged)
    if refund.status != COMPLETED:
        settle.complete(refund, who, lifecycle.settled(exception, COMPLETE), about=exception.id)


def _cancel(order: Order, exception: PaymentException, who: str) -> None:
    refund = settle.lock(refund_of(exception))
    before = refund.status
    if before == CANCELLED:
        return
    settle.cancel(refund, who, lifecycle.settled(exception, CANCEL), about=exception.id)
    if refund.paid_from == UNCREDITED and order.status != CONFIRMED:
        # The deposit ended with this refund, so the returned money has no owner.
        _must_be_decided(refund, LATE_PAYMENT, because(Why.PAID_AFTER_END), who)
    elif refund.paid_from == EXCEPTION and before == COMPLETED:
        decided = PaymentException.get_by_id(refund.exception_id)
        if decided.resolution in (None, REFUND):
            _must_be_decided(refund, decided.kind, reason_of(decided), "service")


def _must_be_decided(refund: Refund, kind: str, cause: Reason, who: str) -> None:
    """Open an exception about the returned money, or add it to the open one about the same payment."""
    if lifecycle.raise_exception(refund.order, kind, cause, refund.amount, refund.reference, channel=refund.channel_id):
        return
    open_ones = lifecycle.open_exceptions(refund.order)
    [same] = [each for each in open_ones if (each.kind, each.reference) == (kind, refund.reference)]
    lifecycle.add_to_exception(same, refund.amount, who)


def _not_covered(order: Order, exception: PaymentException) -> str:
    """Return the reason not to complete a cancelled refund that the payer got after all, or ""."""
    needed = -_lines(COMPLETED, order, exception).get((AVAILABLE, order.merchant_id), 0)
    if needed > 0 and LedgerAccount.balance_of(AVAILABLE, order.merchant_id) < needed:
        return N_("The merchant's available balance does not cover the refund.")
    return ""


def check(order: Order, resolution: str, exception: PaymentException) -> None:
    """Check the refund's status before an operator decides that its money came back.

    Raises:
        OperatorError: a worker has claimed it, or the channel reports otherwise.
    """
    refund, now = refund_of(exception), clock.now()
    if resolution != CANCEL or refund.status != CONFIRMED or driver_of(refund.channel).by_hand:
        return
    # A worker claims it for at most LEASE. While it is claimed here, no worker sends it again.
    if refund.due_at is not None and now < refund.due_at <= now + LEASE:
        raise OperatorError(N_("The service is processing this order. Try again in a minute."))
    if not refund.claim(now + LEASE):
        raise OperatorError(approve.CHANGED)
    try:
        report = send.ask(refund)
    except ChannelUnknown:
        return  # the operator has checked it there
    if report.state in _REPORTS:
        refund.set_due(now)
        settle.apply_report(refund, report)
        raise OperatorError(_REPORTS[report.state])


def why_not_now(exception: PaymentException) -> str:
    """Return the reason not to resolve an exception because its money is being refunded, or ""."""
    going = Refund.exception == exception, Refund.status.in_(OPEN)
    return N_("A refund of this money is in progress.") if Refund.select().where(*going).exists() else ""


def _refunds(order: Order, exception: PaymentException) -> bool:
    """Return whether the channel can refund the exception's money."""
    driver = driver_of(exception.channel)
    known = exception.amount > 0 and exception.reference
    return bool(driver.refunds and not driver.by_hand and known and not is_too_old(driver, exception.createtime))


def _send_back(order: Order, exception: PaymentException, who: str) -> None:
    send_back(order, exception, who, approved_by="" if approve.needs_second(order, exception.amount, who) else who)


RULES = (
    ResolutionRule(
        resolution=REFUND,
        case=Case.SEND_BACK_BY_CHANNEL,
        kinds=(WRONG_AMOUNT, LATE_PAYMENT, PAID_TWICE, AMOUNT_CORRECTED),
        states=STATUSES,
        fits=_refunds,
        act=_send_back,
        resolves=False,
    ),
    ResolutionRule(
        resolution=COMPLETE,
        case=Case.REFUND_RECEIVED,
        kinds=OF_REFUNDS,
        states=STATUSES,
        act=_complete,
        lines=lambda order, exception: _lines(COMPLETED, order, exception),
        against=_not_covered,
    ),
    ResolutionRule(
        resolution=CANCEL,
        case=Case.REFUND_CAME_BACK,
        kinds=OF_REFUNDS,
        states=STATUSES,
        act=_cancel,
        lines=lambda order, exception: _lines(CANCELLED, order, exception),
    ),
)
