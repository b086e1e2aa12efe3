"""What a run of the benchmarks shares: how long, how large, where, and what was measured already."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from bench import bodies, load, scale
from bench.load import Load
from bench.machine import Watch

T = TypeVar("T")


@dataclass(frozen=True)
class Compared:
    """The service and its yardstick, measured in turn: what each round gave, in `unit`.

    `conditions` is how busy the machine was meanwhile (`machine.Watch.read`).
    """

    ours: list[float]
    yardstick: list[float]
    unit: str
    notes: tuple[str, ...] = ()
    conditions: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Of the medians."""
        return statistics.median(self.ours) / statistics.median(self.yardstick)


@dataclass
class Bench:
    """One run: `small`, `large` and `huge` are the numbers of orders in the files compared.

    `quick` is a run that only tries the harness. `folder` is where files are kept, also from run to run.
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
        """What this run alone needs."""
        return self.folder / "work"

    def compare(self, measure: Callable[[Bench], Compared]) -> Compared:
        """Measure a row and record how busy the machine was."""
        watch, self._conditions = Watch(), {}
        found = measure(self)
        return replace(found, conditions=self._conditions or watch.read())

    def once(self, measure: Callable[[Bench], T]) -> T:
        """What several rows share, measured for the first of them; its failure is theirs, too."""
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
        """Each thing once a round; every other round in reverse, so that none always follows the same one."""
        results: dict[str, list[T]] = {name: [] for name in things}
        for number in range(self.rounds):
            for name in list(things)[:: -1 if number % 2 else 1]:
                results[name].append(things[name]())
        return results

    def load(self, url: str, connections: int, make_bodies: Any = None, seconds: float = 0, **headers: str) -> Load:
        """A run of wrk for this run's time; `make_bodies` gets a sufficient number, each is posted once."""
        seconds = seconds or self.seconds
        path = urlsplit(url).path
        prepared = bodies.posts(path, make_bodies(round(12_000 * seconds))) if make_bodies else None
        return load.run(url, connections, seconds, prepared, self.work, headers)

    def seeded(self, orders: int) -> Path:
        """The folder of a service with so many orders of the merchant `demo`; not to be written to."""
        return scale.seeded(self.folder, orders, self.say)

    def copy(self, orders: int) -> Path:
        """A copy of `seeded` to write to."""
        return scale.copied(self.seeded(orders), self.work / f"copy-{orders}")


def spent(*loads: Load) -> tuple[str, ...]:
    """A note where a run of wrk ended early, for all that was prepared had been answered."""
    return ("the prepared bodies were used up before the time was over",) if any(one.spent for one in loads) else ()
