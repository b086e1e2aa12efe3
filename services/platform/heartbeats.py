"""When each of the service's own jobs last ran to its end: one that hangs or died is seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from runtime import Part
from services.platform import clock

SHORT, LONG = 120, 6 * 3_600  # seconds without an end after which a job counts as dead

_ended: Part[dict[str, float]] = Part(dict)  # by the steady clock; the start counts as an end
_limits: Part[dict[str, int]] = Part(dict)


def forget() -> None:
    """No job runs."""
    _ended().clear()
    _limits().clear()


def beating(name: str, job: Callable[..., Any], limit: int = SHORT) -> Callable[..., Any]:
    """The job, whose ends without an error are put down under its name."""
    _limits()[name], _ended()[name] = limit, clock.steady()

    @wraps(job)
    def run(*arguments: Any) -> Any:
        result = job(*arguments)
        if name in _ended():
            _ended()[name] = clock.steady()
        return result

    return run


def ages() -> dict[str, float]:
    """Seconds since each job's last end without an error, by name; empty where no jobs were started."""
    now = clock.steady()
    return {name: now - ended for name, ended in list(_ended().items())}


def late() -> list[str]:
    """The jobs of which too long nothing was heard."""
    return [name for name, age in ages().items() if age > _limits().get(name, SHORT)]
