"""`python -m bench`: measure, print the table of ratios, store all figures in results.json and in the docs."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from bench import peers, report, scaling
from bench.comparing import MOST_QUICK, Bench, Failed, Run, compare, say
from bench.rows import GROUPS, GROWTH, ROWS
from bench.starting import ROOT, Prepared

PARTS = {"rows": GROUPS, "peers": (peers.CREATES, peers.LISTS), "scaling": (scaling.ROWS,)}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure the service against its yardsticks on this machine and print the ratios. Needs wrk. "
        "Files with many orders are created once and kept. Results are written to bench/results.json and to the docs, "
        "and those of a quick run only to the folder. A row whose rounds spread by more than 25 % is not written.",
        epilog="Rows: " + ", ".join(row.name for row in ROWS) + ".",
    )
    parser.set_defaults(part="rows")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--only", metavar="ROW,ROW", help="measure these rows; results.json keeps the others")
    for part, text in (
        ("growth", "latency of each endpoint by orders in the file; draws docs/performance.svg"),
        ("peers", "create and list against other services, which are installed in instance/bench/peers"),
        ("scaling", "createOrder on SQLite, and on Postgres by one service and by two; needs Debian's package "
         "postgresql; writes docs/scaling.md"),
    ):  # fmt: skip
        help_text = f"instead of the rows: {text}"
        instead.add_argument(f"--{part}", dest="part", action="store_const", const=part, help=help_text)
    quick = "small files and one short round, to try the harness; the results stay in the folder"
    parser.add_argument("--quick", action="store_true", help=quick)
    folder = "folder for files, on the disk that is measured (instance/bench)"
    parser.add_argument("--folder", type=Path, default=ROOT / "instance" / "bench", help=folder)
    given = parser.parse_args()
    given.only = given.only.split(",") if given.only else []
    if unknown := set(given.only) - {row.name for row in ROWS}:
        parser.error(f"no row {', '.join(sorted(unknown))}")
    return given


def _growth(bench: Bench) -> dict[str, dict[str, list[float]]]:
    """Each endpoint's median latency in ms, each round, by the number of orders in the file. Raises Failed."""
    sizes = sorted({bench.at_most(size) for size in (1_000, 10_000, 100_000, 1_000_000, 5_000_000)})
    latencies = {name: {str(size): list[float]() for size in sizes} for name in GROWTH}
    for name, load in GROWTH.items():
        for _ in range(bench.rounds):
            for size in sizes:
                found = Run(Prepared(orders=size), load).measure(bench)
                latencies[name][str(size)].append(round(found["p50"], 3))
        say(f"{name}: {latencies[name]}")
    return latencies


def main() -> int:
    """Run the command. Returns 1 if a measurement failed, otherwise 0; a missed target is not a failure."""
    given, began = _arguments(), time.monotonic()
    if not shutil.which("wrk"):
        raise Failed("wrk is not installed: apt-get install wrk")
    bench = Bench(given.folder.resolve(), quick=given.quick)
    shutil.rmtree(bench.work, ignore_errors=True)
    bench.work.mkdir(parents=True)
    if given.quick:
        say(f"a quick run: no file has more than {MOST_QUICK:,} orders, whatever a title says")
    results, failed = report.earlier(bench), False
    if given.part == "growth":
        results["growth"] = {"date": report.today(), "unit": "ms", "endpoints": _growth(bench)}
        report.publish(bench, results)
    else:
        groups = PARTS[given.part]
        entries = {entry["name"]: entry for entry in results.get(given.part, [])}
        print(f"Measurements taken in turn, medians of {bench.rounds} rounds; only their ratio is claimed.")
        for group in groups:
            rows = [row for row in group if not given.only or row.name in given.only]
            for entry in compare(bench, rows):
                print(report.line(entry), flush=True)
                failed = failed or "error" in entry
                if report.is_to_write(entry):
                    entries[entry["name"]] = entry | {"machine": report.machine()}
            results[given.part] = [entries[row.name] for each in groups for row in each if row.name in entries]
            report.publish(bench, results)  # after each group, because a long run may be interrupted
    shutil.rmtree(bench.work)
    say(f"{time.monotonic() - began:.0f} s")
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"error: {error}")
