"""Charts of the overview as numbers for SVG: bars above and below zero, and small lines beside key figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Generic, Protocol, TypeVar

STEPS = (1, 2, 5)
LINES = 3  # maximum axis lines above zero
GAP = 0.2  # the share of a bar's slot that stays empty
WIDEST = 5.0  # percent of the chart that a bar takes at most
WIDTH, HEIGHT, EDGE = 100, 24, 2  # of a small line


class TwoWay(Protocol):
    """Something with an amount above zero and one below it, both in fen."""

    @property
    def up(self) -> int:
        """The amount above zero."""

    @property
    def down(self) -> int:
        """The amount below zero, as a positive number."""


Item = TypeVar("Item", bound=TwoWay)


@dataclass(frozen=True)
class Line:
    """A line of the axis: its value in fen and its distance from the top in percent."""

    value: int
    y: float


@dataclass(frozen=True)
class Bar(Generic[Item]):
    """The bar of one item: `up` above zero, `down` below it, each as top and height in percent."""

    item: Item
    x: float
    width: float
    middle: float
    slot: tuple[float, float]
    up: tuple[float, float]
    down: tuple[float, float]


@dataclass(frozen=True)
class Plot(Generic[Item]):
    """A bar chart with bars above and below zero; `zero` is the zero line's distance from the top in percent."""

    bars: list[Bar[Item]]
    lines: list[Line]
    zero: float


def _round_step(largest: int) -> int:
    """Return the smallest step (1, 2 or 5 times ¥1, ¥10, ...) in fen with which LINES steps reach `largest`."""
    round_values = (step * 10**power for power in count(2) for step in STEPS)
    return next(value for value in round_values if value * LINES >= largest)


def plot(items: Sequence[Item]) -> Plot[Item]:
    """Return the chart of some items, with both ways on one scale. It ends below its longest bar downwards."""
    most_up, most_down = max(each.up for each in items), max(each.down for each in items)
    step = _round_step(max(most_up, most_down))
    above, below = max(1, -(-most_up // step)), most_down // step
    height = 100 / (above * step + most_down)
    zero = above * step * height
    place = 100 / len(items)
    width = min((1 - GAP) * place, WIDEST)
    bars = [
        Bar(
            item=each,
            x=(at + 0.5) * place - width / 2,
            width=width,
            middle=(at + 0.5) * place,
            slot=(at * place, place),
            up=(zero - each.up * height, each.up * height),
            down=(zero, each.down * height),
        )
        for at, each in enumerate(items)
    ]
    lines = [Line(abs(number) * step, zero - number * step * height) for number in range(above, -below - 1, -1)]
    return Plot(bars, lines, zero)


def small_line(values: Sequence[float | None]) -> tuple[str, str]:
    """Return the points of a line through the known values, from 0 up, in a box of WIDTH by HEIGHT.

    The second part leads to the last value, of an hour or day that is not over. Both are "" without two known values.
    """
    known = [(at, value) for at, value in enumerate(values) if value is not None]
    if len(known) < 2:
        return "", ""
    most = max(value for _, value in known) or 1
    step, tall = WIDTH / (len(values) - 1), HEIGHT - 2 * EDGE
    points = [f"{at * step:.1f},{HEIGHT - EDGE - value / most * tall:.1f}" for at, value in known]
    if known[-1][0] < len(values) - 1:
        return " ".join(points), ""
    return " ".join(points[:-1]), " ".join(points[-2:])
