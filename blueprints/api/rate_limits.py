"""The first checks of every request: its Host header and the request rate of its address."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, request
from werkzeug.sansio.utils import host_is_trusted

from net.ip_addresses import address_of
from runtime.state import Part, current
from services.errors import N_, ApiError, Code
from services.platform import rate_limits
from services.platform.rate_limits import Rate

log = logging.getLogger(__name__)

_ONE_CALLER = 64  # prefix length of an IPv6 network that counts as one caller
_ONE_SITE = 48
STRANGERS_FORM = 4 * 1024  # bytes of a form that needs no session: parsing 64 KiB of fields takes 50 ms
_WRONG_HOST = "orders.wrong_host"  # in the environ: the refused Host header
_rate = Part(lambda: Rate(current().settings.requests_per_address, seconds=1))


@lru_cache(maxsize=256)
def _is_host(text: str) -> bool:
    try:
        text.partition(":")[0].encode("idna")  # rejects labels that are empty or longer than 63 characters
    except UnicodeError:
        return False
    return host_is_trusted(text)


def _is_known(host: str) -> bool:
    """Return whether this Host is safe from DNS rebinding: the service's own name, an address, or a name without a dot.

    The demo's keys are public and its callbacks may have private addresses. A page of a foreign domain that resolves
    to this machine must therefore not reach the demo. Such a domain always has a dot.
    """
    chosen = current().settings
    name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    own = {chosen.host.lower(), urlsplit(chosen.public_url).hostname, "localhost"}
    return name in own or name.endswith(".localhost") or "." not in name or address_of(name) is not None


class ValidHosts:
    """The application, for requests with one valid Host header; `refusing` handles all others.

    Without a valid host, Werkzeug can neither route a request nor build addresses. HTTP/1.0 requires no Host header.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]], refusing: Callable[..., Iterable[bytes]]):
        self._application, self._refusing = application, refusing

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        given = environ.get("HTTP_HOST")
        if _is_host(given) if given is not None else environ["SERVER_PROTOCOL"] != "HTTP/1.1":
            return self._application(environ, start_response)
        environ[_WRONG_HOST], environ["HTTP_HOST"] = given or "", "invalid"
        return self._refusing(environ, start_response)


def _check_host() -> None:
    given = request.environ.get(_WRONG_HOST)
    if given is not None:
        log.info("Rejected a request from %s: invalid Host header %r", request.remote_addr, given[:100])
        raise ApiError(Code.MALFORMED_REQUEST, detail=N_("exactly one valid Host header is required"))
    if current().settings.demo and not _is_known(request.host):
        raise ApiError(
            Code.MALFORMED_REQUEST, detail=N_("unknown Host in demo mode: set site_url, or use an IP address")
        )


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


def check() -> None:
    """Count the request and check its Host header. Raises ApiError TOO_MANY_REQUESTS or MALFORMED_REQUEST."""
    who = caller(request.remote_addr or "")
    if who:
        _rate().count(who)
    _check_host()
    if "HTTP_X_FORWARDED_FOR" in request.environ:
        rate_limits.notice(request.remote_addr or "")


def init(app: Flask) -> None:
    """Check every request of this app."""
    app.before_request(check)
