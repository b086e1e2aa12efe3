"""Connections to SQLite that a thread hands back: the next thread uses them, and few stay open."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from models.db.base import database, open_database
from models.db.sqlite import MOST_KEPT

pytestmark = pytest.mark.sqlite


@pytest.fixture
def opened(tmp_path, runtime):
    """`opened()`: how many connections to a file of its own are open."""
    file = tmp_path / "orders.sqlite"
    file.touch()
    open_database(file)
    database.execute_sql("CREATE TABLE note (text TEXT)")
    database.close()

    def count():
        paths = (os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.exists(entry.path))
        return sum(path == f"{file}-wal" for path in paths)  # SQLite delays closing the file itself

    yield count
    database.close()


def use(barrier=None):
    """Read in this thread, wait for the others, and hand the connection back."""
    database.execute_sql("SELECT * FROM note").fetchall()
    if barrier:
        barrier.wait()
    database.hand_back()


def test_threads_that_work_one_after_the_other_share_one_connection(opened, runtime):
    for _ in range(3):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(runtime.bound(use)).result()

    assert opened() == 1


def test_of_many_connections_handed_back_at_once_a_few_stay_open(opened, runtime):
    together = Barrier(3 * MOST_KEPT)

    with ThreadPoolExecutor(together.parties) as pool:
        for done in [pool.submit(runtime.bound(use), together) for _ in range(together.parties)]:
            done.result()

    assert opened() == MOST_KEPT


def test_a_connection_is_not_used_again_once_the_file_was_replaced(opened, runtime, tmp_path):
    use()
    (tmp_path / "orders.sqlite").rename(tmp_path / "before.sqlite")
    (tmp_path / "orders.sqlite").touch()

    with pytest.raises(Exception, match="moved, replaced or deleted"):
        use()


def test_closing_the_database_closes_idle_connections_too(opened, runtime, tmp_path):
    use()
    assert opened() == 1
    (tmp_path / "other.sqlite").touch()

    open_database(tmp_path / "other.sqlite")

    assert opened() == 0
