"""A mutex for each key, for work that Postgres serializes: waiting threads use no connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from peewee import OperationalError

from models.db.base import database
from models.db.postgres import LONGEST_WAIT
from runtime.state import Part

MOST_IN_LINE = 32  # waiting threads of one party; each one is missing to the other parties


class _Turn:
    def __init__(self) -> None:
        self.lock, self.line = threading.Lock(), threading.BoundedSemaphore(MOST_IN_LINE)


_turns: Part[dict[int, _Turn]] = Part(dict)


class LockTimeout(OperationalError):
    """The lock was not available in time."""


@contextmanager
def exclusive(party: int) -> Iterator[None]:
    """Lock out this process's other threads of the same party. Does nothing on SQLite, which has one writer.

    Args:
        party: a merchant's id.

    Raises:
        LockTimeout: after LONGEST_WAIT, or immediately if MOST_IN_LINE threads are waiting.
    """
    if not database.is_shared:
        yield
        return
    turn = _turns().setdefault(party, _Turn())
    if not turn.line.acquire(blocking=False):
        raise LockTimeout(f"{MOST_IN_LINE} are in line already")
    with ExitStack() as held:
        held.callback(turn.line.release)
        if not turn.lock.acquire(timeout=LONGEST_WAIT):
            raise LockTimeout(f"no turn for {LONGEST_WAIT:g} seconds")
        held.callback(turn.lock.release)
        yield
