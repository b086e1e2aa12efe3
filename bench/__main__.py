"""`python -m bench`: measure, print the table of ratios, store all figures in results.json."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from bench import growth, order_files, page, peers, plot, report, several_services
from bench.context import Bench, Compared
from bench.load import Failed, wrk
from bench.processes import ROOT
from bench.rows import ROWS, Row

FULL = {"small": 1_000, "large": 1_000_000, "huge": 5_000_000, "growth": (1_000, 10_000, 100_000, 1_000_000, 5_000_000)}
QUICK = {"small": 1_000, "large": 20_000, "huge": 50_000, "growth": (1_000, 20_000, 50_000)}
NOTE = "Two measurements taken in turn, medians of {} rounds; only their ratio is claimed."


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure the service against its yardsticks on this machine and print the ratios. Needs wrk. "
        "Files with many orders are created once and kept. Results are written to bench/results.json and "
        "docs/performance.md, and those of a quick run only to the folder.",
        epilog="Rows: " + ", ".join(row.name for row in ROWS) + ".",
    )
    parser.add_argument("--only", metavar="ROW,ROW", help="measure these rows; results.json keeps the others")
    parser.add_argument(
        "--growth",
        action="store_true",
        help="instead of the rows: latency of each endpoint by orders in the file; draws docs/performance.svg",
    )
    parser.add_argument(
        "--peers",
        action="store_true",
        help="instead of the rows: create and list against other services, which are installed in instance/bench/peers",
    )
    parser.add_argument(
        "--scaling",
        action="store_true",
        help="instead of the rows: createOrder on SQLite, and on Postgres by one service and by several; needs "
        "Debian's package postgresql; writes docs/scaling.md",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small files and short rounds, to try the harness; the results stay in instance/bench",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=order_files.FOLDER,
        help="folder for files, on the disk that is measured (instance/bench)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each measurement (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="seconds of load in each (%(default)s)")
    parser.add_argument("--created", type=int, default=1_000_000, help="orders created for `memory` (%(default)s)")
    given = parser.parse_args()
    names = given.only.split(",") if given.only else []
    if unknown := set(names) - {row.name for row in ROWS}:
        parser.error(f"no row {', '.join(sorted(unknown))}")
    given.rows = [
        row for row in ROWS if not (given.growth or given.peers or given.scaling) and (not names or row.name in names)
    ]
    return given


def _bench(given: argparse.Namespace) -> Bench:
    sizes = QUICK if given.quick else FULL
    seconds, created = (1, min(given.created, 10_000)) if given.quick else (given.seconds, given.created)
    bench = Bench(given.quick, seconds, given.rounds, created, **sizes, folder=given.folder.resolve(), say=_say)
    shutil.rmtree(bench.work, ignore_errors=True)
    bench.work.mkdir(parents=True)
    return bench


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def _measured(row: Row, bench: Bench) -> Compared | str:
    """The row's figures, or the text of its error. An error does not stop the other rows."""
    try:
        return bench.compare(row.measure)
    except Failed as error:
        return str(error)
    except Exception as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"


def _results(bench: Bench) -> Path:
    return (bench.folder if bench.quick else ROOT / "bench") / "results.json"


def _keep(bench: Bench, **measured: Any) -> None:
    """Write the results to the file and, unless the run was quick, to the docs."""
    results = report.save(_results(bench), [row.name for row in ROWS], **measured)
    picture = bench.folder / "growth.svg" if bench.quick else ROOT / "docs/performance.svg"
    if results["growth"]:
        picture.write_text(plot.drawn(growth.relative(results["growth"]["endpoints"])), "utf-8")
    if not bench.quick:
        page.update(ROOT / "docs/performance.md", results)
        page.update(ROOT / "docs/scaling.md", results)


def main() -> int:
    """Run the command. Returns 1 if a measurement failed, otherwise 0; a missed target is not a failure."""
    given = _arguments()
    wrk()
    bench, began, failed = _bench(given), time.monotonic(), False
    if given.rows:
        print(NOTE.format(given.rounds))
    for row in given.rows:
        found = _measured(row, bench)
        failed |= isinstance(found, str)
        print(report.line(row, found, bench), flush=True)
        _keep(bench, rows=[report.entry(row, found, bench)])  # after each row, because a long run may be interrupted
    if given.growth:
        _keep(bench, growth=growth.growth(bench))
    if given.peers:
        _keep(bench, peers=peers.compare(bench))
    if given.scaling:
        _keep(bench, scaling=several_services.compare(bench))
    shutil.rmtree(bench.work)
    _say(f"{time.monotonic() - began:.0f} s; all results are in {_results(bench)}")
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"error: {error}")
