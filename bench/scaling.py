"""`python -m bench --scaling`: createOrder on SQLite and on Postgres, by one service and by several."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import traffic
from bench.comparing import Bench, Figures, Row, Run
from bench.loading import wrk
from bench.starting import Service, cpu_seconds
from tests.postgres import Cluster


@dataclass(frozen=True)
class Setup:
    """Starts a service for each of the merchants, all on one database. Yields them with the process id of Postgres."""

    merchants: tuple[str, ...]
    postgres: bool = True

    @contextmanager
    def __call__(self, bench: Bench) -> Iterator[tuple[list[Service], int | None]]:
        with ExitStack() as stack:
            settings, database = {}, None
            if self.postgres:
                cluster = Cluster(fsync="on", full_page_writes="on", autovacuum_naptime="1min")
                stack.callback(cluster.remove)
                database = int((cluster.folder / "data" / "postmaster.pid").read_text().split()[0])
                settings["ORDERS_DATABASE_URL"] = cluster.url(cluster.create())
            services: list[Service] = []
            for key in self.merchants:
                service = Service(Path(stack.enter_context(TemporaryDirectory(dir=bench.work))), environ=settings)
                service.known = {"key": key}
                if services:  # the key is the same on all hosts
                    shutil.copy(services[0].folder / "vault.key", service.folder)
                services.append(stack.enter_context(service))
            yield services, database


def _orders(started: tuple[list[Service], int | None], bench: Bench) -> Figures:
    """Orders a second of all services, and ms of a core per order, of the services and of the database."""
    services, database = started

    def load(service: Service, seconds: float) -> Figures:
        return wrk(service, bench, partial(traffic.orders, key=service.known["key"]), 16, seconds)

    with ThreadPoolExecutor(len(services)) as pool:
        # The first responses are slower, and services on one core need some seconds to leave it to one of them.
        list(pool.map(partial(load, seconds=1 if len(services) == 1 else 8), services))
        before = cpu_seconds(database) if database else 0
        found = list(pool.map(partial(load, seconds=bench.seconds), services))
        used = cpu_seconds(database) - before if database else 0
    orders = sum(one["responses"] for one in found)
    service = sum(one["cpu"] * one["responses"] for one in found) / orders
    return {"rate": sum(one["rate"] for one in found), "service": service, "database": 1000 * used / orders}


SQLITE = Run(Setup(("demo",), postgres=False), _orders)
ONE, SAME, APART = (Run(Setup(merchants), _orders) for merchants in (("demo",), ("demo", "demo"), ("demo", "other")))
ROWS = (
    Row("sqlite-1", "SQLite, one service", SQLITE, SQLITE),
    Row("postgres-1", "Postgres, one service", ONE, SQLITE),
    Row("postgres-2", "Postgres, two services, one merchant", SAME, SQLITE),
    Row("postgres-2-apart", "Postgres, two services, a merchant each", APART, SQLITE),
)
