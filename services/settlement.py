"""What follows from a channel's word on an order: steps, money and exceptions, each in one transaction."""

from __future__ import annotations

from typing import Any

import business_clock
from gateways.base import BadNotice, ChannelUnknown, Incoming, Report, State
from models.order import (
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    LATE_PAYMENT,
    MONEY_IN,
    PAID,
    PAID_TWICE,
    PAYOUT_CONFLICT,
    PENDING,
    REVERSED,
    WRONG_AMOUNT,
    Order,
    PaymentException,
)
from models.writer import transaction
from services import ledger, lifecycle, postings
from services.channels import ask, driver_of, payment_of
from services.lifecycle import move, raise_exception
from services.queues import waiting_for

DAY = 86_400
REFUSED_NOTICE = "refused a notice"
MOST_REFUSED = 10  # such lines in an order's history: anybody can send anything there
CORRECTED = "corrected"  # how an exception ends whose money turned out to be right


@transaction
def settle(order: Order, report: Report, who: str, why: str) -> bool:
    """Do what a channel's (or an operator's) word on an order calls for, in one transaction.

    A word that was heard before, or that calls for nothing, changes nothing.

    Args:
        report: what was said; `amount` in fen.
        who: channel, payer or operator; it stands in the history with `why`.

    Returns: True where anything changed.
    """
    order = Order.held(order.id)  # as it is now that nobody else writes
    if report.proven:
        lifecycle.outcome_known(order)
    if report.state is State.PAID:
        return (_deposit_paid if order.is_buy else _withdrawal_paid)(order, report, who, why)
    if report.state is State.FAILED:
        return (_deposit_failed if order.is_buy else _withdrawal_failed)(order, report, who, why)
    return False


def take_notice(order: Order, incoming: Incoming) -> bool:
    """Verify a notice over its raw bytes and settle what it says; True where anything changed.

    Raises:
        BadNotice: it is not what the order's channel would have sent.
    """
    driver = driver_of(order.channel)
    notice = driver.read_notice(incoming)
    if notice.order_no != order.order_no:
        raise BadNotice("it is about another order")
    if driver.asks_again and order.is_buy:
        return _ask_soon(order) if order.status in (PENDING, CANCELLED) else _ask_at_once(order)
    return settle(order, notice.report, "channel", notice.report.detail or "notice")


@transaction
def _ask_soon(order: Order) -> bool:
    """A notice tells of something: the channel is asked at the next sweep, whoever asked it when before."""
    order = Order.held(order.id)
    order.put_off(business_clock.now())
    return lifecycle.note_once(order, "channel", "a notice came: the channel is asked")


def _ask_at_once(order: Order) -> bool:
    """The same where no sweep looks at the order any more. Raises BadNotice: no answer, the notice may come again."""
    try:
        with waiting_for(order.channel_id):
            report = ask(driver_of(order.channel).query, payment_of(order))
    except ChannelUnknown:
        raise BadNotice("the channel, asked about it, gave no answer") from None
    return settle(order, report, "channel", "the channel was asked")


def notice_refused(order: Order, reason: str) -> None:
    """Put into the order's history that somebody sent a notice that was not genuine; each reason once, and not many."""
    why = f"{REFUSED_NOTICE}: {reason}"
    if lifecycle.is_new(order, why, MOST_REFUSED, REFUSED_NOTICE):  # else anybody could keep the writer busy
        _note_refused(order, why)


@transaction
def _note_refused(order: Order, why: str) -> None:
    lifecycle.note_once(order, "channel", why, most=MOST_REFUSED, alike=REFUSED_NOTICE)


def money_on_record(order: Order, reference: str) -> PaymentException | None:
    """The exception, open or settled, about money that came in for this order under this number."""
    return PaymentException.get_or_none(_about(order), PaymentException.reference == reference)


def credited_by_hand(order: Order) -> bool:
    """Has an operator credited money that came in for this order?"""
    return PaymentException.select().where(_about(order), PaymentException.resolution == "credit").exists()


def _about(order: Order) -> Any:
    """Exceptions of this order about money that came in."""
    return (PaymentException.order == order) & PaymentException.kind.in_(MONEY_IN)


def _deposit_paid(order: Order, report: Report, who: str, why: str) -> bool:
    if not report.proven:
        return move(order, PAID, who, why, due_at=business_clock.now())
    earlier = money_on_record(order, report.reference)
    if earlier is not None and earlier.resolution:
        return False  # this very money was an operator's matter
    if order.status in (CONFIRMED, COMPLETED):
        if report.reference == order.channel_reference:
            return False
        return raise_exception(order, PAID_TWICE, "paid once more, under another number", report)
    if order.status == CANCELLED:
        return raise_exception(order, LATE_PAYMENT, "paid after it was cancelled", report)
    if report.amount != order.amount:
        order.put_off(None)  # an operator's turn: it must not expire meanwhile
        return raise_exception(order, WRONG_AMOUNT, "paid an amount that does not match", report)
    if credited_by_hand(order):
        return raise_exception(order, PAID_TWICE, "paid after an operator had credited other money", report)
    if earlier is not None:
        earlier.resolve(CORRECTED, who)  # the channel named the right amount after all
    if order.status == PENDING:
        move(order, PAID, who, why)
    days = order.channel.settlement_days
    due_at = business_clock.now() + days * DAY if days else None
    if not move(order, CONFIRMED, who, why, channel_reference=report.reference, due_at=due_at):
        return False
    return complete_deposit(order, "settled") if not days else True


@transaction
def complete_deposit(order: Order, why: str, who: str = "service") -> bool:
    """Credit a confirmed deposit."""
    if not move(order, COMPLETED, who, why):
        return False
    ledger.post("credit", postings.credit(order), who=who, order=order)
    return True


def _deposit_failed(
    order: Order, report: Report, who: str, why: str, is_claim_over: bool = False, **facts: Any
) -> bool:
    if order.status in (CONFIRMED, COMPLETED):
        order.put_off(None)  # an operator's turn: it must not be credited meanwhile
        return raise_exception(order, REVERSED, f"failed although {order.status}", report)
    if PaymentException.select().where(_about(order), PaymentException.resolution.is_null()).exists():
        order.put_off(None)
        return False  # money came in meanwhile: an operator's turn
    if order.status == PAID and not is_claim_over:
        return False  # it ends by an operator, or by `claim_expiry`
    return move(order, CANCELLED, who, report.detail or why, **facts)


@transaction
def cancel_unpaid(order: Order, ask_again: int | None, who: str = "service", why: str = "expired") -> bool:
    """Cancel an expired deposit or claim that its channel says is unpaid; False where it moved on meanwhile.

    Args:
        ask_again: when to ask for late money, where the channel may take it all the same.
    """
    seen, order = order.status, Order.held(order.id)
    lifecycle.outcome_known(order)
    if order.status != seen or seen not in (PENDING, PAID):
        return False
    return _deposit_failed(order, Report(State.FAILED), who, why, is_claim_over=True, due_at=ask_again)


def _withdrawal_paid(order: Order, report: Report, who: str, why: str) -> bool:
    if order.status == COMPLETED and (report.reference, report.amount) == (order.channel_reference, order.amount):
        return False
    if order.status != CONFIRMED:
        return raise_exception(order, PAYOUT_CONFLICT, f"paid out although {order.status}", report)
    if report.amount != order.amount:
        order.put_off(None)
        return raise_exception(order, PAYOUT_CONFLICT, "paid out an amount that does not match", report)
    return complete_withdrawal(order, who, why, report.reference)


def complete_withdrawal(order: Order, who: str, why: str, reference: str) -> bool:
    """Spend the hold of a withdrawal whose money is out, and return the deposit; in the caller's transaction."""
    if not (move(order, PAID, who, why, channel_reference=reference) and move(order, COMPLETED, "service", "settled")):
        return False
    ledger.post("spend", postings.spend(order), who=who, order=order)
    return True


def _withdrawal_failed(order: Order, report: Report, who: str, why: str) -> bool:
    if order.status in (CANCELLED, PENDING):
        return False
    if order.status != CONFIRMED:
        return raise_exception(order, REVERSED, f"failed although {order.status}", report)
    return cancel_withdrawal(order, who, report.detail or why)


def cancel_withdrawal(order: Order, who: str, why: str, **facts: Any) -> bool:
    """Cancel a withdrawal and return all that it held; in the caller's transaction. `facts` are stored with it."""
    if not move(order, CANCELLED, who, why, **facts):
        return False
    ledger.post("release", postings.release(order), who=who, order=order)
    return True
