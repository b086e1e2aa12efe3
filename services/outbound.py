"""HTTP that goes out to addresses others chose: no redirects, no proxies, no private targets, and an end to each."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

import settings
from gateways.bounded import Bounded, deadline, pools
from services import addresses

_local = threading.local()
USER_AGENT = f"merchant-orders/{settings.VERSION}"


class AddressRefused(ValueError):
    """The name leads to an address that the service does not call for others."""


def _connected(host: str, port: int, give_up: float, private_allowed: bool) -> socket.socket:
    """A connection to an address of this name, made until `give_up` (monotonic).

    The name is looked up once, and what is checked is what is connected to: no later answer of a name server counts.
    One address that may not be called is enough to refuse the name.

    Raises:
        AddressRefused, OSError, UnicodeError.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for *_, address in found:
        if not private_allowed and not addresses.is_public(str(address[0])):
            raise AddressRefused(f"{address[0]} is not a public address")
    failed = OSError("the name has no address")
    for family, kind, protocol, _, address in found:
        left = give_up - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        carrier = None
        try:
            carrier = socket.socket(family, kind, protocol)  # fails for IPv6 where a machine has none
            carrier.settimeout(left)
            carrier.connect(address)
            return carrier
        except OSError as error:
            if carrier:
                carrier.close()
            failed = error
    raise failed


class _Guarded(Bounded):
    """A connection that goes nowhere private."""

    private_allowed = False

    def _new_conn(self: Any) -> socket.socket:
        limit = deadline()
        give_up = limit.at if limit else time.monotonic() + self.timeout
        carrier = _connected(self._dns_host, self.port, give_up, self.private_allowed)
        for option in self.socket_options or ():
            carrier.setsockopt(*option)
        carrier.settimeout(max(0.001, give_up - time.monotonic()))  # for the handshake of TLS
        return carrier


POOLS = {private_allowed: pools(_Guarded, private_allowed=private_allowed) for private_allowed in (False, True)}


def _adapter(private_allowed: bool) -> HTTPAdapter:
    """This thread's adapter, with the connections that it keeps open."""
    kept = _local.__dict__.setdefault("adapters", {})
    if private_allowed not in kept:
        kept[private_allowed] = HTTPAdapter(pool_connections=4, pool_maxsize=1)  # each of many threads has its own
        kept[private_allowed].poolmanager.pool_classes_by_scheme = POOLS[private_allowed]
    return kept[private_allowed]


def post(url: str, body: bytes, headers: dict[str, str], *, timeout: float, private_allowed: bool) -> requests.Response:
    """POST to an address, and its answer with the body still to be read.

    An adapter alone keeps no cookies, follows no redirect, reads no .netrc and asks no proxy; a session around
    it would double the cost of a call.

    Args:
        timeout: seconds for connecting and for each read.
        private_allowed: else only public addresses are called (services/addresses.py).

    Raises:
        AddressRefused, requests.RequestException, ValueError: no answer, or no usable address.
    """
    request = requests.Request("POST", url, {**headers, "User-Agent": USER_AGENT}, data=body).prepare()
    if urlsplit(str(request.url)).scheme.lower() not in POOLS[private_allowed]:
        raise requests.exceptions.InvalidSchema(f"no http or https address: {url}")
    return _adapter(private_allowed).send(request, stream=True, timeout=(timeout, timeout))
