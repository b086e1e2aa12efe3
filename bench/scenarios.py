"""Loads with a course of their own, each on a server that was started for it (`Run.load`)."""

from __future__ import annotations

import multiprocessing
import os
import random
import socket
import sqlite3
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice, product

from bench import traffic
from bench.comparing import Bench, Failed, Figures, say
from bench.loading import Requests, Wrk, fixed_rate, wrk
from bench.starting import Beside, Process, Service, free_port

MERCHANTS = ("demo", "other")
RECEIVER = Beside("receiver")


def raw_transactions(service: Service, bench: Bench) -> Figures:
    """Transactions a second of sqlite3 without anything else, each of which writes the rows of one createOrder.

    The service creates orders. Then their rows are written again, into a copy of the file from before. Raises Failed if
    createOrder writes rows of other tables too, apart from those of triggers.
    """
    copy, written = bench.work / "raw.sqlite", ("order", "history", "nonce")
    with closing(sqlite3.connect(service.database)) as file, closing(sqlite3.connect(copy)) as target:
        file.backup(target)
    wrk(service, bench, traffic.orders, 32, bench.seconds)
    service.stop()
    with closing(sqlite3.connect(copy, isolation_level=None)) as file:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = 1"):
            file.execute(f"PRAGMA {pragma}")
        file.execute("ATTACH ? AS made", (str(service.database),))
        names = [row[1] for row in file.execute("PRAGMA made.table_list") if (row[0], row[2]) == ("made", "table")]
        new = 'SELECT * FROM made."{0}" EXCEPT SELECT * FROM main."{0}" ORDER BY 1'
        added = {name: file.execute(new.format(name)).fetchall() for name in names}
        file.execute("DETACH made")
        if others := [name for name in names if name not in written and len(added[name]) >= len(added["order"])]:
            raise Failed(f"createOrder writes to {', '.join(others)} too")
        random.shuffle(added["nonce"])  # as merchants' nonces arrive
        inserts = [f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(added[name][0]))})' for name in written]
        orders = list(zip(*(added[name] for name in written), strict=True))
        began = time.perf_counter()
        for rows in orders:
            file.execute("BEGIN IMMEDIATE")
            for insert, row in zip(inserts, rows, strict=True):
                file.execute(insert, row)
            file.execute("COMMIT")
        return {"rate": len(orders) / (time.perf_counter() - began)}


def starts(service: Service, bench: Bench) -> Figures:
    """Median time of five starts until the first response, in ms."""
    times = [service.started_in * 1000]
    for _ in range(0 if bench.quick else 4):
        service.stop()
        service.start()
        times.append(service.started_in * 1000)
    return {"start": statistics.median(times)}


def _keep_busy(cores: set[int]) -> None:
    os.sched_setaffinity(0, cores)
    while True:
        pass


@dataclass(frozen=True)
class Busy:
    """Load while a loop runs that may use any core; or one on every core but the server's own."""

    requests: Requests
    other_cores: bool = False

    def __call__(self, server: Process, bench: Bench) -> Figures:
        """Raises Failed if there is no other core."""
        every = os.sched_getaffinity(0)
        places = [{core} for core in every - server.cores()] if self.other_cores else [every]
        if not places:
            raise Failed("the service does not keep to one core, or there is no other one")
        loops = [multiprocessing.Process(target=_keep_busy, args=[cores], daemon=True) for cores in places]
        for loop in loops:
            loop.start()
        try:
            return Wrk(self.requests)(server, bench)
        finally:
            for loop in loops:
                loop.terminate()
                loop.join()


def many_orders(service: Service, bench: Bench) -> Figures:
    """Resident memory after very many orders (`memory`) and after the first thousand (`before`), in MiB."""
    done, before = 0.0, 0.0
    while done < (wanted := bench.at_most(1_000_000)):
        count = round(min(50_000, wanted - done)) if done else 1_000
        done += wrk(service, bench, traffic.orders, 8, count=count)["responses"]
        time.sleep(5)
        before = before or service.memory()
        say(f"{done:,.0f} orders created, {service.memory():.0f} MiB")
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

    Returns: `more`: the maximum of the service's memory with the other caller minus that without, in MiB.
    """

    requests: Requests
    rate: int

    def __call__(self, service: Service, bench: Bench) -> Figures:
        """Raises Failed if an order was not created."""
        service.rest()
        most = []
        with ProcessPoolExecutor(2) as pool:
            for attacked in (False, False, True):  # the first responses need more memory
                orders = list(islice(traffic.orders(service, key="other"), 50 * bench.seconds))
                if attacked:
                    requests = list(islice(self.requests(service), self.rate * (bench.seconds + 2)))
                    attack = pool.submit(fixed_rate, service.port, requests, self.rate)
                    time.sleep(1)
                running = pool.submit(fixed_rate, service.port, orders, 50)
                most.append(service.memory())
                while not running.done():
                    most[-1] = max(most[-1], service.memory())
                    time.sleep(0.05)
                if (statuses := running.result()[0]).keys() != {"200"}:
                    raise Failed(f"the merchant's orders: {dict(statuses)}")
            say(f"the other caller's requests: {dict(attack.result()[0])}")
        return {"more": most[2] - most[1]}


@contextmanager
def _receiver(service: Service, bench: Bench, delay: int, *merchants: str) -> Iterator[Process]:
    """A server that gets the callbacks of these merchants and responds after `delay` milliseconds."""
    with RECEIVER(bench) as receiver:
        for key in merchants:
            service.run(f"merchant set {key} --callback-url {receiver.url}/{delay}")
        yield receiver


def _received(receiver: Process) -> list[tuple[float, str]]:
    """The moment and the webhook-id of each callback."""
    return receiver.http.get(receiver.url, timeout=60).json()


def payouts(service: Service, bench: Bench) -> Figures:
    """Payouts a second from their approval by the channel's limit, all at once, until all are completed.

    The status of each is checked a second after it was sent to the channel, at the earliest. Raises Failed.
    """
    count = 200 if bench.quick else 4_000
    wrk(service, bench, traffic.withdrawals, 8, count=count)
    service.run("channel set {id} --auto-accept-max 1000")
    service.stop()
    with closing(sqlite3.connect(service.database)) as file, file:
        file.execute("UPDATE \"order\" SET due_at = createtime WHERE order_type = 2 AND status = 'pending'")
    service.start()
    began, give_up, before = time.monotonic(), time.monotonic() + 300, service.cpu()
    while (done := traffic.completed(service)) < count:
        if time.monotonic() > give_up:
            raise Failed(f"of {count} payouts {done} were completed")
        time.sleep(0.2)
    return {"rate": count / (time.monotonic() - began), "cpu": 1000 * (service.cpu() - before) / count}


def callback_rate(service: Service, bench: Bench, delay: int) -> Figures:
    """Callbacks a second to a server that takes `delay` ms, from the first to the last arrival. Raises Failed."""
    count = 200 if bench.quick else 1_000  # of each merchant, all due immediately
    for key, make in product(MERCHANTS, (traffic.orders, traffic.notices)):
        wrk(service, bench, partial(make, key=key), 8, count=count)
    with _receiver(service, bench, delay, *MERCHANTS) as receiver:
        for key in MERCHANTS:
            service.run(f"callback redeliver --merchant {key}")
        give_up, moments = time.monotonic() + 300, dict[str, float]()
        while len(moments) < len(MERCHANTS) * count:
            if time.monotonic() > give_up:
                raise Failed(f"of {len(MERCHANTS) * count} callbacks {len(moments)} were received")
            time.sleep(0.5)
            moments = {name: at for at, name in _received(receiver)}
    return {"rate": (len(moments) - 1) / (max(moments.values()) - min(moments.values()))}


def one_at_a_time(receiver: Process, bench: Bench) -> Figures:
    """Callbacks a second of a plain loop: post one, commit its delivery, continue with the next."""
    with closing(sqlite3.connect(bench.work / "loop.sqlite", isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = FULL")
        file.execute("CREATE TABLE IF NOT EXISTS delivered (id INTEGER PRIMARY KEY, at REAL)")
        began = time.perf_counter()
        for _ in range(100):
            receiver.http.post(f"{receiver.url}/20", data=b"{}", timeout=60).raise_for_status()
            file.execute("INSERT INTO delivered (at) VALUES (?)", (time.time(),))
        return {"rate": 100 / (time.perf_counter() - began)}


def callback_delay(service: Service, bench: Bench) -> Figures:
    """Median time from a payment reported to its callback received, on an idle service, in ms."""
    with _receiver(service, bench, 0, "demo") as receiver:
        _delay(service, receiver)  # the first one is slower
        return {"delay": statistics.median(_delay(service, receiver) for _ in range(4 if bench.quick else 30))}


def _delay(service: Service, receiver: Process) -> float:
    """Milliseconds from the notice of a payment to the receipt of its callback. Raises Failed."""
    order_no = service.call("createOrder", traffic.BUY)["order_no"]
    time.sleep(random.uniform(0.1, 0.7))  # at any point between two sweeps
    receiver.http.delete(receiver.url, timeout=60)
    began = time.monotonic()
    if not service.succeeds(traffic.notice(order_no)):
        raise Failed("the notice was refused")
    while not (received := _received(receiver)):
        if time.monotonic() > began + 30:
            raise Failed("no callback was received")
        time.sleep(0.05)
    return (received[0][0] - began) * 1000


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
    with _receiver(service, bench, 0, "demo") as receiver, socket.socket() as silent:
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
            say(f"undeliverable to {url} of {merchants:,} merchants: {delays[-1]:.0f} ms")
    return {"delay": max(delays)}
