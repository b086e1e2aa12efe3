"""Two tiers of tests, told apart by fixtures: whatever uses the fixture `slow` is in the slow one.

A fast test starts no process and no browser: one that tries fails. `pytest -m "not slow"` runs the fast tier,
`pytest -m slow` the other one. On Postgres (`TEST_DATABASE=postgres`) both run, but only tests that have a database:
those use the fixture `any_database`, and a test that opens one without it fails.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests import postgres

STARTS = {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}

has_database = True  # may the test that runs open one?
_watched = False  # is a fast test running?
_started: list[str] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watched and event in STARTS:
        _started.append(f"{event} {arguments!r:.200}")
        raise AssertionError("a fast test may not start a process: use the fixture `slow`, or one that uses it")


def begin() -> None:
    """Have Python report each process that is started (an audit hook can't be taken back)."""
    sys.addaudithook(_audit)


def assign(items: list[pytest.Item]) -> list[pytest.Item]:
    """Mark the slow tests; returns those that do not run on the database in use.

    A test of SQLite's file runs on SQLite alone, one that needs Postgres there alone, one without a database once.
    """
    left_out = []
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if "slow" in fixtures:
            item.add_marker("slow")
        about_sqlite = item.get_closest_marker("sqlite") is not None
        needs_postgres = "postgres_url" in fixtures and not about_sqlite
        has_none = "any_database" not in fixtures
        if about_sqlite or has_none if postgres.IN_USE else needs_postgres:
            left_out.append(item)
    return left_out


def watch(item: pytest.Item) -> None:
    """A test begins."""
    global _watched, has_database
    about_sqlite = item.get_closest_marker("sqlite") is not None
    has_database = about_sqlite or "any_database" in getattr(item, "fixturenames", ())
    _watched = not postgres.IN_USE and item.get_closest_marker("slow") is None
    _started.clear()


def started() -> list[str]:
    """What the fast test tried to start; nothing is watched any more."""
    global _watched
    _watched = False
    return _started
