"""Transactions on SQLite: one thread writes, and commits waiting work together.

SQLite lets one connection write at a time, and every commit waits for the disk. If each thread wrote separately, they
would wait for each other's locks and each for its own disk sync. Here they queue: the writer takes all waiting work,
does it in one transaction with a savepoint for each kind, and commits once.

No library does this: playhouse's SqliteQueueDatabase queues single statements, each with a commit of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from peewee import DatabaseError

from models.db.base import database
from models.db.work_queue import Waiting, Work, WorkQueue, hooks, run_hooks
from runtime.state import Part

# For the writer's connection. Together they make createOrder 1.12 times as fast at 32 connections, on a disk.
PRAGMAS = {
    "cache_size": -2_000,  # KiB: about all inner pages of the indexes, even of five million orders
    "temp_store": "memory",  # the rollback data of savepoints
    "wal_autocheckpoint": 16_000,  # pages of the log (64 MiB) from which a commit moves them into the file itself
}
LOG_PAGES = 8_000  # of the log, from which it shall begin again
FEW_PAGES = 400  # that the writer moves in a moment
MOST_PASSES = 4  # over the log, each of which has less to move


def run(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Call the function in the writer's next transaction; return its result once it is on disk, or raise its error."""
    return writes().add(lambda _: [function(*arguments, **named)], None).wait()


def _write(queue: WorkQueue) -> None:
    """The writing thread: commit group after group."""
    with suppress(DatabaseError):  # if the database can't be opened, the first transaction reports the error
        for name, value in PRAGMAS.items():
            database.execute_sql(f"PRAGMA {name} = {value}")
    for group in queue.groups():
        _commit(group)
        if _few_left().is_set():
            _few_left().clear()
            with suppress(DatabaseError):  # the job that moves the rest reports it
                _moved()
    database.close()


writes = Part(lambda: WorkQueue(_write))
_few_left = Part(threading.Event)  # set when the writer can move the end of the log, so that the log begins again


def _moved() -> tuple[int, int]:
    """Move what is in the log into the file; return the pages of the log, and those of them that are moved now."""
    _, pages, moved = database.execute_sql("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return pages, moved


def move_log() -> None:
    """Move the log into the file while orders are written. Call it every second, in a thread of its own.

    If the writer did it, orders would wait for the disk. The log begins again only once all of it is moved, but the
    writer adds to it meanwhile. So the writer itself moves the last pages of a long log.
    """
    for _ in range(MOST_PASSES):
        pages, moved = _moved()
        if pages - moved <= FEW_PAGES:
            break
    if pages >= LOG_PAGES:
        _few_left().set()


def _commit(group: list[Waiting]) -> None:
    """Do a group's work in one transaction, then run its after-commit hooks and wake its callers."""
    alike: dict[Work, list[Waiting]] = {}
    for waiting in group:
        alike.setdefault(waiting.work, []).append(waiting)
    failed: BaseException | None = None
    calls: list[Callable[[], None]] = []
    try:
        with database.atomic():
            for together in alike.values():
                error = _done(together, calls)
                if error is not None and len(together) > 1:
                    for waiting in together:  # each alone, to find whose error it is
                        waiting.error = _done([waiting], calls)
                else:
                    together[0].error = error
    except BaseException as error:  # it could not begin or be committed, so nothing is stored
        failed, calls = error, []
    run_hooks(calls)
    for waiting in group:
        waiting.finish(failed)


def _done(together: list[Waiting], calls: list[Callable[[], None]]) -> BaseException | None:
    """Do work of one kind in a savepoint, and add its after-commit hooks to `calls`; return its error if it failed.

    Raises:
        BaseException: the error ended the whole transaction, so the group has failed.
    """
    connection = database.connection()
    connection.execute("SAVEPOINT work")
    hooks.calls = []
    try:
        results = together[0].work([waiting.item for waiting in together])
    except BaseException as error:
        if not connection.in_transaction:
            raise  # SQLite has rolled back the whole transaction, for example because the disk is full
        connection.execute("ROLLBACK TO work")
        connection.execute("RELEASE work")
        return error
    connection.execute("RELEASE work")
    for waiting, result in zip(together, results, strict=True):
        waiting.result = result
    calls += hooks.calls
    return None
