"""Calls that wait for the writer at the same time, so that they are in one group."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg

from models.db import keyed_mutex, sqlite_writer
from models.db.base import database
from models.db.keyed_mutex import MOST_IN_LINE
from models.db.postgres import HURRIED_WAIT
from models.db.writer import transaction
from tests.support import until


class Callers:
    """Calls, each in a thread of its own, in a fixed order, while the writer is busy."""

    def __init__(self, pool, let_go):
        self._pool, self._begun, self.let_go = pool, [], let_go

    def call(self, function, *arguments):
        """Start a call and wait until it is in the queue; return the future of its result."""
        self._begun.append(self._pool.submit(_and_let_go, function, arguments))
        waiting = _waiting_on_postgres if database.is_shared else sqlite_writer.writes()._queue.qsize
        until(lambda: sum(call.done() for call in self._begun) + waiting() == len(self._begun))
        return self._begun[-1]


def _waiting_on_postgres():
    """Return how many calls wait for their party, or for a lock longer than grouped work does (HURRIED_WAIT)."""
    in_line = [MOST_IN_LINE - turn.line._value for turn in keyed_mutex._turns().values()]
    with psycopg.connect(database._conninfo) as server:
        ((for_locks,),) = server.execute(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            " AND clock_timestamp() - query_start > %s * INTERVAL '1 ms'",
            [1.5 * HURRIED_WAIT],
        ).fetchall()
    # The first in each queue waits for a lock.
    return sum(in_line) + for_locks - sum(waiting > 0 for waiting in in_line)


def _and_let_go(function, arguments):
    try:
        return function(*arguments)
    finally:
        database.close()


@contextmanager
def writer_held_up():
    """Keep the writer busy meanwhile; calls by `Callers.call` are in its next group."""
    begun, go_on = threading.Event(), threading.Event()

    @transaction
    def hold():
        if database.is_shared:
            database.execute_sql('LOCK TABLE "order" IN EXCLUSIVE MODE')
        begun.set()
        assert go_on.wait(20)

    with ThreadPoolExecutor(16) as pool:
        holding = pool.submit(hold)
        assert begun.wait(20)
        try:
            yield Callers(pool, go_on.set)
        finally:
            go_on.set()
        holding.result(20)


def together(*calls):
    """Do calls, each a function and its arguments, in one group of the writer; return each result or exception."""
    with writer_held_up() as callers:
        futures = [callers.call(*each) for each in calls]
    return [future.exception(20) or future.result() for future in futures]
