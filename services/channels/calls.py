"""The driver of a channel, and the values that it gets."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Any

from gateways import registry
from gateways.base import ChannelError, ChannelRefused, ChannelUnknown, Driver, Payment, Payout, RefundRequest
from models.db.base import database
from models.db.compiled import compiled
from models.tables.channel import Channel
from models.tables.order import Order
from models.tables.payout_account import PayoutAccount
from runtime.state import Part, current
from services.channels.order_numbers import payout_number
from services.merchants import cache
from services.platform.counted_metrics import counters
from services.security import vault

log = logging.getLogger(__name__)

FIRST_ASK = 60  # seconds after which the status of an unpaid deposit is first checked
LATE = (600, 3_600, 86_400)  # seconds after which a cancelled order that may still be paid is checked
ACCOUNT_FIELDS = ("bank", "sub_bank", "card_number", "real_name")
LONGEST_PAUSE = 300  # seconds between two status checks of an order that is open
LEASE = 45  # seconds that one act on an order, with at most three calls, may take before another worker tries


def _build(name: str, sealed_config: str) -> Driver:
    return registry.build(name, json.loads(vault.decrypt(sealed_config)))


_built = Part(lambda: lru_cache(maxsize=256)(_build))


def driver_of(channel: Channel) -> Driver:
    """Return the channel's driver; one instance for each version of its config."""
    return _built()(channel.driver, channel.config)


def driver_for(order: Order) -> Driver:
    """Return the driver of an order's channel, at most a moment old (services/merchants/cache.py)."""
    return driver_of(cache.channel_of(order))


@compiled
def _config(channel_id: int) -> Any:
    return database.relied_on(Channel.select(Channel.config).where(Channel.id == channel_id))


def lock_account(channel_id: int) -> str:
    """Lock the channel's config against changes until the caller's transaction ends; return it encrypted.

    Every act that sends an order to the channel calls this first. A change of the account then either sees the order
    and is refused, or the act sees the change.
    """
    return str(_config.first(channel_id).config)


def pause(asks: int, first: int = 1) -> int:
    """Return the seconds until the next status check: growing, with an upper limit."""
    return min(first * 2 ** min(asks, 20), LONGEST_PAUSE)


def call_driver(call: Callable[[Any], Any], about: Payment | Payout | RefundRequest | date) -> Any:
    """Call a driver, outside any transaction. Any error that the driver did not foresee is an unknown outcome, too."""
    try:
        result = call(about)
    except ChannelError as error:
        _count(call, "refused" if isinstance(error, ChannelRefused) else "unknown")
        raise
    except Exception as error:
        _count(call, "failed")
        log.exception("Driver failed on %s", about if isinstance(about, date) else f"order {about.order_no}")
        raise ChannelUnknown(f"the driver failed: {type(error).__name__}") from error
    _count(call, "answered")
    return result


def _count(call: Callable[[Any], Any], result: str) -> None:
    driver = getattr(call, "__self__", None)
    counters().called(getattr(driver, "name", "other"), getattr(call, "__name__", "other"), result)


def domain_file(name: str) -> str:
    """Return the text of a file with which an upstream verifies this service's domain; empty if no channel has it."""
    files = (driver_of(channel).domain_files for channel in Channel.select().where(Channel.enabled))
    return next((each[name] for each in files if name in each), "")


def pay_url(order_no: str) -> str:
    """Return the payment page's address for an order."""
    return f"{current().settings.public_url}/addons/paychannel/pay/index?order_no={order_no}"


def payment_of(order: Order) -> Payment:
    """Return a deposit in the form that drivers need."""
    return Payment(
        order_no=order.order_no,
        amount=order.amount,
        method=order.payment_method,
        subject=f"Order {order.order_no}",
        notify_url=f"{current().settings.public_url}/addons/paychannel/notify/{order.order_no}",
        pay_url=pay_url(order.order_no),
        expires_at=order.expires_at or 0,
    )


def payout_of(order: Order) -> Payout:
    """Return a withdrawal in the form that drivers need."""
    return Payout(order.order_no, payout_number(order), order.amount, order.payment_method, account_of(order))


def account_of(order: Order) -> dict[str, Any]:
    """Return the `account_details` of a withdrawal."""
    return account_details(PayoutAccount.details_of(order.account_id))


def account_details(sealed: str) -> dict[str, Any]:
    """Return the payout account of a withdrawal, decrypted; with empty values once it was erased."""
    return json.loads(vault.decrypt(sealed)) if sealed else dict.fromkeys(ACCOUNT_FIELDS, "")
