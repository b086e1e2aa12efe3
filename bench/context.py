"""State that all rows of a run share: durations, sizes, folders, and measurements already taken."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from bench import bodies, load, order_files
from bench.load import Load
from bench.machine import Watch

T = TypeVar("T")


@dataclass(frozen=True)
class Compared:
    """Figures of the service and its yardstick by round, in `unit`.

    `conditions` is how busy the machine was meanwhile (`machine.Watch.read`).
    """

    ours: list[float]
    yardstick: list[float]
    unit: str
    notes: tuple[str, ...] = ()
    conditions: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Median of the service divided by that of the yardstick."""
        return statistics.median(self.ours) / statistics.median(self.yardstick)


@dataclass
class Bench:
    """One run: `small`, `large` and `huge` are the numbers of orders in the files compared.

    `quick` is a run that only tries the harness. `folder` keeps files between runs.
    """

    quick: bool
    seconds: float
    rounds: int
    created: int
    small: int
    large: int
    huge: int
    growth: tuple[int, ...]
    folder: Path
    say: Callable[[str], None]
    _known: dict[Any, Any] = field(default_factory=dict)
    _conditions: dict[str, float] = field(default_factory=dict)  # of the shared measurement that the row used

    @property
    def work(self) -> Path:
        """Folder for files that are removed after the run."""
        return self.folder / "work"

    def compare(self, measure: Callable[[Bench], Compared]) -> Compared:
        """Measure a row and record how busy the machine was."""
        watch, self._conditions = Watch(), {}
        found = measure(self)
        return replace(found, conditions=self._conditions or watch.read())

    def once(self, measure: Callable[[Bench], T]) -> T:
        """Measure a value that several rows share once; if it fails, each of the rows fails."""
        if measure not in self._known:
            watch = Watch()
            try:
                self._known[measure] = measure(self), watch.read()
            except Exception as error:
                self._known[measure] = error, {}
        known, self._conditions = self._known[measure]
        if isinstance(known, Exception):
            raise known
        return known

    def in_turn(self, **things: Callable[[], T]) -> dict[str, list[T]]:
        """Measure each value once a round, in reverse order every other round."""
        results: dict[str, list[T]] = {name: [] for name in things}
        for number in range(self.rounds):
            for name in list(things)[:: -1 if number % 2 else 1]:
                results[name].append(things[name]())
        return results

    def load(
        self,
        url: str,
        connections: int,
        make_bodies: Any = None,
        seconds: float = 0,
        media: str = bodies.JSON,
        **headers: str,
    ) -> Load:
        """Run wrk for this run's time; `make_bodies` gets a sufficient number, and each body is posted once."""
        seconds = seconds or self.seconds
        path = urlsplit(url).path
        prepared = bodies.posts(path, make_bodies(round(12_000 * seconds)), media) if make_bodies else None
        return load.run(url, connections, seconds, prepared, self.work, headers)

    def seeded(self, orders: int) -> Path:
        """Return the folder of a service whose merchant `demo` has `orders` orders; callers must not change it."""
        return order_files.seeded(self.folder, orders, self.say)

    def copy(self, orders: int) -> Path:
        """A copy of `seeded` that may be changed."""
        return order_files.copied(self.seeded(orders), self.work / f"copy-{orders}")


def spent(*loads: Load) -> tuple[str, ...]:
    """Return a note if a run of wrk used up the prepared bodies before its time was over."""
    return ("the prepared bodies were used up before the time was over",) if any(one.spent for one in loads) else ()
