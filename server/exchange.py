"""One request and its answer: what granian gave, as the WSGI application wants it, and back."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable
from contextvars import copy_context
from io import BytesIO
from itertools import chain
from typing import Any

from server.connection import WATCHABLE, Connection, Lost
from server.stream import Stream

log = logging.getLogger(__name__)

Application = Callable[..., Iterable[bytes]]  # of WSGI

# What the application that gives the server's own refusals finds in its environ: the code, and since when (monotonic)
# the request was under way.
REFUSED, SINCE = "server.refused", "server.since"

_SAME_FOR_ALL = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http",
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": True,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
    "wsgi.input_terminated": True,
}
_UNPREFIXED = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}
_WITHOUT_BODY = (204, 304)
NO_ANSWER = 444  # the application's word that the connection is to be closed instead


def _comes_in_pieces(parts: Iterable[bytes], said: list[Any]) -> bool:
    """Is it an answer whose length nobody knows before its end?"""
    if isinstance(parts, (list, tuple)):
        return False
    return not said or all(name.lower() != "content-length" for name, _ in said[1])


class Exchange:
    """A request on its way to its one answer; `under_way` has it until then."""

    __slots__ = (
        "_plain",
        "_stream",
        "_under_way",
        "body",
        "future",
        "late",
        "length",
        "pieces",
        "proto",
        "scope",
        "since",
    )

    def __init__(self, scope: Any, proto: Any, under_way: set[Exchange], plain: Application):
        self.scope, self.proto, self._under_way, self._plain = scope, proto, under_way, plain
        self.since = time.monotonic()  # it waits for its body; and then, in line
        self.body = b""
        self.pieces = bytearray()  # of the body, where it comes in pieces
        self.length = 0  # bytes that came in pieces
        self.future: Any = None  # what the body is waited for with
        self.late = False
        self._stream: Stream | None = None  # the answer, where that has begun to be sent in pieces
        under_way.add(self)

    def header(self, name: str) -> str:
        """A header by its name in lower case; empty where it is missing."""
        return str(self.scope.headers.get(name, ""))

    def declared(self) -> int:
        """The length of the body as its sender says it; 0 where it comes in chunks."""
        return int(self.header("content-length") or 0)

    @property
    def address(self) -> str:
        """Where the connection comes from."""
        return str(self.scope.client.rpartition(":")[0].strip("[]"))

    def is_local(self) -> bool:
        """Does it come from this machine?"""
        return self.address == "::1" or self.address.startswith(("127.", "::ffff:127."))

    def environ(self) -> dict[str, Any]:
        """The request as WSGI has it.

        A name with an underscore is left out: in WSGI it can't be told from one with a hyphen, and would be
        believed as what a proxy says.
        """
        scope = self.scope
        host, _, port = scope.server.rpartition(":")
        environ = _SAME_FOR_ALL | {
            "REQUEST_METHOD": scope.method,
            "PATH_INFO": scope.path.encode().decode("latin-1"),
            "QUERY_STRING": scope.query_string.encode().decode("latin-1"),
            "SERVER_NAME": host.strip("[]"),
            "SERVER_PORT": port,
            "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
            "REMOTE_ADDR": self.address,
            "wsgi.input": BytesIO(self.body),
        }
        for name, value in scope.headers.items():
            if "_" in name:
                continue
            key = _UNPREFIXED.get(name) or "HTTP_" + name.upper().replace("-", "_")
            environ[key] = f"{environ[key]},{value}" if key in environ else value
        environ.pop("HTTP_TRANSFER_ENCODING", None)  # the body is whole by now
        environ["CONTENT_LENGTH"] = str(len(self.body))
        return environ

    def run(self, application: Application) -> None:
        """Have the application answer, in a context of its own: what that knows of the request ends with it."""
        copy_context().run(self._run, application)

    def _run(self, application: Application) -> None:
        said: list[Any] = []
        try:
            parts = application(self.environ(), lambda status, headers, error=None: said.extend((status, headers)))
            try:
                body = self._in_pieces(parts, said) if _comes_in_pieces(parts, said) else b"".join(parts)
            finally:
                if hasattr(parts, "close"):
                    parts.close()
            if body is not None:
                status = int(said[0][:3])
                if status == NO_ANSWER:
                    self._hang_up()
                self.answer(status, said[1], body)
            elif self._stream:
                self._stream.end()
                self._under_way.discard(self)
        except Lost:
            self._abandon()
        except BaseException:  # nobody else would ever hear of it, and its place would stay taken
            self.fail()

    def _in_pieces(self, parts: Iterable[bytes], said: list[Any]) -> bytes | None:
        """Send what there is as it comes, from the first byte on; or return it, where there is too little for that."""
        rest = (part for part in parts if part)
        first = next(rest, b"")
        status, headers = int(said[0][:3]), said[1]
        if not first or status in _WITHOUT_BODY or self.scope.method == "HEAD":
            return b""
        if not WATCHABLE:
            return first + b"".join(rest)
        self._stream = Stream(self.proto, self.scope, status, headers)
        for part in chain([first], rest):
            self._stream.send(part)
        return None

    def answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send it. Any thread may; only the first answer counts."""
        try:
            self.proto.response_bytes(status, headers, body)
        finally:
            self._under_way.discard(self)

    def _hang_up(self) -> None:
        """Have nothing of the answer go out. Raises Lost: the connection is gone already."""
        connection = Connection(self.address, int(self.scope.client.rpartition(":")[2]))
        connection.mute()
        connection.close()

    def refuse(self, code: int, *, close: bool = False) -> None:
        """Answer with what the server says of the code; `close` the connection with it."""
        said: list[Any] = []
        environ = self.environ() | {REFUSED: code, SINCE: self.since}
        # In a context of its own, too: granian's threads go on to the next request.
        body = b"".join(copy_context().run(self._plain, environ, lambda *start: said.extend(start)))
        status, headers = int(said[0][:3]), said[1]
        self.answer(status, [*headers, ("connection", "close")] if close else headers, body)

    def cut(self) -> None:
        """Break it off where it has begun to be answered in pieces. Any thread may; the one that answers is let go."""
        if stream := self._stream:
            stream.cut()

    def _abandon(self) -> None:
        if not self._stream:
            return self.refuse(50000)
        try:
            return self._stream.abandon()
        finally:
            self._under_way.discard(self)

    def fail(self) -> None:
        """Log the present exception, an error of ours, and answer for it."""
        log.exception("%s %r failed", self.scope.method, self.scope.path)
        self._abandon()
