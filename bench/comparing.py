"""One way to compare: rows of data, whose measurements are taken in turn, each on a server that is started for it."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

Figures = dict[str, float]  # by name, `UNITS`
UNITS = {"rate": "a second", "maximum": "a second", "memory": "MiB", "before": "MiB", "more": "MiB"}  # others: ms
STEADY = 0.25  # a row whose rounds spread by more is not written
MOST_QUICK = 20_000  # orders in a file of a quick run


class Failed(Exception):
    """A measurement that does not count: a request was refused or broken, or a process did not start."""


def say(text: str) -> None:
    """Report progress."""
    print(f"  {text}", file=sys.stderr, flush=True)


class Bench:
    """One run of the command. `quick` only tries the harness: small files, one short round.

    `folder` keeps files between runs, `work` is its part that is removed afterwards.
    """

    def __init__(self, folder: Path, *, quick: bool):
        self.folder, self.work, self.quick = folder, folder / "work", quick
        self.rounds, self.seconds = (1, 1) if quick else (3, 5)  # seconds of load in each round
        self.prepared: dict[Any, Any] = {}  # services by setup (`starting.Prepared`)

    def at_most(self, orders: int) -> int:
        """A number of orders, smaller in a quick run."""
        return min(orders, MOST_QUICK) if self.quick else orders


@dataclass(frozen=True)
class Run:
    """A load on a server that is started for it; `once` is a long one, which is measured in one round only."""

    server: Callable[[Bench], AbstractContextManager[Any]]
    load: Callable[[Any, Bench], Figures]
    once: bool = False

    def measure(self, bench: Bench) -> Figures:
        """Start the server, load it and stop it.

        Returns: the figures of the load, and `others`: the share of all cores' time that processes other than ours have
        used meanwhile.
        """
        began, before = time.monotonic(), _busy_seconds()
        with self.server(bench) as server:
            found = self.load(server, bench)
        cores_used = (_busy_seconds() - before) / (time.monotonic() - began)
        return found | {"others": min(1.0, max(0.0, cores_used / (os.cpu_count() or 1)))}


def _busy_seconds() -> float:
    """Processor time since boot of all processes but this one and its children that have ended."""
    counts = [int(count) for count in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _, _, _, _, steal = counts  # our own traffic causes most interrupts
    return (user + nice + system + steal) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


@dataclass(frozen=True)
class Row:
    """One comparison: a figure of ours divided by the yardstick's, or by a fixed limit.

    `against` is the yardstick's figure if it is another one. A row without `at_least` and `at_most` has no verdict.
    """

    name: str
    title: str
    ours: Run
    yardstick: Run | float
    figure: str = "rate"
    against: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str:
        return f">= {self.at_least:.3g}" if self.at_least else f"<= {self.at_most:.3g}" if self.at_most else ""


def compare(bench: Bench, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Measure rows together; those that need the same measurement share it. A failure stops no other row.

    Each measurement is taken once a round, in reverse order every other round. One that failed is not repeated.

    Returns: the entry of each row for the file of results, which has an `error` or the figures (`entry`).
    """
    rows = list(rows)
    found: dict[Any, list[Figures]] = {
        run: [] for row in rows for run in (row.ours, row.yardstick) if isinstance(run, Run)
    }
    errors: dict[Any, str] = {}
    for number in range(bench.rounds):
        for run in list(found)[:: -1 if number % 2 else 1]:
            if run in errors or (run.once and number):
                continue
            try:
                found[run].append(run.measure(bench))
            except Failed as error:
                errors[run] = str(error)
            except Exception as error:
                traceback.print_exc()
                errors[run] = f"{type(error).__name__}: {error}"
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    entries = []
    for row in rows:
        failed = errors.get(row.ours) or errors.get(row.yardstick)
        yardstick = found.get(row.yardstick, [{row.figure: row.yardstick}])
        known = {"error": failed} if failed else entry(row, found[row.ours], yardstick)
        entries.append({"name": row.name, "title": row.title, "target": row.target, "date": today} | known)
    return entries


def entry(row: Row, ours: list[Figures], yardstick: list[Figures]) -> dict[str, Any]:
    """What a row's figures by round show.

    Returns: `ratio` of the medians and its `verdict`; the compared figures of all `rounds`; the medians of all
    `figures`, the highest of `others`; and `spread`: the difference between the rounds of one side, relative to their
    median, the larger of the two sides. If the target is an upper limit that is above the median, the difference is
    relative to the limit: variations of a small fraction of it do not matter.
    """
    compared = {
        "service": [round(one[row.figure], 3) for one in ours],
        "yardstick": [round(one[row.against or row.figure], 3) for one in yardstick],
    }
    middle, against = median(compared["service"]), median(compared["yardstick"])
    ratio, limit = middle / against, max(middle, (row.at_most or 0) * against)
    spreads = _range(compared["service"]) / limit, _range(compared["yardstick"]) / against
    met = ratio >= row.at_least if row.at_least else ratio <= row.at_most if row.at_most else None
    return {
        "verdict": "" if met is None else "met" if met else "MISSED",
        "ratio": round(ratio, 4),
        "unit": UNITS.get(row.figure, "ms"),
        "rounds": compared,
        "figures": {
            side: {name: round(median(one[name] for one in rounds), 4) for name in rounds[0] if name != "others"}
            for side, rounds in {"service": ours, "yardstick": yardstick}.items()
        },
        "spread": round(max(spreads), 4),
        "others": round(max(one.get("others", 0) for one in (*ours, *yardstick)), 3),
    }


def _range(values: list[float]) -> float:
    return max(values) - min(values)
