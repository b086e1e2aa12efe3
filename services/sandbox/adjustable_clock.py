"""Move the demo's clock ahead in steps, so that due work on the way is done in its order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil
from typing import Any

from peewee import fn

from models.tables.order import History, Order
from models.tables.outbox import Callback, CallbackAttempt
from runtime import clock
from runtime.state import Part, current
from services.errors import N_, OperatorError
from services.platform.worker_pool import WorkerPool
from services.sandbox import clock_offset, simulator

MOST_AHEAD = 3_660 * 86_400  # seconds
EXACT_STEPS = 200  # a longer move continues in COARSE_STEPS, and does what is due within one of those together
COARSE_STEPS = 50
STEP_SECONDS = 15.0  # to wait for the work of one step: a callback may take ten
MOVE_SECONDS = 60.0  # for all steps together
POLL_SECONDS = 0.02
MOST_EVENTS = 100  # in the report of one move


@dataclass(frozen=True)
class Moved:
    """A move of the clock, in Unix time.

    `before` and `now` are the time before and after it, `ahead` is how far the clock is ahead of the machine's. `done`
    is whether all due work is done, `events` the first of what was done, in its order.
    """

    before: int
    now: int
    ahead: int
    done: bool
    events: list[dict[str, Any]]


@dataclass(frozen=True)
class Sweeps:
    """The jobs that do due work: `hurry` runs them now, `pools` are their workers."""

    hurry: Callable[[], None]
    pools: tuple[WorkerPool, ...]

    def wait(self, give_up: float) -> bool:
        """Run the jobs until nothing is due or in progress, at most until `give_up` (monotonic).

        Returns: whether that was reached.
        """
        while True:
            with ExitStack() as no_sweep_begins:
                for pool in self.pools:
                    no_sweep_begins.enter_context(pool.sweeping)
                # In this order: work that has just finished may have made more due.
                is_idle = all(pool.is_idle() for pool in self.pools)
                due = next_due() if is_idle else None
            if is_idle and (due is None or due > clock.now()):
                return True
            self.hurry()
            if time.monotonic() > give_up:
                return False
            time.sleep(POLL_SECONDS)


class _State:
    """The jobs that do due work, None while the service is not running, and the lock of a move."""

    def __init__(self) -> None:
        self.sweeps: Sweeps | None = None
        self.moving = threading.Lock()


_state = Part(_State)


def use(sweeps: Sweeps | None) -> None:
    """Set the jobs that do due work; None while the service is not running."""
    _state().sweeps = sweeps


def _first_due(table: Any) -> int | None:
    at: int | None = table.select(fn.MIN(table.due_at)).where(table.due_at.is_null(False)).scalar()
    return at


def next_due() -> int | None:
    """Return when the next order, callback or planned outcome is due, in Unix time; it may have passed."""
    planned = [plan.at for plan in simulator.planned()[:1]]
    due = [_first_due(Order), _first_due(Callback), *planned]
    return min((at for at in due if at is not None), default=None)


def next_callback() -> int | None:
    """Return when the next callback is due, in Unix time."""
    return _first_due(Callback)


def move(seconds: int) -> Moved:
    """Move the clock ahead by so many seconds, and wait up to a minute until all due work is done.

    Raises:
        OperatorError: this is not a demo, or the clock would be too far ahead.
    """
    with _state().moving:
        return _move(clock.ahead() + seconds)


def move_to_next() -> Moved:
    """Move the clock to the next due order, callback or planned outcome. Raises OperatorError if nothing is due."""
    return _move_to(next_due, N_("Nothing is scheduled."))


def move_to_callback() -> Moved:
    """Move the clock to the next due callback. Raises OperatorError if no callback is due."""
    return _move_to(next_callback, N_("no callback is due"))


def _move_to(next_at: Callable[[], int | None], nothing: str) -> Moved:
    with _state().moving:
        due = next_at()
        if due is None:
            raise OperatorError(nothing)
        return _move(clock.ahead() + _until(due))


class _Report:
    """The report of a move: status changes, attempts to deliver callbacks, and status checks without a change."""

    def __init__(self) -> None:
        self.began = clock.now()
        self.events: list[dict[str, Any]] = []
        self._newest = {table: _newest(table) for table in (History, CallbackAttempt)}
        self._due: list[str] = []

    def keep(self, ahead: int) -> None:
        """Set the clock, and note which orders that makes due."""
        moment = clock.now() + ahead - clock.ahead()
        due = Order.select(Order.order_no).where(Order.due_at <= moment).order_by(Order.id).limit(MOST_EVENTS)
        self._due = [order_no for (order_no,) in due.tuples()]
        clock_offset.keep(ahead)

    def collect(self) -> None:
        """Add the events since the last call."""
        changes = (
            History.select(History.at, Order.order_no, History.before, History.after, History.code)
            .join(Order)
            .where(History.id > self._newest[History])
            .order_by(History.id)
        )
        attempts = (
            CallbackAttempt.select(CallbackAttempt.at, Order.order_no, Callback.type, CallbackAttempt.status)
            .join(Callback)
            .join(Order)
            .where(CallbackAttempt.id > self._newest[CallbackAttempt])
            .order_by(CallbackAttempt.id)
        )
        changed = [{"event": "status", **row} for row in changes.dicts()]
        seen = {event["order_no"] for event in changed}
        checked = [{"event": "check", "at": clock.now(), "order_no": each} for each in self._due if each not in seen]
        self.events += [*changed, *checked, *({"event": "callback", **row} for row in attempts.dicts())]
        self._newest = {table: _newest(table) for table in self._newest}
        self._due = []


def _newest(table: Any) -> int:
    return int(table.select(fn.MAX(table.id)).scalar() or 0)


def _until(due: int) -> int:
    return max(0, ceil(due - clock.exactly()))


def _move(target: int) -> Moved:
    if not current().settings.demo:
        raise OperatorError(N_("Only the demo's clock can be moved."))
    if target > MOST_AHEAD:
        raise OperatorError(N_("The clock can be at most ten years ahead."))
    sweeps = _state().sweeps  # None if the service is being stopped
    report = _Report()
    give_up, done = time.monotonic() + MOVE_SECONDS, sweeps is not None
    least, steps = 1, 0
    while sweeps and done:
        done = sweeps.wait(min(give_up, time.monotonic() + STEP_SECONDS))
        report.collect()
        ahead = clock.ahead()
        due = next_due()
        if ahead >= target or not done or due is None:
            break
        report.keep(min(target, ahead + max(least, _until(due))))
        steps += 1
        if steps == EXACT_STEPS:
            least = ceil((target - ahead) / COARSE_STEPS)
    if clock.ahead() < target:
        report.keep(target)
        done = done and sweeps is not None and sweeps.wait(give_up)
        report.collect()
    return Moved(report.began, clock.now(), clock.ahead(), done, report.events[:MOST_EVENTS])
