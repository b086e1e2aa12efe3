"""Send the payouts of withdrawals through their channels, and ask for their status.

A payout that the channel has shown is never sent again: an operator decides about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from gateways import registry
from gateways.base import ChannelError, ChannelRefused, ChannelUnknown, Payout, Report, State
from models.db.writer import transaction
from models.tables.maintenance import paused_since
from models.tables.merchant import Merchant
from models.tables.order import CONFIRMED, PAYOUT_IN_PROGRESS, SELL, UNKNOWN_OUTCOME, Order, PaymentException
from runtime import clock
from services.channels.bulkhead import channel_slot
from services.channels.calls import LEASE, call_driver, driver_of, payout_of
from services.errors import N_, OperatorError
from services.orders.reasons import ASKED, Reason, Why, because
from services.security import masking
from services.withdrawals import money, settle

LONG = 86_400  # seconds of silence after which an operator may decide
LEFT_ALONE = 3_600  # seconds for which a withdrawal that an operator wants to reject is not sent to the channel
# The channel's reports that allow an operator to end the withdrawal as not paid out, or as paid out.
NOT_OUT, OUT = (State.ABSENT, State.FAILED), (State.PAID,)
_OTHERWISE = {
    State.ABSENT: N_("The channel has no record of it."),
    State.FAILED: N_("The channel reports that it failed."),
    # STUCK is about a refund, and does not prove how a payout ended.
    **dict.fromkeys((State.OPEN, State.STUCK), N_("The channel has it in progress.")),
    State.PAID: N_("The channel reports it as paid."),
    **dict.fromkeys((State.RETURNED, State.ENDED), N_("The channel reports that the money was returned.")),
}
MISSING = N_(
    "The channel had the payout but no longer shows it. Check there whether it was sent, then "
    "resolve the exception with --complete or --cancel."
)
LONGEST_UNSEEN = max(driver.shows_payouts_after for driver in registry.DRIVERS.values())


def hand_over(order: Order) -> tuple[Report, Reason]:
    """Send an approved withdrawal through its channel, or check its status; outside any transaction.

    Returns: the channel's report, and the reason for its line of history.

    Raises:
        ChannelUnknown: no usable response.
    """
    driver = driver_of(order.channel)
    paused = not driver.by_hand and paused_since() is not None
    is_known = money.was_shown(order)
    # After a restore it may have been sent already, although its row does not show it.
    asks_first = order.asks > 1 or paused or is_known
    report = ask(order) if asks_first else Report(State.ABSENT)
    if is_known or report.state is not State.ABSENT:
        # A payout that the channel had before is not sent again: an operator checks it there.
        return report, ASKED
    if paused:
        return Report(State.OPEN, proven=False), ASKED
    if not _extends_claim(order, driver.shows_payouts_after):
        # It is left alone, its last payout request may still be in progress, or another worker has it.
        return Report(State.OPEN, proven=False), ASKED
    try:
        # Repeating the order number refers to the same payout upstream, so a crash here pays nothing twice.
        return _call(driver.pay_out, order), ASKED
    except ChannelRefused as refusal:
        return Report(State.FAILED), because(Why.REFUSED, text=str(refusal))


@transaction
def _extends_claim(order: Order, shown_after: int) -> bool:
    """Extend the claim, since the next call may pay; store the time until which the channel may not show it."""
    if not clock.seen().is_handled():
        return False  # the clock was set just now: `adjust_to_clock` must adjust the times first
    now = clock.now()
    return order.begin_to_hand_over(now, now + LEASE, now + shown_after if shown_after else None)


def ask(order: Order) -> Report:
    """Ask the channel for the status of a payout. Raises ChannelUnknown without a usable response."""
    return _call(driver_of(order.channel).query_payout, order)


def _call(verb: Callable[[Payout], Report], order: Order) -> Report:
    """Call the channel for a payout, and record an unusable response that shows that the channel has it.

    The payout account in the channel's message is masked, because history stores the message and is append-only.

    Raises:
        ChannelError.
    """
    payout = payout_of(order)
    try:
        report: Report = call_driver(verb, payout)
    except ChannelError as error:
        error.args = (masking.without(str(error), payout.account),)
        if isinstance(error, ChannelUnknown) and error.has_it:
            settle.note_shown(order, "", str(error))
        raise
    return replace(report, detail=masking.without(report.detail, payout.account))


# --- before an operator decides that a payout was made, or was not


def may_be_at_channel(order: Order, exception: PaymentException | None = None) -> bool:
    """Return whether a channel with status checks may have this withdrawal, given an exception about it."""
    if driver_of(order.channel).by_hand:
        return False
    in_progress = exception is not None and exception.kind == PAYOUT_IN_PROGRESS
    return order.status == CONFIRMED or in_progress or money.is_held_again(order)


def check(order: Order, wanted: tuple[State, ...], exception: PaymentException | None = None) -> None:
    """Claim the withdrawal and check its status at the channel; `order` is the claimed row.

    Args:
        wanted: the reports that allow the operator's decision.
        exception: the exception to resolve. A day after it was opened, the operator may decide without a response.

    Raises:
        OperatorError: a worker has claimed it, or the channel may not show it yet, does not respond, or reports
            otherwise.
    """
    now, shown_from, due_at = clock.now(), order.shown_from or 0, order.due_at
    # A worker claims it for at most LEASE, so after a longer time no worker has it.
    if due_at is not None and now < due_at <= now + LEASE:
        raise OperatorError(N_("The service is processing this order. Try again in a minute."))
    until, too_soon = max(now, shown_from) + LEFT_ALONE, now < shown_from
    if not order.claim(until, **({"left_alone_until": until} if too_soon else {})):
        raise OperatorError(N_("The withdrawal changed just now. Reload and try again."))
    if too_soon:
        at = datetime.fromtimestamp(shown_from).astimezone()
        text = N_(
            "The payout was sent to the channel recently and may not be visible there yet. It is not "
            "sent again for now. Try again between %(at)s and an hour later."
        )
        raise OperatorError(text, at=f"{at:%H:%M:%S}")
    again = now if due_at is not None else None  # an order that awaits an operator continues to do so
    try:
        with channel_slot(order.channel_id):
            report = ask(order)
    except ChannelUnknown as silence:
        if exception is not None and (exception.kind == UNKNOWN_OUTCOME or exception.createtime <= now - LONG):
            return
        order.set_due(again)
        raise OperatorError(
            N_("The channel cannot confirm whether it has the payout: %(why)s"), why=str(silence)
        ) from silence
    is_missing = report.state is State.ABSENT and money.was_shown(order)
    if is_missing and exception is not None and exception.kind in settle.OPEN_ENDED:
        return  # the operator has checked it at the channel
    if is_missing or report.state not in wanted:
        order.set_due(again)
        # The report is applied, whatever the operator wanted.
        settle.apply_report(order, report)
        raise OperatorError(MISSING if is_missing else _OTHERWISE[report.state])


def is_as_checked(locked: Order, order: Order) -> bool:
    """Return whether the order is unchanged since it was claimed."""
    return (locked.status, locked.due_at, locked.asks) == (order.status, order.due_at, order.asks)


# --- after a change of the clock


@transaction
def adjust_to_clock(ahead: int = 0) -> None:
    """Adjust, after a clock change, the times until which withdrawals are left alone or not shown by their channel.

    A clock that was set back, or was wrong before a restart, leaves times that are too far ahead: they are shortened to
    the longest possible time from now.

    Args:
        ahead: seconds by which the clock was set ahead; times that had not passed before are moved by as much.
    """
    now = clock.now()
    # By merchant, so that an index finds them.
    open_payouts = (
        Order.merchant.in_(Merchant.select(Merchant.id)),
        Order.order_type == SELL,
        Order.status == CONFIRMED,
    )
    for column, longest in (
        (Order.shown_from, LONGEST_UNSEEN),
        (Order.left_alone_until, LONGEST_UNSEEN + LEFT_ALONE),
    ):
        if ahead:
            Order.update({column: column + ahead}).where(*open_payouts, column > now - ahead).execute()
        Order.update({column: now + longest}).where(*open_payouts, column > now + longest).execute()
