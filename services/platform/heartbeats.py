"""When each of the service's own jobs last ran to its end: one that hangs or died is seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from runtime import Part
from services.platform import clock

SHORT, LONG = 120, 6 * 3_600  # seconds without an end after which a job counts as dead

# By job: when it ended by the steady clock (the start counts as an end), and after how long it counts as dead.
_jobs: Part[dict[str, tuple[float, int]]] = Part(dict)


def forget() -> None:
    """No job runs."""
    _jobs().clear()


def beating(name: str, job: Callable[..., Any], limit: int = SHORT) -> Callable[..., Any]:
    """The job, whose ends without an error are put down under its name."""
    _jobs()[name] = clock.steady(), limit

    @wraps(job)
    def run(*arguments: Any) -> Any:
        result = job(*arguments)
        if name in _jobs():
            _jobs()[name] = clock.steady(), limit
        return result

    return run


def ages() -> dict[str, float]:
    """Seconds since each job's last end without an error, by name; empty where no jobs were started."""
    now = clock.steady()
    return {name: now - ended for name, (ended, _) in list(_jobs().items())}


def late() -> list[str]:
    """The jobs of which too long nothing was heard."""
    now = clock.steady()
    return [name for name, (ended, limit) in list(_jobs().items()) if now - ended > limit]
