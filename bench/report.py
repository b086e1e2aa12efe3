"""Output of a run: the printed table of ratios, and all figures as JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import machine
from bench.context import Bench, Compared
from bench.rows import STEADY, Row


def title(row: Row, bench: Bench) -> str:
    """The row's title with this run's numbers."""
    numbers = {name: f"{getattr(bench, name):,}" for name in ("small", "large", "huge", "created")}
    return row.title.format(**numbers)


def _target(row: Row) -> str:
    if row.target is None:
        return ""
    return f"{'>=' if row.at_least else '<='} {row.target:.3g}"


def _verdict(row: Row, found: Compared | str) -> str:
    if isinstance(found, str):
        return "ERROR"
    if row.target is None:
        return ""
    return "met" if row.meets_target(found.ratio) else "MISSED"


def line(row: Row, found: Compared | str, bench: Bench) -> str:
    """One line of the table, followed by errors and notes."""
    ratio = "-" if isinstance(found, str) else f"{found.ratio:.3f}" if found.ratio < 10 else f"{found.ratio:.1f}"
    text = f"{row.name:<15}{title(row, bench):<74}{ratio:>8}  {_target(row):<9}{_verdict(row, found)}"
    more = found.strip().splitlines() if isinstance(found, str) else (*found.notes, *_circumstances(row, found))
    return "\n".join([text.rstrip(), *(f"{'':<15}{note}" for note in more)])


def _circumstances(row: Row, found: Compared) -> list[str]:
    """Return the load of the machine, and a note if the row is left out of the docs."""
    busy = found.conditions
    texts = [f"load average {busy['load_average']:.2f}, other processes {busy['others']:.0%} of all cores"]
    if row.spread(found) > STEADY:
        texts.append(f"rounds spread by {row.spread(found):.0%} (limit {STEADY:.0%}): left out of docs/performance.md")
    return texts


def entry(row: Row, found: Compared | str, bench: Bench) -> dict[str, Any]:
    """The row's entry in the file."""
    known: dict[str, Any] = {"name": row.name, "title": title(row, bench), "target": _target(row)}
    if isinstance(found, str):
        return known | {"error": found}
    known |= {"verdict": _verdict(row, found), **figures(found)}
    return known | {"spread": round(row.spread(found), 4), "conditions": found.conditions}


def figures(found: Compared) -> dict[str, Any]:
    """The figures of an entry."""
    values = {"service": found.ours, "yardstick": found.yardstick}
    return {
        "ratio": round(found.ratio, 4),
        "unit": found.unit,
        "medians": {name: round(statistics.median(rounds), 3) for name, rounds in values.items()},
        "rounds": {name: [round(value, 3) for value in rounds] for name, rounds in values.items()},
        "notes": list(found.notes),
    }


def save(
    file: Path,
    order: list[str],
    *,
    rows: Sequence[dict[str, Any]] = (),
    growth: dict[str, Any] | None = None,
    peers: list[dict[str, Any]] | None = None,
    scaling: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Write the file, its rows in `order`; figures from earlier runs on the same machine are kept.

    Returns: the content of the file.
    """
    try:
        known = json.loads(file.read_text())
    except FileNotFoundError:
        known = {}
    now = machine.facts()
    if {**known.get("machine", {}), "date": ""} != {**now, "date": ""}:
        known = {}
    measured = {row["name"]: row for row in known.get("rows", [])}
    measured |= {row["name"]: {**row, "date": now["date"]} for row in rows}
    grown = {"date": now["date"], "unit": "ms", "endpoints": growth} if growth else known.get("growth")
    compared = [{**row, "date": now["date"]} for row in peers] if peers else known.get("peers")
    scaled = [{**row, "date": now["date"]} for row in scaling] if scaling else known.get("scaling")
    kept = [measured[name] for name in order if name in measured]
    content = {"machine": now, "rows": kept, "growth": grown, "peers": compared, "scaling": scaled}
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return content
