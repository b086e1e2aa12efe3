"""Fixtures: the server in this process with a test's own application and short limits; raw clients."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from serving import http_server
from serving.http_server import Server
from tests.databases import copied
from tests.support import Service, free_port, until


class Raw:
    """A TCP connection for raw bytes; `answer()` returns the bytes until the response is complete or the end."""

    def __init__(self, port: int, buffer: int = 0):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(30)
        self.socket.connect(("127.0.0.1", port))

    def send(self, data: bytes) -> Raw:
        self.socket.sendall(data)
        return self

    def answer(self) -> bytes:
        """Read one response; empty if the connection was closed without one."""
        got = b""
        while not (b"\r\n\r\n" in got and len(got.partition(b"\r\n\r\n")[2]) >= _length(got)):
            try:
                more = self.socket.recv(65_536)
            except ConnectionResetError:
                break
            if not more:
                break
            got += more
        return got

    def has_answer(self) -> bool:
        """Return whether a response has begun."""
        self.socket.setblocking(False)
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self.socket.settimeout(30)

    def is_closed(self) -> bool:
        """Return whether the other side has closed it, or does so within half a minute."""
        try:
            while self.socket.recv(65_536):
                pass
        except ConnectionResetError:
            pass
        return True


def _length(answer: bytes) -> int:
    head = answer.partition(b"\r\n\r\n")[0].lower()
    return int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)


@pytest.fixture
def raw() -> Iterator[Any]:
    """`raw(port)`: a connection."""
    with ExitStack() as opened:

        def connect(port: int, buffer: int = 0) -> Raw:
            made = Raw(port, buffer)
            opened.callback(made.socket.close)
            return made

        yield connect


@pytest.fixture(scope="module")
def running(slow: None, seeded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service in a process of its own, one for the module, which takes any number of requests."""
    folder = copied(seeded, tmp_path_factory.mktemp("server") / "instance")
    service = Service(folder, ORDERS_REQUESTS_PER_SECOND="1000000").start()
    yield service
    service.stop()


class Busy:
    """A WSGI application that keeps each request to /wait until `go` is set; `inside` counts them.

    A request to /end asks the whole process to end.
    """

    def __init__(self) -> None:
        self.go, self.inside, self._lock = threading.Event(), 0, threading.Lock()

    def _count(self, change: int) -> None:
        with self._lock:
            self.inside += change

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if environ["PATH_INFO"] == "/wait":
            self._count(1)
            assert self.go.wait(30)
            self._count(-1)
        if environ["PATH_INFO"] == "/end":
            raise SystemExit(3)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [repr(sorted((k, v) for k, v in environ.items() if isinstance(v, str))).encode()]


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time limits that a test can wait for."""
    monkeypatch.setattr(http_server, "BODY_SECONDS", 1.0)
    monkeypatch.setattr(http_server, "LONGEST_WAIT", 1.0)
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 2)


@pytest.fixture
def busy() -> Busy:
    return Busy()


def listens(host: str, port: int) -> bool:
    """Return whether a server accepts connections there."""
    try:
        socket.create_connection((host, port)).close()
    except OSError:
        return False
    return True


@pytest.fixture
def servers() -> dict[int, Server]:
    """The servers that `serve` started, by port."""
    return {}


@pytest.fixture
def serve(slow: None, busy: Busy, servers: dict[int, Server]) -> Iterator[Any]:
    """`serve(threads=2, waiting=3)`: the port of a server with `busy`, or another application."""
    ended: list[tuple[threading.Event, threading.Thread]] = []

    def start(threads: int = 2, waiting: int = 3, application: Any = busy, host: str = "127.0.0.1", **more: Any) -> int:
        port, asked = free_port(), threading.Event()
        made = Server(application, host, port, threads=threads, waiting=waiting, body_limit=1000, **more)
        running = threading.Thread(target=made.run, args=[asked])
        running.start()
        until(lambda: listens(host, port))
        ended.append((asked, running))
        servers[port] = made
        return port

    yield start
    busy.go.set()
    for asked, running in ended:
        asked.set()
        running.join(40)
        assert not running.is_alive()


@pytest.fixture
def kept_busy(busy: Busy, raw: Any) -> Any:
    """`kept_busy(busy, 2)`: connections whose requests are in progress until `busy.go` is set."""

    def ask(port: int, count: int) -> list[Raw]:
        asking = [raw(port).send(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(count)]
        until(lambda: busy.inside == count)
        return asking

    return ask
