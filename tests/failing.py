"""A database that fails at a chosen statement of those that write, and a process that ends at a driver's call."""

import sqlite3
import threading
from contextlib import contextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus

from models.db import writer
from models.db.base import database


def refused(cursor, sql, *parameters):
    """The statement is not carried out; on Postgres the transaction is good for nothing more, else it stays open."""
    cursor.refuse(sql)


def rolled_back(cursor, sql, *parameters):
    """The statement is not carried out, and the whole transaction is gone; on Postgres the connection is lost."""
    cursor.give_up()


def done_but_not_told(cursor, sql, *parameters):
    """The commit takes effect, and the answer to it is lost."""
    super(_CanFail, cursor).execute(sql, *parameters)
    cursor.give_up()


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


class _CanFail:
    """A cursor, before that of its database: it `writes` or not, and can `refuse` a statement or `give_up` all."""

    def execute(self, sql, *parameters):
        for fault in _now:
            if (fault.how is not done_but_not_told or sql == "COMMIT") and self.writes(sql):
                fault.count += 1
                if fault.count == fault.at:
                    return fault.how(self, sql, *parameters)
        return super().execute(sql, *parameters)


class _OfSqlite(_CanFail, sqlite3.Cursor):
    def writes(self, sql):
        return threading.current_thread().name == "writer"

    def refuse(self, sql):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorname = "SQLITE_FULL"
        raise error

    def give_up(self):
        if self.connection.in_transaction:
            super(_CanFail, self).execute("ROLLBACK")
        self.refuse("")


class _OfPostgres(_CanFail, psycopg.Cursor):
    def writes(self, sql):
        return sql == "BEGIN" or self.connection.info.transaction_status == TransactionStatus.INTRANS

    def refuse(self, sql):
        if sql != "BEGIN":
            with suppress(psycopg.errors.DivisionByZero):
                super(_CanFail, self).execute("ROLLBACK" if sql == "COMMIT" else "SELECT 1 / 0")
        raise psycopg.errors.DiskFull("no space left on device")

    def give_up(self):
        self.connection.close()
        raise psycopg.OperationalError("the connection is lost")


class _Connection(sqlite3.Connection):
    def cursor(self, factory=_OfSqlite):
        return super().cursor(factory)


@contextmanager
def failing_connections():
    """From here on the connections that write can fail."""
    writer.stop()
    with _postgres() if database.is_shared else _sqlite():
        try:
            yield
        finally:
            writer.stop()


@contextmanager
def _sqlite():
    database.connect_params["factory"] = _Connection
    try:
        yield
    finally:
        del database.connect_params["factory"]


@contextmanager
def _postgres():
    really = database._connect

    def connect():
        connection = really()
        connection.cursor_factory = _OfPostgres
        return connection

    database.obj._connect = connect
    try:
        yield
    finally:
        del database.obj._connect


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
