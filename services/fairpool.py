"""Workers that many parties share and none can use up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from models.base import Statement
from models.writer import transaction

log = logging.getLogger(__name__)


class FairPool:
    """A thread pool in which each party (a merchant, a channel) has a room of its own.

    A party's room doubles while its work succeeds, up to a quarter of the workers, and shrinks by
    half when it fails, as a congestion window does, so that one that is slow or dead leaves workers
    free for the others. Nothing is queued: there is room only where a worker is free.
    """

    def __init__(self, workers: int, name: str):
        self._workers, self._largest_room = workers, max(1, workers // 4)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._under_way: dict[int, int] = {}
        self._rooms: dict[int, int] = {}
        self._stopping = False

    def room(self, party: int) -> int:
        """How many more pieces of work this party may start now."""
        with self._lock:
            if self._stopping:
                return 0
            free = self._workers - sum(self._under_way.values())
            return max(0, min(free, self._rooms.get(party, 1) - self._under_way.get(party, 0)))

    def submit(self, party: int, work: Callable[[Any], bool], item: Any, more: Callable[[int], Any]) -> None:
        """Do `work(item)`, which says whether it went well, for this party; then `more(party)`, for there is room."""
        with self._lock:
            self._under_way[party] = self._under_way.get(party, 0) + 1
        self._pool.submit(self._run, party, work, item, more)

    def _run(self, party: int, work: Callable[[Any], bool], item: Any, more: Callable[[int], Any]) -> None:
        went_well = False
        try:
            went_well = work(item)
        except Exception:
            # One bad item stops nothing: its claim runs out, and it is taken up again.
            log.exception("%s failed on %r", work.__name__, item)
        with self._lock:
            self._under_way[party] -= 1
            room = self._rooms.get(party, 1)
            self._rooms[party] = min(room * 2, self._largest_room) if went_well else max(room // 2, 1)
        try:
            more(party)
        except Exception:
            log.exception("no more work for party %s until the next sweep", party)

    def stop(self) -> None:
        """Let what is under way end; start nothing more."""
        with self._lock:
            self._stopping = True
        self._pool.shutdown(wait=True)


def start_due(
    pool: FairPool, table: Any, party: Any, work: Callable[[Any], bool], lease: int, first: Any = None
) -> int:
    """Claim what is due in a table and do it, as far as the pool has room, and go on while a party has more.

    Args:
        table: has `due_at` and `claim`.
        party: the table's column that says whose room a row takes.
        lease: seconds that one piece of work may take before another worker may try.
        first: a column; what has more of it goes before others that are due. Else the longest due.

    Returns: how many were started at once.
    """

    def start(who: int) -> int:
        claimed = _claim(table, party, who, pool.room(who), lease, first)
        for row in claimed:
            pool.submit(who, work, row, start)
        return len(claimed)

    return sum(start(who) for (who,) in _parties(table, party).run(now=int(time.time())).fetchall())


@transaction
def _claim(table: Any, party: Any, who: int, room: int, lease: int, first: Any) -> list[Any]:
    """Take up to `room` of a party's due rows for `lease` seconds, in one commit."""
    now = int(time.time())
    rows = _due(table, party, first).models(table, now=now, who=who, room=room)
    return [row for row in rows if row.claim(now + lease)]


@cache
def _parties(table: Any, party: Any) -> Statement:
    return Statement(lambda v: table.select(party).where(table.due_at <= v.now).group_by(party))


@cache
def _due(table: Any, party: Any, first: Any) -> Statement:
    order = [table.due_at] if first is None else [first.desc(), table.due_at]
    return Statement(
        lambda v: table.select().where(table.due_at <= v.now, party == v.who).order_by(*order).limit(v.room)
    )
