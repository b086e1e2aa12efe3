"""The jobs end when they are asked to, whatever is being written meanwhile."""

import threading

import pytest

from models.db import sqlite_writer
from models.db.writer import after_commit, transaction
from runtime.state import current
from services.callbacks import outbox
from services.jobs import job_table
from tests.support import until


@pytest.mark.sqlite  # where one thread writes for all
def test_a_commit_that_wakes_the_sweep_during_the_stop_delays_nothing(app, api, monkeypatch):
    wakers, begun, go_on = [], threading.Event(), threading.Event()
    monkeypatch.setattr(outbox, "when_enqueued", wakers.append)
    api.buy()  # the search index does not contain it yet

    @transaction
    def write():
        after_commit(lambda: wakers[0](1))
        begun.set()
        assert go_on.wait(60)

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    assert begun.wait(20)
    stop = job_table.start(current().settings)
    stopping = threading.Thread(target=stop, daemon=True)
    until(lambda: sqlite_writer.writes()._queue.qsize())  # a job waits for the writer
    stopping.start()
    until(lambda: wakers[-1] is None)
    stopping.join(0.5)
    assert stopping.is_alive()
    go_on.set()
    stopping.join(10)
    assert not stopping.is_alive()
