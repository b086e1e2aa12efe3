"""The tiers of the tests: the restrictions of fast tests, and the commands of CI."""

import os
import subprocess
import sys

import pytest

from tests import databases, tiers
from tests.support import ROOT

STARTS = {
    "subprocess": lambda: subprocess.run([sys.executable, "-c", ""]),
    "os.system": lambda: os.system("true"),
    "os.posix_spawn": lambda: os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {}),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_fast_test_that_starts_a_process_fails(start):
    with pytest.raises(AssertionError, match="use the fixture `slow`"):
        start()
    started = tiers.started()
    assert len(started) == 1
    started.clear()


def test_a_slow_test_may_start_one(slow):
    assert subprocess.run([sys.executable, "-c", ""]).returncode == 0


def test_a_test_without_the_fixture_opens_no_database(tmp_path):
    with pytest.raises(AssertionError, match="uses the fixture `any_database`"):
        databases.settings_of(tmp_path)


def test_ci_runs_the_checks_and_each_tier_once():
    commands = [line for line in (ROOT / ".ci" / "run").read_text("utf-8").splitlines() if line.startswith("make ")]
    assert commands == ["make check", "make test", "make test-slow", "make test-postgres"]
