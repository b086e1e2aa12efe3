"""`python -m bench`: measure, print the table of ratios, store all figures in results.json and in the docs."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench import peers, plot, report, scaling
from bench.comparing import Bench, Failed, Row, Run, compare
from bench.loading import wrk_program
from bench.rows import GROUPS, GROWTH, ROWS
from bench.starting import ROOT, Prepared

FULL = {"small": 1_000, "large": 1_000_000, "huge": 5_000_000, "created": 1_000_000}
QUICK = {"small": 1_000, "large": 20_000, "huge": 50_000, "created": 10_000}
GROWING, GROWING_QUICK = (1_000, 10_000, 100_000, 1_000_000, 5_000_000), (1_000, 20_000, 50_000)
INSTEAD = {
    "--growth": "latency of each endpoint by orders in the file; draws docs/performance.svg",
    "--peers": "create and list against other services, which are installed in instance/bench/peers",
    "--scaling": "createOrder on SQLite, and on Postgres by one service and by several; needs Debian's package "
    "postgresql; writes docs/scaling.md",
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure the service against its yardsticks on this machine and print the ratios. Needs wrk. "
        "Files with many orders are created once and kept. Results are written to bench/results.json and to the docs, "
        "and those of a quick run only to the folder.",
        epilog="Rows: " + ", ".join(row.name for row in ROWS) + ".",
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--only", metavar="ROW,ROW", help="measure these rows; results.json keeps the others")
    for name, text in INSTEAD.items():
        instead.add_argument(name, action="store_true", help=f"instead of the rows: {text}")
    quick = "small files and short rounds, to try the harness; the results stay in instance/bench"
    parser.add_argument("--quick", action="store_true", help=quick)
    folder = "folder for files, on the disk that is measured (instance/bench)"
    parser.add_argument("--folder", type=Path, default=ROOT / "instance" / "bench", help=folder)
    parser.add_argument("--rounds", type=int, help="rounds of each measurement (3, or 1 with --quick)")
    parser.add_argument("--seconds", type=float, default=5, help="seconds of load in each (%(default)s)")
    given = parser.parse_args()
    given.rounds = given.rounds or (1 if given.quick else 3)
    if unknown := set((given.only or ROWS[0].name).split(",")) - {row.name for row in ROWS}:
        parser.error(f"no row {', '.join(sorted(unknown))}")
    return given


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def _keep(bench: Bench, **measured: Any) -> None:
    """Write the results to the file and, unless the run was quick, to the docs."""
    file = (bench.folder if bench.quick else ROOT / "bench") / "results.json"
    results = report.save(file, [row.name for row in ROWS], **measured)
    if results.get("growth"):
        picture = bench.folder / "growth.svg" if bench.quick else ROOT / "docs/performance.svg"
        picture.write_text(plot.drawn(results["growth"]["endpoints"]), "utf-8")
    for page in () if bench.quick else (ROOT / "docs/performance.md", ROOT / "docs/scaling.md"):
        page.write_text(report.written(page.read_text("utf-8"), results), "utf-8")


def _table(bench: Bench, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Compare the rows, print each and return their entries."""
    entries = list(compare(bench, rows))
    for entry in entries:
        print(report.line(entry), flush=True)
    return entries


def _growth(bench: Bench) -> dict[str, dict[str, list[float]]]:
    """Each endpoint's median latency in ms, each round, by the number of orders in the file. Raises Failed."""
    latencies = {}
    for name, load in GROWTH.items():
        rows = [
            Row(f"{name}, {size:,}", "latency in ms", Run(Prepared(orders=size), load), 1, "p50")
            for size in (GROWING_QUICK if bench.quick else GROWING)
        ]
        latencies[name] = {}
        for row, found in zip(rows, _table(bench, rows), strict=True):
            if "error" in found:
                raise Failed(found["error"])
            latencies[name][str(row.ours.server.orders)] = found["rounds"]["service"]
    return latencies


def main() -> int:
    """Run the command. Returns 1 if a measurement failed, otherwise 0; a missed target is not a failure."""
    given, began = _arguments(), time.monotonic()
    wrk_program()
    seconds, sizes = (1, QUICK) if given.quick else (given.seconds, FULL)
    bench = Bench(given.quick, seconds, given.rounds, sizes, given.folder.resolve(), _say)
    shutil.rmtree(bench.work, ignore_errors=True)
    bench.work.mkdir(parents=True)
    entries: list[dict[str, Any]] = []
    if given.growth:
        _keep(bench, growth=_growth(bench))
    elif given.scaling:
        entries = _table(bench, scaling.rows())
        _keep(bench, scaling=entries)
    elif given.peers:
        keeps = peers.rows()
        entries = [one | {"keeps": kept} for one, kept in zip(_table(bench, keeps), keeps.values(), strict=True)]
        _keep(bench, peers=entries)
    else:
        print(f"Measurements taken in turn, medians of {given.rounds} rounds; only their ratio is claimed.")
        for group in GROUPS:
            rows = [row for row in group if not given.only or row.name in given.only.split(",")]
            if rows:
                entries += _table(bench, rows)
                _keep(bench, rows=entries)  # after each group, because a long run may be interrupted
    shutil.rmtree(bench.work)
    _say(f"{time.monotonic() - began:.0f} s")
    return int(any("error" in row for row in entries))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"error: {error}")
