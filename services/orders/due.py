"""The sweep of due orders: check their status at the channel, expire them, pay them out, complete them."""

from __future__ import annotations

import logging
from functools import partial

from peewee import SQL, fn

from gateways.base import ChannelRefused, ChannelUnknown, Report, State
from models.db.base import Statement
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.maintenance import paused_since
from models.tables.order import BUY, CANCELLED, COMPLETED, CONFIRMED, PAID, PAYOUT_IN_PROGRESS, PENDING, SELL, Order
from runtime import clock
from services.channels.bulkhead import channel_slot
from services.channels.calls import FIRST_ASK, LATE, LEASE, driver_of
from services.errors import N_, OperatorError
from services.merchants import cache
from services.orders import attempts, claims, create, lifecycle, next_step, payouts, positions, settle
from services.orders.reasons import Why, because
from services.platform.worker_pool import WorkerPool, claim
from services.security import sandbox_guard, second_operator

log = logging.getLogger(__name__)

LONGEST_PAUSE = 300
SILENT_FOR = 7 * 86_400  # seconds for which the status check is repeated if the channel does not respond

_channels_due = Statement(
    lambda v: Channel.select().where(
        fn.EXISTS(
            Order.select(SQL("1")).where(
                Order.channel == Channel.id, Order.order_type.in_((SELL, BUY)), Order.due_at <= v.now
            )
        )
    )
)
_due_of = Statement(
    lambda v: (
        Order.select()
        .where(Order.channel == v.channel, Order.order_type == v.order_type, Order.due_at <= v.now)
        .order_by(Order.due_at)
        .limit(v.limit)
    )
)


def _pause(asks: int, first: int = 1) -> int:
    """Return the seconds until the next status check: growing, with an upper limit."""
    return min(first * 2 ** min(asks, 20), LONGEST_PAUSE)


def sweep(pool: WorkerPool) -> int:
    """Start the act of each due order that the pool has a worker for; return the number of started acts."""
    with pool.sweeping:
        pool.take_announced()  # channels are few, so each sweep checks all of them
        now = clock.now()
        channels = {channel.id: channel for channel in _channels_due.models(Channel, now=now)}
        due = pool.choose(channels, partial(_due_orders, now))
        for order in (claimed := claim(due, now + LEASE)):
            order.channel = channels[order.channel_id]
            pool.submit(order.channel_id, advance, order)
    return len(claimed)


def _due_orders(now: int, channel_id: int, limit: int) -> list[Order]:
    """Return a channel's due orders, longest due first; a withdrawal never waits behind deposits."""
    orders: list[Order] = []
    for order_type in (SELL, BUY):
        orders += _due_of.models(Order, channel=channel_id, order_type=order_type, now=now, limit=limit - len(orders))
    return orders


@transaction
def release(ahead: int = 0) -> int:
    """Make orders due soon whose pause is longer than any can be, because the clock was set back; return their number.

    Not immediately, because a worker may have claimed them. Dates of expiry are not changed, but the status of
    deposits that were created while the clock was ahead is checked before. If an order took its last step while the
    clock was ahead, its settlement delay or its checks begin now, at its new `updatetime`.

    Args:
        ahead: seconds by which the clock was set ahead instead.
    """
    payouts.adjust_to_clock(ahead)
    now = clock.now()
    # By channel, so that an index finds them.
    due = (Order.channel.in_(Channel.select(Channel.id)), Order.order_type.in_((SELL, BUY)))
    ended = Order.status.in_((CANCELLED, COMPLETED))
    began = ended | ((Order.order_type == BUY) & Order.status.in_((PAID, CONFIRMED)))
    begun_again = {"due_at": now + (Order.due_at - Order.updatetime), "updatetime": now}
    Order.update(begun_again).where(*due, Order.due_at > now, Order.updatetime > now, began).execute()
    Order.update(due_at=now + LATE[-1]).where(*due, Order.due_at > now + LATE[-1], ended).execute()
    expires = (Order.due_at == Order.expires_at) & (Order.createtime <= now)
    deposits = (Order.order_type == BUY) & ((Order.status == CONFIRMED) | expires)
    dated = deposits | Order.status.in_((CANCELLED, COMPLETED))
    stuck = Order.update(due_at=now + LEASE).where(*due, Order.due_at > now + LONGEST_PAUSE, ~dated)
    count: int = stuck.execute()
    return count


def advance(order: Order) -> bool:
    """Do what is due for a claimed order; return False if its channel gave no usable response."""
    status = order.status
    if sandbox_guard.is_barred(order.channel):
        order.put_off(clock.now() + LATE[-1])  # it waits for `ledger remove-sandbox`, or for demo mode
        return True
    try:
        next_act = ACTS[order.order_type, status](order)
    except ChannelUnknown as silence:
        lifecycle.outcome_unknown(order, str(silence), ask_again=clock.now() + _pause(order.asks))
        return False
    if order.status == status:
        order.put_off(next_act)  # has no effect if the act changed the order
    return True


def _ask_about_deposit(order: Order) -> int | None:
    driver = driver_of(order.channel)
    over = claims.is_over(order, clock.now())
    if order.status == PAID and driver.by_hand and not over:
        return claims.ends_at(order)
    if not driver.checks_status and paused_since() is not None:
        return clock.now() + LONGEST_PAUSE  # it may have been paid after the backup
    reports = attempts.reports_of(order) if driver.checks_status else []
    now = clock.now()
    expired = order.status == PENDING and now >= (order.expires_at or 0)
    unpaid = all(report.state in (State.OPEN, State.ABSENT, State.ENDED) for report in reports)
    pause = _pause(order.asks, FIRST_ASK)
    if (expired or over) and unpaid:
        _expire(order, now)
    else:
        if unpaid and create.open_again(order):
            pause = FIRST_ASK
        settle.apply_reports(order, reports)
    if order.status == PENDING and not (expired or driver.checks_status):
        return order.expires_at
    next_ask = now + pause
    last_ask: int = next_ask if order.status != PENDING or expired else order.expires_at
    return min(next_ask, last_ask)


def _expire(order: Order, now: int) -> None:
    """Close an expired deposit upstream, and then here; do nothing if it was paid just now."""
    driver = driver_of(order.channel)
    try:
        closed = attempts.close(order)
    except ChannelRefused:
        return
    code = Why.EXPIRED if order.status == PENDING else Why.NOT_RECEIVED
    if not (driver.checks_status or driver.by_hand):
        code = Why.EXPIRED_UNCHECKED
    settle.cancel_unpaid(order, now + LATE[0] if driver.checks_status and not closed else None, because(code))


def _reports_of(order: Order) -> list[Report]:
    """Return the channel's report on each payment of an order. Raises ChannelUnknown."""
    if order.is_buy:
        return attempts.reports_of(order)
    return [positions.call_for_payout(driver_of(order.channel).query_payout, order)]


def why_not_ask(order: Order) -> str:
    """Return the reason not to check its status, or ""."""
    driver = driver_of(order.channel)
    if driver.checks_status:
        return ""
    return f"channel {order.channel_id} {'is manual and ' if driver.by_hand else ''}has no status check"


def ask_now(order: Order, who: str = "an operator") -> list[Report]:
    """Check an order's status at the channel, whatever its state, and apply the reports; return them.

    Raises:
        OperatorError: the channel has no status check, or gave no usable response.
    """
    if why := why_not_ask(order):
        raise OperatorError(why)
    try:
        with channel_slot(order.channel_id):
            reports = _reports_of(order)
    except ChannelUnknown as silence:
        raise OperatorError(N_("No valid response: %(why)s"), why=str(silence)) from silence
    settle.apply_reports(order, reports, because(Why.CHANNEL_ASKED_BY, who=who))
    return reports


def _is_in_progress(order: Order) -> bool:
    """Return whether an ended withdrawal is still in progress at its channel, so that checks continue until it ends."""
    open_ones = [each.kind for each in positions.exceptions_of(order) if each.is_open]
    return PAYOUT_IN_PROGRESS in open_ones or positions.is_held_again(order)


def _check_ended(order: Order) -> int | None:
    """Check whether an order that its channel could not close, or did not have, was carried out after all."""
    if not driver_of(order.channel).checks_status:
        return None  # a notice, an operator or the bank's file reports what happens
    now = clock.now()
    passed = now - order.updatetime
    try:
        reports = _reports_of(order)
    except ChannelUnknown as silence:
        log.info("Order %s (%s): status check without a usable response: %s", order.order_no, order.status, silence)
        if passed < SILENT_FOR or _is_in_progress(order):
            return now + LATE[1]
        _stop_checking(order, str(silence))
        return None
    settle.apply_reports(order, reports)
    if _is_in_progress(order):
        return now + LATE[1]
    return next((order.updatetime + late for late in LATE if late > passed), None)


@transaction
def _stop_checking(order: Order, detail: str) -> None:
    """Open an exception: status checks have ended, and the order's outcome is unknown."""
    lifecycle.raise_silence(Order.for_update(order.id), because(Why.SILENT_AT_END, text=detail))


def expire(order: Order) -> None:
    """Expire an unpaid deposit now: check its status and close it at the channel first."""
    if _expires_now(order):
        advance(Order.get_by_id(order.id))


@transaction
def _expires_now(order: Order) -> bool:
    pending = (Order.id == order.id) & (Order.status == PENDING)
    return Order.update(expires_at=clock.now()).where(pending).execute() == 1


@transaction
def _complete_deposit(order: Order) -> None:
    now = Order.for_update(order.id)
    if now.due_at != order.due_at:
        return  # it changed since it was claimed
    if next_step.is_held(now):
        now.put_off(None)  # it is due again once its last exception is closed
    else:
        settle.complete_deposit(order, because(Why.SETTLEMENT_DELAY_OVER))


def _auto_approve(order: Order) -> None:
    withheld = cache.by_id(order.merchant_id).sandbox_money or second_operator.is_needed(order)
    if order.amount <= order.channel.auto_accept_max and not withheld:  # otherwise the limit changed since
        payouts.accept(order, "service", because(Why.ACCEPTED_BY_RULE))


def _pay_out(order: Order) -> int | None:
    report, why = payouts.hand_over(order)
    settle.apply_report(order, report, "channel", why)
    if driver_of(order.channel).by_hand:
        return None
    left_alone_until: int = order.left_alone_until or 0
    return max(clock.now() + _pause(order.asks - 1), left_alone_until)


ACTS = {
    (BUY, PENDING): _ask_about_deposit,
    (BUY, PAID): _ask_about_deposit,
    (BUY, CONFIRMED): _complete_deposit,
    (BUY, COMPLETED): _check_ended,
    (BUY, CANCELLED): _check_ended,
    (SELL, PENDING): _auto_approve,
    (SELL, CONFIRMED): _pay_out,
    (SELL, CANCELLED): _check_ended,
    (SELL, COMPLETED): _check_ended,
}
