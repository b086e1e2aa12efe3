"""How often an address may call, whatever it asks for."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from flask import Flask, request

import settings
from services.errors import Refused
from services.rates import Rate

_ONE_CALLER = 64  # bits of an IPv6 address; whoever has one has all that begin alike
_rate: list[Rate] = []


@lru_cache(maxsize=4096)
def caller(address: str) -> str:
    """Who an address counts as: an IPv4 address for itself, an IPv6 one for its /64; empty for this very machine."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # a proxy's word for it
        return address[:64]
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.is_loopback:
        return ""
    return str(ip) if ip.version == 4 else str(ipaddress.ip_network((int(ip), _ONE_CALLER), strict=False))


def check() -> None:
    """Count a request of its address. Raises Refused 42900."""
    who = caller(request.remote_addr or "")
    if who and not _rate[0].hit(who):
        raise Refused(42900, retry_after=_rate[0].retry_after(who))


def begin() -> None:
    """Count from nothing, by the settings' limit."""
    _rate[:] = [Rate(settings.active().requests_per_address, seconds=1)]


def init(app: Flask) -> None:
    """Count the app's requests from now on."""
    app.before_request(check)
