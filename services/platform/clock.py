"""The machine's clock as this process has seen it: when it jumps, nothing is forgotten too soon or waits too long.

Records and signatures have the machine's time, right or wrong. Durations are measured by
a clock that never jumps (`steady`), which knows no date.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from runtime import Part, current
from services.platform import storage_health

log = logging.getLogger(__name__)

JUMP = 2  # seconds that the clock may be off from where it should be before that is a jump
LOOK_SECONDS = 1


def steady() -> float:
    """Seconds that no one sets."""
    return time.monotonic()


@dataclass
class _Stretch:
    """A time in which the clock did not jump: by the steady clock from `began` to `ended`; `offset` to the clock."""

    began: float
    offset: float
    ended: float = math.inf
    used: bool = False  # were nonces spent in it?


class Clock:
    """The periods between clock changes: one if the clock is never set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        now = steady()
        self._stretches = [_Stretch(now, time.time() - now)]
        self.set_backs = 0
        self.heeded: float | None = None  # changes up to this `moved` have been handled; None: there is no watch

    @property
    def moved(self) -> float:
        """Seconds by which the clock was set since it was created: ahead, less back."""
        return self._stretches[-1].offset - self._stretches[0].offset

    def is_heeded(self) -> bool:
        """Whether every clock change has been handled, if there is a watch."""
        self.look()
        return self.heeded in (None, self.moved)

    def look(self) -> None:
        """Notice a jump."""
        if abs(time.time() - steady() - self._stretches[-1].offset) > JUMP:
            with self._lock:
                self._jumped()

    def _jumped(self) -> None:
        now, last = steady(), self._stretches[-1]
        offset = time.time() - now
        if abs(offset - last.offset) <= JUMP:
            return  # another thread saw it first
        last.ended = now
        self._stretches.append(_Stretch(now, offset))
        jump = offset - last.offset
        if jump < 0:
            self.set_backs += 1
        log.warning("the clock was set %s by %.0f seconds", "back" if jump < 0 else "ahead", abs(jump))

    def use(self) -> None:
        """Nonces are spent now."""
        self.look()
        self._stretches[-1].used = True

    def before(self, seconds: float) -> int | None:
        """The time such that what is dated then or earlier was dated at least `seconds` ago, whatever the clock did.

        None: this process has not been there for so long, and can't know.
        """
        self.look()
        then = steady() - seconds
        if self._stretches[0].began > then:
            return None
        return math.floor(then + min(each.offset for each in self._stretches if each.ended > then))

    def is_lost(self, timestamp: int, window: float, kept: float) -> bool:
        """May nonces of requests of this time, that came before a jump, be forgotten by now?

        Args:
            window: seconds that a request's timestamp may have been off.
            kept: seconds that a nonce is remembered at least.
        """
        if len(self._stretches) == 1:
            return False
        then = steady() - kept
        return any(
            each.began + each.offset - window <= timestamp <= min(each.ended, then) + each.offset + window
            for each in self._stretches[:-1]
            if each.used and each.began <= then
        )


seen = Part(Clock)


class Watch(threading.Thread):
    """Looks at the clock each second; when it was set, calls `then` until it does not fail. And at the start.

    `then` gets the seconds by which the clock was set ahead since the last call; negative if it was set back.
    """

    def __init__(self, then: Callable[[float], None]):
        super().__init__(name="clock", daemon=True, target=current().bound(self._watch))
        self._then, self._ended = then, threading.Event()

    def _watch(self) -> None:
        seen().look()
        done: tuple[float, int] | None = None
        began = seen().moved
        while not self._ended.is_set():
            seen().look()
            if (now := (seen().moved, seen().set_backs)) != done and self._succeeds(
                now[0] - (done[0] if done else began)
            ):
                done, seen().heeded = now, now[0]
            self._ended.wait(LOOK_SECONDS)
        seen().heeded = None

    def _succeeds(self, ahead: float) -> bool:
        try:
            self._then(ahead)
        except Exception as error:
            if storage_health.report(error) is None:
                log.exception("Handling a clock change failed and will be tried again")
            return False
        return True

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self.join()
