"""One way to compare: rows of data, whose measurements are taken in turn, each on a server that is started for it."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

Figures = dict[str, float]  # by name, `UNITS`
UNITS = {"rate": "a second", "maximum": "a second", "memory": "MiB", "before": "MiB", "more": "MiB"}  # others: ms
CONDITIONS = ("load_average", "others")  # of a measurement
STEADY = 0.25  # a row whose rounds spread by more is not published


class Failed(Exception):
    """A measurement that does not count: a request was refused or broken, or a process did not start."""


@dataclass
class Bench:
    """One run of the command.

    `quick` only tries the harness. `sizes` has numbers of orders in files, and of those that the row `memory` creates.
    `folder` keeps files between runs, `work` is its part that is removed afterwards.
    """

    quick: bool
    seconds: float
    rounds: int
    sizes: dict[str, int]
    folder: Path
    say: Callable[[str], None]
    prepared: dict[Any, Any] = field(default_factory=dict)  # folders by setup (`starting.Prepared`)

    @property
    def work(self) -> Path:
        """Folder for files that are removed after the run."""
        return self.folder / "work"


@dataclass(frozen=True)
class Run:
    """A load on a server that is started for it; `once` is a long one, which is measured in one round only."""

    server: Callable[[Bench], AbstractContextManager[Any]]
    load: Callable[[Any, Bench], Figures]
    once: bool = False

    def measure(self, bench: Bench) -> Figures:
        """Start the server, load it and stop it.

        Returns: the figures of the load, `load_average`, and `others`: the share of all cores' time that processes
        other than ours have used meanwhile.
        """
        began, before = time.monotonic(), _busy_seconds()
        with self.server(bench) as server:
            found = self.load(server, bench)
        used = _busy_seconds() - before
        others = min(1.0, max(0.0, used / (time.monotonic() - began) / (os.cpu_count() or 1)))
        return found | {"load_average": os.getloadavg()[0], "others": others}


def _busy_seconds() -> float:
    """Processor time since boot of all processes but this one and its children that have ended."""
    counts = [int(count) for count in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _, _, _, _, steal = counts  # our own traffic causes most interrupts
    return (user + nice + system + steal) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


@dataclass(frozen=True)
class Row:
    """One comparison: a figure of ours divided by the yardstick's, or by a fixed limit.

    `against` is the yardstick's figure if it is another one. A row without `at_least` and `at_most` has no verdict.
    `{large}` and the like in a title are replaced by the run's numbers.
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


def compare(bench: Bench, rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Measure rows together; those that need the same measurement share it. A failure stops no other row.

    Each measurement is taken once a round, in reverse order every other round. One that failed is not repeated.

    Returns: the entry of each row for the file of results, which has an `error` or the figures (`entry`).
    """
    rows = list(rows)
    found: dict[Any, Any] = {run: [] for row in rows for run in (row.ours, row.yardstick) if isinstance(run, Run)}
    for number in range(bench.rounds):
        for run in list(found)[:: -1 if number % 2 else 1]:
            if isinstance(found[run], Failed) or (run.once and number):
                continue
            try:
                found[run].append(run.measure(bench))
            except Failed as error:
                found[run] = error
            except Exception as error:
                traceback.print_exc()
                found[run] = Failed(f"{type(error).__name__}: {error}")
    numbers = {name: f"{count:,}" for name, count in bench.sizes.items()}
    for row in rows:
        ours, yardstick = found[row.ours], found.get(row.yardstick, [{row.figure: row.yardstick}])
        failed = next((str(side) for side in (ours, yardstick) if isinstance(side, Failed)), "")
        known = {"error": failed} if failed else entry(row, ours, yardstick)
        yield {"name": row.name, "title": row.title.format(**numbers), "target": row.target} | known


def entry(row: Row, ours: list[Figures], yardstick: list[Figures]) -> dict[str, Any]:
    """What a row's figures by round show.

    Returns: `ratio` of the medians and its `verdict`; the compared figures of all `rounds`; the medians of all
    `figures`; the `conditions`, of the busiest measurement; and `spread`: the difference between the rounds of one
    side, relative to their median, the larger of the two sides. If the target is an upper limit that is above the
    median, the difference is relative to the limit: variations of a small fraction of it do not matter.
    """
    sides = {"service": ours, "yardstick": yardstick}
    compared = {
        "service": [round(one[row.figure], 3) for one in ours],
        "yardstick": [round(one[row.against or row.figure], 3) for one in yardstick],
    }
    middle = {side: median(values) for side, values in compared.items()}
    ratio = middle["service"] / middle["yardstick"]
    limits = {
        "service": max(middle["service"], (row.at_most or 0) * middle["yardstick"]),
        "yardstick": middle["yardstick"],
    }
    met = ratio >= row.at_least if row.at_least else ratio <= row.at_most if row.at_most else None
    conditions = [one for one in (*ours, *yardstick) if "others" in one]
    return {
        "verdict": "" if met is None else "met" if met else "MISSED",
        "ratio": round(ratio, 4),
        "unit": UNITS.get(row.figure, "ms"),
        "rounds": compared,
        "figures": {
            side: {name: round(median(one[name] for one in rounds), 4) for name in rounds[0] if name not in CONDITIONS}
            for side, rounds in sides.items()
        },
        "spread": round(max((max(values) - min(values)) / limits[side] for side, values in compared.items()), 4),
        "conditions": {name: round(max(one[name] for one in conditions), 3) for name in CONDITIONS},
    }
