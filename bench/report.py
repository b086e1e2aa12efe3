"""What a run leaves: printed lines, bench/results.json, and the tables of the docs."""

from __future__ import annotations

import json
import os
import platform
import re
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from bench import plot
from bench.comparing import STEADY, Bench
from bench.peers import PEERS
from bench.starting import ROOT

Results = dict[str, Any]


def line(row: dict[str, Any]) -> str:
    """An entry as printed: a line of the table, followed by the error or by the medians of all figures."""
    if "error" in row:
        more, ratio, verdict = row["error"].strip().splitlines(), "-", "ERROR"
    else:
        ratio, verdict, more = _number(row["ratio"]), row["verdict"], []
        for side, figures in row["figures"].items():
            texts = [f"{name} {value:,.{2 if value < 100 else 0}f}" for name, value in figures.items()]
            more.append(f"{side}: {', '.join(texts)}")
        if row["spread"] > STEADY:
            more.append(f"rounds spread by {row['spread']:.0%} (limit {STEADY:.0%}): not written")
    text = f"{row['name']:<18} {row['title']:<74}{ratio:>8}  {row['target']:<9}{verdict}"
    return "\n".join([text.rstrip(), *(f"{'':<18}{each}" for each in more)])


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def _file(bench: Bench) -> Path:
    return (bench.folder if bench.quick else ROOT / "bench") / "results.json"


def machine() -> str:
    """This machine: the number and model of its cores, and the versions of Python and SQLite."""
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    cores = f"{len(os.sched_getaffinity(0))} cores ({models[0] if models else platform.machine()})"
    return f"{cores}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"


def earlier(bench: Bench) -> Results:
    """The results up to now: `rows`, `growth`, `peers` and `scaling`."""
    file = _file(bench)
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


def is_to_write(entry: dict[str, Any]) -> bool:
    """Return whether an entry is one to write: its measurements succeeded, and its rounds are close together."""
    return "error" not in entry and entry["spread"] <= STEADY


def publish(bench: Bench, results: Results) -> None:
    """Write the results to the file and, unless the run was quick, to the docs."""
    _file(bench).write_text(dumped(results), "utf-8")
    if "growth" in results:
        picture = bench.folder / "growth.svg" if bench.quick else ROOT / "docs/performance.svg"
        picture.write_text(plot.drawn(results["growth"]["endpoints"]), "utf-8")
    for page in () if bench.quick else (ROOT / "docs/performance.md", ROOT / "docs/scaling.md"):
        page.write_text(written(page.read_text("utf-8"), results), "utf-8")


def dumped(results: Results) -> str:
    """The results as JSON, with each innermost list and object on one line."""
    text = json.dumps(results, indent=1, ensure_ascii=False)
    return re.sub(r"[\[{]\n[^\[\]{}]*[\]}]", lambda found: re.sub(r"\n\s*", " ", found[0]), text) + "\n"


def _number(ratio: float) -> str:
    """The ratio with about three digits."""
    return f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def _table(heads: tuple[str, ...], right: str, lines: list[tuple[str, ...]]) -> str:
    """Markdown; `right` has an r for each column of numbers."""
    rule = "|".join("---:" if one == "r" else "---" for one in right)
    return "\n".join([f"| {' | '.join(heads)} |", f"|{rule}|", *(f"| {' | '.join(line)} |" for line in lines)])


def _machines(results: Results) -> str:
    """Each machine, with its letter and the days on which its rows were measured."""
    rows, lines = results["rows"], []
    for on, letter in _letters(rows).items():
        days = sorted({row["date"] for row in rows if row["machine"] == on})
        lines.append(f"- {letter}: {on}; {' to '.join(dict.fromkeys([days[0], days[-1]]))}")
    others = max((row["others"] for row in rows if "others" in row), default=None)
    share = "" if others is None else "under 1%" if others < 0.01 else f"at most {others:.0%}"
    busy = share and f" In the rows measured since it is recorded, other processes used {share} of all cores."
    return "\n".join([*lines, "", f"wrk ran on the same machine.{busy}"])


def _letters(rows: list[dict[str, Any]]) -> dict[str, str]:
    """A letter for each machine, by the first date of its rows."""
    machines = dict.fromkeys(row["machine"] for row in sorted(rows, key=lambda row: str(row["date"])))
    return dict(zip(machines, ascii_uppercase, strict=False))


def _rows(results: Results) -> str:
    lines, letters = [], _letters(results["rows"])
    for row in results["rows"]:
        sides = row.get("figures", {}).values()
        cpu = " / ".join(f"{figures['cpu']:.2f}" if "cpu" in figures else "-" for figures in sides)
        target = row["target"].replace(">=", "≥").replace("<=", "≤")
        verdict = row["verdict"].replace("MISSED", "**missed**")
        measured = f"{letters[row['machine']]} {row['date'][5:]}"
        lines.append((row["title"], _number(row["ratio"]), target, verdict, cpu.replace("- / -", ""), measured))
    return _table(("comparison", "ratio", "target", "", "ms of a core", "measured"), "lrrlrl", lines)


def _peers(results: Results) -> str:
    ratios = {row["name"]: _number(row["ratio"]) for row in results["peers"]}
    lines = [
        (peer.name, ratios.get(f"create-{peer.name}", "-"), ratios.get(f"list-{peer.name}", "-"), peer.keeps)
        for peer in PEERS
    ]
    return _table(("other", "create", "list", "what it keeps"), "lrrl", lines)


def _scaling(results: Results) -> str:
    """Orders a second against one service on SQLite, and processor time per order."""
    lines = []
    for row in results["scaling"]:
        cost = row.get("figures", {}).get("service", {"service": 0, "database": 0})
        service, database = (f"{cost[name]:.2f}" if cost[name] else "-" for name in ("service", "database"))
        lines.append((row["title"], _number(row["ratio"]), service, database))
    rate = "orders a second, relative to the first line"
    return _table(("setup", rate, "service, ms of a core", "Postgres, ms of a core"), "lrrr", lines)


PARTS: dict[str, Callable[[Results], str]] = {
    "machines": _machines,
    "rows": _rows,
    "peers": _peers,
    "scaling": _scaling,
}


def written(text: str, results: Results) -> str:
    """The page with each part from `<!-- bench: PART -->` to `<!-- end -->` generated from the results.

    A part without results is unchanged.
    """

    def part(found: re.Match[str]) -> str:
        known = results.get("rows" if found[2] == "machines" else found[2])
        return found[1] + PARTS[found[2]](results) + found[3] if known else found[0]

    return re.sub(r"(<!-- bench: (\w+) -->\n).*?(\n<!-- end -->)", part, text, flags=re.DOTALL)
