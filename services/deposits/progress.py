"""The state of a deposit as the payment page shows it, and when its money was received."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from models.db.compiled import compiled
from models.tables.order import (
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    LATE_PAYMENT,
    MONEY_IN,
    PAID,
    PENDING,
    PROVEN,
    History,
    Order,
    PaymentException,
)
from models.tables.refund import Refund, refunds_of
from runtime import clock
from services.orders.lifecycle import exceptions_of
from services.orders.verdict import COMPLETE, CORRECTED, REFUND, RETURNED


@dataclass(frozen=True)
class Progress:
    """The state of a deposit for its payer.

    `state` is the order's status, or what the payer must know instead: expired, checking, late or refunded.
    `is_checked`: an operator must still decide about received money. `received_at` is in Unix seconds, None until the
    payment is confirmed. `refunds` are those of the order's own payment that the channel has or has completed, oldest
    first.
    """

    state: str
    is_checked: bool
    received_at: int | None
    refunds: list[Refund] = field(default_factory=list)


def of_deposit(order: Order) -> Progress:
    """Return the progress of a deposit."""
    money = [each for each in exceptions_of(order) if each.kind in MONEY_IN]
    checked = [each for each in money if each.is_open]
    refunds = [] if order.status in (PENDING, PAID) else [each for each in refunds_of(order) if _is_shown(each)]
    state = _state(order, money, checked)
    own = [each for each in refunds if each.status == COMPLETED and each.reference == order.channel_reference]
    if state in PROVEN and sum(each.amount for each in own) >= order.received:
        state = "refunded"
    return Progress(state, bool(checked), _received_at(order, money), refunds)


def _is_shown(refund: Refund) -> bool:
    return refund.status in (CONFIRMED, COMPLETED)


def _state(order: Order, money: list[PaymentException], checked: list[PaymentException]) -> str:
    if order.status in PROVEN:
        return str(order.status)
    if checked:
        return "late" if all(each.kind == LATE_PAYMENT for each in checked) else "checking"
    if order.status == CANCELLED:
        return "refunded" if _was_sent_back(order, money) else CANCELLED
    if order.status == PENDING and clock.now() >= (order.expires_at or 0):
        return "expired"
    return str(order.status)


def _was_sent_back(order: Order, money: list[PaymentException]) -> bool:
    """Return whether all money of a cancelled order was sent back, before or after it was confirmed."""
    ends = {each.resolution for each in money if each.resolution != CORRECTED}
    return ends <= {REFUND, RETURNED} if ends else bool(order.channel_reference)


def _received_at(order: Order, money: list[PaymentException]) -> int | None:
    """Return when the money was confirmed or, if an operator had to decide about it, reported."""
    if order.status not in PROVEN:
        return None
    if decided := [each for each in money if each.resolution == COMPLETE]:
        return int(decided[-1].createtime)
    line = _confirmed_at.first(order.id)
    return line.at if line else order.completedtime


@compiled
def _confirmed_at(order_id: int) -> Any:
    confirmed = History.select(History.at).where(History.order == order_id, History.after == CONFIRMED)
    return confirmed.order_by(History.id.desc()).limit(1)
