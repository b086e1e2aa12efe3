"""The tables of docs/performance.md, generated from results.json."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.rows import STEADY

Results = dict[str, Any]

SIGNS = {">=": "≥", "<=": "≤"}
VERDICTS = {"": "", "met": "met", "MISSED": "**missed**"}


def _number(ratio: float) -> str:
    """The ratio with about three digits."""
    return f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def _ratio(row: dict[str, Any]) -> str:
    return _number(row["ratio"]) if "ratio" in row else "failed"


def _days(rows: list[dict[str, Any]]) -> str:
    """The date of the rows, or the first and last dates."""
    days = sorted({row["date"] for row in rows})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _target(row: dict[str, Any]) -> str:
    sign, _, value = row["target"].partition(" ")
    return f"{SIGNS[sign]} {value}" if value else ""


def _table(heads: tuple[str, ...], right: str, lines: list[tuple[str, ...]]) -> str:
    """Markdown; `right` has an r for each column of numbers."""
    rule = "|".join("---:" if one == "r" else "---" for one in right)
    return "\n".join([f"| {' | '.join(heads)} |", f"|{rule}|", *(f"| {' | '.join(line)} |" for line in lines)])


def _steady(results: Results) -> list[dict[str, Any]]:
    """The rows to publish: those whose rounds are close together, and those that failed."""
    return [row for row in results["rows"] if row.get("spread", 0) <= STEADY]


def _machine(results: Results) -> str:
    on = results["machine"]
    rows = _steady(results)
    others = max((row["conditions"]["others"] for row in rows if "conditions" in row), default=None)
    share = "" if others is None else "under 1%" if others < 0.01 else f"at most {others:.0%}"
    busy = share and f" In the rows measured since it is recorded, other processes used {share} of all cores."
    return (
        f"{on['cores']} cores ({on['cpu']}), Python {on['python']}, SQLite {on['sqlite']}, {_days(rows)}; "
        f"wrk ran on the same machine.{busy}"
    )


def _rows(results: Results) -> str:
    lines = [(row["title"], _ratio(row), _target(row), VERDICTS[row.get("verdict", "")]) for row in _steady(results)]
    return _table(("comparison", "ratio", "target", ""), "lrrl", lines)


def _peers(results: Results) -> str:
    found = {row["name"]: row for row in results["peers"]}
    names = [name.removeprefix("create-") for name in found if name.startswith("create-")]
    lines = [
        (name, _ratio(found[f"create-{name}"]), _ratio(found[f"list-{name}"]), found[f"create-{name}"]["keeps"])
        for name in names
    ]
    return _table(("other", "create", "list", "what it keeps"), "lrrl", lines)


def _scaling(results: Results) -> str:
    """Orders a second against one service on SQLite, and processor time per order."""
    lines = [
        (
            row["title"],
            _number(row["ratio"]),
            f"{row['service_ms']:.2f}",
            f"{row['database_ms']:.2f}" if row["database_ms"] else "-",
        )
        for row in results.get("scaling") or []
    ]
    return _table(
        ("setup", "orders a second, relative to the first line", "service, ms of a core", "Postgres, ms of a core"),
        "lrrr",
        lines,
    )


PARTS: dict[str, Callable[[Results], str]] = {"machine": _machine, "rows": _rows, "peers": _peers, "scaling": _scaling}
PART = re.compile(r"(<!-- bench: (\w+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def written(text: str, results: Results) -> str:
    """The page with each part from `<!-- bench: PART -->` to `<!-- end -->` generated from the results.

    A part without results is unchanged.
    """
    return PART.sub(lambda part: part[1] + PARTS[part[2]](results) + part[3] if results.get(part[2]) else part[0], text)


def update(page: Path, results: Results) -> None:
    """Generate the tables of the page in place."""
    page.write_text(written(page.read_text("utf-8"), results), "utf-8")
