"""Speed of the queries on small and large files, and of the region data against an empty view."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from bench import bodies, order_files
from bench.context import Bench, Compared
from bench.load import Failed
from bench.processes import WAITRESS_THREADS, Service, bare
from runtime.settings import Settings

REGIONS = "/addons/paychannel/channel.gatewaya/regionData"
LIMIT = 20
DEEP_PAGE = 5000
FROM = 1_767_196_800 + 100 * 86_400  # a hundred days after the start of the seeded orders
NINETY_DAYS = {"start_time": FROM, "end_time": FROM + 90 * 86_400}


def median_latency(bench: Bench, service: Service, endpoint: str, kinds: Sequence[dict[str, Any]] = ({},)) -> float:
    """The endpoint's median latency over one connection, in ms."""
    found = bench.load(f"{service.url}/merchant/{endpoint}", 1, lambda count: bodies.signed(endpoint, count, kinds))
    return found.p50


def lists(service: Service) -> dict[str, dict[str, Any]]:
    """Return the measured pages and filters of orderQueryList."""
    pages = -(-service.call("orderQueryList", {})["total"] // LIMIT)
    return {
        "first": {},
        "deep": {"page": min(DEEP_PAGE, pages - 1)},
        "last": {"page": pages},
        "range": NINETY_DAYS,
        "status": {"status": "completed"},
    }


def _queries(bench: Bench) -> dict[str, list[float]]:
    """Responses a second over 8 connections: both queries on the small file, and the bare echo."""
    folder = bench.seeded(bench.small)
    with Service(folder) as service, bare("waitress", WAITRESS_THREADS, bench.work) as echo:
        numbers = [{"order_no": order_no} for order_no, _ in order_files.demo_orders(folder, 500)]

        def of(endpoint: str, kinds: Sequence[dict[str, Any]]) -> float:
            url = f"{service.url}/merchant/{endpoint}"
            return bench.load(url, 8, lambda count: bodies.signed(endpoint, count, kinds)).rate

        return bench.in_turn(
            orderQueryDetail=partial(of, "orderQueryDetail", numbers),
            orderQueryList=partial(of, "orderQueryList", [{}]),
            echo=lambda: bench.load(f"{echo.url}/echo", 8, bodies.buys).rate,
        )


def query(endpoint: str) -> Callable[[Bench], Compared]:
    """A query against the bare echo on waitress: responses a second."""

    def measure(bench: Bench) -> Compared:
        found = bench.once(_queries)
        return Compared(found[endpoint], found["echo"], "a second")

    return measure


def first_page(bench: Bench) -> Compared:
    """The first page with its total, with many orders against few."""

    def of(orders: int) -> float:
        with Service(bench.seeded(orders)) as service:
            return median_latency(bench, service, "orderQueryList")

    found = bench.in_turn(large=partial(of, bench.large), small=partial(of, bench.small))
    return Compared(found["large"], found["small"], "ms")


def _huge_file(bench: Bench) -> dict[str, list[float]]:
    with Service(bench.seeded(bench.huge)) as service:
        kinds = lists(service)
        return bench.in_turn(
            **{name: partial(median_latency, bench, service, "orderQueryList", [kind]) for name, kind in kinds.items()}
        )


def against_first_page(kind: str) -> Callable[[Bench], Compared]:
    """A page or filter of the list against the first page, all with the most orders."""

    def measure(bench: Bench) -> Compared:
        found = bench.once(_huge_file)
        return Compared(found[kind], found["first"], "ms")

    return measure


def rare(folder: Path) -> str:
    """A text that is in the `merchant_order_no` of one order of `demo`."""
    numbers = order_files.demo_orders(folder, 20)
    return numbers[len(numbers) // 2][1][-7:]


def _scan(folder: Path, text: str) -> float:
    """Milliseconds of a full scan by sqlite3. Raises Failed unless it finds one order."""
    with closing(sqlite3.connect(folder / "orders.sqlite")) as file:
        began = time.perf_counter()
        (count,) = file.execute(
            'SELECT count(*) FROM "order" NOT INDEXED WHERE merchant_id = 1 AND merchant_order_no LIKE ?',
            (f"%{text}%",),
        ).fetchone()
        took = time.perf_counter() - began
    if count != 1:
        raise Failed(f"{count} orders contain {text}")
    return took * 1000


def rare_text(bench: Bench) -> Compared:
    """A list filtered by a text that one order has, against a full scan."""
    folder = bench.seeded(bench.large)
    text = rare(folder)
    with Service(folder) as service:
        found = bench.in_turn(
            service=partial(median_latency, bench, service, "orderQueryList", [{"merchant_order_no": text}]),
            scan=lambda: _scan(folder, text),
        )
    return Compared(found["service"], found["scan"], "ms")


def _region_data(bench: Bench) -> dict[str, list[float]]:
    with Service(bench.work / "regions") as service, bare("same", Settings.threads, bench.work) as empty:
        url = service.url + REGIONS
        tag = service.http.get(url, headers={"Accept-Encoding": "gzip"}).headers["ETag"]
        packed, unchanged = {"Accept-Encoding": "gzip"}, {"Accept-Encoding": "gzip", "If-None-Match": tag}
        for headers, status in ((packed, 200), (unchanged, 304)):
            if service.http.get(url, headers=headers).status_code != status:
                raise Failed(f"regionData does not return {status}")
        return bench.in_turn(
            gzip=lambda: bench.load(url, 8, **packed).rate,
            unchanged=lambda: bench.load(url, 8, **unchanged).rate,
            empty=lambda: bench.load(f"{empty.url}/empty", 8).rate,
        )


def region_data(kind: str) -> Callable[[Bench], Compared]:
    """The region tree against an empty view: responses a second."""

    def measure(bench: Bench) -> Compared:
        found = bench.once(_region_data)
        return Compared(found[kind], found["empty"], "a second")

    return measure
