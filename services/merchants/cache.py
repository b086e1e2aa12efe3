"""A cache of merchants and channels, which is read again after a change.

Reading a merchant and its channels from the database takes as long as the rest of createOrder. A change in this
process (`forget`) takes effect immediately, one by another process within FRESH.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gateways.base import METHODS
from gateways.registry import DRIVERS
from models.db.compiled import Compiled, compiled_rows
from models.tables.channel import Channel, ChannelHealth, ChannelMember
from models.tables.epay import EpayAccount
from models.tables.merchant import Merchant, PaymentPage
from models.tables.order import Order
from models.tables.setup_version import current_version
from net.ip_addresses import Network, is_within, network_of
from runtime.state import Part

Range = tuple[int, int]  # fen: the least and the largest amount

FRESH = 0.02  # seconds between checks of the database for changes
_OF_PAGE = [column for column in PaymentPage._meta.sorted_fields if column is not PaymentPage.logo]


@dataclass(frozen=True)
class Known:
    """A merchant with the data that every request needs. The rows are shared and must not be changed.

    `channels` are those that it may use, `disabled` the ids of others that are linked to it. `epay`: its account at the
    epay gateway, enabled or not. `page`: its settings of the payment page, without the image of the logo.
    """

    merchant: Merchant
    networks: list[Network]
    channels: dict[int, Channel] = field(repr=False)
    disabled: frozenset[int]
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


@dataclass(frozen=True)
class Member:
    """A channel in a group, with its limits there. The rows are shared and must not be changed."""

    row: ChannelMember
    channel: Channel

    @cached_property
    def methods(self) -> list[str]:
        """The payment methods of the channel."""
        return self.channel.pay_methods

    @cached_property
    def by_hand(self) -> bool:
        """True for a manual channel."""
        return DRIVERS[self.channel.driver].by_hand

    @cached_property
    def weight(self) -> int:
        """Its share of the deposits, compared with the other members."""
        return int(self.row.weight)

    @cached_property
    def range(self) -> Range:
        """The amounts that the group passes on to it: none if the least is above the largest."""
        limits = (self.row.max_amount, self.row.daily_amount, self.channel.max_amount)
        least = max(int(self.row.min_amount or 1), int(self.channel.min_amount))
        return least, min(int(each) for each in limits if each is not None)


class _Directory:
    """The rows that were read at one setup version."""

    def __init__(self, number: int = -1) -> None:
        self.revision = number
        self.looked_at = time.monotonic()
        self.known: dict[Any, Known] = {}
        self.channels: dict[int, Channel] = {}
        self.members: dict[int, list[Member]] = {}
        self.ranges: dict[int, dict[str, list[Range]]] = {}
        self.health: dict[tuple[int, str], ChannelHealth] | None = None


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
    return Channel.linked_to(merchant_id)


@compiled_rows(ChannelMember)
def _members_of(group: int) -> Any:
    mine = ChannelMember.select().where(ChannelMember.group == group)
    return mine.order_by(ChannelMember.position, ChannelMember.id)


@compiled_rows(EpayAccount)
def _epay_of(merchant_id: int) -> Any:
    return EpayAccount.select().where(EpayAccount.merchant == merchant_id)


def _read(merchant: Merchant) -> Known:
    networks = [network_of(text) for text in merchant.allowed_addresses.split(",") if text]
    linked = [_with_methods(row) for row in _channels_of(merchant.id)]
    channels = {row.id: row for row in linked if row.enabled}
    disabled = frozenset(row.id for row in linked if not row.enabled)
    page = PaymentPage.select(*_OF_PAGE).where(PaymentPage.merchant == merchant).first()
    epay = _epay_of.first(merchant.id)
    return Known(merchant, networks, channels, disabled, epay, page or PaymentPage(merchant=merchant))


def _with_methods(channel: Channel) -> Channel:
    """Give a group the payment methods of its members, in the contract's order."""
    if channel.is_group:
        channel.pay_method = ",".join(ranges_of(channel.id))
    return channel


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
    return channel_with(order.channel_id)


def channel_with(number: int) -> Channel:
    """Return the channel with this id, which may be disabled."""
    channels = _up_to_date().channels
    found = channels.get(number)
    if found is None:
        found = channels[number] = _with_methods(_channel.first(number))
    return found


def members_of(group: int) -> list[Member]:
    """Return the members of a group in the order of their positions, with disabled ones."""
    members = _up_to_date().members
    found = members.get(group)
    if found is None:
        rows = list(_members_of(group))
        found = members[group] = [Member(row, channel_with(row.channel_id)) for row in rows]
    return found


def ranges_of(group: int) -> dict[str, list[Range]]:
    """Return the amounts that a group's members accept, by payment method, in the contract's order."""
    ranges = _up_to_date().ranges
    found = ranges.get(group)
    if found is None:
        members = members_of(group)
        by_method = {method: [each.range for each in members if method in each.methods] for method in METHODS}
        found = ranges[group] = {method: _joined(each) for method, each in by_method.items() if each}
    return found


def _joined(ranges: list[Range]) -> list[Range]:
    """Return the same amounts in as few ranges as possible, without empty ones."""
    joined: list[Range] = []
    for least, most in sorted(each for each in ranges if each[0] <= each[1]):
        if joined and least <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(most, joined[-1][1]))
        else:
            joined.append((least, most))
    return joined


def health_of(channel: int, method: str) -> ChannelHealth | None:
    """Return what is on record about failures of a channel's payment method; None if nothing is."""
    directory = _up_to_date()
    if directory.health is None:
        rows: Iterable[ChannelHealth] = ChannelHealth.select()
        directory.health = {(row.channel_id, row.method): row for row in rows}
    return directory.health.get((channel, method))
