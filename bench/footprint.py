"""Memory of the process after many orders, and the time that it takes to start."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from bench import bodies
from bench.context import Bench, Compared
from bench.processes import Service

FIRST = 1_000
CHUNK = 50_000  # bodies at a time, so that each is sent before its timestamp is too old
EXPIRY = "60"  # seconds
READINGS, READINGS_QUICK = 5, 2
STARTS, STARTS_QUICK = 5, 1


def _resident(bench: Bench, service: Service) -> list[float]:
    """Resident memory in MiB, read several times in the seconds after the load."""
    readings = []
    for _ in range(READINGS_QUICK if bench.quick else READINGS):
        time.sleep(1)
        readings.append(service.memory() / 2**20)
    return readings


def _create(bench: Bench, service: Service, count: int) -> tuple[int, float]:
    """Create orders over 8 connections. Returns their number and the seconds."""
    found = bench.load(f"{service.url}/merchant/createOrder", 8, lambda _: bodies.buys(count), 280)
    return found.responses, found.seconds


def memory(bench: Bench) -> Compared:
    """Resident memory of the whole process tree after very many orders against the first ones.

    The orders expire soon, so that callbacks are sent at the same time.
    """
    with Service(bench.work / "memory", ORDERS_BUY_EXPIRY=EXPIRY) as service:
        done, _ = _create(bench, service, FIRST)
        few, took = _resident(bench, service), 0.0
        while done < bench.created:
            responses, seconds = _create(bench, service, min(CHUNK, bench.created - done))
            done, took = done + responses, took + seconds
            bench.say(f"memory: {done:,} orders created, {service.memory() >> 20} MiB")
        many = _resident(bench, service)
    return Compared(many, few, "MiB", (f"{done:,} orders, {(done - FIRST) / took:.0f} a second",))


def _start(bench: Bench, folder: Path) -> float:
    """Median time of several starts, in ms."""
    times = []
    for _ in range(STARTS_QUICK if bench.quick else STARTS):
        with Service(folder) as service:
            times.append(service.started_in * 1000)
    return statistics.median(times)


def start(bench: Bench) -> Compared:
    """From the start of the process to its first response, with many orders in the file against none."""
    large, empty = bench.copy(bench.large), bench.copy(0)
    found = bench.in_turn(large=lambda: _start(bench, large), empty=lambda: _start(bench, empty))
    return Compared(found["large"], found["empty"], "ms")
