"""Processor cores: the service stays on one that others leave to it, and long work runs on any."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

MOVE_SECONDS = 1.0  # between looks at the cores
CROWDED = 0.25  # of a core's time: by so much another one must be less busy

_all: set[int] = set()  # the cores that the process had; empty while it uses all of them
_own: set[int] = set()  # the one that it stays on


def stay_on_one(port: int) -> None:
    """Keep this thread, and those that it starts, on one core.

    Python runs one thread at a time anyway, and switching to a thread on another core is slow. The port chooses the
    core, so services on neighbouring ports have different ones.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    with suppress(OSError):  # the system forbids it
        _stay({cores[port % len(cores)]})
        _all.update(cores)


def _stay(core: set[int]) -> None:
    os.sched_setaffinity(0, core)
    _own.clear()
    _own.update(core)


def can_move() -> bool:
    """Return whether the process stays on one of several cores, of which the system says how busy they are."""
    return len(_all) > 1 and _all <= _used().keys()


def do(work: Callable[..., T], *arguments: Any) -> T:
    """Run long work in this thread, on any core, and return its result."""
    if not _all:
        return work(*arguments)
    with suppress(OSError):
        os.sched_setaffinity(0, _all)
    try:
        return work(*arguments)
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, _own)


class Mover:
    """Moves the service to another core while other processes keep its own busy. Call it every MOVE_SECONDS."""

    def __init__(self) -> None:
        self._before: dict[int | str, float] = {}

    def __call__(self) -> None:
        """Compare the cores since the last call."""
        before, self._before = self._before, _used()
        if not _all <= before.keys() & self._before.keys():
            return  # the first call, or a core is off
        (own,), seconds = _own, self._before["at"] - before["at"]
        shares = {core: (self._before[core] - before[core]) / seconds for core in _all}
        shares[own] -= (self._before["own"] - before["own"]) / seconds
        best = min(shares, key=lambda core: shares[core])
        # Half of the times, since two services that share a core would move together.
        if shares[own] - shares[best] > CROWDED and random.random() < 0.5:
            _stay({best})
            for thread in Path("/proc/self/task").iterdir():
                with suppress(OSError):  # it has ended
                    if len(os.sched_getaffinity(int(thread.name))) == 1:
                        os.sched_setaffinity(int(thread.name), {best})


def _used() -> dict[int | str, float]:
    """Return the processor time that was used on each core, and by this process, in seconds `at` a monotonic time.

    A container may hide the cores, or number them otherwise.
    """
    used: dict[int | str, float] = {"own": time.process_time(), "at": time.monotonic()}
    with suppress(OSError):
        for name, *counts in (line.split() for line in Path("/proc/stat").read_text().splitlines()):
            if name.startswith("cpu") and name != "cpu":
                used[int(name[3:])] = sum(map(int, counts[:3] + counts[5:8])) / os.sysconf("SC_CLK_TCK")
    return used
