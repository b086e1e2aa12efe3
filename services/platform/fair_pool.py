"""Workers that many parties share and none can use up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import or_
from typing import Any

from peewee import SQL, fn

import business_clock
from models.db.base import Statement, database
from models.db.writer import transaction
from services.platform import storage_health
from services.platform.fair_turns import Turns

log = logging.getLogger(__name__)

Work = Callable[[Any], bool]
More = Callable[[int], list[Any]]
WentWell = Callable[[list[int]], dict[int, bool]]  # how the last work of parties went, as far as that is on record
A_FEW = 16
LOOK = 0.5  # seconds between looks at all parties, where some are named meanwhile


class FairPool:
    """A thread pool in which each party (a merchant, a channel) has a room of its own, and the dead leave some free.

    Whose turn it is, `Turns` says; a worker that has done its work takes the next in line. Nothing is queued: there is
    room only where a worker is free.
    """

    def __init__(self, workers: int, name: str):
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._pool.submit(int)  # so that there is one thread from now on, whatever the system refuses later
        self._lock = threading.Lock()
        self._turns = Turns(workers)
        self._reserved = 0
        self._refused = False  # was there work that no thread could be started for?
        self._stopping = False

    def whose_turn(self, parties: Collection[int], went_well: WentWell) -> Iterator[int]:
        """Of parties with something to do: all that do well, and then a few of those in line, the others' line too.

        The others wait for workers that have done their work, so that nobody waits for whoever asks here.
        `went_well` is asked about parties that were never seen.
        """
        with self._lock:
            unknown = self._turns.unknown(parties)
        recorded = went_well(unknown) if unknown else {}
        with self._lock:
            for party in unknown:
                self._turns.learn(party, recorded.get(party))
            well = self._turns.line_up(parties)
        yield from well
        for _ in range(A_FEW):
            with self._lock:
                next_party = self._turns.next()
            if next_party is None:
                return
            yield next_party

    def reserve(self, party: int) -> int:
        """Take all the room that this party has now: how many pieces of work it is to start, or to give back."""
        with self._lock:
            room = 0 if self._stopping else self._turns.reserve(party)
            self._reserved += room
            return room

    def at_rest(self) -> int | None:
        """How much room was ever reserved, where none of it is in use; None where some is.

        The same number twice means that nothing was begun between.
        """
        with self._lock:
            return None if self._turns.busy else self._reserved

    def give_back(self, party: int, room: int, more: bool = True) -> None:
        """So much of what was reserved is not needed; `more`: there may be more to do than was taken."""
        with self._lock:
            self._turns.give_back(party, room, more)

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
            while found := self._next(more):
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
            if storage_health.report(error) is None:
                log.exception("a worker takes up nothing more until the next sweep")
        database.close()  # so that an idle worker keeps no memory for it

    def _next(self, more: More) -> tuple[int, list[Any]] | None:
        """What the first in line that has any work has."""
        while True:
            with self._lock:
                party = self._turns.next()
            if party is None:
                return None
            if items := more(party):
                return party, items

    def _do(self, party: int, work: Work, item: Any) -> None:
        went_well = False
        with self._lock:
            pause = self._turns.pause(party, time.monotonic())
        if pause:
            time.sleep(pause)
        try:
            went_well = work(item)
        except BaseException as error:
            # One bad item stops nothing: its claim runs out, and it is taken up again.
            if storage_health.report(error) is None:
                log.exception("%s failed on %r", work.__name__, item)
        with self._lock:
            self._turns.done(party, went_well)

    def stop(self) -> None:
        """Let what is under way end; start nothing more."""
        with self._lock:
            self._stopping = True
        self._pool.shutdown(wait=True)


class Due:
    """What is due in a table: of whom, and in which order it is taken."""

    def __init__(
        self,
        table: Any,
        party: Any,
        lanes: Sequence[Any] = (SQL("TRUE"),),
        went_well: WentWell = lambda parties: {},
    ):
        """`table` has `due_at` and `claim`; `party` is its column that says whose room a row takes.

        Args:
            lanes: conditions; what fulfils an earlier one goes first, and then what is due the longest.
            went_well: says how the last work of parties went, as far as that is on record.
        """
        self._table, self._party, owner = table, party, party.rel_model
        self.went_well, self._looked_at = went_well, 0.0
        due = table.select(SQL("1")).where(party == owner.id, reduce(or_, lanes))
        self._parties = Statement(lambda v: owner.select(owner.id).where(fn.EXISTS(due.where(table.due_at <= v.now))))
        self._owner = Statement(lambda v: owner.select().where(owner.id == v.who))
        self._lanes = [_longest_due(table, party, lane) for lane in lanes]

    def parties(self, named: Collection[int] = ()) -> list[int]:
        """Whose rows are due. Where some are named, only those for a while: the others may be thousands."""
        now = time.monotonic()
        if named and now - self._looked_at < LOOK:
            return list(named)
        self._looked_at = now
        return [who for (who,) in self._parties.run(now=business_clock.now()).fetchall()]

    @transaction
    def claim(self, who: int, room: int, lease: int) -> tuple[list[Any], bool]:
        """Take up to `room` of a party's due rows for `lease` seconds, in one commit; the party's row comes with each.

        So a worker that waits on a network has nothing to read, and no database connection of its own.

        Returns: the rows, and whether more are due.
        """
        now = business_clock.now()
        claimed: list[Any] = []
        more = False
        for lane in self._lanes:
            left = room - len(claimed)
            rows = lane.models(self._table, now=now, who=who, room=left + 1)
            claimed += [row for row in rows[:left] if row.claim(now + lease)]
            more = more or len(rows) > left
        if claimed:
            (owner,) = self._owner.models(self._party.rel_model, who=who)
            for row in claimed:
                setattr(row, self._party.name, owner)
        return claimed, more


def _longest_due(table: Any, party: Any, lane: Any) -> Statement:
    def build(v: Any) -> Any:
        rows = table.select().where(table.due_at <= v.now, party == v.who, lane)
        # What another host is about to take is its.
        return database.for_update(rows.order_by(table.due_at).limit(v.room), skip_locked=True)

    return Statement(build)


def start_due(pool: FairPool, due: Due, work: Callable[[Any], bool], lease: int, named: Collection[int] = ()) -> int:
    """Claim what is due and do it, as far as the pool has room, and go on while a party has more.

    Args:
        lease: seconds that one piece of work may take before another worker may try.
        named: parties that are known to have something due; it may be only these that are looked at now.

    Returns: how many were started at once.
    """

    def claimed(who: int) -> list[Any]:
        if not (room := pool.reserve(who)):
            return []
        rows: list[Any] = []
        more = False
        try:
            rows, more = due.claim(who, room, lease)
        finally:
            pool.give_back(who, room - len(rows), more)
        return rows

    started = 0
    for who in pool.whose_turn(due.parties(named), due.went_well):
        rows = claimed(who)
        for row in rows:
            pool.submit(who, work, row, claimed)
        started += len(rows)
    return started
