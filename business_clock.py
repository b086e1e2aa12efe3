"""The time that orders use: the machine's time, in demo mode plus the offset that a tester has set.

Orders, money and callbacks use this time. Signatures, nonces, rates and sessions use the machine's time, so that a
merchant's signed calls and checks work at any offset.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from runtime import current


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
