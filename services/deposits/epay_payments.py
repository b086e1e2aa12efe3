"""Epay payments with several orders: all but one are cancelled, and one counts for the shop (docs/epay-inbound.md)."""

from __future__ import annotations

from models.tables.epay import EpayOrder
from models.tables.order import CANCELLED, Order
from services.errors import N_, OperatorError
from services.orders import lifecycle
from services.orders.reasons import Why, because

_OTHER = N_(
    "The shop's payment continues with another order, which the history names and which is not cancelled. "
    "Wait until it is, or credit the money to the balance or refund it."
)


def replaced(before: Order, order: Order) -> None:
    """Record that the payment continues with another order, in the caller's transaction."""
    lifecycle.note(before, "merchant", because(Why.EPAY_REPLACED, order_no=order.order_no))


def why_not_complete(order: Order) -> str:
    """Return the reason not to complete a cancelled order whose payment continues with another one, or ""."""
    payment = EpayOrder.of_replaced(order)
    return _OTHER if payment is not None and payment.order.status != CANCELLED else ""


def take_over(order: Order) -> None:
    """Let an order count for its payment again, in the caller's transaction, because its money arrived after all.

    Raises:
        OperatorError: another one counts, and is not cancelled.
    """
    payment = EpayOrder.of_replaced(order)
    if payment is None:
        return
    other = Order.for_update(payment.order_id)
    if other.status != CANCELLED or not payment.bind(order.id, other.id, payment.type):
        raise OperatorError(_OTHER)
    replaced(other, order)
