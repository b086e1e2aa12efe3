"""HTTP exchanges with a deadline and a limit of bytes. Private addresses are called only if allowed.

urllib3 documents no hook for the moment between the look-up of a name and the connection, so `Guarded` overrides the
method that connects. No library checks the address that it then calls, or limits the bytes before a response.
"""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from net.ip_addresses import is_public
from runtime import settings

USER_AGENT = f"Tillbook/{settings.VERSION}"
MOST = 32 * 1024  # bytes of one response: interim responses, its head, and the start of its body


class _Meter(io.RawIOBase):
    """The bytes from a socket, up to MOST."""

    def __init__(self, carrier: io.RawIOBase):
        self._carrier, self._left = carrier, MOST

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read into a buffer. Raises OSError after MOST bytes."""
        if self._left <= 0:
            raise OSError(f"the response is longer than {MOST} bytes")
        got: int | None = self._carrier.readinto(buffer)
        self._left -= got or 0
        return got

    def close(self) -> None:
        """Release the socket."""
        self._carrier.close()
        super().close()


class _Metered:
    """Replaces the socket where the reader of the response is created."""

    def __init__(self, carrier: socket.socket):
        self._carrier = carrier

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(_Meter(self._carrier.makefile("rb", buffering=0)))


class MeteredResponse(HTTPResponse):
    """A response with a limit of bytes: Python's own reads interim responses and trailers endlessly, which uses the
    CPU."""

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any):
        super().__init__(_Metered(sock), *arguments, **named)  # type: ignore[arg-type]


log = logging.getLogger(__name__)

_local = threading.local()


class _Watchdog:
    """One thread for all deadlines: a timer thread for each would cost more than the exchange itself."""

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
                except RuntimeError as error:  # the next deadline tries again, for all of them
                    log.warning("Deadlines are not enforced for now: %s", error)

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
    """Ends this thread's exchange after `seconds`, however slowly the other side sends."""

    def __init__(self, seconds: float):
        self.at = time.monotonic() + seconds
        self._connection: Any = None
        self._socket: socket.socket | None = None

    def watch(self, connection: Any) -> None:
        """End this connection at the deadline; it releases its socket while the response is still being read."""
        self._connection, self._socket = connection, connection.sock
        # There was no socket to shut down while it connected, and the watchdog checks only once.
        if time.monotonic() >= self.at:
            self.cut()

    def cut(self) -> None:
        """Shut the connection down."""
        carrier = self._socket or (self._connection and self._connection.sock)
        if carrier:
            with contextlib.suppress(OSError):  # it has ended already
                carrier.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Deadline:
        _local.deadline = self
        _watchdog.add(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _watchdog.remove(self)
        _local.deadline = None


def deadline() -> Deadline | None:
    """Return the deadline of this thread's exchange, or None."""
    return getattr(_local, "deadline", None)


def _connected(found: list[Any], give_up: float) -> socket.socket:
    """Connect to one of the resolved addresses, before `give_up` (monotonic time).

    Each address gets a share of the remaining time, so a dead one leaves some for the next.

    Raises:
        OSError.
    """
    failed = OSError("the name has no address")
    for others, (family, kind, protocol, _, address) in zip(reversed(range(len(found))), found, strict=True):
        left = give_up - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        carrier = None
        try:
            carrier = socket.socket(family, kind, protocol)  # fails for IPv6 on machines without it
            carrier.settimeout(left / (others + 1))
            carrier.connect(address)
            return carrier
        except OSError as error:
            if carrier:
                carrier.close()
            failed = error
    raise failed


class AddressRefused(ValueError):
    """The name resolves to an address that the service must not call."""


def connect(host: str, port: int, give_up: float, *, private_allowed: bool) -> socket.socket:
    """Connect to a host before `give_up` (monotonic time). Raises OSError, ValueError for the name, or AddressRefused.

    The name is resolved once, and the checked addresses are the ones that are called, so a later response of a name
    server has no effect. One address that is not public is enough to refuse the name, unless private ones are allowed.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for *_, (address, *_) in found:
        if not private_allowed and not is_public(str(address)):
            raise AddressRefused(f"{address} is not a public address")
    return _connected(found, give_up)


class Guarded:
    """A urllib3 connection with the thread's deadline and a limit on the response.

    It calls public addresses only, unless private ones are allowed.
    """

    response_class = MeteredResponse
    private_allowed = False

    def _new_conn(self: Any) -> socket.socket:
        """Connect, through the proxy if one is set. Raises as `connect` does."""
        limit, give_up = deadline(), time.monotonic() + self.timeout
        if limit:
            limit.watch(self)  # a proxy responds before any request is sent
            give_up = min(give_up, limit.at)
        # A proxy's IPv6 address still has its brackets.
        host = self._dns_host.strip("[]")
        carrier = connect(host, self.port, give_up, private_allowed=self.private_allowed)
        for option in self.socket_options or ():
            carrier.setsockopt(*option)
        carrier.settimeout(max(0.001, give_up - time.monotonic()))  # for the TLS handshake
        return carrier

    def request(self, *arguments: Any, **named: Any) -> None:
        """Send a request under the thread's deadline."""
        limit = deadline()
        if limit:
            limit.watch(self)
        super().request(*arguments, **named)  # type: ignore[misc]
        if limit:
            limit.watch(self)


def pools(kind: type[Guarded], **facts: Any) -> dict[str, Any]:
    """Return pools of such connections by scheme, for `pool_classes_by_scheme` of a pool manager."""
    made = {}
    for scheme, pool, connection in (
        ("http", HTTPConnectionPool, HTTPConnection),
        ("https", HTTPSConnectionPool, HTTPSConnection),
    ):
        made[scheme] = type("Pool", (pool,), {"ConnectionCls": type("Connection", (kind, connection), facts)})
    return made


POOLS = {private_allowed: pools(Guarded, private_allowed=private_allowed) for private_allowed in (False, True)}


@contextlib.contextmanager
def exchange(
    method: str, url: str, body: bytes, headers: dict[str, str], *, seconds: float, private_allowed: bool
) -> Iterator[requests.Response]:
    """Send a request to an address that a merchant or an operator chose; yield the response with an unread body.

    An adapter alone keeps no cookies, follows no redirect and ignores .netrc and proxies; a session around it would
    double the cost of a call. Each thread has its own adapters, with its open connections.

    Args:
        seconds: for the whole exchange.
        private_allowed: otherwise only public addresses are called (net/ip_addresses.py).

    Raises:
        AddressRefused, requests.RequestException, ValueError: no response, or no usable address.
    """
    request = requests.Request(method, url, {**headers, "User-Agent": USER_AGENT}, data=body or None).prepare()
    if urlsplit(str(request.url)).scheme.lower() not in POOLS[private_allowed]:
        raise requests.exceptions.InvalidSchema("no http or https address")
    adapters = _local.__dict__.setdefault("adapters", {})
    if private_allowed not in adapters:
        adapters[private_allowed] = HTTPAdapter(pool_connections=4, pool_maxsize=1)
        adapters[private_allowed].poolmanager.pool_classes_by_scheme = POOLS[private_allowed]
    with (
        Deadline(seconds),
        adapters[private_allowed].send(request, stream=True, timeout=(seconds, seconds)) as response,
    ):
        yield response
