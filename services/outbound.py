"""HTTP that goes out to addresses others chose: no redirects, no proxies, no private targets, and an end to each."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests_hardened.ip_filter_adapter import IPFilterAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

import settings

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
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()

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


class _Watched:
    """Lets the thread's deadline know which connection carries its exchange."""

    def request(self, *arguments: Any, **named: Any) -> None:
        deadline: Deadline | None = getattr(_local, "deadline", None)
        if deadline:
            deadline.watch(self)
        super().request(*arguments, **named)  # type: ignore[misc]
        if deadline:
            deadline.watch(self)


class _Connection(_Watched, HTTPConnection):
    pass


class _SecureConnection(_Watched, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def _adapters(private_allowed: bool) -> dict[str, HTTPAdapter]:
    """This thread's adapters by scheme, with the connections that they keep open."""
    kept = _local.__dict__.setdefault("adapters", {})
    if private_allowed not in kept:
        kept[private_allowed] = {
            "http": HTTPAdapter() if private_allowed else IPFilterAdapter(is_https_proto=False),
            "https": HTTPAdapter() if private_allowed else IPFilterAdapter(is_https_proto=True),
        }
        for adapter in kept[private_allowed].values():
            adapter.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    return kept[private_allowed]


def post(url: str, body: bytes, headers: dict[str, str], *, timeout: float, private_allowed: bool) -> requests.Response:
    """POST to an address, and its answer with the body still to be read.

    An adapter alone keeps no cookies, follows no redirect and asks no proxy; a session around it would
    double the cost of a call.

    Args:
        timeout: seconds for connecting and for each read.
        private_allowed: else private, loopback and link-local addresses are refused when it connects,
            after the name was resolved.

    Raises:
        requests.RequestException, ValueError: no answer, or no usable address.
    """
    request = requests.Request("POST", url, {**headers, "User-Agent": USER_AGENT}, data=body).prepare()
    adapters = _adapters(private_allowed)
    scheme = urlsplit(str(request.url)).scheme.lower()
    if scheme not in adapters:
        raise requests.exceptions.InvalidSchema(f"no http or https address: {url}")
    return adapters[scheme].send(request, stream=True, timeout=(timeout, timeout))
