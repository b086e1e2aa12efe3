"""Create deposits. Each is committed before its channel is called, with its nonce and history."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from gateways.base import ChannelRefused, ChannelUnknown, Opened
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.epay import EpayOrder
from models.tables.order import CANCELLED, PENDING, Order
from runtime import clock
from runtime.state import current
from services.channels.bulkhead import channel_slot
from services.channels.calls import FIRST_ASK, call_driver, driver_for, driver_of, payment_of
from services.deposits import attempts
from services.errors import ApiError, Code
from services.ledger import fees
from services.orders import lifecycle
from services.orders.lifecycle import exceptions_of
from services.orders.new import MERCHANT, Placed, Source, insert, note_of, prepared
from services.orders.reasons import Why, because
from services.security import replay, vault
from services.security.replay import Call


def place(call: Call, channel: Channel, wanted: dict[str, Any], source: Source = MERCHANT) -> Placed:
    """Create a deposit and open it at the channel, unless that happens when the page is viewed (docs/orders.md).

    Args:
        wanted: the loaded fields; `cny_amount` in fen.

    Raises:
        ApiError: Code.CHANNEL_FAILED, the channel refused and the order is cancelled; or a code of `replay`.
    """
    now = clock.now()
    expires_at = source.expires_at or now + current().settings.buy_expiry
    driver = driver_of(channel)
    opens_now = not (driver.opens_locally or driver.opens_on_view)
    name = wanted.get("customer_name")
    quote = fees.quote_buy(wanted["cny_amount"], call.merchant, channel, wanted["paychannel_paymethod"])
    order = insert(
        prepared(
            source,
            call,
            channel,
            wanted,
            quote,
            outcome=None if opens_now else 1,
            customer_name=vault.encrypt(name) if name else "",
            expires_at=expires_at,
            opens_on_view=driver.opens_on_view,
            due_at=expires_at if driver.by_hand or driver.opens_on_view else min(now + FIRST_ASK, expires_at),
        )
    )
    if not opens_now:
        return Placed(order)
    try:
        with channel_slot(order.channel_id):
            opened = call_driver(driver.open_payment, payment_of(order))
    except ChannelRefused as refusal:
        _not_opened(call, order, refusal)
        raise ApiError(Code.CHANNEL_FAILED, {"order_no": order.order_no}) from refusal
    except ChannelUnknown as silence:
        # It may be open upstream: the order stays pending, and its status is checked soon.
        lifecycle.outcome_unknown(order, str(silence), ask_again=clock.now())
        replay.finish(call, 1)
    else:
        _opened(call, order, opened)
    return Placed(order)


@transaction
def _not_opened(call: Call, order: Order, refusal: ChannelRefused) -> None:
    lifecycle.transition(order, CANCELLED, "channel", because(Why.REFUSED, text=str(refusal)))
    replay.finish(call, Code.CHANNEL_FAILED)


@transaction
def _opened(call: Call, order: Order, opened: Opened) -> None:
    _keep(order, opened)
    replay.finish(call, 1)


def _keep(order: Order, opened: Opened) -> None:
    order.opened = json.dumps(asdict(opened))
    Order.update(opened=order.opened).where(Order.id == order.id).execute()


def open_again(order: Order) -> bool:
    """Open a pending deposit whose first call to the channel had no response or was never made; False for any other.

    Raises:
        ChannelUnknown: no usable response, or a refusal, which may mean that it is open already, or paid.
    """
    driver = driver_for(order)
    if order.opened or driver.opens_locally or order.status != PENDING or attempts.is_opened_on_view(order, driver):
        return False
    try:
        opened = call_driver(driver.open_payment, payment_of(order))
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
