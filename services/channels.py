"""Channels as the services use them: the driver behind a row, and the values that are handed to it."""

from __future__ import annotations

import json
from functools import lru_cache

import gateways
import settings
from gateways.base import Driver, Payment, Payout
from models.channel import Channel
from models.merchant import Merchant
from models.order import Order
from services import vault
from services.errors import Refused


@lru_cache(maxsize=256)
def _build(name: str, sealed_config: str) -> Driver:
    return gateways.build(name, json.loads(vault.unseal(sealed_config)))


def driver_of(channel: Channel) -> Driver:
    """The channel's driver; made once for each state of its config."""
    return _build(channel.driver, channel.config)


def linked(merchant: Merchant, channel_id: int) -> Channel:
    """A channel that this merchant may use.

    Raises:
        Refused: 40403, it is not there, not enabled or not the merchant's: never distinguishable.
    """
    channel = Channel.linked_to(merchant).where(Channel.id == channel_id).first()
    if channel is None:
        raise Refused(40403)
    return channel


def pay_url(order_no: str) -> str:
    """The cashier's address for an order."""
    return f"{settings.active().public_url}/addons/paychannel/pay/index?order_no={order_no}"


def payment_of(order: Order) -> Payment:
    """A deposit as its driver needs to know it."""
    return Payment(
        order_no=order.order_no,
        amount=order.amount,
        method=order.payment_method,
        subject=f"Order {order.order_no}",
        notify_url=f"{settings.active().public_url}/addons/paychannel/notify/{order.order_no}",
        pay_url=pay_url(order.order_no),
        expires_at=order.expires_at or 0,
    )


def payout_of(order: Order) -> Payout:
    """A withdrawal as its driver needs to know it."""
    account = json.loads(vault.unseal(order.account.details))
    return Payout(order.order_no, order.amount, order.payment_method, account)
