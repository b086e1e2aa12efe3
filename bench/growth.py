"""How each endpoint's cost grows with the number of orders in the file."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from bench import bodies, scale
from bench.context import Bench
from bench.processes import Service
from bench.querying import REGIONS, lists, median_latency, rare

Rounds = dict[str, dict[int, list[float]]]


def _endpoints(bench: Bench, service: Service) -> dict[str, Callable[[], float]]:
    """What reads, by the name that it has in the picture."""
    ask = partial(median_latency, bench, service)
    numbers = [{"order_no": order_no} for order_no, _ in scale.demo_orders(service.instance, 500)]
    kinds = lists(service)
    return {
        "orderQueryDetail": partial(ask, "orderQueryDetail", numbers),
        "list, first page": partial(ask, "orderQueryList", [kinds["first"]]),
        "list, last page": partial(ask, "orderQueryList", [kinds["last"]]),
        "list, by status": partial(ask, "orderQueryList", [kinds["status"]]),
        "list, 90 days": partial(ask, "orderQueryList", [kinds["range"]]),
        "list, rare text": partial(ask, "orderQueryList", [{"merchant_order_no": rare(service.instance)}]),
        "getPayChannels": partial(ask, "getPayChannels"),
        "regionData": lambda: bench.load(service.url + REGIONS, 1).p50,
    }


def growth(bench: Bench) -> Rounds:
    """Each endpoint's median latency in ms, each round, by the number of orders in the file.

    The services of all sizes run side by side and are asked in turn; what writes comes last, for
    the orders that it makes are work for the service a minute later.
    """
    found: Rounds = {}
    with ExitStack() as running:
        services = {size: running.enter_context(Service(bench.copy(size))) for size in bench.growth}
        reads = {size: _endpoints(bench, service) for size, service in services.items()}
        writes = {
            size: {"createOrder": partial(median_latency, bench, service, "createOrder", [bodies.NEW_ORDER])}
            for size, service in services.items()
        }
        for measured in (reads, writes):
            for name in measured[bench.growth[0]]:
                bench.say(f"growth: {name}")
                things = {str(size): measured[size][name] for size in bench.growth}
                found[name] = {int(size): rounds for size, rounds in bench.in_turn(**things).items()}
    return found


def relative(found: Rounds) -> dict[str, list[tuple[int, float]]]:
    """Each endpoint's medians against its own at the fewest orders."""
    lines = {}
    for name, by_size in found.items():
        start = statistics.median(by_size[min(by_size)])
        lines[name] = [(size, statistics.median(rounds) / start) for size, rounds in sorted(by_size.items())]
    return lines
