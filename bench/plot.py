"""Plot of each endpoint's latency by the number of orders, as an SVG for light and dark themes."""

from __future__ import annotations

import math
from html import escape
from statistics import fmean, median

WIDTH, HEIGHT = 480, 520
LEFT, RIGHT, TOP, BOTTOM = 62, 178, 24, 74
EDGE, FLOOR = WIDTH - RIGHT, HEIGHT - BOTTOM
GAP = 19  # between labels
TICKS = [step * 10.0**power for power in range(-3, 7) for step in (1, 2, 5)]
# Colours that most people can distinguish on light and dark; dashes distinguish similar ones.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#5aa9e6", "#7f7f7f", "#8a6fdf", "#c23b3b")
DASHES = ("", "6 3", "2 3")
CSS = """
text { font: 14px system-ui, sans-serif; fill: #24292f; }
.back { fill: #fff; } .grid { stroke: #d0d7de; } .axis { stroke: #6e7781; } .small { font-size: 12.5px; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .back { fill: #0d1117; } .grid { stroke: #30363d; } .axis { stroke: #8b949e; }
}
"""


def _text(x: float, y: float, text: str, more: str = 'class="small"') -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _spread(wanted: list[float]) -> list[float]:
    """Positions for labels, as close as possible to the wanted ones (ascending), with a gap between neighbours."""
    groups: list[list[float]] = []  # of touching neighbours: the wanted positions of each one's first label
    for number, place in enumerate(wanted):
        groups.append([place - number * GAP])
        while len(groups) > 1 and fmean(groups[-2]) > fmean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    starts = [fmean(group) for group in groups for _ in group]
    highest, lowest = TOP + 5, FLOOR - (len(wanted) - 1) * GAP
    return [min(max(start, highest), lowest) + number * GAP for number, start in enumerate(starts)]


def drawn(latencies: dict[str, dict[str, list[float]]]) -> str:
    """Draw the picture. `latencies` has each endpoint's latency in ms by number of orders and round.

    Both axes are logarithmic. A line shows an endpoint's medians relative to the one at the fewest orders.
    """
    lines: dict[str, list[tuple[int, float]]] = {}
    for name, by_size in latencies.items():
        medians = sorted((int(size), median(rounds)) for size, rounds in by_size.items())
        lines[name] = [(size, each / medians[0][1]) for size, each in medians]
    sizes = [size for size, _ in next(iter(lines.values()))]
    values = [value for line in lines.values() for _, value in line]
    low, high = max(tick for tick in TICKS if tick <= min(values)), min(tick for tick in TICKS if tick >= max(values))

    def x(size: int) -> float:
        return LEFT + math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0]) * (EDGE - LEFT)

    def y(value: float) -> float:
        return FLOOR - math.log(value / low) / math.log(high / low) * (FLOOR - TOP)

    title = "Latency of each endpoint by the number of orders in the file, relative to the fewest"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">',
        f"<style>{CSS}</style>",
        f'<rect class="back" width="{WIDTH}" height="{HEIGHT}"/>',
    ]
    for tick in (tick for tick in TICKS if low <= tick <= high):
        parts.append(_line("grid", LEFT, y(tick), EDGE, y(tick)))
        parts.append(_text(LEFT - 8, y(tick) + 4.5, f"{tick:g}", 'class="small" text-anchor="end"'))
    parts.append(_line("axis", LEFT, FLOOR, EDGE, FLOOR))
    for size in sizes:
        parts.append(_line("axis", x(size), FLOOR, x(size), FLOOR + 5))
        short = f"{size / 1e6:g}M" if size >= 1e6 else f"{size / 1e3:g}k"
        parts.append(_text(x(size), FLOOR + 20, short, 'class="small" text-anchor="middle"'))
    parts.append(_text((LEFT + EDGE) / 2, FLOOR + 42, "orders in the file", 'text-anchor="middle"'))
    middle = (TOP + FLOOR) / 2
    turned = f'text-anchor="middle" transform="rotate(-90 17 {middle:.1f})"'
    parts.append(_text(17, middle, f"latency, relative to the same endpoint at {sizes[0]:,} orders", turned))

    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(lines)}
    ordered = sorted(lines.items(), key=lambda item: -item[1][-1][1])
    places = _spread([y(line[-1][1]) for _, line in ordered])
    for number, ((name, line), place) in enumerate(zip(ordered, places, strict=True)):
        points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in line)
        stroke, last = f'stroke="{colours[name]}" fill="none"', line[-1][1]
        dash = DASHES[number % len(DASHES)]
        parts.append(f'<polyline points="{points}" {stroke} stroke-width="2.2" stroke-dasharray="{dash}"/>')
        parts.append(f'<path d="M{EDGE + 1} {y(last):.1f} L{EDGE + 12} {place:.1f}" {stroke} opacity="0.7"/>')
        box = f'x="{EDGE + 13}" y="{place - 5:.1f}" width="10" height="10" rx="2"'
        parts.append(f'<rect {box} fill="{colours[name]}"/>')
        parts.append(_text(EDGE + 27, place + 5, f"{name} {last:.2f}"))
    return "\n".join([*parts, "</svg>"]) + "\n"
