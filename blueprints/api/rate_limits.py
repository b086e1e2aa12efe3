"""Rate limits: requests of an address, its failed authentications, and genuine requests of a merchant."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network

from flask import Flask, request

from models.tables.merchant import Merchant
from net.ip_addresses import address_of
from runtime.state import Part, current
from services.platform.rate_limits import Rate

_ONE_CALLER = 64  # prefix length of an IPv6 network that counts as one caller
_ONE_SITE = 48
STRANGERS_FORM = 4 * 1024  # bytes of a form that needs no session: parsing 64 KiB of fields takes 50 ms

_of_address = Part(lambda: Rate(current().settings.requests_per_address, seconds=1))
_refused = Part(lambda: Rate(current().settings.refused_per_minute, seconds=60))
_of_merchant = Part(lambda: Rate(current().settings.requests_per_second, seconds=1))


def network(address: str) -> str:
    """Return the /48 network of an IPv6 address, which belongs to one site; empty for IPv4."""
    ip = address_of(address)
    return _around(ip, _ONE_SITE) if isinstance(ip, IPv6Address) and not ip.is_loopback else ""


@lru_cache(maxsize=4096)
def caller(address: str) -> str:
    """Return what requests are counted by: the IPv4 address or the IPv6 /64 network; empty for this machine."""
    ip = address_of(address)
    if ip is None:
        return address
    if ip.is_loopback:
        return ""
    return _around(ip, _ONE_CALLER) if isinstance(ip, IPv6Address) else str(ip)


def _around(ip: IPv6Address, length: int) -> str:
    return str(IPv6Network((int(ip), length), strict=False))


def _count_address() -> None:
    if who := caller(request.remote_addr or ""):
        _of_address().count(who)


def init(app: Flask) -> None:
    """Count every request of this app by its address. Refused ones get 42900."""
    app.before_request(_count_address)


def check_refusals(address: str) -> None:
    """Refuse an address after too many failed authentications. Raises ApiError TOO_MANY_REQUESTS."""
    _refused().check(address)


def count_refusal(address: str) -> None:
    """Count a failed authentication."""
    _refused().hit(address)


def count_request(merchant: Merchant) -> None:
    """Count a genuine request. Raises ApiError TOO_MANY_REQUESTS."""
    _of_merchant().count(merchant.key)
