"""HTTP that goes out to addresses others chose: no redirects, no proxies, no private targets, and an end to each."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

import settings
from services import addresses
from services.metered import MeteredResponse

log = logging.getLogger(__name__)

_local = threading.local()
USER_AGENT = f"merchant-orders/{settings.VERSION}"


class _Watchdog:
    """One thread for all deadlines: a timer thread for each would cost more than the exchange that it guards."""

    TICK = 0.25

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[Deadline] = set()
        self._thread: threading.Thread | None = None

    def add(self, deadline: Deadline) -> None:
        with self._lock:
            self._open.add(deadline)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                try:
                    thread.start()
                    self._thread = thread
                except RuntimeError as error:  # the next one that comes tries again, for all that are open
                    log.warning("nobody watches deadlines for now: %s", error)

    def remove(self, deadline: Deadline) -> None:
        with self._lock:
            self._open.discard(deadline)

    def _run(self) -> None:
        while True:
            time.sleep(self.TICK)
            now = time.monotonic()
            with self._lock:
                late = [deadline for deadline in self._open if deadline.at <= now]
                self._open.difference_update(late)
                if not self._open:
                    self._thread = None
            for deadline in late:
                deadline.cut()
            if self._thread is not threading.current_thread():
                return


_watchdog = _Watchdog()


class Deadline:
    """Cuts the connection of this thread's exchange after `seconds`, however slowly the other side drips."""

    def __init__(self, seconds: float):
        self.at = time.monotonic() + seconds
        self._connection: Any = None
        self._socket: socket.socket | None = None

    def watch(self, connection: Any) -> None:
        """From now on this is the connection to cut; it lets go of its socket while the answer is still read."""
        self._connection, self._socket = connection, connection.sock
        if time.monotonic() >= self.at:  # while it connected there was nothing to cut, and nobody looks again
            self.cut()

    def cut(self) -> None:
        """End the exchange."""
        carrier = self._socket or (self._connection and self._connection.sock)
        if carrier:
            with contextlib.suppress(OSError):  # it ended by itself meanwhile
                carrier.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Deadline:
        _local.deadline = self
        _watchdog.add(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _watchdog.remove(self)
        _local.deadline = None


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


class _Guarded:
    """A connection of urllib3's that goes nowhere private, and that the thread's deadline knows of."""

    private_allowed = False
    response_class = MeteredResponse

    def _new_conn(self: Any) -> socket.socket:
        deadline: Deadline | None = getattr(_local, "deadline", None)
        give_up = deadline.at if deadline else time.monotonic() + self.timeout
        carrier = _connected(self._dns_host, self.port, give_up, self.private_allowed)
        for option in self.socket_options or ():
            carrier.setsockopt(*option)
        carrier.settimeout(max(0.001, give_up - time.monotonic()))  # for the handshake of TLS
        return carrier

    def request(self, *arguments: Any, **named: Any) -> None:
        deadline: Deadline | None = getattr(_local, "deadline", None)
        if deadline:
            deadline.watch(self)
        super().request(*arguments, **named)  # type: ignore[misc]
        if deadline:
            deadline.watch(self)


def _pool(pool: Any, connection: Any, private_allowed: bool) -> Any:
    guarded = type("Connection", (_Guarded, connection), {"private_allowed": private_allowed})
    return type("Pool", (pool,), {"ConnectionCls": guarded})


POOLS = {
    private_allowed: {
        "http": _pool(HTTPConnectionPool, HTTPConnection, private_allowed),
        "https": _pool(HTTPSConnectionPool, HTTPSConnection, private_allowed),
    }
    for private_allowed in (False, True)
}


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
