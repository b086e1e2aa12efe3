"""How many requests are answered at once, and how many wait for their turn, and how long."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from server.exchange import Exchange

PATIENCE = 2.0  # seconds that the oldest may have waited while others are still let in
LONGEST_WAIT = 10.0  # seconds after which a request that waits is refused after all


class Lane:
    """At most `most` requests are answered at once, and `room` more wait for them, the oldest first."""

    def __init__(self, answer: Callable[[Exchange], None], most: int, room: int):
        self._answer, self._most, self._room = answer, most, room
        self._lock = threading.Lock()
        self._waiting: deque[Exchange] = deque()
        self._running = 0

    def take(self, exchange: Exchange) -> bool:
        """Answer it in this very thread, and after it what waits; or leave it to the next thread that is free.

        Returns:
            False, with nothing done, where it would wait too long.
        """
        with self._lock:
            if self._running >= self._most:
                return self._line_up(exchange)
            self._running += 1
        turn: Exchange | None = exchange
        while turn is not None:
            self._answer(turn)
            turn = self._next()
        return True

    def load(self) -> tuple[int, int]:
        """How many are being answered, and how many wait."""
        return self._running, len(self._waiting)

    def _line_up(self, exchange: Exchange) -> bool:
        full, now = len(self._waiting) >= self._room, time.monotonic()
        if full or (self._waiting and now - self._waiting[0].since > PATIENCE):
            return False
        exchange.since = now
        self._waiting.append(exchange)
        return True

    def _next(self) -> Exchange | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._running -= 1
            return None

    def overdue(self) -> list[Exchange]:
        """Those that have waited too long, taken out of the line; whoever asks refuses them."""
        found = []
        with self._lock:
            while self._waiting and time.monotonic() - self._waiting[0].since > LONGEST_WAIT:
                found.append(self._waiting.popleft())
        return found
