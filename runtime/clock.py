"""Time: of orders, of this machine, of upstreams; and changes of the machine's clock.

Orders, money and callbacks use `now`: the machine's time, in demo mode plus the offset that a tester has set.
Signatures, nonces, rates and sessions use the machine's time, so that a merchant's signed calls and checks work at any
offset. Durations are measured by `steady`, which never jumps and has no date. `seen()` knows the jumps of the machine's
clock during this process, so that none forgets nonces early or delays work.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from runtime.state import Part, current

log = logging.getLogger(__name__)

CHINA = timezone(timedelta(hours=8))  # the time zone of dates in upstreams' messages, in files of banks, and of months
JUMP = 2  # seconds by which the clock may be off before that counts as a jump
CHECK_SECONDS = 1


def in_china(timestamp: float) -> datetime:
    """Return a Unix time as the date and time in China."""
    return datetime.fromtimestamp(timestamp, CHINA)


def now() -> int:
    """Unix time in seconds."""
    return int(time.time()) + current().ahead


def exactly() -> float:
    """Unix time in seconds, with the fraction."""
    return time.time() + current().ahead


def rfc3339(at: int) -> str:
    """Format a Unix time for texts, in UTC to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ahead() -> int:
    """Return the seconds by which it is ahead of the machine's time; 0 outside demo mode."""
    return current().ahead


def put_ahead(seconds: int) -> None:
    """Set the offset to the machine's time, in seconds (services/sandbox/clock_offset.py)."""
    current().ahead = seconds


def steady() -> float:
    """Return monotonic seconds, which clock changes do not affect."""
    return time.monotonic()


@dataclass
class _Period:
    """A period without a jump, from `began` to `ended` by the steady clock; `offset` is its difference to the clock."""

    began: float
    offset: float
    ended: float = math.inf
    used: bool = False  # whether nonces were used in it


class Clock:
    """The periods between clock changes: one if the clock is never set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        now = steady()
        self._periods = [_Period(now, time.time() - now)]
        self.set_backs = 0
        # The value of `moved` up to which changes have been handled; None without a watch.
        self.handled: float | None = None

    @property
    def moved(self) -> float:
        """Seconds by which the clock was set since this object was created: ahead, less back."""
        return self._periods[-1].offset - self._periods[0].offset

    def is_handled(self) -> bool:
        """Return whether every clock change has been handled, or there is no watch."""
        self.check()
        return self.handled in (None, self.moved)

    def check(self) -> None:
        """Detect a jump."""
        if abs(time.time() - steady() - self._periods[-1].offset) > JUMP:
            with self._lock:
                self._jumped()

    def _jumped(self) -> None:
        now, last = steady(), self._periods[-1]
        offset = time.time() - now
        if abs(offset - last.offset) <= JUMP:
            return  # another thread detected it first
        last.ended = now
        self._periods.append(_Period(now, offset))
        jump = offset - last.offset
        if jump < 0:
            self.set_backs += 1
        log.warning("System clock set %s by %.0f seconds", "back" if jump < 0 else "ahead", abs(jump))

    def use(self) -> None:
        """Record that nonces are used now."""
        self.check()
        self._periods[-1].used = True

    def before(self, seconds: float) -> int | None:
        """Return the Unix time such that all older records were dated at least `seconds` ago, whatever the clock did.

        Returns None if this process has not run for so long.
        """
        self.check()
        then = steady() - seconds
        if self._periods[0].began > then:
            return None
        return math.floor(then + min(each.offset for each in self._periods if each.ended > then))

    def is_lost(self, timestamp: int, window: float, kept: float) -> bool:
        """Return whether nonces of requests with this timestamp, from before a jump, may be forgotten already.

        Args:
            window: seconds by which a request's timestamp may have been off.
            kept: seconds that a nonce is kept at least.
        """
        if len(self._periods) == 1:
            return False
        then = steady() - kept
        return any(
            each.began + each.offset - window <= timestamp <= min(each.ended, then) + each.offset + window
            for each in self._periods[:-1]
            if each.used and each.began <= then
        )


seen = Part(Clock)


class Watch(threading.Thread):
    """Checks the clock each second. At the start and after a change it calls `then` until that succeeds.

    `then` gets the seconds by which the clock was set ahead since the last call; negative if it was set back. An error
    of it that `reported` does not know is logged in full.
    """

    def __init__(self, then: Callable[[float], None], reported: Callable[[Exception], object] = lambda error: None):
        super().__init__(name="clock", daemon=True, target=current().bound(self._watch))
        self._then, self._reported, self._ended = then, reported, threading.Event()

    def _watch(self) -> None:
        seen().check()
        done: tuple[float, int] | None = None
        began = seen().moved
        while not self._ended.is_set():
            seen().check()
            if (now := (seen().moved, seen().set_backs)) != done and self._succeeds(
                now[0] - (done[0] if done else began)
            ):
                done, seen().handled = now, now[0]
            self._ended.wait(CHECK_SECONDS)
        seen().handled = None

    def _succeeds(self, ahead: float) -> bool:
        try:
            self._then(ahead)
        except Exception as error:
            if not self._reported(error):
                log.exception("Clock change handler failed, will be retried")
            return False
        return True

    def stop(self) -> None:
        """Stop the watch."""
        self._ended.set()
        self.join()
