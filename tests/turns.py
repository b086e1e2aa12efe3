"""Calls that wait for the writer at the same time, so that they are done in the same turn."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from models import writer
from models.base import database
from models.writer import transaction
from tests.support import until


class Callers:
    """Calls, each in a thread of its own, in a fixed order, while the writer is busy with something else."""

    def __init__(self, pool, let_go):
        self._pool, self._queued, self.let_go = pool, 0, let_go

    def call(self, function, *arguments):
        """Begin a call and wait until it waits for its turn; the future of what comes of it."""
        future = self._pool.submit(_and_let_go, function, arguments)
        self._queued += 1
        if database.is_shared:
            time.sleep(0.2)  # it waits for the lock by then, or in the queue of one that does
        else:
            until(lambda: writer._writer._queue.qsize() == self._queued)
        return future


def _and_let_go(function, arguments):
    try:
        return function(*arguments)
    finally:
        database.close()


@contextmanager
def writer_held_up():
    """The writer is busy meanwhile; who calls by `Callers.call` is in its next group."""
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
    """Do calls, each a function and its arguments, in one turn of the writer: for each what it returned or raised."""
    with writer_held_up() as callers:
        futures = [callers.call(*each) for each in calls]
    return [future.exception(20) or future.result() for future in futures]
