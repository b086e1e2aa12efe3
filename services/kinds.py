"""The kinds of orders, and what can be done with an order whatever its kind.

Who does not care which kind an order is asks `of(order)`, as callers of channels ask `driver_of(channel)`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gateways.base import BadNotice, ChannelUnknown, Driver, Incoming, Notice, Report
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.order import BUY, CANCELLED, COMPLETED, OF_REFUNDS, SELL, Order, PaymentException
from runtime import clock
from services.channels.bulkhead import channel_slot
from services.channels.calls import LATE, driver_for, driver_of, pause
from services.channels.order_numbers import attempt_of, order_no_of
from services.deposits import attempts, claims
from services.deposits import expire as expire_deposit
from services.deposits import place as place_deposit
from services.deposits import resolve as resolve_deposit
from services.deposits import settle as settle_deposit
from services.errors import N_, OperatorError, refuse
from services.merchants import cache
from services.orders import lifecycle, next_step
from services.orders.lifecycle import Acted
from services.orders.new import Placed
from services.orders.reasons import ASKED, Reason, Why, because
from services.orders.resolution import ResolutionRule
from services.refunds import resolve as resolve_refund
from services.refunds import settle as settle_refund
from services.withdrawals import approve, send
from services.withdrawals import money as withdrawal_money
from services.withdrawals import place as place_withdrawal
from services.withdrawals import resolve as resolve_withdrawal
from services.withdrawals import settle as settle_withdrawal

log = logging.getLogger(__name__)

SILENT_FOR = 7 * 86_400  # seconds for which an ended order's status check is repeated if the channel does not respond


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a kind of order does; its own modules say how.

    - `place` creates one.
    - `advance` does what is due for a claimed order that has not ended, and returns what the channel reports and when
    to act again; None if nothing is left to do.
    - `ask` returns the channel's reports on it. Both raise ChannelUnknown.
    - `apply` applies a report: True if anything changed; `take_notice` a genuine notice.
    - `mark_paid` records an operator's confirmation that its money was received or sent, and `why_not_mark_paid`
    returns a reason against that, or "".
    - `rules` resolve its exceptions, in a state that `state_of` returns; `unfit` has the reasons why none fits.
    `asks_first`: whether the channel's status is checked before a decision on this exception; `check` does, and
    `is_as_checked` compares the order with the one that was checked.
    - `is_held`: it waits for a decision about its money.
    - `resume` makes it due again once the last exception that held it is closed.
    - `is_in_progress`: an ended one is still in progress at its channel, so it is checked until that ends.
    """

    place: Callable[..., Placed]
    advance: Callable[[Order], Acted | None]
    ask: Callable[[Order], list[Report]]
    apply: Callable[[Order, Report, str, Reason], bool]
    take_notice: Callable[[Order, Notice], None]
    why_not_mark_paid: Callable[[Order], str]
    mark_paid: Callable[..., bool]
    rules: tuple[ResolutionRule, ...]
    unfit: dict[str, str]
    state_of: Callable[[Order], Any]
    asks_first: Callable[[Order, PaymentException], bool]
    check: Callable[[Order, str, PaymentException], None]
    is_as_checked: Callable[[Order, Order], bool]
    is_held: Callable[[Order], bool]
    resume: Callable[[Order], None]
    is_in_progress: Callable[[Order], bool]
    personal_data: Callable[[Order], dict[str, Any]]


def _confirm(order: Order, *, in_file: bool = False, **given: Any) -> bool:
    """Confirm a deposit; no bank file has any."""
    return claims.confirm(order, **given)


DEPOSIT = Kind(
    place=place_deposit.place,
    advance=expire_deposit.advance,
    ask=attempts.reports_of,
    apply=settle_deposit.apply_report,
    take_notice=settle_deposit.take_notice,
    why_not_mark_paid=claims.why_not_confirm,
    mark_paid=_confirm,
    rules=(*resolve_refund.RULES, *resolve_deposit.RULES),
    unfit=resolve_deposit.UNFIT,
    state_of=lambda order: order.status,
    asks_first=lambda order, exception: exception.kind in OF_REFUNDS,
    check=resolve_refund.check,
    is_as_checked=lambda now, order: True,
    is_held=settle_deposit.is_held,
    resume=settle_deposit.hold_or_resume,
    is_in_progress=lambda order: False,
    personal_data=place_deposit.personal_data,
)
WITHDRAWAL = Kind(
    place=place_withdrawal.place,
    advance=approve.advance,
    ask=lambda order: [send.ask(order)],
    apply=settle_withdrawal.apply_report,
    take_notice=settle_withdrawal.take_notice,
    why_not_mark_paid=approve.why_not_mark_sent,
    mark_paid=approve.mark_sent,
    rules=resolve_withdrawal.RULES,
    unfit=resolve_withdrawal.UNFIT,
    state_of=withdrawal_money.state_of,
    asks_first=send.may_be_at_channel,
    check=resolve_withdrawal.check,
    is_as_checked=send.is_as_checked,
    is_held=next_step.is_held,
    resume=settle_withdrawal.resume,
    is_in_progress=withdrawal_money.is_in_progress,
    personal_data=lambda order: {"account": place_withdrawal.payee_of(order.account)},
)
KINDS = {BUY: DEPOSIT, SELL: WITHDRAWAL}


def of(order: Order) -> Kind:
    """Return the order's kind."""
    return KINDS[order.order_type]


def take_notice(order: Order, incoming: Incoming) -> Driver:
    """Verify a notice over its raw bytes and apply its report; return the driver of the channel that sent it.

    Raises:
        BadNotice: the order's channel can't have sent it, or does not confirm it.
    """
    channel, notice = _read(order, incoming)
    if notice.refund_no:
        settle_refund.take_notice(order, notice, channel.id)
    if notice.report is not None:
        if order.group_id:
            notice = replace(notice, report=replace(notice.report, channel=channel.id))
        of(order).take_notice(order, notice)
    return driver_of(channel)


def _read(order: Order, incoming: Incoming) -> tuple[Channel, Notice]:
    """Return a verified notice, and the channel that sent it: the order's, or one that its group tried before."""
    refused: BadNotice | None = None
    for channel in (cache.channel_of(order), *attempts.channels_before(order)):
        try:
            notice = driver_of(channel).read_notice(incoming)
            if order_no_of(notice.order_no) != order.order_no:
                raise BadNotice("it is about another order")
            # Two channels may have the same account.
            if order.group_id and not attempts.is_of(order, channel, attempt_of(notice.order_no)):
                raise BadNotice("it is about a payment at another channel")
        except BadNotice as error:
            refused = refused or error
        else:
            return channel, notice
    assert refused is not None
    raise refused


def advance(order: Order) -> bool:
    """Do what is due for a claimed order; return False if its channel gave no usable response."""
    try:
        if order.status in (COMPLETED, CANCELLED):
            order.set_due(_check_ended(order))
        elif acted := of(order).advance(order):
            _apply(order, acted)
    except ChannelUnknown as silence:
        lifecycle.outcome_unknown(order, str(silence), ask_again=clock.now() + pause(order.asks))
        return False
    return True


@transaction
def _apply(order: Order, acted: Acted) -> None:
    """Apply what the channel reported, and set the time of the next act."""
    for report in acted.reports:
        of(order).apply(order, report, "channel", acted.why)
    order.set_due(acted.again_at)  # has no effect if the order has changed since it was claimed


def _check_ended(order: Order) -> int | None:
    """Check whether an order that its channel could not close, or did not have, was carried out after all."""
    if not (attempts.can_be_checked(order) if order.is_buy else driver_for(order).checks_status):
        return None  # a notice, an operator or the bank's file reports what happens
    kind, now = of(order), clock.now()
    passed = now - order.updatetime
    try:
        reports = kind.ask(order)
    except ChannelUnknown as silence:
        log.info("Order %s (%s): status check without a usable response: %s", order.order_no, order.status, silence)
        if passed < SILENT_FOR or kind.is_in_progress(order):
            return now + LATE[1]
        _stop_checking(order, str(silence))
        return None
    for report in reports:
        kind.apply(order, report, "channel", ASKED)
    if kind.is_in_progress(order):
        return now + LATE[1]
    return next((order.updatetime + late for late in LATE if late > passed), None)


@transaction
def _stop_checking(order: Order, detail: str) -> None:
    """Open an exception: status checks have ended, and the order's outcome is unknown."""
    lifecycle.raise_silence(Order.for_update(order.id), because(Why.SILENT_AT_END, text=detail))


def why_not_ask(order: Order) -> str:
    """Return the reason not to check its status, or ""."""
    driver = driver_for(order)
    if driver.checks_status:
        return ""
    return f"channel {order.channel_id} {'is manual and ' if driver.by_hand else ''}has no status check"


def ask_now(order: Order, why: Reason) -> list[Report]:
    """Check an order's status at the channel, whatever its state, and apply the reports; return them.

    Raises:
        OperatorError: the channel has no status check, or gave no usable response.
    """
    refuse(why_not_ask(order))
    try:
        with channel_slot(order.channel_id):
            reports = of(order).ask(order)
    except ChannelUnknown as silence:
        raise OperatorError(N_("No valid response: %(why)s"), why=str(silence)) from silence
    for report in reports:
        of(order).apply(order, report, "channel", why)
    return reports


def expire(order: Order) -> None:
    """Expire an unpaid deposit now: check its status and close it at the channel first."""
    if expire_deposit.end_now(order):
        advance(Order.get_by_id(order.id))
