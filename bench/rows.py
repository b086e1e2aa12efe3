"""The table: each comparison with its target and the function that measures it."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from bench import overload
from bench.busy_cores import other_cores_busy
from bench.calling_back import callback_delay, callback_rate
from bench.context import Bench, Compared
from bench.creating import against_echo, against_raw, epay, fixed_rate, large_file, slow_channel, tail, withdrawals
from bench.footprint import memory, start
from bench.notices import settling
from bench.other_callers import latency as under_attack
from bench.other_callers import memory as memory_under_attack
from bench.querying import against_first_page, first_page, query, rare_text, region_data
from bench.undeliverable import undeliverable

STEADY = 0.25  # a row whose rounds spread by more is not published


def _range(rounds: list[float]) -> float:
    return max(rounds) - min(rounds)


@dataclass(frozen=True)
class Row:
    """One line. `target` is the minimum of the ratio or, if not `at_least`, its maximum.

    A row without a target has no verdict. `{large}` and the like in a title are replaced by the run's numbers.
    """

    name: str
    title: str
    target: float | None
    measure: Callable[[Bench], Compared]
    at_least: bool = True

    def meets_target(self, ratio: float) -> bool:
        """Return whether the ratio meets the target."""
        return self.target is None or (ratio >= self.target if self.at_least else ratio <= self.target)

    def spread(self, found: Compared) -> float:
        """Return the difference between the rounds of one side, relative to their median; the larger of the two sides.

        If the target is an upper limit that is above the median, the difference is relative to the limit: variations
        of a small fraction of the limit do not matter for the row.
        """
        yardstick = statistics.median(found.yardstick)
        limit = 0.0 if self.at_least or self.target is None else self.target * yardstick
        return max(
            _range(found.ours) / max(limit, statistics.median(found.ours)),
            _range(found.yardstick) / yardstick,
        )


def _at_most(name: str, title: str, target: float, measure: Callable[[Bench], Compared]) -> Row:
    return Row(name, title, target, measure, at_least=False)


ECHO = "createOrder / bare echo on"
LISTED = "orderQueryList, {huge} orders,"

OTHER_CALLERS = {
    "sign-ins": "120 sign-ins a second",
    "page-views": "127 views of a payment page a second",
    "searches": "22 searches a second by two characters among {large} orders",
    "signatures": "500 bad signatures a second",
}

CALLBACK = "payment reported to callback received,"
FLOOD = "createOrder at twice its maximum rate:"

ROWS = (
    Row("echo-8", f"{ECHO} waitress, 8 connections", 0.60, against_echo("waitress", 8)),
    Row("echo-32", f"{ECHO} waitress, 32 connections", 0.65, against_echo("waitress", 32)),
    Row("echo-1", f"{ECHO} waitress, 1 connection", None, against_echo("waitress", 1)),
    Row("same-8", f"{ECHO} the service's server, 8 connections", None, against_echo("same", 8)),
    Row("same-32", f"{ECHO} the service's server, 32 connections", None, against_echo("same", 32)),
    Row("same-1", f"{ECHO} the service's server, 1 connection", None, against_echo("same", 1)),
    Row("raw", "createOrder, 32 connections / raw transactions of the same rows", 0.45, against_raw),
    _at_most("tail", "createOrder, 8 connections: p99 / p50", 3, tail),
    Row("slow-channel", "createOrder on a channel of 500 ms, 16 connections / 32 a second", 0.80, slow_channel),
    Row("busy-cores", "createOrder, 8 connections: every other core busy / idle", None, other_cores_busy),
    Row("withdrawals", "createOrder, 8 connections: withdrawals / deposits", None, withdrawals),
    Row("epay-8", "orders by the epay gateway / createOrder, 8 connections", 0.9, epay(8)),
    Row("epay-32", "orders by the epay gateway / createOrder, 32 connections", 0.9, epay(32)),
    Row("settling", "notices that settle an order / createOrder, 8 connections", None, settling),
    Row("fixed-rate", "createOrder at 70 % of its maximum rate: p99 / median over 1 connection", None, fixed_rate),
    Row("crowd", "createOrder, 512 connections / 32", 0.85, overload.crowd),
    Row("flood", f"{FLOOD} orders a second / maximum", 0.6, overload.served),
    _at_most("flood-tail", f"{FLOOD} p99 of orders / 2 s", 1, overload.tail),
    _at_most("flood-memory", f"{FLOOD} memory after / before", 1.5, overload.growth),
    *(
        row
        for name, what in OTHER_CALLERS.items()
        for row in (
            _at_most(name, f"createOrder during {what}: p99 / without", 5, under_attack(name)),
            _at_most(f"{name}-memory", f"additional memory during {what} / 160 MiB", 1, memory_under_attack(name)),
        )
    ),
    *(
        Row(name, f"{endpoint} / bare echo on waitress, 8 connections", None, query(endpoint))
        for name, endpoint in (("detail", "orderQueryDetail"), ("list", "orderQueryList"))
    ),
    _at_most("first-page", "orderQueryList, first page: {large} orders / {small}", 1.15, first_page),
    _at_most("deep-page", f"{LISTED} page 5000 / first page", 2, against_first_page("deep")),
    _at_most("last-page", f"{LISTED} last page / first page", 2, against_first_page("last")),
    _at_most("range", f"{LISTED} 90 days / first page", 2, against_first_page("range")),
    _at_most("status", f"{LISTED} one status / first page", 2, against_first_page("status")),
    _at_most("rare-text", "orderQueryList, text of one of {large} orders / full scan in SQL", 1 / 50, rare_text),
    Row("large-file", "createOrder, 8 connections: {large} orders in the file / {small}", 0.85, large_file),
    Row("regions-gzip", "regionData, gzip / empty view", 0.75, region_data("gzip")),
    Row("regions-304", "regionData, not modified / empty view", 0.75, region_data("unchanged")),
    Row("callbacks", "callbacks to a server that takes 20 ms / one at a time", 20, callback_rate),
    _at_most("callback-delay", f"{CALLBACK} idle service / 50 ms", 1, callback_delay),
    _at_most(
        "hopeless",
        f"{CALLBACK} 10,000 undeliverable ones: worst p99 / 1 s",
        1,
        undeliverable,
    ),
    _at_most("memory", "memory after {created} orders created / after 1,000", 1.2, memory),
    _at_most("start", "start to first response: {large} orders in the file / none", 1.2, start),
)
