"""Transactions on Postgres: connections write at the same time, each transaction on its own one.

Only work that is cheaper for many items at once is queued, for a thread of each function. If that thread meets an
obstacle, it does not wait: each caller does its own item instead.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from peewee import DatabaseError

from models.db.base import Table, database
from models.db.errors import AWAY, LOCKED, fault_of
from models.db.keyed_mutex import exclusive
from models.db.postgres import is_overtaken
from models.db.work_queue import Waiting, Work, WorkQueue, hooks, run_hooks
from runtime.state import Part

TRIES = 5  # attempts of a transaction that conflicts with another connection's

T = TypeVar("T")


def run(function: Callable[..., T], /, *arguments: Any, **named: Any) -> T:
    """Call the function in this thread's own transaction; repeat it after a conflict with another transaction."""
    rows = [each for each in (*arguments, *named.values()) if isinstance(each, Table)]
    before = [dict(row.__data__) for row in rows]
    for left in reversed(range(TRIES)):
        calls = hooks.calls = []
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
    run_hooks(calls)
    return result


class _DoItAlone(Exception):
    """The group failed; the caller must repeat its item in its own transaction."""


class Grouped:
    """Work that is cheaper for many items at once, with a thread of its own, so that none waits for another's locks.

    Args:
        work: takes a list of items and returns a result for each.
        party: returns an item's owner. Repeated items of one party run one after the other, so that a blocked party
        does not use up the connections.
    """

    def __init__(self, work: Work, party: Callable[[Any], int]):
        self._work, self._party = work, party
        self.queue = Part(lambda: WorkQueue(self._write))

    def run(self, item: Any) -> Any:
        """Do the work for an item; return its result once it is on disk, or raise its error."""
        try:
            return self.queue().add(self._work, item).wait()
        except _DoItAlone:
            with exclusive(self._party(item)):
                return run(self._work, [item])[0]

    def _write(self, queue: WorkQueue) -> None:
        for group in queue.groups():
            self._commit(group)
        database.close()

    def _commit(self, group: list[Waiting]) -> None:
        """Do a group's work in one transaction. If it fails, each caller repeats its own item.

        Lock contention counts as a failure, so that one locked row does not delay the group. A lost connection does
        not: the work may be on disk, and callers that repeat it would take their own rows for another's.
        """

        def hurried() -> list[Any]:
            database.hurry()
            return self._work([waiting.item for waiting in group])

        try:
            results = run(hurried)
        except BaseException as error:
            fault = fault_of(error)
            alone = fault is LOCKED or (len(group) > 1 and fault is not AWAY)
            for waiting in group:
                waiting.finish(_DoItAlone() if alone else error)
        else:
            for waiting, result in zip(group, results, strict=True):
                waiting.result = result
                waiting.finish()
