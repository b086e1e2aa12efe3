"""Callbacks: the rate to a slow server, and the delay of a single one."""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import time
from contextlib import closing
from pathlib import Path

from bench import bodies
from bench.context import Bench, Compared
from bench.load import Failed
from bench.notices import report_paid, settle_newest
from bench.processes import Process, Service, receiver

MERCHANTS = ("demo", "other")
DELAY = 0.02  # seconds until the merchants' server responds
DUE, DUE_QUICK = 2000, 400  # callbacks that are due immediately, of all merchants together
ONE_BY_ONE = 100
PAYMENTS, PAYMENTS_QUICK = 30, 4
LIMIT_MS = 50


def _complete_orders(bench: Bench, instance: Path, count: int) -> None:
    """Create `count` completed orders, divided among the merchants, whose callbacks have no address."""
    service = Service(instance)
    service.flask("seed")
    for key in MERCHANTS:
        service.flask("merchant", "set", key, "--callback-url", "")
    each = count // len(MERCHANTS)
    with service:
        for key in MERCHANTS:
            bench.load(f"{service.url}/merchant/createOrder", 8, lambda _, key=key: bodies.buys(each, key=key), 120)
            settle_newest(bench, service, each, key)


def _seen(server: Process) -> list[tuple[float, str]]:
    """Return the callbacks that the receiver got: time and webhook-id."""
    return server.http.get(f"{server.url}/seen", timeout=60).json()


def _redelivered(service: Service, server: Process, count: int) -> float:
    """Make all callbacks due and wait for them; return the callbacks a second from the first to the last. Raises
    Failed."""
    server.http.delete(f"{server.url}/seen", timeout=60)
    for key in MERCHANTS:
        service.flask("callback", "redeliver", "--merchant", key)
    give_up, moments = time.monotonic() + 300, {}
    while len(moments) < count:
        if time.monotonic() > give_up:
            raise Failed(f"of {count} callbacks {len(moments)} were received")
        time.sleep(0.2)
        moments = {webhook_id: moment for moment, webhook_id in _seen(server)}
    time.sleep(1)
    if json.loads(service.flask("callback", "list", "--state", "pending", "--json")):
        raise Failed("received callbacks are not recorded as delivered")
    return (count - 1) / (max(moments.values()) - min(moments.values()))


def _one_by_one(server: Process, database: Path) -> float:
    """Return the callbacks a second of a plain loop: post one, commit its delivery, continue with the next."""
    with closing(sqlite3.connect(database, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = FULL")
        file.execute("CREATE TABLE IF NOT EXISTS delivered (id INTEGER PRIMARY KEY, at REAL)")
        began = time.perf_counter()
        for _ in range(ONE_BY_ONE):
            server.http.post(server.url, data=b"{}", timeout=60).raise_for_status()
            file.execute("INSERT INTO delivered (at) VALUES (?)", (time.time(),))
        return ONE_BY_ONE / (time.perf_counter() - began)


def callback_rate(bench: Bench) -> Compared:
    """Callbacks a second to a server that takes 20 ms, against a plain loop: from the first to the last arrival."""
    count = DUE_QUICK if bench.quick else DUE
    instance = bench.work / "callbacks"
    _complete_orders(bench, instance, count)
    with receiver(DELAY, bench.work) as server:
        service = Service(instance)
        for key in MERCHANTS:
            service.flask("merchant", "set", key, "--callback-url", f"{server.url}/hook")
        with service:
            found = bench.in_turn(
                service=lambda: _redelivered(service, server, count),
                loop=lambda: _one_by_one(server, bench.work / "loop.sqlite"),
            )
    return Compared(found["service"], found["loop"], "a second")


def callback_latency(service: Service, server: Process) -> float:
    """Milliseconds from the notice of a payment to the receipt of its callback. Raises Failed."""
    order_no = service.call("createOrder", bodies.BUY)["order_no"]
    time.sleep(random.uniform(0.1, 0.7))  # at any point between two sweeps
    before = len(_seen(server))
    began = time.monotonic()
    report_paid(service, order_no)
    while len(seen := _seen(server)) == before:
        if time.monotonic() > began + 30:
            raise Failed("no callback was received")
        time.sleep(0.05)
    return (seen[-1][0] - began) * 1000


def callback_delay(bench: Bench) -> Compared:
    """From a payment reported to its callback received, on an idle service, against 50 ms."""
    count = PAYMENTS_QUICK if bench.quick else PAYMENTS
    service = Service(bench.work / "callback")
    service.flask("seed")
    with receiver(0, bench.work) as server:
        service.flask("merchant", "set", "demo", "--callback-url", f"{server.url}/hook")
        with service:
            rounds = [
                statistics.median(callback_latency(service, server) for _ in range(count)) for _ in range(bench.rounds)
            ]
    return Compared(rounds, [float(LIMIT_MS)] * len(rounds), "ms")
