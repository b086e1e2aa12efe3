"""Work that Postgres does one at a time anyway: who waits for a turn holds no connection, so others find some."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from peewee import OperationalError

from models.base import database
from models.postgres import LONGEST_WAIT

_turns: dict[int, threading.Lock] = {}


class NoTurn(OperationalError):
    """The turn did not come in time."""


@contextmanager
def one_at_a_time(party: int) -> Iterator[None]:
    """Be the only one of this process and party. Raises NoTurn after LONGEST_WAIT; on SQLite all wait for the writer.

    Args:
        party: a merchant's id.
    """
    if not database.is_shared:
        yield
        return
    turn = _turns.setdefault(party, threading.Lock())
    if not turn.acquire(timeout=LONGEST_WAIT):
        raise NoTurn(f"no turn for {LONGEST_WAIT:g} seconds")
    try:
        yield
    finally:
        turn.release()
