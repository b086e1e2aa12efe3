"""Demo mode's memory of the last requests with a rejected signature, for their senders to inspect."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

from runtime.state import Part
from services.sandbox.signature_help.merchant_api import ENDPOINTS

KEPT = 20


@dataclass(frozen=True)
class Unsigned:
    """One request of a demo merchant with a bad signature, as received. `at`: Unix time, `path` of the address."""

    number: int
    at: int
    api_key: str
    path: str
    query: str
    body: bytes

    @property
    def endpoint(self) -> str:
        """The endpoint's name: the last part of the path, or all of it for epay."""
        name = self.path.rsplit("/", 1)[-1]
        return name if name in ENDPOINTS else self.path.strip("/")


_kept: Part[deque[Unsigned]] = Part(lambda: deque(maxlen=KEPT))
_lock = threading.Lock()


def keep(api_key: str, path: str, query: str, body: bytes) -> int:
    """Store a request; return its number."""
    with _lock:
        kept = _kept()
        number = kept[0].number + 1 if kept else 1
        kept.appendleft(Unsigned(number, int(time.time()), api_key, path, query, body))
    return number


def recent() -> list[Unsigned]:
    """Return the stored requests, newest first."""
    with _lock:
        return list(_kept())
