"""Which processor core Python's threads run on."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()  # those it was started on


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


_thread = threading.local()


def move_to(core: int | None) -> None:
    """Have the present thread run on `core` from now on; None: stay."""
    if core is None or hasattr(_thread, "moved"):
        return
    _thread.moved = True
    with suppress(OSError):  # somebody took the core away from the running process
        os.sched_setaffinity(0, {core})
