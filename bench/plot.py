"""Plot of each endpoint's latency by the number of orders, as an SVG for light and dark themes."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from html import escape
from statistics import fmean

Lines = dict[str, list[tuple[int, float]]]

WIDTH, HEIGHT = 480, 520
LEFT, RIGHT, TOP, BOTTOM = 62, 178, 24, 74
GAP = 19  # between labels
ROUND = [step * 10.0**power for power in range(-3, 7) for step in (1, 2, 5)]
# Colours that most people can distinguish on light and dark; dashes distinguish similar ones.
STYLES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#5aa9e6", "#7f7f7f", "#8a6fdf", "#c23b3b")
DASHES = ("", "6 3", "2 3")
CSS = """
text { font: 14px system-ui, sans-serif; fill: #24292f; }
.back { fill: #fff; } .grid { stroke: #d0d7de; } .axis { stroke: #6e7781; } .small { font-size: 12.5px; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .back { fill: #0d1117; } .grid { stroke: #30363d; } .axis { stroke: #8b949e; }
}
"""


def _short(count: int) -> str:
    """1,000 as 1k, 5,000,000 as 5M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:g}{unit}"
    return str(count)


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


class Scale:
    """Coordinates of values: the axis of orders is logarithmic, and that of latency if its range is large."""

    def __init__(self, lines: Lines):
        sizes = sorted({size for line in lines.values() for size, _ in line})
        values = [value for line in lines.values() for _, value in line]
        self.sizes = sizes
        self.logarithmic = max(values) > 6
        if self.logarithmic:
            self.low = ROUND[bisect_right(ROUND, min(values)) - 1]
            self.high = ROUND[bisect_left(ROUND, max(values))]
        else:
            self.low, self.high = 0.0, math.ceil(max(*values, 1.2) / 0.5) * 0.5
        self._first, self._last = math.log10(sizes[0]), math.log10(sizes[-1])

    def ticks(self) -> list[float]:
        """Latencies with a grid line."""
        if self.logarithmic:
            return [value for value in ROUND if self.low <= value <= self.high]
        step = 0.5 if self.high <= 3 else 1.0
        return [step * number for number in range(round(self.high / step) + 1)]

    def x(self, size: int) -> float:
        share = (math.log10(size) - self._first) / max(self._last - self._first, 1e-9)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        if self.logarithmic:
            share = math.log10(value / self.low) / math.log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def _axes(scale: Scale) -> list[str]:
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
    drawn = []
    for value in scale.ticks():
        y = scale.y(value)
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(_text(LEFT - 8, y + 4.5, f"{value:g}", 'class="small" text-anchor="end"'))
    drawn.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{floor}" y2="{floor}"/>')
    taken = -math.inf
    for size in scale.sizes:
        x = scale.x(size)
        drawn.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{floor}" y2="{floor + 5}"/>')
        if x - taken > 26:
            drawn.append(_text(x, floor + 20, _short(size), 'class="small" text-anchor="middle"'))
            taken = x
    drawn.append(_text((LEFT + right) / 2, floor + 42, "orders in the file", 'text-anchor="middle"'))
    middle = (TOP + floor) / 2
    turned = f'text-anchor="middle" transform="rotate(-90 17 {middle:.1f})"'
    text = f"latency, relative to the same endpoint at {scale.sizes[0]:,} orders"
    drawn.append(_text(17, middle, text, turned))
    return drawn


def _spread(wanted: list[float]) -> list[float]:
    """Positions for labels, as close as possible to the wanted ones (ascending), with a gap between neighbours."""
    groups: list[list[float]] = []  # of touching neighbours: the wanted positions of each one's first label
    for number, place in enumerate(wanted):
        groups.append([place - number * GAP])
        while len(groups) > 1 and fmean(groups[-2]) > fmean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    starts = [fmean(group) for group in groups for _ in group]
    highest, lowest = TOP + 5, HEIGHT - BOTTOM - (len(wanted) - 1) * GAP
    return [min(max(start, highest), lowest) + number * GAP for number, start in enumerate(starts)]


def _curves(scale: Scale, lines: Lines) -> list[str]:
    drawn, edge = [], WIDTH - RIGHT
    ordered = sorted(lines.items(), key=lambda item: scale.y(item[1][-1][1]))
    places = _spread([scale.y(line[-1][1]) for _, line in ordered])
    colours = {name: STYLES[number % len(STYLES)] for number, name in enumerate(lines)}
    for number, ((name, line), place) in enumerate(zip(ordered, places, strict=True)):
        colour, dash = colours[name], DASHES[number % len(DASHES)]
        points = " ".join(f"{scale.x(size):.1f},{scale.y(value):.1f}" for size, value in line)
        drawn.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.2" stroke-dasharray="{dash}"/>'
        )
        end = scale.y(line[-1][1])
        drawn.append(
            f'<path d="M{edge + 1} {end:.1f} L{edge + 12} {place:.1f}" stroke="{colour}" fill="none" opacity="0.7"/>'
        )
        drawn.append(f'<rect x="{edge + 13}" y="{place - 5:.1f}" width="10" height="10" rx="2" fill="{colour}"/>')
        drawn.append(_text(edge + 27, place + 5, f"{name} {_ratio(line[-1][1])}", 'class="small"'))
    return drawn


def drawn(lines: Lines) -> str:
    """Draw the picture. `lines` has each endpoint's points: orders in the file, latency relative to the first."""
    scale = Scale(lines)
    text = "Latency of each endpoint by the number of orders in the file, relative to the fewest"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text}">',
        f"<style>{CSS}</style>",
        f'<rect class="back" width="{WIDTH}" height="{HEIGHT}"/>',
        *_axes(scale),
        *_curves(scale, lines),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
