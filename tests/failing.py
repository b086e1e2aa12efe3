"""A database that fails at a chosen write statement, and a process that ends at a driver's call."""

import sqlite3
import threading
from contextlib import contextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus

from models.db import writer
from models.db.base import database


def refused(cursor, sql, *parameters):
    """The statement is not executed; on Postgres the transaction can't continue, otherwise it stays open."""
    cursor.refuse(sql)


def rolled_back(cursor, sql, *parameters):
    """The statement is not executed, and the whole transaction is rolled back; on Postgres the connection is lost."""
    cursor.give_up()


def done_but_not_told(cursor, sql, *parameters):
    """The commit takes effect, and its response is lost."""
    super(_CanFail, cursor).execute(sql, *parameters)
    cursor.give_up()


class Fault:
    """The fault at statement number `at`, counted from 1, and the number of statements so far.

    Only a commit can take effect without a response: other statements leave nothing.
    """

    def __init__(self, at, how):
        self.at, self.how, self.count = at, how, 0

    @property
    def happened(self):
        return self.count >= self.at


_now = []


class _CanFail:
    """A cursor in front of the database's own: it `writes` or not, can `refuse` a statement or `give_up` everything."""

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
    """Let write connections fail from here on."""
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
    """Let the statement `at` fail once, by `how`."""
    fault = Fault(at, how)
    _now.append(fault)
    try:
        yield fault
    finally:
        _now.remove(fault)


class Killed(BaseException):
    """Ends the process: no code handles it."""


def dying(monkeypatch, driver, call, when):
    """Let the next `call` of a driver end the process, `before` or `after` it reached the channel; once."""
    really = getattr(driver, call)

    def die(self, about):
        monkeypatch.setattr(driver, call, really)
        if when == "after":
            really(self, about)
        raise Killed

    monkeypatch.setattr(driver, call, die)
