"""Transactions: one thread writes, and what waits for it is committed together.

SQLite lets one connection write at a time, and every commit waits for the disk. Threads that wrote
by themselves would sleep on each other's locks and each wait for a disk sync of its own. Here they
queue: the writer takes all that waits, does it in one transaction, a savepoint each, and commits once.
Nothing waits to make a group larger: a group is what came while the last one was committed, and from
threads that were ready to run.

On Postgres others write at the same time anyway: there each transaction has a connection of its own, and only
what costs less when it is done for many at once (`grouped`) comes here.
"""

from __future__ import annotations

import ctypes
import logging
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from peewee import DatabaseError

from models.db.base import Table, database
from models.db.errors import AWAY, LOCKED, fault_of
from models.db.keyed_mutex import exclusive
from models.db.postgres import is_overtaken
from runtime import Part, current

log = logging.getLogger(__name__)

PRAGMAS = {
    "cache_size": -2_000,  # KiB: about all inner pages of the indexes, even of five million orders
    # What a savepoint would take back stays in memory; SQLite makes a file of it that costs createOrder 1.2x.
    "temp_store": "memory",
    # Pages that go from the log into the file at once: most are changed by many orders. 1.1x at 32 connections.
    "wal_autocheckpoint": 8_000,
}
LARGEST_GROUP = 64  # so that no one waits for more than a few milliseconds of others' work
TRIES = 5  # of a transaction that comes in the way of one at another connection

# Gives up the core and Python's lock to threads that are ready to run; `os.sched_yield` keeps the lock in Python 3.11.
_let_others_run = ctypes.CDLL(None).sched_yield

Work = Callable[[list[Any]], list[Any]]
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
R = TypeVar("R")


class _Waiting:
    """An item of work, whose caller waits until it is committed or has failed."""

    __slots__ = ("_done", "error", "item", "result", "work")

    def __init__(self, work: Work, item: Any):
        self.work, self.item = work, item
        self.result: Any = None
        self.error: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def finish(self, error: BaseException | None = None) -> None:
        """Let the caller go on; with `error`, whatever became of the work itself."""
        self.error = error or self.error
        self._done.release()

    def wait(self) -> Any:
        """What the work returned, once that is on disk; raises what it raised."""
        self._done.acquire()
        if self.error is not None:
            raise self.error
        return self.result


class _Writer:
    """The thread that writes; it begins with the first piece of work."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def do(self, work: Work, item: Any) -> Any:
        """Do it in a transaction and return what came of the item, once that is committed."""
        waiting = _Waiting(work, item)
        self._queue.put(waiting)
        if self._thread is None:  # looked at after the work is in the queue: `stop` looks there last
            with self._lock:
                self._start()
        return waiting.wait()

    def stop(self) -> None:
        """Finish what waits, and let go of the database."""
        with self._lock:
            if self._thread is not None:
                self._queue.put(None)
                self._thread.join()
                self._thread = None
                if not self._queue.empty():
                    self._start()

    def _start(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=current().bound(self._run), name="writer", daemon=True)
            thread.start()  # where the system refuses it, the next who writes tries again, for all that wait
            self._thread = thread

    def _run(self) -> None:
        if not database.is_shared:
            with suppress(DatabaseError):  # where it can't be opened now, those who wait are told by the next attempt
                for name, value in PRAGMAS.items():
                    database.execute_sql(f"PRAGMA {name} = {value}")
        while (first := self._queue.get()) is not None:
            self._let_queue_grow()
            group: list[_Waiting | None] = [first]
            with suppress(Empty):
                while len(group) < LARGEST_GROUP:
                    group.append(self._queue.get_nowait())
            (_commit_shared if database.is_shared else _commit)([each for each in group if each is not None])
            if None in group:
                break
        database.close()

    def _let_queue_grow(self) -> None:
        """Let threads that are about to write put their work into the queue too, until none does.

        They share the commit: createOrder is 1.2x as fast at 32 connections. Where no thread is ready to run this takes
        no time.
        """
        before = -1
        while before < (waiting := self._queue.qsize()) < LARGEST_GROUP:
            before = waiting
            _let_others_run()
            _let_others_run()  # the system may have chosen this thread again


def _commit(group: list[_Waiting]) -> None:
    """Do a group's work in one transaction, and then what was to follow; let its callers go on."""
    alike: dict[Work, list[_Waiting]] = {}
    for waiting in group:
        alike.setdefault(waiting.work, []).append(waiting)
    failed: BaseException | None = None
    then: list[Callable[[], None]] = []
    try:
        with database.atomic():
            try:
                for together in alike.values():
                    then += _do(together)
            except BaseException as error:
                failed = error  # and not what comes of rolling back what SQLite has given up already
                raise
    except BaseException as error:  # it could not begin, or could not be committed: nothing of it is there
        failed, then = failed or error, []
    _follow(then)
    for waiting in group:
        waiting.finish(failed)


def _follow(calls: list[Callable[[], None]]) -> None:
    for call in calls:
        try:
            call()
        except Exception:  # the work is on disk: its callers must not be told otherwise
            log.exception("what was to follow a commit failed")


def _do(together: list[_Waiting]) -> list[Callable[[], None]]:
    """Do work of one kind inside the open transaction: all at once, or one by one where that fails.

    Returns: what is to follow the commit.
    """
    connection = database.connection()
    connection.execute("SAVEPOINT work")
    _then.calls = []
    try:
        results = together[0].work([waiting.item for waiting in together])
    except BaseException as error:
        if not connection.in_transaction:
            raise  # SQLite has given up the whole transaction (a full disk, say): so does the group
        connection.execute("ROLLBACK TO work")
        connection.execute("RELEASE work")
        if len(together) == 1:
            together[0].error = error
            return []
        return [call for waiting in together for call in _do([waiting])]
    connection.execute("RELEASE work")
    for waiting, result in zip(together, results, strict=True):
        waiting.result = result
    return _then.calls


def _commit_shared(group: list[_Waiting]) -> None:
    """Do a group's work on Postgres, one transaction for each kind; what fails, each caller does again by itself.

    So it does where somebody else holds a lock that one of them needs: the others are not to wait for it.
    But not where the connection was lost: it may be on disk, and each would take its own work for somebody else's.
    """
    alike: dict[Work, list[_Waiting]] = {}
    for waiting in group:
        alike.setdefault(waiting.work, []).append(waiting)
    for work, together in alike.items():
        try:
            results = _by_itself(_hurried, work, [waiting.item for waiting in together])
        except BaseException as error:
            fault = fault_of(error)
            again = fault is LOCKED or (len(together) > 1 and fault is not AWAY)
            for waiting in together:
                waiting.finish(_DoItAlone() if again else error)
        else:
            for waiting, result in zip(together, results, strict=True):
                waiting.result = result
                waiting.finish()


def _hurried(work: Work, items: list[Any]) -> list[Any]:
    database.hurry()
    return work(items)


class _DoItAlone(Exception):
    """Somebody's work in the group failed."""


def _by_itself(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Call it in a transaction of this thread's own; again, from the start, where another one was in the way."""
    rows = [each for each in (*arguments, *named.values()) if isinstance(each, Table)]
    before = [dict(row.__data__) for row in rows]
    for left in reversed(range(TRIES)):
        calls = _then.calls = []
        try:
            with database.atomic():
                result = function(*arguments, **named)
            break
        except DatabaseError as error:
            if not left or not is_overtaken(error):
                raise
            for row, data in zip(rows, before, strict=True):
                row.__data__ = dict(data)  # as it was handed in
            time.sleep(random.uniform(0, 0.02) * (TRIES - left))
    _follow(calls)
    return result


_then = threading.local()


def after_commit(call: Callable[[], None]) -> None:
    """Have `call()` follow once the transaction that this thread is in is on disk; not where it fails."""
    _then.calls.append(call)


_writer = Part(_Writer)
_writers = [_writer]


def stop() -> None:
    """Finish what waits, and let go of the database."""
    for each in _writers:
        each().stop()


def transaction(function: F) -> F:
    """Run each call of a function in one transaction, as part of the caller's where there is one.

    The call returns once what it did is on disk; where it raises, nothing that it did is there.
    It must ask nothing over a network: everybody's writes wait meanwhile.
    """

    @wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        if database.in_transaction():
            return function(*arguments, **named)
        if database.is_shared:
            return _by_itself(function, *arguments, **named)
        return _writer().do(lambda _: [function(*arguments, **named)], None)

    return run  # type: ignore[return-value]


def grouped(party: Callable[[T], int]) -> Callable[[Callable[[list[T]], list[R]]], Callable[[T], R]]:
    """As `transaction`, for work that costs less when it is done for many at once.

    The function takes a list of items and returns what came of each; it is called with all that
    wait. Where it raises, nothing that it did is there, and it is called for each item alone.
    On Postgres each such function has a writer of its own, so that none waits for another one's locks; and items
    are done alone one after the other of each party, so that one whose locks others hold leaves them connections.

    Args:
        party: whose an item is.
    """

    def decorate(function: Callable[[list[T]], list[R]]) -> Callable[[T], R]:
        own = Part(_Writer)
        _writers.append(own)

        @wraps(function)
        def run(item: T) -> R:
            if database.in_transaction():
                return function([item])[0]
            try:
                result: R = (own if database.is_shared else _writer)().do(function, item)
            except _DoItAlone:
                with exclusive(party(item)):
                    (result,) = _by_itself(function, [item])
            return result

        return run

    return decorate
