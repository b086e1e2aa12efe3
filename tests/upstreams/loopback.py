"""The common part of the loopback upstreams: a real HTTP server, a record of calls, faults, generated keys."""

from __future__ import annotations

import contextlib
import re
import socket
import socketserver
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

from Cryptodome.PublicKey import RSA
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

SLOW = 1.5  # seconds; tests that use it make the driver less patient


@cache
def key_pair(name: str) -> tuple[str, str]:
    """A private and a public key as PEM; the same for the same name during the tests."""
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return private, public


@cache
def imported(pem: str) -> RSA.RsaKey:
    """A pycryptodome key, whose import takes 60 ms."""
    return RSA.import_key(pem)


class BareServer(socketserver.ThreadingTCPServer):
    """A server without a protocol: `serve` gets each connection after its first bytes, and the event `over`.

    `over` is set at the end of the context. A `serve` that continues until then stops when the client hangs up.
    """

    daemon_threads = True

    def __init__(self, serve: Callable[[socket.socket, threading.Event], Any], listens: bool = True):
        self.serve, self.listens, self.over = serve, listens, threading.Event()
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=[0.05], daemon=True).start()

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.shutdown()
        super().__exit__(*error)


class _Connection(socketserver.BaseRequestHandler):
    server: BareServer

    def handle(self) -> None:
        if self.server.listens:
            self.request.recv(64 * 1024)
        with contextlib.suppress(OSError):  # the client closed the connection
            self.server.serve(self.request, self.server.over)


@dataclass(frozen=True)
class Sent:
    """A notice in the form for the notify address: `query` is the text after the question mark."""

    method: str
    body: bytes
    headers: dict[str, str]
    query: str = ""

    def to(self, send: Callable[..., Any], order_no: str) -> Any:
        """Send it to the address of an order; return the response."""
        question = f"?{self.query}" if self.query else ""
        return send(self.method, f"/addons/paychannel/notify/{order_no}{question}", self.body, self.headers)


class Loopback:
    """Base class: a subclass implements a protocol in `answer`; `calls` are the received requests, in order.

    `fails("lost", "")`: the next calls have these faults, one each; later ones succeed.

    - `slow`: the response takes SLOW seconds
    - `unheard`: the connection is cut before the request has any effect
    - `lost`: the request has its effect, and then the connection is cut
    - `half`: the request has its effect, and half of the response is sent
    - `garbage`: the request has its effect, and the response does not follow the protocol
    - `broken`: status 500 with a page of HTML, and no effect
    """

    def __init__(self, server: HTTPServer, prefix: str):
        self.server, self.prefix = server, prefix
        self.calls: list[Request] = []
        self.faults: deque[str] = deque()
        self.busy, self._lock = 0, threading.Lock()  # `busy`: the requests in progress
        server.expect_request(re.compile(f"^/{prefix}/")).respond_with_handler(self._take)

    @property
    def url(self) -> str:
        """The beginning of its addresses."""
        return self.server.url_for(f"/{self.prefix}")

    def fails(self, *faults: str) -> None:
        """Set the faults of the next calls, one after the other."""
        self.faults.extend(faults)

    def answer(self, path: str, request: Request) -> Response:
        """The protocol's response to a request; `path` is without the prefix."""
        raise NotImplementedError

    def deliver(self, notices: list[tuple[str, Sent]], send: Callable[..., Any], how: str = "") -> list[Any]:
        """Send notices, each to the address of its order; return the responses, in the order of sending.

        `how`: `twice` each, `backwards`, or all `at_once`, twice each.
        """
        order = {"": notices, "backwards": notices[::-1]}.get(how, [each for each in notices for _ in range(2)])
        workers = len(order) if how == "at_once" else 1
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda each: each[1].to(send, each[0]), order))

    def _take(self, request: Request) -> Response:
        request.get_data(cache=True)
        with self._lock:
            self.calls.append(request)
            fault = self.faults.popleft() if self.faults else ""
            self.busy += 1
        try:
            return self._misbehave(fault, request)
        finally:
            with self._lock:
                self.busy -= 1

    def _misbehave(self, fault: str, request: Request) -> Response:
        if fault == "slow":
            time.sleep(SLOW)
        elif fault == "broken":
            return Response("<html>Bad Gateway</html>", 502, content_type="text/html")
        elif fault == "unheard":
            return self._cut(request)
        with self._lock:
            made = self.answer(request.path.removeprefix(f"/{self.prefix}/"), request)
        if fault == "lost":
            return self._cut(request)
        if fault == "half":
            whole = made.get_data()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(whole)}\r\n\r\n".encode()
            request.environ["werkzeug.socket"].sendall(head + whole[: len(whole) // 2])
            return self._cut(request)
        if fault == "garbage":
            return Response("\ufeff<script>location='/maintenance'</script>", 200, content_type="text/html")
        return made

    @staticmethod
    def _cut(request: Request) -> Response:
        request.environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return Response("nobody reads this")
