"""Workers that many parties share and none can use up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import or_
from typing import Any

from peewee import SQL, fn

from models.base import Statement, database
from models.writer import transaction
from services import storage

log = logging.getLogger(__name__)

Work = Callable[[Any], bool]
More = Callable[[int], list[Any]]


class FairPool:
    """A thread pool in which each party (a merchant, a channel) has a room of its own.

    A party's room doubles while its work succeeds, up to a quarter of the workers, and shrinks by
    half when it fails, as a congestion window does, so that one that is slow or dead leaves workers
    free for the others. A party that found no worker free stands in line, and a worker that has done its
    work takes the first in line before more of the same party. Nothing is queued: there is room only
    where a worker is free.
    """

    def __init__(self, workers: int, name: str):
        self._workers, self._largest_room = workers, max(1, workers // 4)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._pool.submit(int)  # so that there is one thread from now on, whatever the system refuses later
        self._lock = threading.Lock()
        self._under_way: dict[int, int] = {}
        self._rooms: dict[int, int] = {}
        self._line: dict[int, None] = {}  # an ordered set
        self._refused = False  # was there work that no thread could be started for?
        self._stopping = False

    def reserve(self, party: int) -> int:
        """Take all the room that this party has now: how many pieces of work it is to start, or to give back."""
        with self._lock:
            if self._stopping:
                return 0
            free = self._workers - sum(self._under_way.values())
            under_way = self._under_way.get(party, 0)
            wanted = max(0, self._rooms.get(party, 1) - under_way)
            if wanted and not free:
                self._line[party] = None
            room = min(free, wanted)
            self._under_way[party] = under_way + room
            return room

    def give_back(self, party: int, room: int) -> None:
        """So much of what was reserved is not needed."""
        with self._lock:
            self._under_way[party] -= room

    def submit(self, party: int, work: Work, item: Any, more: More) -> None:
        """Do `work(item)`, which says whether it went well, and then what `more` gives of a party; room is reserved."""
        try:
            self._pool.submit(self._run, party, work, item, more)
        except RuntimeError as error:  # the item is queued all the same
            self._refused = True
            log.warning("no worker could be started: %s", error)

    def _run(self, party: int, work: Work, item: Any, more: More) -> None:
        try:
            self._do(party, work, item)
            while found := self._next(party, more):
                party, items = found
                if self._refused:  # work of others is in the queue: this stands behind it
                    for each in items:
                        self.submit(party, work, each, more)
                    break
                # This worker goes on with the first: for each piece that it handed on, the pool would start a thread.
                for other in items[1:]:
                    self.submit(party, work, other, more)
                self._do(party, work, items[0])
        except Exception as error:
            if storage.report(error) is None:
                log.exception("a worker takes up nothing more until the next sweep")
        database.close()  # so that an idle worker keeps no memory for it

    def _next(self, party: int, more: More) -> tuple[int, list[Any]] | None:
        """What the first in line that has any work has; this party is the last in line."""
        with self._lock:
            self._line[party] = None
            waiting = len(self._line)
        for _ in range(waiting):
            with self._lock:
                if not self._line:
                    break
                party = next(iter(self._line))
                del self._line[party]
            if items := more(party):
                return party, items
        return None

    def _do(self, party: int, work: Work, item: Any) -> None:
        went_well = False
        try:
            went_well = work(item)
        except Exception as error:
            # One bad item stops nothing: its claim runs out, and it is taken up again.
            if storage.report(error) is None:
                log.exception("%s failed on %r", work.__name__, item)
        with self._lock:
            self._under_way[party] -= 1
            room = self._rooms.get(party, 1)
            self._rooms[party] = min(room * 2, self._largest_room) if went_well else max(room // 2, 1)

    def stop(self) -> None:
        """Let what is under way end; start nothing more."""
        with self._lock:
            self._stopping = True
        self._pool.shutdown(wait=True)


class Due:
    """What is due in a table: of whom, and in which order it is taken."""

    def __init__(self, table: Any, party: Any, lanes: Sequence[Any] = (SQL("TRUE"),)):
        """`table` has `due_at` and `claim`; `party` is its column that says whose room a row takes.

        Args:
            lanes: conditions; what fulfils an earlier one goes first, and then what is due the longest.
        """
        self._table, self._party, owner = table, party, party.rel_model
        due = table.select(SQL("1")).where(party == owner.id, reduce(or_, lanes))
        self._parties = Statement(lambda v: owner.select(owner.id).where(fn.EXISTS(due.where(table.due_at <= v.now))))
        self._owner = Statement(lambda v: owner.select().where(owner.id == v.who))
        self._lanes = [_longest_due(table, party, lane) for lane in lanes]

    def parties(self) -> list[int]:
        """Whose rows are due."""
        return [who for (who,) in self._parties.run(now=int(time.time())).fetchall()]

    @transaction
    def claim(self, who: int, room: int, lease: int) -> list[Any]:
        """Take up to `room` of a party's due rows for `lease` seconds, in one commit; the party's row comes with each.

        So a worker that waits on a network has nothing to read, and no database connection of its own.
        """
        now = int(time.time())
        claimed: list[Any] = []
        for lane in self._lanes:
            rows = lane.models(self._table, now=now, who=who, room=room - len(claimed))
            claimed += [row for row in rows if row.claim(now + lease)]
        if claimed:
            (owner,) = self._owner.models(self._party.rel_model, who=who)
            for row in claimed:
                setattr(row, self._party.name, owner)
        return claimed


def _longest_due(table: Any, party: Any, lane: Any) -> Statement:
    def build(v: Any) -> Any:
        rows = table.select().where(table.due_at <= v.now, party == v.who, lane)
        # What another host is about to take is its.
        return database.held(rows.order_by(table.due_at).limit(v.room), skip_locked=True)

    return Statement(build)


def start_due(pool: FairPool, due: Due, work: Callable[[Any], bool], lease: int) -> int:
    """Claim what is due and do it, as far as the pool has room, and go on while a party has more.

    Args:
        lease: seconds that one piece of work may take before another worker may try.

    Returns: how many were started at once.
    """

    def claimed(who: int) -> list[Any]:
        if not (room := pool.reserve(who)):
            return []
        rows: list[Any] = []
        try:
            rows = due.claim(who, room, lease)
        finally:
            pool.give_back(who, room - len(rows))
        return rows

    started = 0
    for who in due.parties():
        rows = claimed(who)
        for row in rows:
            pool.submit(who, work, row, claimed)
        started += len(rows)
    return started
