"""Loads with a course of their own, each on a server that was started for it (`Run.load`)."""

from __future__ import annotations

import os
import random
import socket
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice, product

from bench import raw_orders, traffic
from bench.comparing import Bench, Failed, Figures
from bench.loading import LONGEST, Requests, Wrk, fixed_rate, wrk
from bench.starting import ROOT, Beside, Process, Service, free_port

MERCHANTS = ("demo", "other")


@dataclass(frozen=True)
class Raw:
    """Raw transactions of the rows that createOrder writes for these requests, into the file of a new service."""

    requests: Requests

    def __call__(self, service: Service, bench: Bench) -> Figures:
        before = raw_orders.contents(service.database)
        states = []
        for request in islice(self.requests(service), 2):
            _send(service, request)
            states.append(raw_orders.contents(service.database))
        service.stop()
        inserts = raw_orders.learn(service.database, before, *states)
        return {"rate": raw_orders.write(inserts, service.database, bench.seconds)}


def _send(service: Service, request: str) -> None:
    """Send one prepared request. Raises Failed."""
    with closing(socket.create_connection(("127.0.0.1", service.port), 60)) as connection:
        connection.sendall(request.encode())
        response = connection.recv(65_536)
    if not response.startswith(b"HTTP/1.1 200"):
        raise Failed(f"{request.split(' HTTP')[0]}: {response[:400]!r}")


def starts(service: Service, bench: Bench) -> Figures:
    """Median time of five starts until the first response, in ms."""
    times = [service.started_in * 1000]
    for _ in range(0 if bench.quick else 4):
        service.stop()
        service.start()
        times.append(service.started_in * 1000)
    return {"start": statistics.median(times)}


def other_cores_busy(service: Service, bench: Bench) -> Figures:
    """createOrder while a loop runs on every core but the service's own. Raises Failed if there is no other core."""
    others = os.sched_getaffinity(0) - service.cores()
    if not others:
        raise Failed("the service does not keep to one core, or there is no other one")
    limit = 5 * bench.seconds + 30  # the bodies are signed meanwhile
    commands = [[sys.executable, "-m", "bench.beside", "busy", str(core), str(limit)] for core in others]
    loops = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    try:
        return Wrk(traffic.orders)(service, bench)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def many_orders(service: Service, bench: Bench) -> Figures:
    """Resident memory after very many orders (`memory`) and after the first thousand (`before`), in MiB."""
    done, before = 0.0, 0.0
    while done < bench.sizes["created"]:
        count = round(min(50_000, bench.sizes["created"] - done)) if done else 1_000
        done += wrk(service, bench, traffic.orders, 8, LONGEST, count)["responses"]
        time.sleep(5)
        before = before or service.memory()
        bench.say(f"{done:,.0f} orders created, {service.memory():.0f} MiB")
    return {"memory": service.memory(), "before": before}


def twice_the_maximum(service: Service, bench: Bench) -> Figures:
    """Twice as many orders a second as over 64 connections, at a fixed rate.

    Returns: `rate` and `p99` of the orders created, `maximum`, and the `memory` after and `before`. Raises Failed if an
    order was neither created nor refused with 503, or if the service creates no order afterwards.
    """
    maximum = Wrk(traffic.orders, 64)(service, bench)["rate"]
    before = service.memory()
    requests = list(islice(traffic.orders(service), round(2 * maximum * bench.seconds)))
    with ProcessPoolExecutor(1) as pool:
        statuses, found = pool.submit(fixed_rate, service.port, requests, 2 * maximum).result()
    if statuses.keys() - {"200", "503", "unsent"}:
        raise Failed(f"at {2 * maximum:.0f} a second: {dict(statuses)}")
    service.call("createOrder", traffic.BUY)
    return found | {"maximum": maximum, "memory": service.memory(), "before": before, "unsent": statuses["unsent"]}


@dataclass(frozen=True)
class AnotherCaller:
    """One merchant creates 50 orders a second while another caller sends `requests` at a `rate`.

    Returns: of the orders `p99`, and `quiet` without the other caller. Of the service's memory `more`: the maximum with
    the other caller minus that without, in MiB.
    """

    requests: Requests
    rate: int

    def __call__(self, service: Service, bench: Bench) -> Figures:
        service.rest()
        self._orders(service, bench, attacked=False)  # the first responses are slower
        quiet, usual = self._orders(service, bench, attacked=False)
        p99, most = self._orders(service, bench, attacked=True)
        return {"p99": p99, "quiet": quiet, "more": most - usual}

    def _orders(self, service: Service, bench: Bench, *, attacked: bool) -> tuple[float, float]:
        """Return p99 of the orders, and the largest memory."""
        orders = list(islice(traffic.orders(service, key="other"), round(50 * bench.seconds)))
        with ProcessPoolExecutor(2) as pool:
            if attacked:
                requests = list(islice(self.requests(service), round(self.rate * (bench.seconds + 2))))
                attack = pool.submit(fixed_rate, service.port, requests, self.rate)
                time.sleep(1)
            running, most = pool.submit(fixed_rate, service.port, orders, 50), 0.0
            while not running.done():
                most = max(most, service.memory())
                time.sleep(0.05)
            statuses, found = running.result()
            if attacked:
                bench.say(f"{self.requests.__name__}: {dict(attack.result()[0])}")
        if statuses.keys() != {"200"}:
            raise Failed(f"the merchant's orders: {dict(statuses)}")
        return found["p99"], most


@contextmanager
def _receiver(
    service: Service, bench: Bench, delay: float, merchants: tuple[str, ...] = MERCHANTS
) -> Iterator[Process]:
    """A server that gets the callbacks of these merchants."""
    with Beside("receiver", delay)(bench) as receiver:
        for key in merchants:
            service.orders(f"merchant set {key} --callback-url {receiver.url}/hook")
        yield receiver


def callback_rate(service: Service, bench: Bench) -> Figures:
    """Callbacks a second to a server that takes 20 ms, from the first to the last arrival. Raises Failed."""
    count = 200 if bench.quick else 1_000  # of each merchant, all due immediately
    for key, make in product(MERCHANTS, (traffic.orders, traffic.notices)):
        wrk(service, bench, partial(make, key=key), 8, LONGEST, count)
    with _receiver(service, bench, 0.02) as receiver:
        for key in MERCHANTS:
            service.orders(f"callback redeliver --merchant {key}")
        give_up, moments = time.monotonic() + 300, dict[str, float]()
        while len(moments) < len(MERCHANTS) * count:
            if time.monotonic() > give_up:
                raise Failed(f"of {len(MERCHANTS) * count} callbacks {len(moments)} were received")
            time.sleep(0.5)
            moments = {name: at for at, name in receiver.http.get(receiver.url, timeout=60).json()}
    return {"rate": (len(moments) - 1) / (max(moments.values()) - min(moments.values()))}


def one_at_a_time(receiver: Process, bench: Bench) -> Figures:
    """Callbacks a second of a plain loop: post one, commit its delivery, continue with the next."""
    with closing(sqlite3.connect(bench.work / "loop.sqlite", isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = FULL")
        file.execute("CREATE TABLE IF NOT EXISTS delivered (id INTEGER PRIMARY KEY, at REAL)")
        began = time.perf_counter()
        for _ in range(100):
            receiver.http.post(receiver.url, data=b"{}", timeout=60).raise_for_status()
            file.execute("INSERT INTO delivered (at) VALUES (?)", (time.time(),))
        return {"rate": 100 / (time.perf_counter() - began)}


def callback_delay(service: Service, bench: Bench) -> Figures:
    """Median time from a payment reported to its callback received, on an idle service, in ms."""
    with _receiver(service, bench, 0, ("demo",)) as receiver:
        _delay(service, receiver)  # the first one is slower
        return {"delay": statistics.median(_delay(service, receiver) for _ in range(4 if bench.quick else 30))}


def _delay(service: Service, receiver: Process) -> float:
    """Milliseconds from the notice of a payment to the receipt of its callback. Raises Failed."""
    order_no = service.call("createOrder", traffic.BUY)["order_no"]
    time.sleep(random.uniform(0.1, 0.7))  # at any point between two sweeps
    receiver.http.delete(receiver.url, timeout=60)
    began = time.monotonic()
    _send(service, traffic.notice(order_no))
    while not (seen := receiver.http.get(receiver.url, timeout=60).json()):
        if time.monotonic() > began + 30:
            raise Failed("no callback was received")
        time.sleep(0.05)
    return (seen[0][0] - began) * 1000


# The dead merchants are copies of one, and each has its share of the callbacks.
BACKLOG = """
    DELETE FROM callback_attempt;
    DELETE FROM callback WHERE webhook_id LIKE 'msg_dead_%';
    DELETE FROM merchant WHERE key LIKE 'dead-%';
    WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {merchants})
    INSERT INTO merchant ({others}, key, callback_url)
    SELECT {others}, 'dead-' || n, '{url}' FROM merchant, number WHERE key = 'other';
    WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < {backlog} - 1)
    INSERT INTO callback
        (webhook_id, merchant_id, order_id, type, body, state, attempts, due_at, createtime, updatetime)
    SELECT 'msg_dead_' || n, merchant.id, newest.id, 'dead-' || n, '{{}}', 'pending', 0, {now}, {now}, {now}
    FROM (SELECT max(id) AS id FROM "order") AS newest, number
    JOIN merchant ON key = 'dead-' || (n % {merchants} + 1);
"""


def undeliverable(service: Service, bench: Bench) -> Figures:
    """The longest delay of a healthy merchant's callbacks while ten thousand others can't be delivered, in ms.

    Their addresses are a closed port, one that never responds, and an unknown host, of 1, 100 or 10,000 merchants.
    """
    backlog, delays = 500 if bench.quick else 10_000, []
    with _receiver(service, bench, 0, ("demo",)) as receiver, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(4096)  # the system accepts connections that are never read
        _delay(service, receiver)  # creates the order that all callbacks are about
        urls = [f"http://127.0.0.1:{port}/" for port in (free_port(), silent.getsockname()[1])]
        for url, merchants in product([*urls, "http://shop.invalid/"], (1, 100, backlog)):
            service.stop()  # a new process has no delivery statistics
            with closing(sqlite3.connect(service.database, timeout=60)) as file:
                names = [row[1] for row in file.execute("PRAGMA table_info(merchant)")]
                others = ", ".join(name for name in names if name not in ("id", "key", "callback_url"))
                now = int(time.time())
                file.executescript(
                    BACKLOG.format(others=others, merchants=merchants, backlog=backlog, url=url, now=now)
                )
            service.start()
            time.sleep(1)
            delays.append(max(_delay(service, receiver) for _ in range(4 if bench.quick else 20)))
            bench.say(f"undeliverable to {url} of {merchants:,} merchants: {delays[-1]:.0f} ms")
    return {"delay": max(delays)}
