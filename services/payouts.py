"""Withdrawals on their way out: accepted or rejected, handed to the channel, confirmed by hand where there is none."""

from __future__ import annotations

from datetime import datetime

import business_clock
from gateways.base import ChannelRefused, ChannelUnknown, Report, State
from models.order import COMPLETED, CONFIRMED, PENDING, Order
from models.writer import transaction
from services import lifecycle, settlement
from services.channels import LATE, LEASE, ask, driver_of, keep_account, payout_of
from services.errors import N_, NotPossible
from services.queues import waiting_for
from services.settlement import CORRECTED

LEFT_ALONE = 3_600  # seconds for which a withdrawal that an operator wants to reject is not handed over


def against_accepting(order: Order) -> str:
    """What speaks against accepting it; "" where nothing does."""
    if order.is_buy:
        return "only a withdrawal can be accepted"
    return "" if order.status == PENDING else f"the withdrawal is {order.status}, not pending"


def against_rejecting(order: Order) -> str:
    """What speaks against rejecting it, but for what its channel may say; "" where nothing does."""
    if order.is_buy:
        return "only a withdrawal can be rejected"
    rejectable = order.status in (PENDING, CONFIRMED)
    return "" if rejectable else f"the withdrawal is {order.status}: it can't be rejected any more"


def against_marking_paid(order: Order) -> str:
    """What speaks against an operator's word that its money came, or was sent; "" where nothing does."""
    if not driver_of(order.channel).by_hand:
        return f"channel {order.channel_id} reports payments itself"
    return "accept the withdrawal first" if not order.is_buy and order.status == PENDING else ""


def is_at_a_channel(order: Order) -> bool:
    """May a channel have this withdrawal, so that it is asked before it is rejected?"""
    return order.status == CONFIRMED and not driver_of(order.channel).by_hand


@transaction
def accept(order: Order, who: str = "operator", why: str = "accepted") -> None:
    """Accept a pending withdrawal; the service hands it to the channel at its next sweep.

    Raises:
        NotPossible: it is no withdrawal, or not pending.
    """
    _unless(against_accepting(order))
    keep_account(order.channel_id)
    if not lifecycle.move(order, CONFIRMED, who, why, due_at=business_clock.now()):
        raise NotPossible(N_("the withdrawal moved on just now"))


def _unless(why: str) -> None:
    if why:
        raise NotPossible(why)


def reject(order: Order, reason: str, who: str = "operator") -> None:
    """Reject a withdrawal and return what it held: a pending one, or an accepted one that the channel does not have.

    A channel that can be asked is asked, with the order taken from the sweep meanwhile. It is asked about the order
    afterwards, too: money that went out all the same becomes an exception.

    Raises:
        NotPossible: it is no withdrawal, or its money may be on the way.
    """
    _unless(against_rejecting(order))
    if not reason.strip():
        raise NotPossible(N_("a rejection needs a reason"))
    at_a_channel = is_at_a_channel(order)
    if at_a_channel:
        _make_sure_that_it_is_not_there(order)
    if not _cancelled(order, who, reason, business_clock.now() + LATE[0] if at_a_channel else None):
        raise NotPossible(N_("the withdrawal moved on just now"))


@transaction
def _cancelled(order: Order, who: str, reason: str, ask_again: int | None) -> bool:
    now = Order.held(order.id)
    if (now.status, now.due_at, now.asks) != (order.status, order.due_at, order.asks):
        return False
    if ask_again is not None:
        lifecycle.outcome_known(order)  # the channel answered just now
    return settlement.cancel_withdrawal(order, who, reason, due_at=ask_again)


def _make_sure_that_it_is_not_there(order: Order) -> None:
    """Raise NotPossible unless the channel, asked now, says that it has no such payout, or that it failed."""
    now, shown_from = business_clock.now(), order.expires_at or 0
    # A worker that is at it has taken it for at most LEASE; a longer pause means that nobody is.
    if order.due_at is not None and now < order.due_at <= now + LEASE:
        raise NotPossible(N_("it can't be rejected while the service is at it: repeat this in a minute"))
    if not _taken(order, max(now, shown_from) + LEFT_ALONE):
        raise NotPossible(N_("the withdrawal moved on just now"))
    if now < shown_from:
        at = datetime.fromtimestamp(shown_from).astimezone()
        text = N_(
            "it was handed over not long ago, and the channel may not show it yet. It is not handed over again for "
            "now: repeat this between %(at)s and an hour later"
        )
        raise NotPossible(text, at=f"{at:%H:%M:%S}")
    try:
        with waiting_for(order.channel_id):
            said = ask(driver_of(order.channel).query_payout, payout_of(order))
    except ChannelUnknown as silence:
        order.put_off(now)
        raise NotPossible(N_("the channel can't say whether it has it: %(why)s"), why=str(silence)) from silence
    if said.state not in (State.ABSENT, State.FAILED):
        order.put_off(now)
        raise NotPossible(N_("the channel has it: it is %(state)s there"), state=said.state.value)


@transaction
def _taken(order: Order, until: int) -> bool:
    return order.claim(until)


def mark_paid(order: Order, *, amount: int | None = None, reference: str = "", who: str = "operator") -> bool:
    """An operator saw the money come (deposit) or sent it (withdrawal), on a channel that works by hand.

    Args:
        amount: what came or went, in fen; the order's amount where None.

    Returns: False where this was on record already.

    Raises:
        NotPossible: the channel speaks for itself, or the withdrawal is not accepted yet.
    """
    _unless(against_marking_paid(order))
    report = Report(State.PAID, order.amount if amount is None else amount, reference)
    if order.is_buy and not reference and _is_other_money(order, report.amount):
        raise NotPossible(N_("money without a reference is on record already: give this one its own (--reference)"))
    return settlement.settle(order, report, who, "marked paid")


def _is_other_money(order: Order, amount: int) -> bool:
    """Is money without a reference on record that this can't be a repeat or a correction of?"""
    earlier = settlement.money_on_record(order, "")
    if earlier is not None and earlier.resolution != CORRECTED:
        return earlier.resolution is not None or amount not in (earlier.amount, order.amount)
    return order.status in (CONFIRMED, COMPLETED) and not order.channel_reference and amount != order.amount


def hand_over(order: Order) -> Report:
    """Hand an accepted withdrawal to its channel, or ask what became of it; outside any transaction.

    Raises:
        ChannelUnknown: no usable answer.
    """
    driver, payout, now = driver_of(order.channel), payout_of(order), business_clock.now()
    report = ask(driver.query_payout, payout) if order.asks > 1 else Report(State.ABSENT)
    if report.state is not State.ABSENT:
        return report
    if now < (order.expires_at or 0):
        return Report(State.OPEN, proven=False)  # what it was handed last may still be on its way
    if not _begins_to_hand_over(order, driver.shows_payouts_after):
        return Report(State.OPEN, proven=False)  # another worker has it
    try:
        # The same order number again is the same payout upstream, so a crash here pays nothing twice.
        return ask(driver.pay_out, payout)
    except ChannelRefused as refusal:
        return Report(State.FAILED, detail=f"refused: {refusal}")


@transaction
def _begins_to_hand_over(order: Order, shown_after: int) -> bool:
    """Take the order anew, for what is next may pay; and put down until when its channel may not show it."""
    now = business_clock.now()
    return order.renew(now + LEASE, expires_at=now + shown_after if shown_after else None)
