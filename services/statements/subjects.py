"""What a difference between a statement and the orders is about."""

from __future__ import annotations

from models.tables.order import Order
from services.statements.parse import REFUNDED
from services.statements.reconcile import FEE as FEE_DIFFERS
from services.statements.reconcile import Difference, Remark

DEPOSIT, REFUND, PAYOUT, FEE, OTHER = SUBJECTS = ("deposit", "refund", "payout", "fee", "other")
OF_REFUNDS = {
    *(Remark.REFUNDED, Remark.REFUND_AMOUNT, Remark.REFUND_CANCELLED, Remark.REFUND_OPEN, Remark.UNSIZED),
    *(Remark.BACK_BOOKED, Remark.BACK_OPEN, Remark.BACK_HELD),
}


def subject_of(difference: Difference, order: Order | None) -> str:
    """Return one of SUBJECTS. OTHER are lines without an order number of this service, of any kind.

    Args:
        order: the order of the difference, if it has one.
    """
    codes = {told.code for told in difference.notes}
    if difference.kind == FEE_DIFFERS:
        return FEE
    if Remark.OTHERS in codes:
        return OTHER
    if order is not None and not order.is_buy:
        return PAYOUT
    if difference.there.get("status") == REFUNDED or codes & OF_REFUNDS:
        return REFUND
    if order is None and difference.there.get("amount", "").startswith("-"):
        return PAYOUT
    return DEPOSIT
