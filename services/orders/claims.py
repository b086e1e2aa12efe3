"""Claims: deposits that payers report as paid, and their end if the money is never received."""

from __future__ import annotations

from typing import Any

from peewee import fn

from gateways.base import ChannelRefused, ChannelUnknown, State
from models.db.writer import transaction
from models.tables.merchant import Merchant
from models.tables.order import BUY, MONEY_IN, PAID, Order, PaymentException
from runtime import clock
from runtime.state import current
from services.channels.bulkhead import channel_slot
from services.channels.calls import LATE, driver_of
from services.errors import N_, OperatorError
from services.orders import attempts, settle
from services.orders.reasons import Why, because, own_words

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


def is_over(order: Order, now: int) -> bool:
    """Return whether the claim was not confirmed within `claim_expiry`."""
    end = ends_at(order)
    return end is not None and now >= end


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


def why_not_dismiss(order: Order) -> str:
    """Return the reason not to report a claimed payment as not received, or ""."""
    if not order.is_buy:
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
    if against := why_not_dismiss(order):
        raise OperatorError(against)
    why = own_words(reason.strip()) if reason.strip() else because(Why.NOT_RECEIVED)
    ask_again = _unpaid_at_channel(order) if driver_of(order.channel).checks_status else None
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
        settle.apply_reports(order, reports)
        raise OperatorError(N_("The channel reports the deposit as paid."))
    return clock.now() + LATE[0]
