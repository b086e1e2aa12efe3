"""Retries: how long and how often a call is repeated."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Retry:
    """Pauses double from `first` to `most` seconds, each shortened at random by up to a half.

    A longer `Retry-After` takes precedence. `total` limits all attempts and pauses of one call; 0 disables retries.
    Tests replace the callables.
    """

    total: float = 60.0
    first: float = 0.5
    most: float = 8.0
    sleep: Callable[[float], object] = time.sleep
    steady: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random

    def pause(self, failures: int, retry_after: float | None) -> float:
        """Return the seconds to wait after that many failures, at least 1."""
        longest = min(self.most, self.first * 2.0 ** min(failures - 1, 30))
        return max(longest * (1 - self.chance() / 2), retry_after or 0.0)
