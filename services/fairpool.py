"""Workers that many parties share and none can use up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

log = logging.getLogger(__name__)


class FairPool:
    """A thread pool in which each party (a merchant, a channel) has a room of its own.

    A party's room doubles while its work succeeds, up to a quarter of the workers, and shrinks to
    one when it fails, as a congestion window does, so that one that is slow or dead leaves workers
    free for the others. Nothing is queued: there is room only where a worker is free.
    """

    def __init__(self, workers: int, name: str):
        self._workers, self._largest_room = workers, max(1, workers // 4)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._under_way: dict[int, int] = {}
        self._rooms: dict[int, int] = {}

    def room(self, party: int) -> int:
        """How many more pieces of work this party may start now."""
        with self._lock:
            free = self._workers - sum(self._under_way.values())
            return max(0, min(free, self._rooms.get(party, 1) - self._under_way.get(party, 0)))

    def submit(self, party: int, work: Callable[[Any], bool], item: Any) -> None:
        """Do `work(item)`, which says whether it went well, for this party."""
        with self._lock:
            self._under_way[party] = self._under_way.get(party, 0) + 1
        self._pool.submit(self._run, party, work, item)

    def _run(self, party: int, work: Callable[[Any], bool], item: Any) -> None:
        went_well = False
        try:
            went_well = work(item)
        except Exception:
            # One bad item stops nothing: its claim runs out, and it is taken up again.
            log.exception("%s failed on %r", work.__name__, item)
        finally:
            with self._lock:
                self._under_way[party] -= 1
                room = self._rooms.get(party, 1) * 2 if went_well else 1
                self._rooms[party] = min(room, self._largest_room)

    def stop(self) -> None:
        """Let what is under way end; start nothing more."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def start_due(pool: FairPool, table: Any, party: Any, work: Callable[[Any], bool], lease: int) -> int:
    """Claim what is due in a table and do it, as far as the pool has room for each party.

    Args:
        table: has `due_at` and `claim`.
        party: the table's column that says whose room a row takes.
        lease: seconds that one piece of work may take before another worker may try.

    Returns: how many were started.
    """
    now = int(time.time())
    due = table.due_at <= now
    started = 0
    for (who,) in list(table.select(party).where(due).group_by(party).tuples()):
        rows = table.select().where(due, party == who).order_by(table.due_at)
        for row in list(rows.limit(pool.room(who))):
            if row.claim(now + lease):
                pool.submit(who, work, row)
                started += 1
    return started
