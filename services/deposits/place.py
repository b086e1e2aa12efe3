"""Create deposits. Each is committed before its channel is called, with its nonce and history."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from gateways.base import ChannelRefused, ChannelUnknown, Driver, Opened
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.epay import EpayOrder
from models.tables.order import CANCELLED, PENDING, Order
from runtime import clock
from runtime.state import current
from services.channels import groups, health
from services.channels.bulkhead import Busy, channel_slot
from services.channels.calls import call_driver, driver_for, driver_of
from services.deposits import attempts
from services.errors import N_, ApiError, Code
from services.ledger import fees
from services.merchants.cache import Member
from services.orders import lifecycle
from services.orders.lifecycle import exceptions_of
from services.orders.new import MERCHANT, New, Placed, Source, insert, note_of, prepared
from services.orders.reasons import Why, because
from services.security import replay, vault
from services.security.replay import Call

NO_MEMBER = N_("No channel of the group can take the order now.")


def place(call: Call, channel: Channel, wanted: dict[str, Any], source: Source = MERCHANT) -> Placed:
    """Create a deposit and open it at the channel, unless that happens when the page is viewed (docs/orders.md).

    A group passes it on to a member. If nothing was sent to that one, or it refuses, the next member gets the order.

    Args:
        wanted: the loaded fields; `cny_amount` in fen.

    Raises:
        ApiError: Code.CHANNEL_FAILED, the channel refused and the order is cancelled; Code.SERVICE_UNAVAILABLE, no
            member of the group can take it now; or a code of `replay`.
    """
    order, began = _inserted(call, channel, wanted, source), clock.steady()
    was_called = was_passed_on = False
    while _is_opened_now(driver_for(order)):
        was_called = True
        try:
            with channel_slot(order.channel_id):
                opened = call_driver(driver_for(order).open_payment, attempts.payment_now(order))
        except (ChannelRefused, ChannelUnknown) as failure:
            if clock.steady() - began > attempts.PATIENCE or not attempts.pass_on(order, failure):
                _not_opened(call, order, failure, was_passed_on)
                return Placed(order)
            was_passed_on = True
        else:
            _opened(call, order, opened, was_passed_on)
            return Placed(order)
    if was_called:
        replay.finish(call, 1)
    return Placed(order)


def _is_opened_now(driver: Driver) -> bool:
    return not (driver.opens_locally or driver.opens_on_view)


def _inserted(call: Call, channel: Channel, wanted: dict[str, Any], source: Source) -> Order:
    """Insert the order of a channel, or that of the first member of a group that can take it."""
    if not channel.is_group:
        return insert(_new(call, channel, wanted, source))
    left_out: list[tuple[Member, str]] = []

    def bind(order: Order) -> None:
        attempts.note_left_out(order, left_out)
        if source.bind:
            source.bind(order)

    passed_on = replace(source, bind=bind)
    for member in groups.choices(channel, wanted["paychannel_paymethod"], wanted["cny_amount"], left_out):
        with suppress(groups.NoRoom):
            return insert(_new(call, member.channel, wanted, passed_on, member))
    raise ApiError(Code.SERVICE_UNAVAILABLE, detail=NO_MEMBER, retry_after=groups.LATER)


def _new(call: Call, channel: Channel, wanted: dict[str, Any], source: Source, member: Member | None = None) -> New:
    expires_at = source.expires_at or clock.now() + current().settings.buy_expiry
    driver, name = driver_of(channel), wanted.get("customer_name")
    return prepared(
        source,
        call,
        channel,
        wanted,
        fees.quote_buy(wanted["cny_amount"], call.merchant, channel, wanted["paychannel_paymethod"]),
        outcome=None if _is_opened_now(driver) else 1,
        member=member,
        customer_name=vault.encrypt(name) if name else "",
        expires_at=expires_at,
        opens_on_view=driver.opens_on_view,
        due_at=attempts.first_act(driver, expires_at),
    )


def _not_opened(call: Call, order: Order, failure: ChannelRefused | ChannelUnknown, was_passed_on: bool) -> None:
    """Cancel an order that the channel refused; otherwise it may be open there, so that its status is checked soon.

    Raises:
        ApiError: Code.CHANNEL_FAILED, it is cancelled.
    """
    if isinstance(failure, ChannelRefused):
        _refused(call, order, failure, was_passed_on)
        raise ApiError(Code.CHANNEL_FAILED, {"order_no": order.order_no}) from failure
    lifecycle.outcome_unknown(order, str(failure), ask_again=clock.now())
    _finish(call, order, None if isinstance(failure, Busy) else str(failure))


@transaction
def _refused(call: Call, order: Order, refusal: ChannelRefused, was_passed_on: bool) -> None:
    again_at = attempts.checked_again_at(order)
    lifecycle.transition(order, CANCELLED, "channel", because(Why.REFUSED, text=str(refusal)), due_at=again_at)
    _finish(call, order, None if was_passed_on else str(refusal), Code.CHANNEL_FAILED)


@transaction
def _opened(call: Call, order: Order, opened: Opened, was_passed_on: bool) -> None:
    _keep(order, opened)
    _finish(call, order, "")
    if was_passed_on:
        attempts.blame_refusals(order)


@transaction
def _finish(call: Call, order: Order, why: str | None, outcome: int = 1) -> None:
    """Store the code of the response, and how the channel responded: `why` it failed, or ""; None proves nothing."""
    replay.finish(call, outcome)
    if why is not None:
        health.record(order.channel_id, order.payment_method, why)


def _keep(order: Order, opened: Opened) -> None:
    order.opened = json.dumps(asdict(opened))
    Order.update(opened=order.opened).where(Order.id == order.id).execute()


def open_again(order: Order) -> bool:
    """Open a pending deposit whose first call to the channel had no response or was never made; False for any other.

    Raises:
        ChannelUnknown: no usable response, or a refusal, which may mean that it is open already, or paid.
    """
    driver = driver_for(order)
    if order.group_id and attempts.is_older_than_restore(order):
        return False  # it may be open at a member that the restored database does not know
    if order.opened or driver.opens_locally or order.status != PENDING or attempts.is_opened_on_view(order, driver):
        return False
    try:
        opened = call_driver(driver.open_payment, attempts.payment_now(order))
    except ChannelRefused as refusal:
        raise ChannelUnknown(f"refused when it was opened again: {refusal}") from refusal
    _opened_again(order, opened)
    return True


@transaction
def _opened_again(order: Order, opened: Opened) -> None:
    _keep(order, opened)
    lifecycle.outcome_known(exceptions_of(order))


def personal_data(order: Order) -> dict[str, Any]:
    """Return a deposit's personal data, decrypted for an operator: the customer's name, the notes."""
    name, payment = vault.decrypt(order.customer_name) if order.customer_name else "", EpayOrder.of_order(order.id)
    notes = {"note": note_of(order), "param": payment.param if payment else ""}
    return {"customer_name": name} | {label: value for label, value in notes.items() if value}
