"""Claims: deposits that payers report as paid. Operators confirm them or report them as not received; in the end they
expire."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from peewee import fn

from gateways.base import ChannelRefused, ChannelUnknown, Report, State
from models.db.base import database
from models.db.writer import transaction
from models.tables.merchant import Merchant
from models.tables.order import BUY, COMPLETED, CONFIRMED, MONEY_IN, PAID, PENDING, Order, PaymentException
from runtime import clock
from runtime.state import current
from services.channels import payment_numbers
from services.channels.bulkhead import channel_slot
from services.channels.calls import LATE, driver_for
from services.deposits import attempts, settle
from services.errors import N_, OperatorError, refuse
from services.orders.lifecycle import exceptions_of
from services.orders.reasons import Why, because, own_words
from services.orders.verdict import CORRECTED, RETURNED

TAKE_UP_SECONDS = 300


def _money_in(*about: Any) -> Any:
    """A condition for open exceptions about received money."""
    open_ones = (PaymentException.resolution.is_null(), PaymentException.kind.in_(MONEY_IN))
    return PaymentException.select(PaymentException.id, PaymentException.order, PaymentException.kind).where(
        *open_ones, *about
    )


def ends_at(order: Order) -> int | None:
    """Return the Unix time at which an unconfirmed claim is cancelled; None if it is not a claim or does not expire."""
    expiry = current().settings.claim_expiry
    return order.updatetime + expiry if order.status == PAID and expiry else None


def is_over(order: Order) -> bool:
    """Return whether the claim was not confirmed within `claim_expiry`."""
    end = ends_at(order)
    return end is not None and clock.now() >= end


@transaction
def take_up() -> int:
    """Make overdue claims due that are not due soon, such as those from before the setting; return their number."""
    now, expiry = clock.now(), current().settings.claim_expiry
    # By merchant, so that an index finds them.
    claims = (Order.merchant.in_(Merchant.select(Merchant.id)), Order.order_type == BUY, Order.status == PAID)
    blocked = _money_in(PaymentException.order == Order.id)
    stale = Order.due_at.is_null() | (Order.due_at > now + TAKE_UP_SECONDS)
    over = (stale, Order.updatetime <= now - expiry, ~fn.EXISTS(blocked))
    taken: int = Order.update(due_at=now).where(*claims, *over).execute() if expiry else 0
    return taken


def money_in(order: Order) -> PaymentException | None:
    """Return the oldest open exception about money that was received for the order, or None."""
    oldest: PaymentException | None = _money_in(PaymentException.order == order).order_by(PaymentException.id).first()
    return oldest


def why_not_confirm(order: Order) -> str:
    """Return the reason not to accept an operator's confirmation that the money was received, or ""."""
    if driver_for(order).checks_status:
        return N_("The channel reports payments itself. Check the status instead.")
    return ""


@transaction
def confirm(
    order: Order,
    *,
    amount: int | None = None,
    reference: str = "",
    who: str = "operator",
    shared: bool = False,
) -> bool:
    """Record an operator's confirmation that money was received, on a channel without status checks.

    Args:
        amount: received, in fen; None means the order's amount, 0 that the bank took back a recorded payment.
        reference: the bank's or wallet's number of the transfer; surrounding blanks are removed. Statements recognize
            the payment by it, so a placeholder such as - is refused.
        shared: the transfer also covers other orders.

    Returns: False if this was recorded already.

    Raises:
        OperatorError: the channel reports payments itself, the reference is no transaction ID, or it is recorded for
            another order of the channel.
    """
    order, reference = Order.for_update(order.id), reference.strip()
    refuse(why_not_confirm(order))
    if reference and not payment_numbers.transaction_id(reference):
        raise OperatorError(
            N_(
                "%(reference)s is not a transaction ID. Enter the number that the bank's statement has for this "
                "payment, or leave it empty."
            ),
            reference=reference,
        )
    if amount == 0 and not (reference and payment_numbers.is_on_record(order, reference)):
        raise OperatorError(payment_numbers.NOTHING_RECORDED)
    take_turns(order, order.amount if amount is None else amount)
    taken_back = State.FAILED if amount == 0 else State.PAID
    report = Report(taken_back, order.amount if amount is None else amount, reference, by_operator=True)
    if not reference:
        earlier, waits = _without_number(order), order.status in (PENDING, PAID)
        if earlier:
            repeats = report.amount == earlier[-1].amount or (waits and report.amount == order.amount)
            is_other = earlier[-1].resolution is not None or not repeats
        else:
            is_known = order.status in (CONFIRMED, COMPLETED) and not order.channel_reference
            is_other = is_known and report.amount != order.amount
        if is_other:  # it neither repeats nor corrects what is recorded
            raise OperatorError(
                N_(
                    "A payment without a transaction ID is already recorded. Enter a transaction ID for this one "
                    "(--reference)."
                )
            )
        if earlier and not waits:
            return False
    if not shared and not payment_numbers.is_on_record(order, reference):
        payment_numbers.refuse_second(order, reference)
    return settle.apply_report(order, report, who, because(Why.MARKED_PAID))


def take_turns(order: Order, amount: int) -> None:
    """Let the confirmations of this amount (fen) on the order's channel wait for each other until the transaction ends.

    Each can then see whether another one may be about the same payment. Lock the order first (`Order.for_update`).
    """
    database.advisory_lock("confirmations", crc32(f"{order.channel_id} {amount}".encode()))


def _without_number(order: Order) -> list[PaymentException]:
    """Return the recorded money of a deposit that has no reference."""
    found = [each for each in exceptions_of(order) if each.kind in MONEY_IN and not each.reference]
    return [each for each in found if each.resolution not in (CORRECTED, RETURNED)]


def why_not_dismiss(order: Order) -> str:
    """Return the reason not to report a claimed payment as not received, or ""."""
    if order.order_type != BUY:
        return "only a deposit can be reported as not received"
    if order.status != PAID:
        return f"the deposit is {order.status}: only a claimed one (paid) can be reported as not received"
    if money := money_in(order):
        return f"money came in for it: settle exception {money.id} ({money.kind}) first"
    return ""


def dismiss(order: Order, reason: str = "", who: str = "operator") -> None:
    """Cancel a claimed deposit whose payment was not received, after a status check if the channel supports it.

    Raises:
        OperatorError: it is not a claim, money was received for it, or the channel reports it as paid or does not
            respond.
    """
    refuse(why_not_dismiss(order))
    why = own_words(reason.strip()) if reason.strip() else because(Why.NOT_RECEIVED)
    ask_again = _unpaid_at_channel(order) if driver_for(order).checks_status else None
    if not settle.cancel_unpaid(order, ask_again, why, who):
        raise OperatorError(N_("The deposit changed just now. Reload and try again."))


def _unpaid_at_channel(order: Order) -> int:
    """Check that the deposit is unpaid and close it at the channel; return when to check for late money.

    Raises:
        OperatorError: it is paid, which is then settled, or there is no usable response.
    """
    try:
        with channel_slot(order.channel_id):
            reports = attempts.reports_of(order)
            is_paid = any(report.state in (State.PAID, State.RETURNED) for report in reports)
            if not is_paid:
                attempts.close(order)
    except ChannelUnknown as silence:
        raise OperatorError(N_("No valid response: %(why)s"), why=str(silence)) from silence
    except ChannelRefused as refusal:
        raise OperatorError(N_("The channel did not close the payment: %(why)s"), why=str(refusal)) from refusal
    if is_paid:
        for report in reports:
            settle.apply_report(order, report)
        raise OperatorError(N_("The channel reports the deposit as paid."))
    return clock.now() + LATE[0]
