"""Transactions: one thread writes, and commits waiting work together.

SQLite lets one connection write at a time, and every commit waits for the disk. If each thread wrote separately, they
would wait for each other's locks and each for its own disk sync. Here they queue: the writer takes all waiting work,
does it in one transaction with a savepoint for each kind, and commits once. The writer does not sleep to make a group
larger. A group is the work that arrived during the last commit, and that of threads that are ready to run.

On Postgres, connections write at the same time. Each transaction has its own connection, and only work that is cheaper
for many items at once (`grouped`) is queued here.
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
from runtime.state import Part, current

log = logging.getLogger(__name__)

# For the writer's connection. Together they make createOrder 1.12 times as fast at 32 connections, on a disk.
PRAGMAS = {
    "cache_size": -2_000,  # KiB: about all inner pages of the indexes, even of five million orders
    "temp_store": "memory",  # the rollback data of savepoints
    "wal_autocheckpoint": 8_000,  # pages that move from the log into the file at once
}
LARGEST_GROUP = 64  # so that no caller waits more than a few milliseconds for others' work
TRIES = 5  # attempts of a transaction that conflicts with another connection's

# Yields the core and Python's lock to threads that are ready to run; `os.sched_yield` keeps the lock in Python 3.11.
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
        """Wake the caller; with `error`, the work has failed."""
        self.error = error or self.error
        self._done.release()

    def is_finished(self) -> bool:
        """Return whether the work is committed or has failed."""
        return not self._done.locked()

    def wait(self) -> Any:
        """Wait until the work is on disk; return its result or raise its error."""
        self._done.acquire()
        if self.error is not None:
            raise self.error
        return self.result


class _Writer:
    """The writing thread; the first work starts it."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, work: Work, item: Any) -> _Waiting:
        """Queue the work for a transaction."""
        waiting = _Waiting(work, item)
        self._queue.put(waiting)
        if self._thread is None:  # checked after the work is in the queue, which `stop` checks last
            with self._lock:
                self._start()
        return waiting

    def stop(self) -> None:
        """Finish the waiting work and close the connection."""
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
            thread.start()  # if the system refuses it, the next caller starts it for all waiting items
            self._thread = thread

    def _run(self) -> None:
        if not database.is_shared:
            with suppress(DatabaseError):  # if it can't be opened, the first transaction reports the error
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
        """Yield to threads that are about to write until none adds work to the queue.

        They share the commit: createOrder is 1.2 times as fast at 32 connections. If no thread is ready to run, this
        takes no time.
        """
        before = -1
        while before < (waiting := self._queue.qsize()) < LARGEST_GROUP:
            before = waiting
            _let_others_run()
            _let_others_run()  # the system may have chosen this thread again


def _commit(group: list[_Waiting]) -> None:
    """Do a group's work in one transaction, then run its after-commit hooks and wake its callers."""
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
                failed = error  # not the error of rolling back a transaction that SQLite has ended already
                raise
    except BaseException as error:  # it could not begin or be committed, so nothing is stored
        failed, then = failed or error, []
    _follow(then)
    for waiting in group:
        waiting.finish(failed)


def _follow(calls: list[Callable[[], None]]) -> None:
    for call in calls:
        try:
            call()
        except Exception:  # the work is on disk, so its callers must not get an error
            log.exception("After-commit hook failed")


def _do(together: list[_Waiting]) -> list[Callable[[], None]]:
    """Do work of one kind in the open transaction: all at once, or one by one if that fails.

    Returns: the after-commit hooks.
    """
    connection = database.connection()
    connection.execute("SAVEPOINT work")
    _then.calls = []
    try:
        results = together[0].work([waiting.item for waiting in together])
    except BaseException as error:
        if not connection.in_transaction:
            raise  # SQLite has rolled back the whole transaction (full disk, for example), so the group has failed
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
    """Do a group's work on Postgres, in one transaction for each kind. If one fails, each caller repeats its own item.

    Lock contention counts as a failure, so that one locked row does not delay the group. A lost connection does not:
    the work may be on disk, and callers that repeat it would take their own rows for another's.
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
    """The group failed; the caller must repeat its item in its own transaction."""


def _by_itself(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Call the function in this thread's own transaction; repeat it after a conflict with another transaction."""
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
                row.__data__ = dict(data)  # as the caller passed it
            time.sleep(random.uniform(0, 0.02) * (TRIES - left))
    _follow(calls)
    return result


_then = threading.local()


def after_commit(call: Callable[[], None]) -> None:
    """Run `call()` once this thread's transaction is on disk; not if it fails."""
    _then.calls.append(call)


_writer = Part(_Writer)
_writers = [_writer]


def stop() -> None:
    """Finish the waiting work and close the writers' connections."""
    for each in _writers:
        each().stop()


def check() -> Callable[[], bool]:
    """Queue an empty transaction, which changes nothing on the disk; return a function that says whether it has ended.

    On Postgres it says yes: no single thread writes there.
    """
    if database.is_shared:
        return lambda: True
    return _writer().add(lambda items: items, None).is_finished


def transaction(function: F) -> F:
    """Run each call of a function in one transaction, as part of the caller's if there is one.

    The call returns once its changes are on disk; if it raises, nothing is stored. The function must not use the
    network: all other writes wait meanwhile.
    """

    @wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        if database.in_transaction():
            return function(*arguments, **named)
        if database.is_shared:
            return _by_itself(function, *arguments, **named)
        return _writer().add(lambda _: [function(*arguments, **named)], None).wait()

    return run  # type: ignore[return-value]


def grouped(party: Callable[[T], int]) -> Callable[[Callable[[list[T]], list[R]]], Callable[[T], R]]:
    """Like `transaction`, for work that is cheaper for many items at once.

    The function takes a list of items and returns a result for each; it is called with all waiting items. If it raises,
    nothing is stored, and it is called for each item alone. On Postgres each such function has its own writer, so that
    none waits for another's locks. Repeated items of one party run one after the other, so that a blocked party does
    not use up the connections.

    Args:
        party: returns an item's owner.
    """

    def decorate(function: Callable[[list[T]], list[R]]) -> Callable[[T], R]:
        own = Part(_Writer)
        _writers.append(own)

        @wraps(function)
        def run(item: T) -> R:
            if database.in_transaction():
                return function([item])[0]
            try:
                result: R = (own if database.is_shared else _writer)().add(function, item).wait()
            except _DoItAlone:
                with exclusive(party(item)):
                    (result,) = _by_itself(function, [item])
            return result

        return run

    return decorate
