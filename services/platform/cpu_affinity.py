"""Processor cores: the service stays on one, and long work runs on the others."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

_all: set[int] = set()  # the cores that the process had; empty while it uses all of them


def stay_on_one(port: int) -> None:
    """Keep this thread, and those that it starts, on one core.

    Python runs one thread at a time anyway, and switching to a thread on another core is slow. The port chooses the
    core, so services on neighbouring ports have different ones.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    with suppress(OSError):  # the system forbids it
        os.sched_setaffinity(0, {cores[port % len(cores)]})
        _all.update(cores)


def do(work: Callable[..., T], *arguments: Any) -> T:
    """Run long work in this thread, on any core, and return its result."""
    if not _all:
        return work(*arguments)
    before = os.sched_getaffinity(0)
    with suppress(OSError):
        os.sched_setaffinity(0, _all)
    try:
        return work(*arguments)
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)
