"""Guards for what an operator does to a withdrawal that its channel may have: claim it, then ask the channel first."""

from __future__ import annotations

from datetime import datetime

import business_clock
from gateways.base import ChannelUnknown, State
from models.db.writer import transaction
from models.tables.order import CONFIRMED, PAYOUT_IN_PROGRESS, UNKNOWN_OUTCOME, Order, PaymentException
from services.channels.bulkhead import waiting_for
from services.channels.calls import LEASE, driver_of
from services.errors import N_, OperatorError
from services.orders import positions, settle, shown

LONG = 86_400  # seconds of silence after which a person may decide
LEFT_ALONE = 3_600  # seconds for which a withdrawal that an operator wants to reject is not handed over
# What the channel must report, so that an operator may end the withdrawal as not paid out, or as paid out.
NOT_OUT, OUT = (State.ABSENT, State.FAILED), (State.PAID,)
_OTHERWISE = {
    State.ABSENT: N_("the channel does not have it"),
    State.FAILED: N_("the channel reports that it failed"),
    State.OPEN: N_("the channel has it: it is open there"),
    State.PAID: N_("the channel has it: it is paid there"),
    **dict.fromkeys((State.RETURNED, State.ENDED), N_("the channel reports that it went back")),
}
MISSING = N_(
    "the channel had it and no longer shows it: check there whether the money is out, then settle the exception "
    "about it, by --complete or --cancel"
)


def may_be(order: Order, exception: PaymentException | None = None) -> bool:
    """May a channel that can be asked have this withdrawal, given an exception about it?"""
    if order.is_buy or driver_of(order.channel).by_hand:
        return False
    in_progress = exception is not None and exception.kind == PAYOUT_IN_PROGRESS
    return order.status == CONFIRMED or in_progress or positions.is_held_again(order)


def check(order: Order, wanted: tuple[State, ...], exception: PaymentException | None = None) -> None:
    """Claim the withdrawal and ask its channel; `order` is as it was claimed.

    Args:
        wanted: what the channel must report.
        exception: what the operator decides. A day after it was opened, the operator may decide without an answer.

    Raises:
        OperatorError: the service is at it, the channel may not show it yet, gives no answer or another one.
    """
    now, shown_from, due_at = business_clock.now(), order.expires_at or 0, order.due_at
    # A worker that is at it has taken it for at most LEASE; a longer pause means that nobody is.
    if due_at is not None and now < due_at <= now + LEASE:
        raise OperatorError(N_("this can't be done while the service is at it: repeat this in a minute"))
    until, too_soon = max(now, shown_from) + LEFT_ALONE, now < shown_from
    if not _claimed(order, until, **({"left_alone_until": until} if too_soon else {})):
        raise OperatorError(N_("the withdrawal moved on just now"))
    if too_soon:
        at = datetime.fromtimestamp(shown_from).astimezone()
        text = N_(
            "it was handed over not long ago, and the channel may not show it yet. It is not handed over again for "
            "now: repeat this between %(at)s and an hour later"
        )
        raise OperatorError(text, at=f"{at:%H:%M:%S}")
    again = now if due_at is not None else None  # what waits for an operator still does
    try:
        with waiting_for(order.channel_id):
            report = shown.call(driver_of(order.channel).query_payout, order)
    except ChannelUnknown as silence:
        if exception is not None and (exception.kind == UNKNOWN_OUTCOME or exception.createtime <= now - LONG):
            return
        order.put_off(again)
        raise OperatorError(N_("the channel can't say whether it has it: %(why)s"), why=str(silence)) from silence
    is_missing = report.state is State.ABSENT and shown.is_known(order)
    if is_missing and exception is not None and exception.kind in settle.OPEN_ENDED:
        return  # the operator has looked there
    if is_missing or report.state not in wanted:
        order.put_off(again)
        settle.settle(order, report, "channel", settle.ASKED)  # it counts, whatever the operator wanted
        raise OperatorError(MISSING if is_missing else _OTHERWISE[report.state])


@transaction
def _claimed(order: Order, until: int, **facts: int) -> bool:
    return order.claim(until, **facts)


def is_as_checked(now: Order, order: Order) -> bool:
    """Has nobody done anything to the order since it was claimed?"""
    return (now.status, now.due_at, now.asks) == (order.status, order.due_at, order.asks)
