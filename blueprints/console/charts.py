"""Where the marks of a plot stand: in percent of its width and height, so that its texts keep their size on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
STEPS = (1, 2, 5, 10)
LINES = 3  # of the axis, upwards


@dataclass(frozen=True)
class Line:
    """A line of the axis: its value, and where it is from the top, in percent."""

    value: int
    y: float


@dataclass(frozen=True)
class Bar(Generic[T]):
    """What belongs to one thing: above the middle line `up`, below it `down`, each a start and a height in percent."""

    item: T
    x: float
    width: float
    middle: float
    slot: tuple[float, float]
    up: tuple[float, float]
    down: tuple[float, float]


@dataclass(frozen=True)
class Plot(Generic[T]):
    """Bars side by side over and under the line of zero, with the lines of the axis."""

    bars: list[Bar[T]]
    lines: list[Line]
    zero: float


def round_step(largest: int) -> int:
    """A round value that goes into `largest` LINES times at most: 1, 2 or 5 with zeros; yuan in fen stay whole."""
    power = 100
    while True:
        for step in STEPS:
            if step * power * LINES >= largest:
                return step * power
        power *= 10


def mirrored(items: Sequence[T], ups: Sequence[int], downs: Sequence[int], gap: float = 0.2) -> Plot[T]:
    """A bar up and one down for each item, both to one scale; `gap` is the part of a bar's place that stays free."""
    step = round_step(max([*ups, *downs, 1]))
    above, below = (max(1, -(-max([*values, 0]) // step)) for values in (ups, downs))
    if not any(downs):
        below = 0
    height = 100 / ((above + below) * step)
    zero = above * step * height
    place = 100 / max(1, len(items))
    bars = [
        Bar(
            item=item,
            x=(at + gap / 2) * place,
            width=(1 - gap) * place,
            middle=(at + 0.5) * place,
            slot=(at * place, place),
            up=(zero - up * height, up * height),
            down=(zero, down * height),
        )
        for at, (item, up, down) in enumerate(zip(items, ups, downs, strict=True))
    ]
    lines = [Line(abs(number) * step, zero - number * step * height) for number in range(above, -below - 1, -1)]
    return Plot(bars, lines, zero)
