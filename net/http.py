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
    """The bytes from a socket, up to the limit of the thread's exchange."""

    def __init__(self, carrier: io.RawIOBase):
        self._carrier, self._most = carrier, limits().most
        self._left = self._most

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read into a buffer. Raises OSError after as many bytes as the limit."""
        if self._left <= 0:
            raise OSError(f"the response is longer than {self._most} bytes")
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
        self._open: set[Limits] = set()
        self._thread: threading.Thread | None = None

    def add(self, limits: Limits) -> None:
        with self._lock:
            self._open.add(limits)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                try:
                    thread.start()
                    self._thread = thread
                except RuntimeError as error:  # the next deadline tries again, for all of them
                    log.warning("Deadlines are not enforced for now: %s", error)

    def remove(self, limits: Limits) -> None:
        with self._lock:
            self._open.discard(limits)

    def _run(self) -> None:
        while True:
            time.sleep(self.TICK)
            now = time.monotonic()
            with self._lock:
                late = [limits for limits in self._open if limits.at <= now]
                self._open.difference_update(late)
                if not self._open:
                    self._thread = None
            for limits in late:
                limits.cut()
            if self._thread is not threading.current_thread():
                return


_watchdog = _Watchdog()


class Limits:
    """The limits of this thread's exchange. It ends after `seconds`, however slowly the other side sends."""

    def __init__(self, seconds: float, *, private_allowed: bool, most: int = MOST):
        """`private_allowed`: otherwise only public addresses are called (net/ip_addresses.py).

        `most`: the bytes of a response, with its head. `sent` becomes True before the first byte of the request itself
        is sent, after the connection, the proxy's consent and the TLS handshake.
        """
        self.at = time.monotonic() + seconds
        self.private_allowed, self.most, self.sent = private_allowed, most, False
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

    def __enter__(self) -> Limits:
        _local.limits = self
        _watchdog.add(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _watchdog.remove(self)
        del _local.limits


def limits() -> Limits:
    """Return the limits of this thread's exchange. Every call has some, so without them this is an AttributeError."""
    found: Limits = _local.limits
    return found


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
    """A urllib3 connection within the limits of the thread's exchange, and with one on the length of the response."""

    response_class: Any = MeteredResponse

    def _new_conn(self: Any) -> socket.socket:
        """Connect, through the proxy if one is set. Raises as `connect` does."""
        within = limits()
        within.watch(self)  # a proxy responds before any request is sent
        give_up = min(time.monotonic() + self.timeout, within.at)
        # A proxy's IPv6 address still has its brackets.
        host = self._dns_host.strip("[]")
        carrier = connect(host, self.port, give_up, private_allowed=within.private_allowed)
        for option in self.socket_options or ():
            carrier.setsockopt(*option)
        carrier.settimeout(max(0.001, give_up - time.monotonic()))  # for the TLS handshake
        return carrier

    def connect(self) -> None:
        """Connect. A request to the proxy for a connection does not count as sent."""
        try:
            super().connect()  # type: ignore[misc]
        finally:
            limits().sent = False

    def send(self: Any, data: Any) -> None:
        """Send a part of the request; connect before the first one."""
        if self.sock is None:
            self.connect()
        limits().sent = True
        super().send(data)  # type: ignore[misc]

    def request(self, *arguments: Any, **named: Any) -> None:
        """Send a request before the exchange must end."""
        limits().watch(self)
        super().request(*arguments, **named)  # type: ignore[misc]
        limits().watch(self)


class _Http(Guarded, HTTPConnection):
    pass


class _Https(Guarded, HTTPSConnection):
    pass


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https


POOLS = {"http": _HttpPool, "https": _HttpsPool}


class Adapter(HTTPAdapter):
    """requests' adapter with such connections.

    An adapter alone keeps no cookies, follows no redirect, and ignores .netrc and the proxy variables; a session around
    it would double the cost of a call.
    """

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        """Create the pools."""
        super().init_poolmanager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, proxy: Any, **named: Any) -> Any:
        """Return the pools behind a proxy."""
        manager = super().proxy_manager_for(proxy, **named)
        manager.pool_classes_by_scheme = POOLS
        return manager


@contextlib.contextmanager
def exchange(
    method: str, url: str, body: bytes, headers: dict[str, str], *, seconds: float, private_allowed: bool
) -> Iterator[requests.Response]:
    """Send a request to an address that a merchant or an operator chose; yield the response with an unread body.

    Each thread has its own adapters, with its open connections: one for public addresses, one for all.

    Args:
        seconds: for the whole exchange.
        private_allowed: otherwise only public addresses are called (net/ip_addresses.py).

    Raises:
        AddressRefused, requests.RequestException, ValueError: no response, or no usable address.
    """
    request = requests.Request(method, url, {**headers, "User-Agent": USER_AGENT}, data=body or None).prepare()
    if urlsplit(str(request.url)).scheme.lower() not in POOLS:
        raise requests.exceptions.InvalidSchema("no http or https address")
    adapters = _local.__dict__.setdefault("adapters", {})
    if private_allowed not in adapters:
        adapters[private_allowed] = Adapter(pool_connections=4, pool_maxsize=1)
    with (
        Limits(seconds, private_allowed=private_allowed),
        adapters[private_allowed].send(request, stream=True, timeout=(seconds, seconds)) as response,
    ):
        yield response
