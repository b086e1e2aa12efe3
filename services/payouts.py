"""Withdrawals on their way out: accepted or rejected, handed to the channel, confirmed by hand where there is none."""

from __future__ import annotations

import time

from gateways.base import ChannelRefused, Report, State
from models.order import COMPLETED, CONFIRMED, PENDING, Order
from models.writer import transaction
from services import lifecycle, settlement
from services.channels import ask, driver_of, payout_of
from services.errors import NotPossible
from services.settlement import CORRECTED


@transaction
def accept(order: Order, who: str = "operator", why: str = "accepted") -> None:
    """Accept a pending withdrawal; the service hands it to the channel at its next sweep.

    Raises:
        NotPossible: it is no withdrawal, or not pending.
    """
    if order.is_buy:
        raise NotPossible("only a withdrawal can be accepted")
    if not lifecycle.move(order, CONFIRMED, who, why, due_at=int(time.time())):
        raise NotPossible(f"the withdrawal is {order.status}, not pending")


@transaction
def reject(order: Order, reason: str, who: str = "operator") -> None:
    """Reject a withdrawal and return what it held: a pending one, or an accepted one that is paid by hand.

    Raises:
        NotPossible: it is no withdrawal, or its money may be on the way.
    """
    if order.is_buy:
        raise NotPossible("only a withdrawal can be rejected")
    if not reason.strip():
        raise NotPossible("a rejection needs a reason")
    if order.status != PENDING and not (order.status == CONFIRMED and driver_of(order.channel).by_hand):
        raise NotPossible(f"the withdrawal is {order.status}: it can't be rejected any more")
    if not settlement.cancel_withdrawal(order, who, reason):
        raise NotPossible("the withdrawal moved on just now")


def mark_paid(order: Order, *, amount: int | None = None, reference: str = "", who: str = "operator") -> bool:
    """An operator saw the money come (deposit) or sent it (withdrawal), on a channel that works by hand.

    Args:
        amount: what came or went, in fen; the order's amount where None.

    Returns: False where this was on record already.

    Raises:
        NotPossible: the channel speaks for itself, or the withdrawal is not accepted yet.
    """
    if not driver_of(order.channel).by_hand:
        raise NotPossible(f"channel {order.channel_id} reports payments itself")
    if not order.is_buy and order.status == PENDING:
        raise NotPossible("accept the withdrawal first")
    report = Report(State.PAID, order.amount if amount is None else amount, reference)
    if order.is_buy and not reference and _is_other_money(order, report.amount):
        raise NotPossible("money without a reference is on record already: name this one with --reference")
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
    driver, payout = driver_of(order.channel), payout_of(order)
    report = ask(driver.query_payout, payout) if order.asks > 1 else Report(State.ABSENT)
    if report.state is not State.ABSENT:
        return report
    try:
        # The same order number again is the same payout upstream, so a crash here pays nothing twice.
        return ask(driver.pay_out, payout)
    except ChannelRefused as refusal:
        return Report(State.FAILED, detail=f"refused: {refusal}")
