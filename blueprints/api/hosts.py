"""The Host header: one valid value in each request and, in demo mode, one that is safe from DNS rebinding."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, request
from werkzeug.sansio.utils import host_is_trusted

from net.ip_addresses import address_of
from runtime.state import current
from services.errors import N_, ApiError, Code

log = logging.getLogger(__name__)

_WRONG_HOST = "orders.wrong_host"  # in the environ: the refused Host header


@lru_cache(maxsize=256)
def _is_valid(host: str) -> bool:
    try:
        host.partition(":")[0].encode("idna")  # rejects labels that are empty or longer than 63 characters
    except UnicodeError:
        return False
    return host_is_trusted(host)


class ValidHosts:
    """The application, for requests with one valid Host header; `refusing` handles all others.

    Without a valid host, Werkzeug can neither route a request nor build addresses. HTTP/1.0 requires no Host header.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]], refusing: Callable[..., Iterable[bytes]]):
        self._application, self._refusing = application, refusing

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        given = environ.get("HTTP_HOST")
        if _is_valid(given) if given is not None else environ["SERVER_PROTOCOL"] != "HTTP/1.1":
            return self._application(environ, start_response)
        environ[_WRONG_HOST], environ["HTTP_HOST"] = given or "", "invalid"
        return self._refusing(environ, start_response)


def _is_safe(host: str) -> bool:
    """Return whether this Host is safe from DNS rebinding: the service's own name, an address, or a name without a dot.

    The demo's keys are public and its callbacks may have private addresses. A page of a foreign domain that resolves
    to this machine must therefore not reach the demo. Such a domain always has a dot.
    """
    chosen = current().settings
    name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    own = {chosen.host.lower(), urlsplit(chosen.public_url).hostname, "localhost"}
    return name in own or name.endswith(".localhost") or "." not in name or address_of(name) is not None


def _check() -> None:
    given = request.environ.get(_WRONG_HOST)
    if given is not None:
        log.info("Rejected a request from %s: invalid Host header %r", request.remote_addr, given[:100])
        raise ApiError(Code.MALFORMED_REQUEST, detail=N_("exactly one valid Host header is required"))
    if current().settings.demo and not _is_safe(request.host):
        raise ApiError(
            Code.MALFORMED_REQUEST, detail=N_("unknown Host in demo mode: set site_url, or use an IP address")
        )


def init(app: Flask) -> None:
    """Check the Host header of every request of this app. Refused ones get 40000."""
    app.before_request(_check)
