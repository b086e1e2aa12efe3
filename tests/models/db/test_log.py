"""SQLite's log is moved into the file while orders are written, and begins again."""

import shutil
import sqlite3
from contextlib import closing

import pytest
from peewee import OperationalError

from models.db import sqlite_writer

pytestmark = pytest.mark.sqlite


def test_what_was_committed_is_in_the_file_afterwards(api, instance, tmp_path):
    for _ in range(3):
        api.buy()
    sqlite_writer.move_log()
    shutil.copy(instance / "orders.sqlite", tmp_path)  # without the log
    with closing(sqlite3.connect(tmp_path / "orders.sqlite")) as file:
        assert file.execute('SELECT COUNT(*) FROM "order"').fetchone() == (3,)


def test_a_long_log_begins_again_although_it_is_never_moved_to_its_end(api, instance, monkeypatch):
    monkeypatch.setattr(sqlite_writer, "LOG_PAGES", 100)
    with closing(sqlite3.connect(instance / "orders.sqlite", isolation_level=None)) as reader:
        for _ in range(60):
            reader.execute("BEGIN")
            reader.execute('SELECT COUNT(*) FROM "order"').fetchone()
            api.buy()  # the reader does not see it, so it must not be moved yet
            sqlite_writer.move_log()
            reader.execute("COMMIT")
            api.buy()
            api.buy()  # the writer has moved the end of the log before it
    longest = (instance / "orders.sqlite-wal").stat().st_size // 4_096  # pages: the file keeps its size
    assert 100 <= longest < 200


def test_an_error_at_the_end_of_the_log_stops_no_order(api, monkeypatch):
    def fail():
        raise OperationalError("disk I/O error")

    monkeypatch.setattr(sqlite_writer, "_moved", fail)
    sqlite_writer._few_left().set()
    assert [api.buy().code for _ in range(3)] == [1, 1, 1]
    assert not sqlite_writer._few_left().is_set()
