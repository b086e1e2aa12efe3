"""Overload: many connections at once, and twice the maximum rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench import bodies, flood
from bench.context import Bench, Compared, spent
from bench.load import Failed
from bench.processes import Service

FEW, CROWD = 32, 512
TIMES = 2
LIMIT_MS = 2_000


def crowd(bench: Bench) -> Compared:
    """createOrder over very many connections against some: orders a second."""
    with Service(bench.work / "crowd") as service:
        url = f"{service.url}/merchant/createOrder"
        bench.load(url, FEW, bodies.buys, 1)  # the first responses are slower
        found = bench.in_turn(
            crowd=lambda: bench.load(url, CROWD, bodies.buys), few=lambda: bench.load(url, FEW, bodies.buys)
        )
    p99 = ", ".join(f"{one.p99:.0f}" for one in found["crowd"])
    notes = (f"p99 at {CROWD} connections: {p99} ms", *spent(*found["crowd"], *found["few"]))
    return Compared([one.rate for one in found["crowd"]], [one.rate for one in found["few"]], "a second", notes)


@dataclass
class _Flooded:
    """Figures by round."""

    capacity: list[float] = field(default_factory=list)  # orders a second
    served: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)  # ms
    before: list[float] = field(default_factory=list)  # MiB
    after: list[float] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def _flood(bench: Bench, service: Service, rate: float) -> dict[str, Any]:
    """Send this number of orders a second for this run's time. Raises Failed if one got neither an order nor a
    refusal."""
    orders = bodies.posts("/merchant/createOrder", bodies.buys(round(rate * bench.seconds)))
    found = flood.outcome(flood.start(service.port, orders, rate, bench.seconds, bench.work / "flood.txt"))
    if set(found["statuses"]) - {"200", "503", "unsent"}:
        raise Failed(f"at {rate:.0f} a second: {flood.counts(found)}")
    return found


def _flooded(bench: Bench) -> _Flooded:
    rounds = _Flooded()
    for number in range(bench.rounds):
        with Service(bench.work / f"flood-{number}") as service:
            url = f"{service.url}/merchant/createOrder"
            bench.load(url, 64, bodies.buys, 1)  # the first responses are slower
            rounds.capacity.append(bench.load(url, 64, bodies.buys).rate)
            rounds.before.append(service.memory() / 2**20)
            found = _flood(bench, service, TIMES * rounds.capacity[-1])
            rounds.after.append(service.memory() / 2**20)
            service.call("createOrder", bodies.BUY)  # fails the row if the service has not recovered
        rounds.served.append(found["statuses"].get("200", 0) / found["seconds"])
        rounds.p99.append(found["p99"].get("200", float(LIMIT_MS)))
        rounds.notes += (flood.counts(found),)
    return rounds


def _side(take: Callable[[_Flooded], tuple[list[float], list[float], str]]) -> Callable[[Bench], Compared]:
    """One comparison of the runs at twice the maximum rate."""

    def measure(bench: Bench) -> Compared:
        rounds = bench.once(_flooded)
        return Compared(*take(rounds), rounds.notes)

    return measure


served = _side(lambda rounds: (rounds.served, rounds.capacity, "a second"))
tail = _side(lambda rounds: (rounds.p99, [float(LIMIT_MS)] * len(rounds.p99), "ms"))
growth = _side(lambda rounds: (rounds.after, rounds.before, "MiB"))
