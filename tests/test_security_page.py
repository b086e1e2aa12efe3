"""SECURITY.md names tests, files and commands that there are."""

import re

from tests.support import ROOT

PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
# Parts of the same release that are not here yet.
COMING = {
    "tests/cli/test_restore.py",
    "tests/server/test_overload.py",
    "tests/server/test_slow_callers.py",
    "tests/server/test_under_attack.py",
    "tests/services/test_addresses.py",
    "tests/services/test_hostile_receivers.py",
    "tests/services/test_proof.py",
    "tests/test_clock.py",
    "tests/test_failing_steps.py",
    "tests/test_faults.py",
    "tests/test_instance_lock.py",
    "tests/test_torture.py",
    "tests/test_vault_rotation.py",
}


def test_each_defence_names_a_test_that_is_there():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    for row in rows:
        named = re.findall(r"`(tests/[\w/.]+)`", row)
        assert named, row
        assert [name for name in named if not (ROOT / name).is_file() and name not in COMING] == []


def test_each_page_that_it_points_to_is_there():
    assert all((ROOT / path).is_file() for path in re.findall(r"\]\(([\w/.]+)", PAGE))


def test_each_make_target_that_it_names_is_there():
    targets = (ROOT / "Makefile").read_text("utf-8")
    assert all(re.search(rf"^{name}:", targets, re.M) for name in re.findall(r"\bmake ([a-z]+)", PAGE))
