"""`python -m bench`: the harness works, and the docs show the measured values."""

import json
import os
import shutil
import sys

import pytest

from bench import plot, report
from bench.comparing import entry
from bench.rows import ROWS
from tests.support import ROOT, finished

QUIET = {"others": 0.0}


def bench(*arguments, **environ):
    """Run the command to its end."""
    return finished([sys.executable, "-m", "bench", *arguments], env=os.environ | environ, timeout=300)


def compared(name, ours, yardstick):
    """The entry of a row with these figures by round."""
    row = next(row for row in ROWS if row.name == name)
    figure, against = row.figure, row.against or row.figure
    return entry(row, [{figure: one} | QUIET for one in ours], [{against: one} | QUIET for one in yardstick])


@pytest.fixture(scope="module")
def results():
    """The last results."""
    return json.loads((ROOT / "bench/results.json").read_text("utf-8"))


def test_results_have_only_rows_that_were_measured_and_whose_rounds_are_close_together(results):
    written, known = [row["name"] for row in results["rows"]], [row.name for row in ROWS]
    assert written == [name for name in known if name in written]
    assert all(report.is_to_write(row) for row in results["rows"])


def test_a_row_whose_rounds_are_far_apart_is_printed_but_not_written():
    steady, unsteady = (compared("raw", rounds, [100]) for rounds in ([90, 100, 110], [70, 100, 110]))
    assert (report.is_to_write(steady), report.is_to_write(unsteady)) == (True, False)
    named = {"name": "raw", "title": "raw", "target": ""}
    assert "rounds spread by 40% (limit 25%): not written" in report.line(named | unsteady)
    assert not report.is_to_write(named | {"error": "no response"})


@pytest.mark.parametrize(
    ("name", "ours", "yardstick", "spread"),
    [
        ("raw", [90, 100, 110], [100, 100, 100], 0.2),
        ("raw", [100, 100, 100], [80, 100, 120], 0.4),
        ("callback-delay", [5, 10, 15], [50], 0.2),  # far below its limit of 50
        ("callback-delay", [75, 100, 125], [50], 0.5),
    ],
)
def test_the_spread_is_relative_to_the_median_or_to_a_limit_above_it(name, ours, yardstick, spread):
    assert compared(name, ours, yardstick)["spread"] == pytest.approx(spread)


@pytest.mark.parametrize(
    ("name", "ours", "yardstick", "ratio", "verdict"),
    [
        ("raw", [30, 50, 40], [100, 80, 90], 0.4444, "MISSED"),
        ("raw", [50, 50, 50], [100, 100, 100], 0.5, "met"),
        ("tail", [30], [10], 3, "met"),
        ("tail", [31], [10], 3.1, "MISSED"),
        ("withdrawals", [1], [2], 0.5, ""),
    ],
)
def test_a_ratio_of_medians_meets_its_target_or_misses_it(name, ours, yardstick, ratio, verdict):
    found = compared(name, ours, yardstick)
    assert (found["ratio"], found["verdict"]) == (ratio, verdict)


def test_the_pages_and_the_picture_show_the_measured_values(results):
    texts = [(ROOT / "docs" / name).read_text("utf-8") for name in ("performance.md", "scaling.md")]
    assert all(f"<!-- bench: {part} -->" in "".join(texts) for part in report.PARTS)
    assert [report.written(text, results) for text in texts] == texts
    assert plot.drawn(results["growth"]["endpoints"]) == (ROOT / "docs/performance.svg").read_text("utf-8")


@pytest.mark.skipif(shutil.which("wrk") is None, reason="needs wrk (Debian: wrk)")
@pytest.mark.usefixtures("slow")
def test_a_quick_run_measures_and_writes_to_its_folder_only(tmp_path):
    published = (ROOT / "bench/results.json").read_bytes()
    done = bench("--quick", "--folder", tmp_path, "--only", "raw,tail,callback-delay")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {row["name"]: row for row in json.loads((tmp_path / "results.json").read_text("utf-8"))["rows"]}
    assert list(found) == ["raw", "tail", "callback-delay"]
    assert all(row["ratio"] > 0 and 0 <= row["others"] <= 1 for row in found.values())
    assert found["tail"]["figures"]["service"]["cpu"] > 0
    assert [line.split()[0] for line in done.stdout.splitlines()[1:] if not line.startswith(" ")] == list(found)
    assert not (tmp_path / "work").exists()
    assert (ROOT / "bench/results.json").read_bytes() == published


@pytest.mark.usefixtures("slow")
def test_an_unknown_row_is_named_and_without_wrk_the_package_to_install(tmp_path):
    unknown = bench("--folder", tmp_path, "--only", "tail,speed")
    assert (unknown.returncode, "no row speed" in unknown.stderr) == (2, True)
    without_wrk = bench("--quick", "--folder", tmp_path, PATH=str(tmp_path))
    assert (without_wrk.returncode, "apt-get install wrk" in without_wrk.stderr) == (1, True)
    assert not list(tmp_path.iterdir())
