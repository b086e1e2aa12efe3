"""The HTTP server: granian, in this very process, with an end that finishes what is in flight."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.server.mt import MTServer

CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()  # those it was started on
DRAIN_SECONDS = 30
LOOK_UP_SECONDS = 0.5
CHUNK = 64 * 1024
MOST_READ = 8 * 1024 * 1024  # bytes of a body that is too large; beyond, its sender finds the connection closed


@contextmanager
def core_of_its_own() -> Iterator[int | None]:
    """The core that Python's threads are to share meanwhile, which no other service here has; None: any.

    Python runs one thread at a time anyway, and handing over to a thread elsewhere means waking
    another core: staying gains createOrder 1.2x. The server's own threads, which are native, stay free.
    Two services that are busy on one core would hold each other up for half a second at a time.
    """
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else ()
    for core in sorted(cores, reverse=True):
        with ExitStack() as claim:
            try:
                name = claim.enter_context(socket.socket(socket.AF_UNIX))
                name.bind(f"\0merchant-orders/core/{core}")  # no file: it is free once the process is gone
                os.sched_setaffinity(0, cores)  # changes nothing, and fails where it would fail later
            except OSError:
                continue
            yield core
            return
    yield None


@contextmanager
def staying_on(core: int | None) -> Iterator[None]:
    """Threads that are started in this block, by this thread or by those, share a core; None: any."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def on_any_core() -> Iterator[None]:
    """This thread may leave the core that it shares with others, for long work that no one waits for."""
    if not CORES:
        yield
        return
    before = os.sched_getaffinity(0)
    with suppress(OSError):  # it may not choose its cores
        os.sched_setaffinity(0, CORES)
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)


class Interrupt(threading.Event):
    """An event whose waiter looks up now and then, for signals.

    Python only takes note of a signal until its main thread goes on: one that comes just when that is about to
    wait, or in another thread, would be heard at the end of a wait that only it can end.
    """

    def wait(self, timeout: float | None = None) -> bool:
        while timeout is None and not super().wait(LOOK_UP_SECONDS):
            pass
        return super().wait(timeout)


class Requests:
    """What stands between the server and an application: counts what is under way, takes the bodies in.

    Each thread that calls it moves to `core` first, where there is one.
    """

    def __init__(self, application: Callable[..., Any], body_limit: int, core: int | None = None):
        self._application, self._body_limit, self._core = application, body_limit, core
        self._thread = threading.local()
        self._lock = threading.Lock()
        self.under_way = 0

    def _count(self, change: int) -> None:
        with self._lock:
            self.under_way += change

    def _take_in(self, environ: dict[str, Any]) -> None:
        """Read the body, so that it has a length and its sender hears the answer.

        Werkzeug would read on to see that there is no more, which costs another wait for the server, and would
        cut a chunked body off at its limit in silence. A connection that is closed on a sender in mid-body
        loses the answer.
        """
        chunked = environ.pop("HTTP_TRANSFER_ENCODING", None)
        length, body = int(environ.get("CONTENT_LENGTH") or 0), environ["wsgi.input"]
        if not chunked and length <= self._body_limit:
            environ["wsgi.input"] = BytesIO(body.read(length) if length else b"")
            return
        kept, length = bytearray(), 0
        while length <= MOST_READ and (chunk := body.read(CHUNK)):
            length += len(chunk)
            if len(kept) <= self._body_limit:
                kept += chunk
        environ["CONTENT_LENGTH"], environ["wsgi.input"] = str(length), BytesIO(kept)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if self._core is not None and not hasattr(self._thread, "moved"):
            self._thread.moved = True
            with suppress(OSError):  # somebody took the core away from the running process
                os.sched_setaffinity(0, {self._core})
        self._count(1)
        try:
            self._take_in(environ)
            return self._application(environ, start_response)
        finally:
            self._count(-1)


class Server(MTServer):
    """One worker in a thread of this process, so that there is one process to start, watch and kill.

    Its event loop is native code and holds no Python lock; requests run in up to `threads` threads,
    which come and go with the load, so that a channel that is slow to answer holds up no others.
    """

    def __init__(
        self,
        application: Any,
        host: str,
        port: int,
        *,
        threads: int,
        body_limit: int,
        core: int | None = None,
        drain: Callable[[], None] = lambda: None,
    ):
        """Args:
            core: where all requests run; None: anywhere.
            drain: called on SIGTERM or SIGINT, in a thread, while requests are still answered.

        Raises:
            OSError: the address can't be listened on.
        """
        # Granian shares a port with whoever else is willing to; here that would be a second service.
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(found[0]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(found[4])
        super().__init__(
            target="",
            address=str(found[4][0]),
            port=port,
            interface=Interfaces.WSGI,
            http=HTTPModes.http1,
            websockets=False,
            blocking_threads=threads,
            log_enabled=False,
        )
        self._application, self._drain = Requests(application, body_limit, core), drain
        self.main_loop_interrupt = Interrupt()
        self._ending = False

    def _check_gil(self) -> None:
        """Granian keeps worker threads for builds without a GIL; with one, they are threads like any server's."""

    def run(self) -> None:
        """Answer requests until SIGTERM or SIGINT, then finish what is in flight."""
        self.serve(target_loader=lambda: self._application, wrap_loader=False)

    def signal_handler_interrupt(self, *_: Any) -> None:
        if not self._ending:
            self._ending = True
            threading.Thread(target=self._end, name="drain").start()

    def _end(self) -> None:
        # The jobs end while requests are answered: a callback under way may be on its way to this very server.
        jobs = threading.Thread(target=self._drain, name="drain-jobs", daemon=True)
        jobs.start()
        give_up = time.monotonic() + DRAIN_SECONDS
        while (jobs.is_alive() or self._application.under_way) and time.monotonic() < give_up:
            time.sleep(0.02)
        super().signal_handler_interrupt()
