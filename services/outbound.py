"""HTTP that goes out to addresses others chose: no redirects, no proxies, no private targets, and an end to each."""

from __future__ import annotations

import contextlib
import socket
import threading
from http.cookiejar import DefaultCookiePolicy
from typing import Any

from requests_hardened import Config, HTTPSession
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

import settings

_local = threading.local()


class Deadline:
    """Cuts the connection of this thread's exchange after `seconds`, however slowly the other side drips."""

    def __init__(self, seconds: float):
        self._connection: Any = None
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def watch(self, connection: Any) -> None:
        """From now on this is the connection to cut; it lets go of its socket while the answer is still read."""
        self._connection, self._socket = connection, connection.sock

    def _cut(self) -> None:
        carrier = self._socket or (self._connection and self._connection.sock)
        if carrier:
            with contextlib.suppress(OSError):  # it ended by itself meanwhile
                carrier.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Deadline:
        _local.deadline = self
        self._timer.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._timer.cancel()
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


def session(timeout: float, *, private_allowed: bool) -> HTTPSession:
    """This thread's session; `timeout` in seconds for connecting and for each read.

    Unless `private_allowed`, private, loopback and link-local addresses are refused when it
    connects, after the name was resolved.
    """
    kept = _local.__dict__.setdefault("sessions", {})
    if private_allowed not in kept:
        made = HTTPSession(
            Config(
                ip_filter_enable=not private_allowed,
                ip_filter_allow_loopback_ips=False,
                never_redirect=True,
                default_timeout=(timeout, timeout),
                user_agent_override=f"merchant-orders/{settings.VERSION}",
            )
        )
        made.trust_env = False
        made.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # merchants share the session
        for adapter in made.adapters.values():
            adapter.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
        kept[private_allowed] = made
    return kept[private_allowed]
