"""createOrder on SQLite and on Postgres, by one service and by several: orders a second, processor time per order."""

from __future__ import annotations

import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import bodies, load
from bench.context import Bench
from bench.processes import Service, ticks
from tests.postgres import Cluster

CONNECTIONS = 16  # to each service
LONGEST = 10  # seconds of load
MERCHANTS = ("demo", "other")


@dataclass(frozen=True)
class Setup:
    """A number of services on one database, each with its own merchant or all with the same."""

    name: str
    title: str
    services: int
    postgres: bool = True
    merchants: int = 1


SETUPS = (
    Setup("sqlite-1", "SQLite, one service", 1, postgres=False),
    Setup("postgres-1", "Postgres, one service", 1),
    Setup("postgres-2", "Postgres, two services, one merchant", 2),
    Setup("postgres-2-apart", "Postgres, two services, a merchant each", 2, merchants=2),
    Setup("postgres-4-apart", "Postgres, four services, two merchants", 4, merchants=2),
)
Found = tuple[float, float, float]  # orders a second; ms of a core per order, of the services and of the database


def _family(pid: int) -> float:
    """Seconds of processor time of a process and its children, including ended ones."""
    children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return (ticks(pid, ended=True) + sum(ticks(child) for child in children)) / os.sysconf("SC_CLK_TCK")


def _measured(bench: Bench, setup: Setup, number: int) -> Found:
    with ExitStack() as running:
        more, database = {}, 0
        if setup.postgres:
            cluster = Cluster(fsync="on", full_page_writes="on", autovacuum_naptime="1min")
            running.callback(cluster.remove)
            database = int((cluster.folder / "data" / "postmaster.pid").read_text().split()[0])
            more["ORDERS_DATABASE_URL"] = cluster.url(cluster.create())
        services: list[Service] = []
        for each in range(setup.services):
            folder = bench.work / f"{setup.name}-{number}-{each}"
            if services:  # the key is the same on all hosts
                folder.mkdir(parents=True)
                (folder / "vault.key").write_bytes((services[0].instance / "vault.key").read_bytes())
            services.append(running.enter_context(Service(folder, **more)))
        keys = [MERCHANTS[each % setup.merchants] for each in range(setup.services)]
        pids = [service.child.pid for service in services if service.child]

        def drive(service: Service, key: str, seconds: float) -> load.Load:
            prepared = bodies.posts("/merchant/createOrder", bodies.buys(round(4_000 * seconds), key=key))
            return load.run(service.url, CONNECTIONS, seconds, prepared, service.instance)

        with ThreadPoolExecutor(setup.services) as pool:
            list(pool.map(drive, services, keys, [1] * setup.services))  # the first responses are slower
            before = [sum(map(_family, pids)), _family(database) if database else 0]
            loads = list(pool.map(drive, services, keys, [min(bench.seconds, LONGEST)] * setup.services))
            after = [sum(map(_family, pids)), _family(database) if database else 0]
    orders = sum(one.responses for one in loads)
    own, theirs = (1000 * (late - early) / orders for early, late in zip(before, after, strict=True))
    return sum(one.rate for one in loads), own, theirs


def compare(bench: Bench) -> list[dict[str, Any]]:
    """Medians of each setup that this machine has enough cores for, the rate relative to SQLite."""
    cores = os.cpu_count() or 1
    setups = [setup for setup in SETUPS if setup.services <= max(2, cores // 2)]
    rounds: dict[str, list[Found]] = {setup.name: [] for setup in setups}
    for number in range(bench.rounds):
        for setup in setups[:: -1 if number % 2 else 1]:
            rounds[setup.name].append(_measured(bench, setup, number))
            bench.say(f"{setup.title}: {rounds[setup.name][-1][0]:.0f} a second")
    medians = {
        name: [statistics.median(values) for values in zip(*found, strict=True)] for name, found in rounds.items()
    }
    return [
        {
            "name": setup.name,
            "title": setup.title,
            "ratio": round(medians[setup.name][0] / medians["sqlite-1"][0], 4),
            "service_ms": round(medians[setup.name][1], 4),
            "database_ms": round(medians[setup.name][2], 4),
            "rates": [round(rate) for rate, _, _ in rounds[setup.name]],
        }
        for setup in setups
    ]
