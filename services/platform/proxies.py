"""Reverse proxies in front of the service: the address that they report, and a warning if the settings omit them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import ip_network
from typing import Any

from werkzeug.middleware.proxy_fix import ProxyFix

from net.ip_addresses import address_of, forwarded_address, is_within
from runtime.state import Part, current

log = logging.getLogger(__name__)

REMEDY = "set trusted_proxies to the number of proxies in front, or one caller's refused requests can block all others"

NEAR = tuple(  # where an operator's own proxy can be: this machine, a container's host, the local network
    ip_network(text) for text in ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)

_uncounted = Part(threading.Event)  # set once a request came through a proxy although trusted_proxies is 0


@lru_cache(maxsize=1024)
def _plain(peer: str) -> str:
    return str(address_of(peer) or peer)


def behind(application: Callable[..., Iterable[bytes]], trusted_proxies: int) -> Callable[..., Iterable[bytes]]:
    """Return the WSGI application, whose environ has the caller's address and scheme as trusted proxies report them.

    REMOTE_ADDR becomes a plain address, without port, brackets or zone: the one that the outermost of the trusted
    proxies appended to X-Forwarded-For. If that is not an address, it is the address of the proxy that is connected.
    Commas count even within quotes, which a caller may have opened.
    """

    def call(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        forwarded, address = environ.get("HTTP_X_FORWARDED_FOR"), None
        if forwarded is not None and trusted_proxies:
            appended = forwarded.split(",")
            address = forwarded_address(appended[-trusted_proxies]) if trusted_proxies <= len(appended) else None
        if address or "REMOTE_ADDR" in environ:
            environ["REMOTE_ADDR"] = str(address) if address else _plain(environ["REMOTE_ADDR"])
        is_unexpected = forwarded is not None and not trusted_proxies and not _uncounted().is_set()
        # Anybody may send the header; only a near address suggests a proxy.
        if is_unexpected and is_within(environ.get("REMOTE_ADDR", ""), NEAR):
            _uncounted().set()
            log.warning("%s", warning())
        return application(environ, start_response)

    return ProxyFix(call, x_for=0, x_proto=trusted_proxies)


def warning() -> str:
    """Return a sentence with the cause and the remedy; empty if nothing suggests an uncounted proxy."""
    chosen = current().settings
    if chosen.trusted_proxies:
        return ""
    if _uncounted().is_set():
        return f"requests arrive with X-Forwarded-For from a proxy nearby, but trusted_proxies is 0: {REMEDY}"
    if chosen.site_url.startswith("https:"):
        return f"site_url is https, which only a proxy in front can serve, but trusted_proxies is 0: {REMEDY}"
    return ""
