"""The last completed run of each of the service's jobs, so that a job that hangs or died is detected."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from runtime import Part
from services.platform import clock

SHORT, LONG = 120, 6 * 3_600  # seconds without a completed run after which a job counts as late

# By job: the steady time of the last completed run (the start counts as one), and the limit after which it is late.
_jobs: Part[dict[str, tuple[float, int]]] = Part(dict)


def forget() -> None:
    """Clear all heartbeats."""
    _jobs().clear()


def beating(name: str, job: Callable[..., Any], limit: int = SHORT) -> Callable[..., Any]:
    """Return the job with a heartbeat under its name after each run without an error."""
    _jobs()[name] = clock.steady(), limit

    @wraps(job)
    def run(*arguments: Any) -> Any:
        result = job(*arguments)
        if name in _jobs():
            _jobs()[name] = clock.steady(), limit
        return result

    return run


def ages() -> dict[str, float]:
    """Return the seconds since each job's last run without an error, by name; empty if no jobs were started."""
    now = clock.steady()
    return {name: now - ended for name, (ended, _) in list(_jobs().items())}


def late() -> list[str]:
    """Return the late jobs by name."""
    now = clock.steady()
    return [name for name, (ended, limit) in list(_jobs().items()) if now - ended > limit]
