"""A warning that `trusted_proxies` is probably too low, so that all who come through a proxy count as one caller."""

from __future__ import annotations

import logging
import threading
from ipaddress import ip_network

import settings
from gateways.addresses import address_of

log = logging.getLogger(__name__)

REMEDY = "set trusted_proxies to the number of proxies in front, or one caller's refused requests can block all others"

NEAR = tuple(  # where a proxy of one's own is: this machine, a container's host, the local network
    ip_network(text) for text in ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)

_forwarded = threading.Event()  # a request came through a proxy that is not counted


def begin() -> None:
    """Forget what was seen."""
    _forwarded.clear()


def notice(address: str) -> None:
    """Take note of a request with X-Forwarded-For, and warn in the log once.

    Args:
        address: where it comes from. Anybody may send the header; only one from a near address suggests a proxy.
    """
    if settings.active().trusted_proxies or _forwarded.is_set():
        return
    source = address_of(address)
    if source is not None and any(source in network for network in NEAR):
        _forwarded.set()
        log.warning("%s", warning())


def warning() -> str:
    """One sentence with the cause and the remedy; empty if nothing suggests a proxy that is not counted."""
    chosen = settings.active()
    if chosen.trusted_proxies:
        return ""
    if _forwarded.is_set():
        return f"requests arrive with X-Forwarded-For from a proxy nearby, but trusted_proxies is 0: {REMEDY}"
    if chosen.site_url.startswith("https:"):
        return f"site_url is https, which only a proxy in front can serve, but trusted_proxies is 0: {REMEDY}"
    return ""
