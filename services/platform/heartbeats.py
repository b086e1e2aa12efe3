"""The last run of each of the service's jobs, so that a job that hangs or died is detected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from runtime import clock
from runtime.state import Part

SHORT, LONG = 120, 6 * 3_600  # seconds without a completed run after which a job counts as late


@dataclass
class _Heartbeat:
    """Steady times of a job's last run without an error and of its last run, and the limit after which it is late."""

    completed: float
    ended: float
    limit: int


_jobs: Part[dict[str, _Heartbeat]] = Part(dict)  # by job; the start counts as a run


def forget() -> None:
    """Clear all heartbeats."""
    _jobs().clear()


def beating(name: str, job: Callable[..., Any], limit: int = SHORT) -> Callable[..., Any]:
    """Return the job with a heartbeat under its name after each run without an error."""
    now = clock.steady()
    heartbeat = _jobs()[name] = _Heartbeat(now, now, limit)

    @wraps(job)
    def run(*arguments: Any) -> Any:
        try:
            result = job(*arguments)
            heartbeat.completed = clock.steady()
            return result
        finally:
            heartbeat.ended = clock.steady()

    return run


def ages() -> dict[str, float]:
    """Return the seconds since each job's last run without an error, by name; empty if no jobs were started."""
    now = clock.steady()
    return {name: now - heartbeat.completed for name, heartbeat in list(_jobs().items())}


def late() -> list[str]:
    """Return the late jobs by name."""
    now = clock.steady()
    return [name for name, heartbeat in list(_jobs().items()) if now - heartbeat.completed > heartbeat.limit]


def all_ran_since(moment: float) -> bool:
    """Return whether each frequent job ended a run after a steady time, with or without an error."""
    return all(heartbeat.ended > moment for heartbeat in list(_jobs().values()) if heartbeat.limit == SHORT)
