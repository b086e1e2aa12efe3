"""Rate limits: sliding windows, counted in this process."""

from __future__ import annotations

import math
import threading
import time

from services.errors import ApiError, Code

REMEMBERED = 50_000


def wait(most: int, seconds: int, now: int, before: int, gone: float) -> int:
    """Return the whole seconds until a sliding window allows one more hit, without hits in between.

    Args:
        most: hits that it allows in `seconds`.
        now: hits in the present window; `before`: in the previous one.
        gone: the share of the present window that has passed.
    """
    if now + 1 > most:  # not in this window; in the next one, this window counts as the previous one
        now, before, gone = 0, now, gone - 1
    needed = 1 - (most - now - 1) / before if before else 0
    return max(1, math.floor((needed - gone) * seconds) + 1)


class Rate:
    """A limit of `most` hits in `seconds` for each caller.

    The hits of the previous window count by the share of it that is still within `seconds`. Two windows are kept, so
    memory is bounded by the recent callers, and by `REMEMBERED` in each window.
    """

    def __init__(self, most: int, seconds: int):
        self._most, self._seconds = most, seconds
        self._lock = threading.Lock()
        self._window = 0
        self._now: dict[str, int] = {}
        self._before: dict[str, int] = {}

    def _count(self, who: str) -> float:
        window, part = divmod(time.time() / self._seconds, 1)
        if window != self._window:
            self._before = self._now if window == self._window + 1 else {}
            self._now, self._window = {}, int(window)
        return self._now.get(who, 0) + self._before.get(who, 0) * (1 - part)

    def is_reached(self, who: str) -> bool:
        """Return whether one more hit would exceed the limit."""
        with self._lock:
            return self._count(who) + 1 > self._most

    def hit(self, who: str) -> bool:
        """Count one more hit. Return False, without counting it, if it would exceed the limit."""
        with self._lock:
            if self._count(who) + 1 > self._most:
                return False
            if len(self._now) >= REMEMBERED and who not in self._now:
                self._before, self._now = self._now, {}
            self._now[who] = self._now.get(who, 0) + 1
            return True

    def count(self, who: str) -> None:
        """Count one more hit. Raises ApiError TOO_MANY_REQUESTS, without counting it, if it would exceed the limit."""
        if not self.hit(who):
            raise self._too_many(who)

    def check(self, who: str) -> None:
        """Raise ApiError TOO_MANY_REQUESTS if one more hit would exceed the limit."""
        if self.is_reached(who):
            raise self._too_many(who)

    def _too_many(self, who: str) -> ApiError:
        return ApiError(Code.TOO_MANY_REQUESTS, retry_after=self.retry_after(who))

    def take_back(self, who: str) -> None:
        """Undo one hit."""
        with self._lock:
            if self._now.get(who):
                self._now[who] -= 1

    def retry_after(self, who: str) -> int:
        """Return the whole seconds until one more hit is allowed, without hits in between."""
        with self._lock:
            self._count(who)
            gone = time.time() / self._seconds % 1
            now, before = self._now.get(who, 0), self._before.get(who, 0)
        return wait(self._most, self._seconds, now, before, gone)
