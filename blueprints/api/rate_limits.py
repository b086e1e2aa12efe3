"""Checks of every request before anything else: its Host header and the rate of its address."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, request
from werkzeug.sansio.utils import host_is_trusted

from gateways.ip_addresses import address_of
from runtime import Part, current
from services.errors import N_, ApiError, Code
from services.platform import rate_limits
from services.platform.rate_limits import Rate

log = logging.getLogger(__name__)

_ONE_CALLER = 64  # bits of an IPv6 address; one caller has all addresses with the same beginning
_ONE_SITE = 48
STRANGERS_FORM = 4 * 1024  # bytes of a form that anybody may send: to read 64 KiB of fields takes 50 ms
_WRONG_HOST = "orders.wrong_host"  # in the environ: the Host header that was refused
_rate = Part(lambda: Rate(current().settings.requests_per_address, seconds=1))


@lru_cache(maxsize=256)
def _is_host(text: str) -> bool:
    try:
        text.partition(":")[0].encode("idna")  # labels of 1 to 63 characters
    except UnicodeError:
        return False
    return host_is_trusted(text)


def _is_known(host: str) -> bool:
    """Whether a foreign domain can't lead here under this name.

    The demo's keys are published and its callbacks may go to private addresses, so a page of a domain that is made to
    resolve to this machine (DNS rebinding) must not reach it. That takes a public domain: a name with a dot.
    """
    chosen = current().settings
    name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    own = {chosen.host.lower(), urlsplit(chosen.public_url).hostname, "localhost"}
    return name in own or name.endswith(".localhost") or "." not in name or address_of(name) is not None


class ValidHosts:
    """The application, for requests with one valid Host header; `refusing` answers all others, with 400.

    Werkzeug can neither route a request without a valid host nor build an address for it. HTTP/1.0 needs none.
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
    """The /48 of an IPv6 address, which one site has whole; empty for IPv4."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return ""
    wide = ip.version == 6 and not ip.is_loopback and not getattr(ip, "ipv4_mapped", None)
    return str(ipaddress.ip_network((int(ip), _ONE_SITE), strict=False)) if wide else ""


@lru_cache(maxsize=4096)
def caller(address: str) -> str:
    """The caller that an address counts for: an IPv4 one itself, an IPv6 one its /64; empty for this machine."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # a proxy's word for it
        return address[:64]
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.is_loopback:
        return ""
    return str(ip) if ip.version == 4 else str(ipaddress.ip_network((int(ip), _ONE_CALLER), strict=False))


def check() -> None:
    """Count a request of its address and check its Host. Raises ApiError TOO_MANY_REQUESTS or MALFORMED_REQUEST."""
    who = caller(request.remote_addr or "")
    if who and not _rate().hit(who):
        raise ApiError(Code.TOO_MANY_REQUESTS, retry_after=_rate().retry_after(who))
    _check_host()
    if "HTTP_X_FORWARDED_FOR" in request.environ:
        rate_limits.notice(request.remote_addr or "")


def init(app: Flask) -> None:
    """Count the app's requests from now on."""
    app.before_request(check)
