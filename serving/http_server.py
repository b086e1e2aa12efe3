"""The HTTP server: granian reads and writes HTTP, threads of this process run a WSGI application.

granian's embedded server calls the bridge as an ASGI application: ASGI's `send` waits for a slow reader, RSGI's keeps
all data in memory. A second application, `plain`, makes the responses of the server itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from contextvars import Context
from functools import lru_cache, partial
from io import BytesIO
from itertools import chain
from queue import SimpleQueue
from typing import Any

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server as Granian

log = logging.getLogger(__name__)

LOOK_UP_SECONDS = 0.2
DRAIN_SECONDS = 30
LAST_SECONDS = 5  # for connections to close once all responses are sent
BACKLOG = 1024
MOST_CONNECTIONS = 4096
SPARE_FILES = 1024  # open files that are not available to connections
HEAD_SECONDS = 20  # for a request's head; an idle connection is closed after the same time
HEAD_BYTES = 16 * 1024
BODY_SECONDS = 10  # for a whole body
UPLOAD_SECONDS = 60  # for an uploaded file
MOST_UPLOADS, MOST_OF_ONE = 4, 2  # at once, in all and of one session: each occupies memory until its response
MOST_READ = 8 * 1024 * 1024  # bytes of an oversized body that are read; then the connection is closed
LINGER_SECONDS = 2  # for the rest of a body that is not read
LONGEST_WAIT = 10  # seconds in the queue, after which the client has probably timed out
UNREAD_SECONDS = 20  # seconds after which a client that does not read a streamed response is disconnected

Application = Callable[..., Iterable[bytes]]  # WSGI
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Response = tuple[int, list[tuple[str, str]], bytes]  # status, headers, body

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


class _Lost(Exception):
    """The client disconnected or does not read."""


def until_asked() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set from now on, instead of ending the process."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    return asked


@lru_cache(maxsize=512)
def _key(name: bytes) -> str:
    """Return a header's name in WSGI.

    Empty if it has an underscore: in WSGI it would look like a header with a hyphen, which proxies are trusted to set.
    """
    key = name.decode("latin-1").upper().replace("-", "_")
    if b"_" in name or name == b"transfer-encoding":  # the body is complete by now
        return ""
    return key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"


def _environ(scope: dict[str, Any]) -> dict[str, Any]:
    """Return the WSGI environ of a request without its body."""
    environ = _SAME_FOR_ALL | {
        "REQUEST_METHOD": scope["method"],
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": scope["server"][0],
        "SERVER_PORT": scope["server"][1],
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": scope["client"][0],
    }
    for name, value in scope["headers"]:
        if (key := _key(name)) and (value or key != "HTTP_HOST"):  # granian adds an empty Host if there is none
            text = value.decode("latin-1")
            environ[key] = f"{environ[key]},{text}" if key in environ else text
    return environ


def _address(host: str, port: int) -> str:
    """Return the IP address to listen on.

    granian shares a port with other processes, so this checks that no other process listens on it.

    Raises:
        OSError: the address is not available.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except UnicodeError as error:
        raise OSError(str(error)) from None
    with socket.socket(family, kind) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trial.bind(address)
    return str(address[0])


def _most_connections() -> int:
    """Return the maximum of open connections, after raising the process's limit of open files as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    files = soft if soft != resource.RLIM_INFINITY else SPARE_FILES + MOST_CONNECTIONS
    return max(16, min(MOST_CONNECTIONS, files - SPARE_FILES))


class _Pool:
    """Threads, started as needed, that run one request each; further requests wait in a queue of limited length."""

    def __init__(self, threads: int, waiting: int):
        self.threads, self.places = threads, threads + waiting
        self.taken = 0  # running or waiting requests; only the event loop changes it
        self._queue: SimpleQueue[tuple[asyncio.Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._started = 0

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run `work` in a thread, in a new context, and return its result."""
        future = asyncio.get_running_loop().create_future()
        self.taken += 1
        try:
            if self._started < min(self.taken, self.threads):
                self._start()
            # In an empty context: Flask would use the app context of the command `serve` for the request.
            self._queue.put((future, partial(Context().run, work)))
            return await future
        finally:
            self.taken -= 1

    def _start(self) -> None:
        try:
            threading.Thread(target=self._work, name="request", daemon=True).start()
            self._started += 1
        except RuntimeError:  # the system allows no more threads, so the running ones take turns
            if not self._started:
                raise

    def _work(self) -> None:
        while True:
            _resolve_with(*self._queue.get())  # a call, so that no data of the request is kept until the next


def _resolve_with(future: asyncio.Future[Any], work: Callable[[], Any]) -> None:
    result = work()
    with suppress(RuntimeError):  # the loop has ended
        future.get_loop().call_soon_threadsafe(_resolve, future, result)


def _resolve(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _called(application: Application, environ: dict[str, Any]) -> tuple[int, list[tuple[str, str]], Iterable[bytes]]:
    """Return the status, headers and body that a WSGI application gives."""
    started: list[Any] = []
    body = application(environ, lambda status, headers, error=None: started.extend((status, headers)))
    return int(started[0][:3]), started[1], body


def is_local(address: str) -> bool:
    """Return whether a client's address is this machine's own."""
    return address == "::1" or address.startswith(("127.", "::ffff:127."))


class _Exchange:
    """A request and its response."""

    def __init__(self, server: Server, scope: dict[str, Any], receive: Receive, send: Send):
        self.scope, self._server, self._receive, self._send = scope, server, receive, send
        self._loop = asyncio.get_running_loop()
        self._since = time.monotonic()  # when the request began; later, when its body was complete
        self._body = b""
        self.gone: asyncio.Task[None] | None = None  # while a response is streamed: ends when its client disconnects

    def has_body(self) -> bool:
        """Return whether the request has a body, possibly of unknown length."""
        headers = dict(self.scope["headers"])
        return b"transfer-encoding" in headers or int(headers.get(b"content-length", 0)) > 0

    async def read(self, limit: int, seconds: float) -> Response | None:
        """Read the body without holding a thread; return a refusal if it is too large, too slow or incomplete."""
        if not self.has_body():
            return None
        declared = int(dict(self.scope["headers"]).get(b"content-length", 0))
        body, size, more, code = bytearray(), 0, True, 0
        try:
            async with asyncio.timeout(seconds):
                while more and size <= MOST_READ and not code:
                    message = await self._receive()
                    piece = message.get("body", b"")
                    size += len(piece)
                    if size <= limit:
                        body += piece
                    if message["type"] == "http.disconnect":
                        code = 40000
                    more = message.get("more_body", True) and size != declared
        except TimeoutError:
            code = 40800
        if code != 40000 and max(size, declared) > limit:
            code = 41300
        if code:
            return self.refuse(code, close=more)
        self._body, self._since = bytes(body), time.monotonic()
        return None

    def refuse(self, code: int, *, close: bool = False) -> Response:
        """Return the server's own response for a code; `close` makes it the connection's last."""
        plain = partial(self._server.plain, code=code, since=self._since)
        status, headers, body = _called(plain, _environ(self.scope))
        return status, [*headers, ("connection", "close")] if close else headers, b"".join(body)

    def uploader(self) -> str:
        """Return the session that may upload; empty for none. Needs a thread and a context of its own."""
        try:
            return self._server.uploader(_environ(self.scope))
        except BaseException:  # the application then meets the same error, and responds to it
            log.exception("The session of %s %r could not be read", self.scope["method"], self.scope["path"])
            return ""

    def run(self) -> Response | None:
        """Return the application's response; None if it was streamed. Needs a thread and a context of its own."""
        if time.monotonic() - self._since > LONGEST_WAIT:
            return self.refuse(50300)
        try:
            environ = _environ(self.scope)
            environ |= {"wsgi.input": BytesIO(self._body), "CONTENT_LENGTH": str(len(self._body))}
            status, headers, parts = _called(self._server.application, environ)
            with ExitStack() as ending:
                if hasattr(parts, "close"):
                    ending.callback(parts.close)
                length = next((int(value) for name, value in headers if name.lower() == "content-length"), None)
                if length is None and not isinstance(parts, (list, tuple)):
                    return self._stream(status, headers, parts)
                body = b"".join(parts)
                if len(body) < (length or 0) and not self._is_bodiless(status):
                    self._break_off(status, headers, body)
                    return None
                return status, headers, body
        except _Lost:
            return None
        except BaseException:  # no other code would report it
            log.exception("%s %r failed", self.scope["method"], self.scope["path"])
            return None if self.gone else self.refuse(50000)

    def _stream(self, status: int, headers: list[tuple[str, str]], parts: Iterable[bytes]) -> Response | None:
        """Send a response of unknown length while it is generated. Raises _Lost."""
        rest = (part for part in parts if part)
        first = next(rest, b"")
        if not first or self._is_bodiless(status):
            return status, headers, b""
        self._wait_for(self._begin, status, headers)
        for part in chain([first], rest):
            self._wait_for(self._pass_on, bytes(part))  # raises TypeError for text, which granian would drop
        self._wait_for(self._end)
        return None

    def _is_bodiless(self, status: int) -> bool:
        return status in (204, 304) or self.scope["method"] == "HEAD"

    def _break_off(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send a body that is shorter than its Content-Length and close the connection, as PEP 3333 says.

        granian closes it after a streamed body of the wrong length.
        """
        log.warning("%s %r: the response is shorter than its length", self.scope["method"], self.scope["path"])
        self._wait_for(self._begin, status, headers)
        self._wait_for(self._pass_on, body)
        self._wait_for(self._end)

    def _wait_for(self, step: Callable[..., Any], *arguments: Any) -> None:
        """Run a step in the event loop and wait for it. Raises _Lost."""
        if self._server.ended:
            raise _Lost
        try:
            asyncio.run_coroutine_threadsafe(step(*arguments), self._loop).result()
        except (TimeoutError, CancelledError):
            raise _Lost from None

    async def _begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        self.gone = asyncio.create_task(self._watch())
        await self._start(status, headers)

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _pass_on(self, part: bytes) -> None:
        if self.gone is None or self.gone.done():
            raise _Lost
        async with asyncio.timeout(UNREAD_SECONDS):
            await self._send({"type": "http.response.body", "body": part, "more_body": True})
        self._server.sent_parts += 1

    async def _end(self) -> None:
        await self._send({"type": "http.response.body"})
        if self.gone:
            self.gone.cancel()
            self.gone = None

    async def _start(self, status: int, headers: list[tuple[str, str]]) -> None:
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def respond(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send a whole response."""
        await self._start(status, headers)
        await self._send({"type": "http.response.body", "body": body})

    async def respond_early(self, response: Response | None) -> None:
        """Send a whole response before the body has been received, and close the connection.

        What arrives shortly after it is discarded: the client, such as a proxy, would otherwise get an error while it
        sends, and might not read the response.
        """
        if response is None:  # it was streamed
            return
        status, headers, body = response
        await self.respond(status, [*headers, ("connection", "close")], body)
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while (message := await self._receive())["type"] != "http.disconnect" and message.get("more_body"):
                    pass


def _nothing(environ: dict[str, Any], start_response: Callable[..., Any], *, code: int, since: float) -> list[bytes]:
    start_response(f"{code // 100} Refused", [])
    return []


class Server:
    """An HTTP/1.1 server in one process, with an event loop and a pool of threads.

    A request gets a thread once its body is complete, so slow senders do not delay other requests. If the queue is
    full, the request is refused (50300).
    """

    def __init__(
        self,
        application: Application,
        host: str,
        port: int,
        *,
        threads: int,
        body_limit: int,
        upload_limit: int = 0,
        is_upload: Callable[[str], bool] = lambda path: False,
        uploader: Callable[[dict[str, Any]], str] = lambda environ: "",
        waiting: int = 512,
        plain: Application = _nothing,
        probe: str = "/healthz",
        started: Callable[[], None] = lambda: None,
        drain: Callable[[], None] = lambda: None,
    ):
        """Args:
            threads: requests that run at once; `waiting` more wait for a thread.
            body_limit, upload_limit: bytes; the second for paths that are uploads, in requests with a session.
            uploader: returns the session of a request by its environ; empty for none. It is called in a thread.
            plain: makes the server's own responses. A WSGI application with two more arguments: the `code`, and the
                monotonic time `since` which the request has been running.
            probe: a path that this machine can always request, because it has a thread of its own.
            started: called once clients can connect, which is some time after `run` is called.
            drain: called in a thread once the server is asked to stop, while requests are still served.

        Raises:
            OSError: the address is not available.
        """
        self.application, self.plain = application, plain
        self._address, self._port = _address(host, port), port
        self._requests, self._probes = _Pool(threads, waiting), _Pool(1, 8)
        self._limit, self._probe, self._drain = body_limit, probe, drain
        self._started = started
        self._upload_limit, self._is_upload, self.uploader = upload_limit, is_upload, uploader
        self._uploads: list[str] = []  # the sessions whose uploads are in progress
        self._in_flight = 0
        self.sent_parts = 0  # of streamed responses
        self._loop: asyncio.AbstractEventLoop | None = None
        self.ended = False  # tells responses that are still streamed to stop

    def load(self) -> tuple[int, int]:
        """Return how many requests run and how many wait for a thread."""
        taken, threads = self._requests.taken, self._requests.threads
        return min(taken, threads), max(taken - threads, 0)

    def is_listening(self) -> bool:
        """Return whether clients can connect."""
        try:
            socket.create_connection((self._address, self._port), timeout=1).close()
        except OSError:
            return False
        return True

    def check(self) -> Callable[[], bool]:
        """Queue a request that does nothing; return a function that says whether it is done.

        A part sent of a streamed response counts too: slow downloads may occupy all threads for a long time.
        """
        assert self._loop is not None, "the server does not run"
        before, work = self.sent_parts, asyncio.run_coroutine_threadsafe(self._requests.run(int), self._loop)
        return lambda: self.sent_parts != before or (work.done() and work.result() == 0)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Respond to a request; granian calls this by ASGI."""
        exchange = _Exchange(self, scope, receive, send)
        self._in_flight += 1
        try:
            is_upload = self._is_upload(scope["path"]) and exchange.has_body()
            response = await (self._upload if is_upload else self._request)(exchange)
            if response:
                await exchange.respond(*response)
        except Exception:  # otherwise granian would only respond with 500
            log.exception("%s %r failed", scope["method"], scope["path"])
            raise
        finally:
            self._in_flight -= 1
        if exchange.gone:  # an interrupted response, which would look complete if the server ended it
            await exchange.gone

    async def _request(self, exchange: _Exchange) -> Response | None:
        return await exchange.read(self._limit, BODY_SECONDS) or await self._answer(exchange)

    async def _upload(self, exchange: _Exchange) -> Response | None:
        has_thread = self._requests.taken < self._requests.places
        who = await self._requests.run(exchange.uploader) if has_thread else ""
        if not who:  # the application refuses the request without its body
            await exchange.respond_early(await self._answer(exchange))
            return None
        if len(self._uploads) >= MOST_UPLOADS or self._uploads.count(who) >= MOST_OF_ONE:
            await exchange.respond_early(exchange.refuse(50300))
            return None
        self._uploads.append(who)
        try:
            return await exchange.read(self._upload_limit, UPLOAD_SECONDS) or await self._answer(exchange)
        finally:
            self._uploads.remove(who)

    async def _answer(self, exchange: _Exchange) -> Response | None:
        probes = exchange.scope["path"] == self._probe and is_local(exchange.scope["client"][0])
        for pool in (self._probes, self._requests) if probes else (self._requests,):
            if pool.taken < pool.places:
                result: Response | None = await pool.run(exchange.run)
                return result
        return exchange.refuse(50300)

    def run(self, asked: threading.Event) -> bool:
        """Serve until `asked` is set, then finish the requests in progress.

        Returns:
            Whether all requests were finished in time, and all responses read.
        """
        # Otherwise libuv would start a kernel thread for reading files, which this loop never does.
        os.environ.setdefault("UV_USE_IO_URING", "0")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self._run(asked))

    async def _run(self, asked: threading.Event) -> bool:
        self._loop = asyncio.get_running_loop()
        server: Any = Granian(
            self,
            self._address,
            self._port,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=BACKLOG,
            backpressure=_most_connections(),
            http1_settings=HTTP1Settings(header_read_timeout=HEAD_SECONDS * 1000, max_buffer_size=HEAD_BYTES),
            log_enabled=False,
        )
        serving = asyncio.create_task(server.serve())
        while not (self.is_listening() or asked.is_set() or serving.done()):
            await asyncio.sleep(0.01)
        if not serving.done():
            self._started()
        while not asked.is_set() and not serving.done():
            await asyncio.sleep(LOOK_UP_SECONDS)
        # The jobs end while requests are served, because a callback in progress may be sent to this server.
        jobs = threading.Thread(target=self._drain, name="drain", daemon=True)
        jobs.start()
        give_up = time.monotonic() + DRAIN_SECONDS
        while (jobs.is_alive() or self._in_flight) and time.monotonic() < give_up:
            await asyncio.sleep(0.02)
        done = not jobs.is_alive() and not self._in_flight
        self.ended = True
        server.stop()
        if (await asyncio.wait({serving}, timeout=LAST_SECONDS))[0]:
            serving.result()  # raises granian's error, if any
        return done and serving.done()
