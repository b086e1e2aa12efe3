"""Delay of a healthy merchant's callbacks while ten thousand callbacks to others can't be delivered."""

from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path

from bench.calling_back import callback_latency
from bench.context import Bench, Compared
from bench.processes import Service, free_port, receiver

BACKLOG, BACKLOG_QUICK = 10_000, 500  # callbacks that are due and can't be delivered
PAYMENTS, PAYMENTS_QUICK = 20, 4
LIMIT_MS = 1000
HEALTHY, DEAD = "demo", "other"

# The dead merchants are copies of one, and each has its share of the callbacks.
MERCHANTS = """
    WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :merchants)
    INSERT INTO merchant ({others}, key, callback_url)
    SELECT {others}, 'dead-' || n, :url FROM merchant, number WHERE key = :dead
"""
CALLBACKS = """
    WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < :backlog - 1)
    INSERT INTO callback
        (webhook_id, merchant_id, order_id, type, body, state, attempts, due_at, createtime, updatetime)
    SELECT 'msg_dead_' || n, merchant.id, newest.id, 'dead-' || n, '{}', 'pending', 0, :now, :now, :now
    FROM (SELECT max(id) AS id FROM "order") AS newest, number
    JOIN merchant ON key = 'dead-' || (n % :merchants + 1)
"""


def _replace_backlog(instance: Path, backlog: int, merchants: int, url: str) -> None:
    """Replace the backlog by this number of due callbacks, divided among merchants with this address."""
    with closing(sqlite3.connect(instance / "orders.sqlite", timeout=60)) as file, file:
        names = [row[1] for row in file.execute("PRAGMA table_info(merchant)")]
        others = ", ".join(name for name in names if name not in ("id", "key", "callback_url"))
        values = {"merchants": merchants, "backlog": backlog, "url": url, "dead": DEAD, "now": int(time.time())}
        file.execute("DELETE FROM callback_attempt")
        file.execute("DELETE FROM callback WHERE webhook_id LIKE 'msg_dead_%'")
        file.execute("DELETE FROM merchant WHERE key LIKE 'dead-%'")
        file.execute(MERCHANTS.format(others=others), values)
        file.execute(CALLBACKS, values)


@contextmanager
def _addresses() -> Iterator[dict[str, str]]:
    """Addresses that callbacks can't be delivered to: closed port, no response, unknown host name."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(4096)  # the system accepts connections that are never read
        yield {
            "refused": f"http://127.0.0.1:{free_port()}/",
            "silent": f"http://127.0.0.1:{silent.getsockname()[1]}/",
            "no name": "http://shop.invalid/",
        }


def _p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


def undeliverable(bench: Bench) -> Compared:
    """Worst p99 from a payment reported to its callback received, over all kinds of backlog, against 1 s."""
    backlog, payments = (BACKLOG_QUICK, PAYMENTS_QUICK) if bench.quick else (BACKLOG, PAYMENTS)
    instance = bench.work / "undeliverable"
    service = Service(instance)
    service.flask("seed")
    found: dict[str, list[float]] = {}
    with receiver(0, bench.work) as server, _addresses() as addresses:
        service.flask("merchant", "set", HEALTHY, "--callback-url", f"{server.url}/hook")
        with service:
            callback_latency(service, server)
        for _, (what, url), merchants in product(range(bench.rounds), addresses.items(), (1, 100, backlog)):
            _replace_backlog(instance, backlog, merchants, url)
            with service:  # a new process, which has no delivery statistics
                time.sleep(1)
                delays = [callback_latency(service, server) for _ in range(payments)]
            found.setdefault(f"{what}, {merchants:,} merchants", []).append(_p99(delays))
    worst = [max(rounds[number] for rounds in found.values()) for number in range(bench.rounds)]
    notes = tuple(f"{name}: p99 {max(rounds):.0f} ms" for name, rounds in found.items())
    return Compared(worst, [float(LIMIT_MS)] * len(worst), "ms", notes)
