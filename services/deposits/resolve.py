"""The rules by which operators resolve the exceptions of deposits."""

from __future__ import annotations

from models.tables.ledger import AVAILABLE, CLEARING, FEES
from models.tables.order import (
    AMOUNT_CORRECTED,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAID,
    PENDING,
    REVERSED,
    SHARED_REFERENCE,
    STATUSES,
    UNKNOWN_OUTCOME,
    WRONG_AMOUNT,
    Order,
    PaymentException,
)
from runtime import clock
from services.callbacks import previews
from services.channels.calls import LATE
from services.deposits import attempts, epay_payments, settle
from services.errors import N_
from services.ledger import accounts, fees, postings
from services.ledger.postings import OPERATOR, Lines
from services.merchants import cache
from services.orders import lifecycle
from services.orders.reasons import Why, because
from services.orders.resolution import Case, ResolutionRule, of_order
from services.orders.verdict import CANCEL, COMPLETE, CREDIT, REFUND


def _credit_lines(order: Order, exception: PaymentException) -> Lines:
    """Return the postings that credit the received amount at the order's own rate."""
    fee = fees.apply_rate(exception.amount, order.service_rate)
    return {
        (AVAILABLE, order.merchant_id): exception.amount - fee,
        (FEES, OPERATOR): fee,
        (CLEARING, exception.channel_id): -exception.amount,
    }


def _names_no_amount(order: Order, exception: PaymentException) -> str:
    if exception.amount:
        return ""
    return "the channel names no amount: refund it, and adjust the balance if some of it stayed"


def _credit(order: Order, exception: PaymentException, who: str) -> None:
    lines = _credit_lines(order, exception)
    accounts.post(f"exception {exception.id}", lines, who=who, order=order, memo=exception.kind)


def close_unpaid(order: Order, exception: PaymentException, who: str) -> None:
    """Cancel an order that was not paid in full."""
    again_at = attempts.checked_again_at(order)
    lifecycle.transition(order, CANCELLED, who, because(Why.WRONG_AMOUNT_ENDED), due_at=again_at)


def _credit_and_close(order: Order, exception: PaymentException, who: str) -> None:
    _credit(order, exception, who)
    close_unpaid(order, exception, who)


def _completed(order: Order, exception: PaymentException) -> Order:
    """Return the deposit as it will be once it is completed with this money; nothing is stored."""
    fee, cost = fees.apply_rate(exception.amount, order.service_rate), int(order.cost_amount)
    # The order does not have the rate at which it was placed, nor that of another channel.
    if (exception.amount, exception.channel_id) != (order.amount, order.channel_id):
        cost = fees.cost_of(exception.amount, cache.channel_with(exception.channel_id).cost_rate(order.payment_method))
    money = {"received_amount": exception.amount, "service_amount": fee, "cost_amount": cost}
    money |= {"merchant_actual_amount": exception.amount - fee, "channel_reference": exception.reference}
    money["channel"] = exception.channel_id
    return previews.changed(order, status=COMPLETED, updatetime=clock.now(), **money)


def _complete_lines(order: Order, exception: PaymentException) -> Lines:
    return postings.credit(_completed(order, exception))


def _cannot_complete(order: Order, exception: PaymentException) -> str:
    if exception.amount < order.amount:
        return "less than the order's amount was received: credit it to the balance, or send it back"
    return epay_payments.why_not_complete(order)


def _complete(order: Order, exception: PaymentException, who: str) -> None:
    ended, why = _completed(order, exception), because(Why.COMPLETED_BY_OPERATOR, amount=exception.amount)
    facts = ("received_amount", "channel_reference", "service_amount", "cost_amount", "merchant_actual_amount")
    epay_payments.take_over(order)
    for status in (PAID, CONFIRMED) if order.status != CANCELLED else ():
        lifecycle.transition(order, status, who, why)
    if ended.channel_id != order.channel_id:
        settle.move_to_money(order, ended.channel_id)
    settle.complete(order, who, why, **{name: getattr(ended, name) for name in facts})


def _credit_after_all(order: Order, exception: PaymentException, who: str) -> None:
    settle.complete(order, who, because(Why.FOUND_PAID))


def _cancel(order: Order, exception: PaymentException, who: str) -> None:
    lifecycle.transition(order, CANCELLED, who, lifecycle.settled(exception, CANCEL), due_at=clock.now() + LATE[0])


_WAITING = (PENDING, PAID)

RULES = (
    ResolutionRule(
        resolution=CREDIT,
        case=Case.CREDIT_AND_CANCEL,
        kinds=(WRONG_AMOUNT, SHARED_REFERENCE),
        states=_WAITING,
        act=_credit_and_close,
        lines=_credit_lines,
        against=_names_no_amount,
        steps=(CANCELLED,),
    ),
    ResolutionRule(
        resolution=CREDIT,
        case=Case.CREDIT,
        kinds=MONEY_IN,
        states=STATUSES,
        act=_credit,
        lines=_credit_lines,
        against=_names_no_amount,
    ),
    ResolutionRule(
        resolution=CREDIT,
        case=Case.VALID_AFTER_ALL,
        kinds=(REVERSED,),
        states=(CONFIRMED,),
        act=_credit_after_all,
        lines=of_order(postings.credit),
        steps=(COMPLETED,),
    ),
    ResolutionRule(
        resolution=COMPLETE,
        case=Case.COMPLETE_ORDER,
        kinds=tuple(kind for kind in MONEY_IN if kind != AMOUNT_CORRECTED),
        states=(*_WAITING, CANCELLED),
        act=_complete,
        lines=_complete_lines,
        against=_cannot_complete,
        steps=(PAID, CONFIRMED, COMPLETED),
        ended=_completed,
    ),
    ResolutionRule(
        resolution=REFUND,
        case=Case.SEND_BACK_AND_CANCEL,
        kinds=(WRONG_AMOUNT, SHARED_REFERENCE),
        states=_WAITING,
        act=close_unpaid,
        sent_back=True,
        steps=(CANCELLED,),
    ),
    ResolutionRule(resolution=REFUND, case=Case.SEND_BACK, kinds=MONEY_IN, states=STATUSES, sent_back=True),
    ResolutionRule(
        resolution=REFUND,
        case=Case.STAYS_CREDITED,
        kinds=(REVERSED,),
        states=tuple(status for status in STATUSES if status != CONFIRMED),
    ),
    ResolutionRule(
        resolution=CANCEL,
        case=Case.NOBODY_PAID,
        kinds=(UNKNOWN_OUTCOME,),
        states=(PENDING,),
        act=_cancel,
        steps=(CANCELLED,),
    ),
    ResolutionRule(resolution=CANCEL, case=Case.IS_CANCELLED, kinds=(UNKNOWN_OUTCOME,), states=(CANCELLED,)),
)
# By resolution: why no rule fits.
UNFIT = {
    CREDIT: N_("No payment was received, so nothing can be credited."),
    REFUND: N_("No payment was received, so nothing can be refunded."),
    COMPLETE: N_(
        "Only an unpaid or cancelled deposit can be completed, with a payment that covers the order's amount."
    ),
    CANCEL: N_("Only an unpaid deposit without a response from its channel can be cancelled."),
}
