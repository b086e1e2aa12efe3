"""The state of one application: its settings, its open database and the in-memory state of its modules.

`create_app` makes a Runtime and keeps it in `app.extensions["runtime"]`. `current()` is the one that this thread works
for: each request, job and command enters its application's. A module declares its state as a `Part`, which each
Runtime makes at first use, so two applications in one process do not affect each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

from runtime.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

_entered: ContextVar[Runtime] = ContextVar("runtime")


class Runtime:
    """The state of one application in this process.

    `database` is peewee's, opened by `models/db/base.py`; `ahead` is in seconds (`runtime/clock.py`).
    """

    _newest: Runtime | None = None  # for threads that no application started, such as a debugger's

    def __init__(self, settings: Settings):
        self.settings = settings
        self.database: Any = None
        self.ahead = 0
        self.parts: dict[Part[Any], Any] = {}
        self.making = threading.RLock()  # locked while a part is made
        Runtime._newest = self

    def enter(self) -> None:
        """Work for this runtime in this thread from now on."""
        _entered.set(self)

    def bound(self, call: Callable[P, T]) -> Callable[P, T]:
        """Return the function so that it works for this runtime, whichever thread calls it."""

        @wraps(call)
        def run(*arguments: P.args, **named: P.kwargs) -> T:
            self.enter()
            return call(*arguments, **named)

        return run


class Part(Generic[T]):
    """State of a module, one value for each Runtime: `_rate = Part(lambda: Rate(...))`, used as `_rate().hit(...)`."""

    def __init__(self, make: Callable[[], T]):
        self.make = make

    def __call__(self) -> T:
        """Return the current runtime's value."""
        runtime = current()
        if self not in runtime.parts:
            with runtime.making:
                if self not in runtime.parts:
                    runtime.parts[self] = self.make()
        value: T = runtime.parts[self]
        return value

    def forget(self) -> None:
        """Drop the current runtime's value; the next use makes another."""
        current().parts.pop(self, None)


def current() -> Runtime:
    """Return the runtime that this thread works for. Raises LookupError if there is none."""
    found = _entered.get(None) or Runtime._newest
    if found is None:
        raise LookupError("no application was created in this process")
    return found
