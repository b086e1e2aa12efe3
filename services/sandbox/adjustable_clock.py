"""Moving the demo's clock ahead: in steps, so that what falls due on the way is done in its order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil

from peewee import fn

import business_clock
from models.tables.order import Order
from models.tables.outbox import Callback
from runtime import Part, current
from services.errors import N_, OperatorError
from services.platform.worker_pool import WorkerPool
from services.sandbox import clock_offset, simulator

MOST_AHEAD = 3_660 * 86_400  # seconds
EXACT_STEPS = 200  # of one move; after those it goes on in COARSE_STEPS, and what falls due within one is done together
COARSE_STEPS = 50
STEP_SECONDS = 15.0  # that what is due at one step is waited for: a callback may take ten
MOVE_SECONDS = 60.0  # for all steps together
LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Moved:
    """The time after a move, how far that is ahead of the machine's, and whether all that was due by then is done."""

    now: int
    ahead: int
    done: bool


@dataclass(frozen=True)
class Sweeps:
    """The jobs that do what is due: `hurry` runs them now, `pools` are their workers."""

    hurry: Callable[[], None]
    pools: tuple[WorkerPool, ...]

    def is_idle(self) -> bool:
        """Return whether nothing is due and no work is under way; otherwise run the jobs now."""
        with ExitStack() as no_sweep_begins:
            for pool in self.pools:
                no_sweep_begins.enter_context(pool.sweeping)
            # In this order: work that ends just now may have made more due.
            is_idle = all(pool.is_idle() for pool in self.pools) and not _is_anything_due()
        if not is_idle:
            self.hurry()
        return is_idle

    def wait(self, give_up: float) -> bool:
        """Wait until nothing is due, to `give_up` (monotonic) at the longest; return whether that was reached."""
        while not self.is_idle():
            if time.monotonic() > give_up:
                return False
            time.sleep(LOOK_SECONDS)
        return True


_sweeps: Part[list[Sweeps]] = Part(list)
_one_at_a_time = Part(threading.Lock)


def use(sweeps: Sweeps | None) -> None:
    """These do what is due from now on; None: nobody does."""
    _sweeps()[:] = [sweeps] if sweeps else []


def next_due() -> int | None:
    """When the next order, callback or planned outcome is due, in Unix time; it may have passed."""
    rows = [
        table.select(fn.MIN(table.due_at)).where(table.due_at.is_null(False)).scalar() for table in (Order, Callback)
    ]
    planned = [plan.at for plan in simulator.planned()[:1]]
    return min((at for at in [*rows, *planned] if at is not None), default=None)


def _is_anything_due() -> bool:
    due = next_due()
    return due is not None and due <= business_clock.now()


def move(seconds: int) -> Moved:
    """Move the clock ahead by so many seconds; returns once what was due by then is done, or a minute has passed.

    Raises:
        OperatorError: this is no demo, or it would be too far ahead.
    """
    with _one_at_a_time():
        return _move(business_clock.ahead() + seconds)


def move_to_next() -> Moved:
    """Move the clock to when the next thing is due. Raises OperatorError: nothing is."""
    with _one_at_a_time():
        due = next_due()
        if due is None:
            raise OperatorError(N_("nothing is due"))
        return _move(business_clock.ahead() + _until(due))


def _until(due: int) -> int:
    return max(0, ceil(due - business_clock.exactly()))


def _move(target: int) -> Moved:
    if not current().settings.demo:
        raise OperatorError(N_("only the demo's clock can be moved"))
    if target > MOST_AHEAD:
        raise OperatorError(N_("the clock can be ten years ahead at most"))
    sweeps = next(iter(_sweeps()), None)  # the service may be told to stop meanwhile
    give_up, done = time.monotonic() + MOVE_SECONDS, sweeps is not None
    least, steps = 1, 0
    while sweeps and done:
        done = sweeps.wait(min(give_up, time.monotonic() + STEP_SECONDS))
        ahead = business_clock.ahead()
        due = next_due()
        if ahead >= target or not done or due is None:
            break
        clock_offset.keep(min(target, ahead + max(least, _until(due))))
        steps += 1
        if steps == EXACT_STEPS:
            least = ceil((target - ahead) / COARSE_STEPS)
    if business_clock.ahead() < target:
        clock_offset.keep(target)
        done = done and sweeps is not None and sweeps.wait(give_up)
    return Moved(business_clock.now(), business_clock.ahead(), done)
