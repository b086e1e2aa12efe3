"""A database that fails at a chosen statement of the thread that writes, and a process that ends at a driver's call."""

import sqlite3
import threading
from contextlib import contextmanager

from models import writer
from models.base import database


def _full():
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorname = "SQLITE_FULL"
    return error


def refused(cursor, sql, parameters):
    """The statement is not carried out; the transaction stays open."""
    raise _full()


def rolled_back(cursor, sql, parameters):
    """The statement is not carried out, and the database gives up the whole transaction."""
    if cursor.connection.in_transaction:
        sqlite3.Cursor.execute(cursor, "ROLLBACK")
    raise _full()


def done_but_not_told(cursor, sql, parameters):
    """The commit takes effect, and the answer to it is lost."""
    sqlite3.Cursor.execute(cursor, sql, parameters)
    raise _full()


class Fault:
    """What is to happen at the statement `at`, counted from 1, and how many there were so far.

    Only commits can be done without being told: of other statements nothing is left.
    """

    def __init__(self, at, how):
        self.at, self.how, self.count = at, how, 0

    @property
    def happened(self):
        return self.count >= self.at


_now = []


class _Cursor(sqlite3.Cursor):
    def execute(self, sql, parameters=()):
        for fault in _now:
            counts = fault.how is not done_but_not_told or sql == "COMMIT"
            if counts and threading.current_thread().name == "writer":
                fault.count += 1
                if fault.count == fault.at:
                    return fault.how(self, sql, parameters)
        return super().execute(sql, parameters)


class _Connection(sqlite3.Connection):
    def cursor(self, factory=_Cursor):
        return super().cursor(factory)


@contextmanager
def failing_connections():
    """From here on the thread that writes has a connection that can fail."""
    writer.stop()
    database.connect_params["factory"] = _Connection
    try:
        yield
    finally:
        writer.stop()
        del database.connect_params["factory"]


@contextmanager
def failing(at, how):
    """The statement `at` fails, `how`; once."""
    fault = Fault(at, how)
    _now.append(fault)
    try:
        yield fault
    finally:
        _now.remove(fault)


class Killed(BaseException):
    """The process ends here: nobody handles it."""


def dying(monkeypatch, driver, call, when):
    """The next `call` of a driver ends the process `before` or `after` it reached the channel; later ones don't."""
    really = getattr(driver, call)

    def die(self, about):
        monkeypatch.setattr(driver, call, really)
        if when == "after":
            really(self, about)
        raise Killed

    monkeypatch.setattr(driver, call, die)
