"""What is due for a deposit: check its status while it is unpaid, expire it, credit it after the settlement delay."""

from __future__ import annotations

from gateways.base import ChannelRefused, State
from models.db.writer import transaction
from models.tables.maintenance import paused_since
from models.tables.order import CONFIRMED, PAID, PENDING, Order
from runtime import clock
from services.channels.calls import FIRST_ASK, LATE, LONGEST_PAUSE, driver_for, pause
from services.deposits import attempts, claims, place, settle
from services.orders.lifecycle import Acted
from services.orders.reasons import Why, because


def advance(order: Order) -> Acted | None:
    """Do what is due for a claimed deposit that has not ended.

    Returns: what the channel reports, and when to act again; None if the deposit was credited or is held.

    Raises:
        ChannelUnknown: no usable response.
    """
    if order.status == CONFIRMED:
        _credit(order)
        return None
    driver = driver_for(order)
    claim_is_over = claims.is_over(order)
    if order.status == PAID and driver.by_hand and not claim_is_over:
        return Acted(claims.ends_at(order))
    if not driver.checks_status and paused_since() is not None:
        return Acted(clock.now() + LONGEST_PAUSE)  # it may have been paid after the backup
    reports = attempts.reports_of(order) if attempts.can_be_checked(order) else []
    now = clock.now()
    expired = order.status == PENDING and now >= (order.expires_at or 0)
    unpaid = all(report.state in (State.OPEN, State.ABSENT, State.ENDED) for report in reports)
    next_pause = pause(order.asks, FIRST_ASK)
    if (expired or claim_is_over) and unpaid:
        _expire(order, now)
        return Acted(now + next_pause)
    if unpaid and place.open_again(order):
        next_pause = FIRST_ASK
    if order.status != PENDING or expired:
        return Acted(now + next_pause, reports)
    expires_at: int = order.expires_at
    return Acted(min(now + next_pause, expires_at) if driver.checks_status else expires_at, reports)


def _expire(order: Order, now: int) -> None:
    """Close an expired deposit upstream, and then here; do nothing if it was paid just now."""
    driver = driver_for(order)
    try:
        closed = attempts.close(order)
    except ChannelRefused:
        return
    code = Why.EXPIRED if order.status == PENDING else Why.NOT_RECEIVED
    if not (driver.checks_status or driver.by_hand):
        code = Why.EXPIRED_UNCHECKED
    is_open = attempts.can_be_checked(order) and not closed
    settle.cancel_unpaid(order, now + LATE[0] if is_open else attempts.checked_again_at(order), because(code))


@transaction
def _credit(order: Order) -> None:
    locked = Order.for_update(order.id)
    if locked.due_at != order.due_at:
        return  # it changed since it was claimed
    if settle.is_held(locked):
        locked.set_due(None)  # here, under the lock: it is due again once its last exception is closed
    else:
        settle.complete(order, "service", because(Why.SETTLEMENT_DELAY_OVER))


@transaction
def end_now(order: Order) -> bool:
    """Make a pending deposit expire now, at its next step; False if it is no longer pending."""
    pending = (Order.id == order.id) & (Order.status == PENDING)
    return Order.update(expires_at=clock.now()).where(pending).execute() == 1
