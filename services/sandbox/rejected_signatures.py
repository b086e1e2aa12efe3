"""Demo mode's memory of the last requests that were refused for their signature, for their senders to look into."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

from runtime import Part

KEPT = 20


@dataclass(frozen=True)
class Unsigned:
    """One request of a demo merchant with a bad signature, as it came. `at`: Unix time, `path` of the address."""

    number: int
    at: int
    api_key: str
    path: str
    query: str
    body: bytes

    @property
    def endpoint(self) -> str:
        """The endpoint's name."""
        return self.path.rsplit("/", 1)[-1]


_kept: Part[deque[Unsigned]] = Part(lambda: deque(maxlen=KEPT))
_lock = threading.Lock()


def keep(api_key: str, path: str, query: str, body: bytes) -> int:
    """Remember one; its number."""
    with _lock:
        kept = _kept()
        number = kept[0].number + 1 if kept else 1
        kept.appendleft(Unsigned(number, int(time.time()), api_key, path, query, body))
    return number


def lately() -> list[Unsigned]:
    """Those that are remembered, newest first."""
    with _lock:
        return list(_kept())
