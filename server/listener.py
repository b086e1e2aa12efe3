"""The listening socket, granian behind it, in this very process, and an end that finishes what is in flight."""

from __future__ import annotations

import resource
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from granian._granian import CallbackScheduler, RSGIWorker, SocketHolder, WorkerSignal
from granian.http import HTTP1Settings

from server.cores import move_to
from server.exchange import REFUSED, Application, Exchange
from server.intake import Intake
from server.lane import Lane

LOOK_UP_SECONDS = 0.5
DRAIN_SECONDS = 30
LAST_SECONDS = 5  # for answers to be sent and read once all are given
BACKLOG = 1024
MOST_CONNECTIONS = 4096
SPARE_FILES = 1024  # open files that connections leave for everything else
HEAD_SECONDS = 20  # for a request's head; so long a connection may be idle, too
HEAD_BYTES = 16 * 1024  # as much as proxies pass on; to read 64 KiB of cookies or parameters takes 30 ms
UNREAD_SECONDS = 20  # until a client that does not read its answer is dropped
SPARE_THREADS = 4  # take requests in while all others answer; one of them may answer a probe
IDLE_SECONDS = 30  # until a thread without work ends
WATCH_SECONDS = 0.5


def until_asked() -> Callable[[], Any]:
    """From now on SIGTERM and SIGINT only ask the process to end; the returned call waits until one has."""
    asked: SimpleQueue[None] = SimpleQueue()  # the one thing that a signal's handler may safely put to
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.put(None))

    def wait() -> None:
        # Python only takes note of a signal until its main thread goes on: one that comes just when that is about
        # to wait, or in another thread, would be heard at the end of a wait that only it can end.
        while True:
            with suppress(Empty):
                return asked.get(timeout=LOOK_UP_SECONDS)

    return wait


def _nothing(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    start_response(f"{environ[REFUSED] // 100} Refused", [])
    return []


def _open_files() -> int:
    """How many files the process may have open, once that is raised as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft if soft != resource.RLIM_INFINITY else SPARE_FILES + MOST_CONNECTIONS


def _listening(host: str, port: int) -> socket.socket:
    """Raises OSError."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except UnicodeError as error:
        raise OSError(str(error)) from None
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit what follows.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_SECONDS * 1000)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


class _AtOnce:
    """Stands in for an event loop where granian calls back: in whichever of its threads that is, on `core`."""

    def __init__(self, core: int | None):
        self._core = core

    def call_soon(self, callback: Callable[..., None], *arguments: Any, context: Any = None) -> None:
        move_to(self._core)
        callback(*arguments)

    call_soon_threadsafe = call_soon


class Server:
    """One event loop in native code, which holds no Python lock, reads and writes HTTP.

    Requests run in up to `threads` threads, which come and go with the load, so that a channel that is slow to
    answer holds up no others; what would wait too long for one is refused (50300). While a body is on its way it
    takes no thread.
    """

    def __init__(
        self,
        application: Any,
        host: str,
        port: int,
        *,
        threads: int,
        body_limit: int,
        waiting: int = 512,
        core: int | None = None,
        plain: Application = _nothing,
        probe: str = "/healthz",
        drain: Callable[[], None] = lambda: None,
    ):
        """Args:
            core: where all requests run; None: anywhere.
            plain: answers for the server what that refuses by itself, by the code in its environ.
            probe: the path that is answered to loopback however busy all threads are.
            drain: called once the end was asked for, in a thread, while requests are still answered.

        Raises:
            OSError: the address can't be listened on.
        """
        self._socket = _listening(host, port)
        self._core, self._probe, self._drain = core, probe, drain
        self._threads = threads
        self._main, self._aside = (
            Lane(lambda exchange: exchange.run(application), most, room) for most, room in ((threads, waiting), (1, 8))
        )
        self._intake = Intake(self._deliver, plain, body_limit)
        self._connections = max(16, min(MOST_CONNECTIONS, _open_files() - SPARE_FILES))
        self._ended = threading.Event()

    def load(self) -> tuple[int, int]:
        """How many requests are being answered, and how many wait for a thread."""
        return self._main.load()

    def _took(self, watcher: Any) -> None:
        move_to(self._core)
        self._intake(watcher)

    def _deliver(self, exchange: Exchange) -> None:
        probe = exchange.scope.path == self._probe and exchange.is_local()
        if not (probe and self._aside.take(exchange)) and not self._main.take(exchange):
            exchange.refuse(50300)

    def _watch(self) -> None:
        """Give up what takes too long, until the end."""
        while not self._ended.wait(WATCH_SECONDS):
            self._intake.expire()
            for exchange in self._main.overdue() + self._aside.overdue():
                exchange.refuse(50300)

    def _start(self) -> WorkerSignal:
        """Begin to answer; the signal ends it."""
        loop = _AtOnce(self._core)
        scheduler = CallbackScheduler(loop, None, None, None, None)
        scheduler._schedule_fn = self._took
        ending = WorkerSignal()
        ending.add_cb(self._ended.set)
        settings = HTTP1Settings(header_read_timeout=HEAD_SECONDS * 1000, max_buffer_size=HEAD_BYTES)
        holder = SocketHolder(self._socket.detach(), False, BACKLOG)
        tls = (False, None, None, None, "tls1.3", None, [], False)
        threads = (1, 4, self._threads + SPARE_THREADS, IDLE_SECONDS)  # native, native for files, for Python
        self._worker = RSGIWorker(
            *(1, (None, holder), None, *threads, self._connections, "1", settings, None, False, None, *tls),
            (None, None),
        )
        self._worker.serve_mtr(scheduler, loop, ending)
        return ending

    def run(self, asked: Callable[[], Any]) -> bool:
        """Answer requests until `asked` returns, then finish what is in flight.

        Returns:
            Whether all of it was finished in time, and every answer read.
        """
        ending = self._start()
        threading.Thread(target=self._watch, name="watch", daemon=True).start()
        asked()
        # The jobs end while requests are answered: a callback under way may be on its way to this very server.
        jobs = threading.Thread(target=self._drain, name="drain", daemon=True)
        jobs.start()
        give_up = time.monotonic() + DRAIN_SECONDS
        while (jobs.is_alive() or self._intake.under_way) and time.monotonic() < give_up:
            time.sleep(0.02)
        done = not jobs.is_alive() and not self._intake.under_way
        for exchange in list(self._intake.under_way):
            exchange.cut()
        ending.set()
        return self._ended.wait(LAST_SECONDS) and done
