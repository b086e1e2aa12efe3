"""createOrder while every core but the service's own is busy: `python -m bench.busy_cores CORE SECONDS` is the load."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench import bodies
from bench.context import Bench, Compared, spent
from bench.load import Failed, Load
from bench.processes import ROOT, Service

CONNECTIONS = 8


def _loop(core: int, seconds: float) -> None:
    """Keep a core busy for this number of seconds."""
    os.sched_setaffinity(0, {core})
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@contextmanager
def _busy(cores: set[int], seconds: float) -> Iterator[None]:
    """Keep the cores busy until the block ends, at most for this number of seconds."""
    commands = [[sys.executable, "-m", "bench.busy_cores", str(core), str(seconds)] for core in cores]
    loops = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def other_cores_busy(bench: Bench) -> Compared:
    """createOrder while a loop runs on every core but the service's own, against idle cores: orders a second."""
    with Service(bench.work / "busy-cores") as service:
        url = f"{service.url}/merchant/createOrder"
        bench.load(url, CONNECTIONS, bodies.buys, 1)  # the first responses are slower
        others = os.sched_getaffinity(0) - service.own_cores()
        if not others:
            raise Failed("the service does not keep to one core, or there is no other one")

        def busy() -> Load:
            with _busy(others, 5 * bench.seconds + 10):  # the bodies are signed meanwhile
                return bench.load(url, CONNECTIONS, bodies.buys)

        found = bench.in_turn(busy=busy, idle=lambda: bench.load(url, CONNECTIONS, bodies.buys))
    notes = spent(*found["busy"], *found["idle"])
    return Compared([one.rate for one in found["busy"]], [one.rate for one in found["idle"]], "a second", notes)


if __name__ == "__main__":
    _loop(int(sys.argv[1]), float(sys.argv[2]))
