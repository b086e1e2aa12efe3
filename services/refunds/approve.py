"""What operators decide about refunds: approve, reject, mark as refunded."""

from __future__ import annotations

from peewee import fn

from gateways.base import ChannelUnknown, State
from models.db.writer import transaction
from models.tables.maintenance import paused_since
from models.tables.order import COMPLETED, CONFIRMED, PENDING, Order
from models.tables.refund import Refund
from runtime import clock
from runtime.clock import in_china
from runtime.state import current
from services.channels.calls import driver_of
from services.errors import N_, OperatorError, refuse
from services.orders.reasons import Why, because
from services.orders.returned import UNKNOWN, Returned
from services.refunds import send, settle
from services.security import second_operator

CHANGED = N_("The refund changed just now. Reload and try again.")
OWN_REQUEST = N_("You requested this refund, so another operator must approve it.")


def why_not_approve(refund: Refund) -> str:
    """Return the reason not to approve it, or ""."""
    if refund.status == PENDING and not refund.approved_by:
        return ""
    return N_("Only a refund that needs review can be approved.")


def total_today(order: Order, who: str) -> int:
    """Return the sum of today's refunds of this order, and of those that `who` requested, in fen; days of China."""
    since = int(in_china(clock.now()).replace(hour=0, minute=0, second=0).timestamp())
    mine = (Refund.order == order.id) | (Refund.who == who)
    wanted = (Refund.createtime >= since, Refund.status.in_((PENDING, CONFIRMED, COMPLETED)), mine)
    return int(Refund.select(fn.COALESCE(fn.SUM(Refund.amount), 0)).where(*wanted).scalar())


def needs_second(order: Order, amount: int, who: str) -> bool:
    """Return whether a refund that this operator requests needs another one's approval.

    Many small refunds of a day count together.
    """
    return second_operator.is_above(amount + total_today(order, who))


def waits_for_another(refund: Refund, who: str) -> bool:
    """Return whether `who` requested this refund, so that another operator must approve it, on later days too."""
    return refund.who == who and current().settings.second_operator_above > 0


@transaction
def approve(refund: Refund, who: str = "operator", *, alone: bool = False) -> Refund:
    """Approve a refund; the next sweep sends it to the channel. Returns it as it is now.

    Args:
        alone: from the command line, which needs no second operator.

    Raises:
        OperatorError: it does not await approval, or `who` requested it and another operator must approve it.
    """
    refund = settle.lock(refund)
    refuse(why_not_approve(refund))
    if not alone and waits_for_another(refund, who):
        raise OperatorError(OWN_REQUEST)
    now = clock.now()
    refund.store(approved_by=who, due_at=now, updatetime=now)
    settle.note(refund, who, because(Why.REFUND_APPROVED))
    return refund


def why_not_reject(refund: Refund) -> str:
    """Return the reason not to reject it, apart from the channel's status, or ""."""
    by_hand = driver_of(refund.channel).by_hand
    if refund.status == PENDING or (refund.status == CONFIRMED and by_hand):
        return ""
    if refund.status == CONFIRMED:
        return N_("The refund is at the channel. Check its status.")
    return N_("This refund can no longer be rejected.")


def reject(refund: Refund, reason: str, who: str = "operator") -> Refund:
    """Reject a refund that is not sent to the channel, and return what it reserved. Returns it as it is now.

    After a restore, the channel's status is checked first, because it may have been sent after the backup.

    Raises:
        OperatorError: it may have been sent.
    """
    refuse(why_not_reject(refund))
    if not reason.strip():
        raise OperatorError(N_("Enter a reason for the rejection."))
    if paused_since() is not None and not driver_of(refund.channel).by_hand:
        try:
            report = send.ask(refund)
        except ChannelUnknown as silence:
            raise OperatorError(N_("No valid response: %(why)s"), why=str(silence)) from silence
        if report.state is not State.ABSENT:
            settle.apply_report(refund, report)
            raise OperatorError(N_("The channel has this refund."))
    return _rejected(refund, reason.strip(), who)


@transaction
def _rejected(seen: Refund, reason: str, who: str) -> Refund:
    refund = settle.lock(seen)
    if not (refund.is_as(seen) and settle.cancel(refund, who, because(Why.REFUND_REJECTED, text=reason))):
        raise OperatorError(CHANGED)
    return refund


def why_not_mark_refunded(refund: Refund) -> str:
    """Return the reason not to accept an operator's confirmation that the money was sent back, or ""."""
    if not driver_of(refund.channel).by_hand:
        return N_("The channel reports refunds itself. Check the status instead.")
    return "" if refund.status == CONFIRMED else N_("Only an approved refund can be marked as refunded.")


@transaction
def mark_refunded(refund: Refund, transfer: Returned = UNKNOWN, who: str = "operator") -> Refund:
    """Record that an operator sent the money of a manual channel's refund. Returns it as it is now.

    Raises:
        OperatorError: the channel reports refunds itself, the refund is not approved or has ended, or the transfer's
            number is that of the payment, or recorded for another transfer of the channel.
    """
    refund = settle.lock(refund)
    refuse(why_not_mark_refunded(refund))
    transfer.refuse_second(refund.order)
    refund.store(returned_on=transfer.on)
    settle.complete(refund, who, because(Why.REFUND_MARKED), transfer.reference)
    return refund
