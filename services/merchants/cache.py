"""A cache of merchants and channels, which is read again after a change.

Reading a merchant and its channels from the database takes as long as the rest of createOrder. A change in this
process (`forget`) takes effect immediately, one by another process within FRESH.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from models.db.compiled import Compiled, compiled_rows
from models.tables.channel import Channel
from models.tables.epay import EpayAccount
from models.tables.merchant import Merchant, PaymentPage
from models.tables.order import Order
from models.tables.setup_version import current_version
from net.ip_addresses import Network, is_within, network_of
from runtime.state import Part

FRESH = 0.02  # seconds between checks of the database for changes
_OF_PAGE = [column for column in PaymentPage._meta.sorted_fields if column is not PaymentPage.logo]


@dataclass(frozen=True)
class Known:
    """A merchant with the data that every request needs. The rows are shared and must not be changed.

    `epay`: its account at the epay gateway, enabled or not. `page`: its settings of the payment page, without the
    image of the logo.
    """

    merchant: Merchant
    networks: list[Network]
    channels: dict[int, Channel] = field(repr=False)
    epay: EpayAccount | None
    page: PaymentPage

    def allows(self, address: str | None) -> bool:
        """Return whether the merchant's list of addresses has this one, or is empty."""
        return not self.networks or is_within(address, self.networks)

    @property
    def account(self) -> EpayAccount:
        """The account at the epay gateway of a merchant that has one."""
        assert self.epay is not None
        return self.epay


class _Directory:
    """The rows that were read at one setup version."""

    def __init__(self, number: int = -1) -> None:
        self.revision = number
        self.looked_at = time.monotonic()
        self.known: dict[Any, Known] = {}
        self.channels: dict[int, Channel] = {}


class _Cache:
    """The newest directory, which is replaced as a whole, so that readers see a consistent state."""

    def __init__(self) -> None:
        self.newest = _Directory()


_cache = Part(_Cache)


def _up_to_date() -> _Directory:
    directory = _cache().newest
    if directory.revision < 0 or time.monotonic() - directory.looked_at > FRESH:
        looked_at, number = time.monotonic(), current_version()
        if number != directory.revision:
            directory = _cache().newest = _Directory(number)
        directory.looked_at = looked_at
    return directory


def forget() -> None:
    """Clear the cache after a change in this process, or after another database was opened."""
    _cache().newest = _Directory()


@compiled_rows(Merchant)
def _with_key(key: str) -> Any:
    return Merchant.select().where(Merchant.key == key, Merchant.enabled)


@compiled_rows(Merchant)
def _with_pid(pid: int) -> Any:
    own = EpayAccount.select(EpayAccount.merchant).where(EpayAccount.pid == pid, EpayAccount.enabled)
    return Merchant.select().where(Merchant.id.in_(own), Merchant.enabled)


@compiled_rows(Merchant)
def _with_id(merchant_id: int) -> Any:
    return Merchant.select().where(Merchant.id == merchant_id)


@compiled_rows(Channel)
def _channels_of(merchant_id: int) -> Any:
    return Channel.linked_to(merchant_id).where(Channel.enabled)


@compiled_rows(EpayAccount)
def _epay_of(merchant_id: int) -> Any:
    return EpayAccount.select().where(EpayAccount.merchant == merchant_id)


def _read(merchant: Merchant) -> Known:
    networks = [network_of(text) for text in merchant.allowed_addresses.split(",") if text]
    channels = {row.id: row for row in _channels_of(merchant.id)}
    page = PaymentPage.select(*_OF_PAGE).where(PaymentPage.merchant == merchant).first()
    return Known(merchant, networks, channels, _epay_of.first(merchant.id), page or PaymentPage(merchant=merchant))


def _find(name: Any, merchants: Compiled, value: str | int) -> Known | None:
    known = _up_to_date().known
    found = known.get(name)
    if found is None and (merchant := merchants.first(value)):
        found = known[name] = known[merchant.id] = _read(merchant)
    return found


def by_key(key: str) -> Known | None:
    """Return the enabled merchant with this API key, or None."""
    return _find(key, _with_key, key)


def by_pid(pid: int) -> Known | None:
    """Return the enabled merchant whose enabled account at the epay gateway has this number, or None."""
    return _find(("pid", pid), _with_pid, pid)


def by_id(merchant_id: int) -> Known:
    """Return the merchant with this id."""
    found = _find(merchant_id, _with_id, merchant_id)
    assert found is not None  # the database refuses to delete merchants with orders
    return found


@compiled_rows(Channel)
def _channel(channel_id: int) -> Any:
    return Channel.select().where(Channel.id == channel_id)


def channel_of(order: Order) -> Channel:
    """Return an order's channel, which may be disabled."""
    channels, number = _up_to_date().channels, order.channel_id
    found = channels.get(number)
    if found is None:
        found = channels[number] = _channel.first(number)
    return found
