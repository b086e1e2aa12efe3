"""Two tiers of tests, assigned by fixtures: a test that uses the fixture `slow` is in the slow tier.

A fast test that starts a process or a browser fails. `pytest -m "not slow"` runs the fast tier, `pytest -m slow` the
slow tier. On Postgres (`TEST_DATABASE=postgres`) both tiers run, but only tests that have a database: they use the
fixture `any_database`. A test that opens a database without it fails.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests import postgres

STARTS = {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}

has_database = True  # whether the running test may open a database
_watched = False  # whether a fast test is running
_started: list[str] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watched and event in STARTS:
        _started.append(f"{event} {arguments!r:.200}")
        raise AssertionError("a fast test may not start a process: use the fixture `slow`, or one that uses it")


def begin() -> None:
    """Let Python report each started process (an audit hook can't be removed)."""
    sys.addaudithook(_audit)


def _fixtures(item: pytest.Item) -> set[str]:
    return set(getattr(item, "fixturenames", ()))


def _runs_here(item: pytest.Item) -> bool:
    """Return whether the test runs on the database in use. One without a database runs once, with those on SQLite."""
    fixtures = _fixtures(item)
    if item.get_closest_marker("sqlite"):
        return not postgres.IN_USE
    if "postgres_url" in fixtures:
        return postgres.IN_USE
    return not postgres.IN_USE or "any_database" in fixtures


def assign(items: list[pytest.Item]) -> list[pytest.Item]:
    """Mark the slow tests. Return the tests that do not run on the database in use."""
    for item in items:
        if "slow" in _fixtures(item):
            item.add_marker("slow")
    return [item for item in items if not _runs_here(item)]


def watch(item: pytest.Item) -> None:
    """Record the permissions of the test that begins now."""
    global _watched, has_database
    has_database = "any_database" in _fixtures(item) or item.get_closest_marker("sqlite") is not None
    _watched = not postgres.IN_USE and item.get_closest_marker("slow") is None
    _started.clear()


def started() -> list[str]:
    """Stop watching, and return the processes that the fast test tried to start."""
    global _watched
    _watched = False
    return _started
