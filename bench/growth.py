"""The growth of each endpoint's cost with the number of orders in the file."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench import bodies, order_files
from bench.context import Bench
from bench.processes import Service
from bench.querying import REGIONS, lists, median_latency, rare

Rounds = dict[str, dict[str, list[float]]]  # by endpoint and number of orders


def _numbers(service: Service) -> list[dict[str, Any]]:
    return [{"order_no": order_no} for order_no, _ in order_files.demo_orders(service.instance, 500)]


def _list(bench: Bench, service: Service, kind: str) -> float:
    query = {"merchant_order_no": rare(service.instance)} if kind == "rare" else lists(service)[kind]
    return median_latency(bench, service, "orderQueryList", [query])


# By name in the picture. createOrder is last, because its orders cause work for the service a minute later.
ENDPOINTS: dict[str, Callable[[Bench, Service], float]] = {
    "orderQueryDetail": lambda bench, service: median_latency(bench, service, "orderQueryDetail", _numbers(service)),
    "list, first page": partial(_list, kind="first"),
    "list, last page": partial(_list, kind="last"),
    "list, by status": partial(_list, kind="status"),
    "list, 90 days": partial(_list, kind="range"),
    "list, rare text": partial(_list, kind="rare"),
    "getPayChannels": lambda bench, service: median_latency(bench, service, "getPayChannels"),
    "regionData": lambda bench, service: bench.load(service.url + REGIONS, 1).p50,
    "createOrder": lambda bench, service: median_latency(bench, service, "createOrder", [bodies.NEW_ORDER]),
}


def growth(bench: Bench) -> Rounds:
    """Each endpoint's median latency in ms, each round, by the number of orders in the file."""
    folders = {str(size): bench.copy(size) for size in bench.growth}

    def of(folder: Path, measure: Callable[[Bench, Service], float]) -> float:
        with Service(folder) as service:
            return measure(bench, service)

    found: Rounds = {}
    for name, measure in ENDPOINTS.items():
        bench.say(f"growth: {name}")
        found[name] = bench.in_turn(**{size: partial(of, folder, measure) for size, folder in folders.items()})
    return found


def relative(found: Rounds) -> dict[str, list[tuple[int, float]]]:
    """Each endpoint's medians, relative to its median at the fewest orders."""
    lines = {}
    for name, by_size in found.items():
        medians = sorted((int(size), statistics.median(rounds)) for size, rounds in by_size.items())
        lines[name] = [(size, median / medians[0][1]) for size, median in medians]
    return lines
