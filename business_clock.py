"""The time that orders use: the machine's time, in demo mode plus the offset that a tester has set.

What orders, money and callbacks bear and wait for is this time. Signatures, nonces, rates and sessions are judged by
the machine's, so that a merchant's signed calls and checks work whatever was done here.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from runtime import current


def now() -> int:
    """Unix time in seconds."""
    return int(time.time()) + current().ahead


def exactly() -> float:
    """The same, with the fraction of a second."""
    return time.time() + current().ahead


def rfc3339(at: int) -> str:
    """A Unix time as texts have it, in UTC to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ahead() -> int:
    """By how many seconds it is ahead of the machine's; 0 outside demo mode."""
    return current().ahead


def put_ahead(seconds: int) -> None:
    """From now on it is so far ahead of the machine's (services/sandbox/clock_offset.py)."""
    current().ahead = seconds
