"""The database handle, how its connections are set up, and the base of every table."""

from __future__ import annotations

import os
import sqlite3
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from peewee import BigIntegerField, Model, SqliteDatabase, Value, __exception_wrapper__

LARGEST_ID = 2**63 - 1


class _Sqlite(SqliteDatabase):
    """SQLite that holds to its file.

    It would go on writing to one that was deleted, and make a new one for the next connection.
    """

    _file: tuple[int, int] | None = None

    def init(self, database: Any, *arguments: Any, **named: Any) -> None:
        """Work with another file from here on."""
        self._file = None
        super().init(database, *arguments, **named)

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.database)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _hold_to_file(self) -> None:
        if self._file and self._found() != self._file:
            error = sqlite3.OperationalError("it was moved, replaced or deleted while it was in use")
            error.sqlite_errorname = "SQLITE_READONLY_DBMOVED"  # what SQLite calls it, where it looks
            raise error

    def _connect(self) -> sqlite3.Connection:
        self._hold_to_file()
        connection: sqlite3.Connection = super()._connect()
        self._file = self._file or self._found()
        return connection

    def begin(self, lock_type: str | None = None) -> None:
        """Begin a transaction, unless the file is gone."""
        with __exception_wrapper__:
            self._hold_to_file()
        super().begin(lock_type)

    def rollback(self) -> None:
        """Roll back, unless SQLite has by itself (a full disk, say): the error that led here is the one to be told."""
        if self.connection().in_transaction:
            super().rollback()


# IMMEDIATE takes the write lock at BEGIN: with a deferred BEGIN two readers that both turn
# writers fail at once with "database is locked", whatever the busy timeout.
database = _Sqlite(None, lock_type="IMMEDIATE")

PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "full",  # a committed order survives a power cut
    "foreign_keys": 1,
    "cache_size": -256,  # KiB for each of the many threads that read; what another connection writes empties it anyway
}


def open_database(path: Path, busy_timeout: float = 5.0) -> None:
    """Point every model at the SQLite file `path`; `busy_timeout` in seconds."""
    database.init(str(path), pragmas=PRAGMAS, timeout=busy_timeout)


class _Open:
    """A value of a statement that is given each time it runs."""

    def __init__(self, name: str):
        self.name = name


class _OpenValues:
    """`values.amount` stands for the value that `run(amount=...)` gives."""

    def __getattr__(self, name: str) -> Value:
        return Value(_Open(name), converter=False)


class Statement:
    """A query of peewee's, compiled once: `Statement(lambda v: Order.select().where(Order.id == v.id))`.

    peewee writes a query's SQL anew each time, which takes far longer than SQLite takes to run it.
    Values that are given to `run` go to the database as they are: whole numbers, texts, None.
    """

    def __init__(self, build: Callable[[Any], Any]):
        self._build = build
        self._compiled: tuple[str, Callable[[dict[str, Any]], list[Any]]] | None = None
        self._row: Any = None

    def _compile(self) -> tuple[str, Callable[[dict[str, Any]], list[Any]]]:
        sql, parameters = self._build(_OpenValues()).sql()
        names = [each.name if type(each) is _Open else f"fixed {at}" for at, each in enumerate(parameters)]
        fixed = {name: each for name, each in zip(names, parameters, strict=True) if type(each) is not _Open}

        def bind(values: dict[str, Any]) -> list[Any]:
            given = values | fixed if fixed else values
            return [given[name] for name in names]

        self._compiled = sql, bind
        return self._compiled

    def run(self, **values: Any) -> Any:
        """Execute it; the database's cursor."""
        sql, bind = self._compiled or self._compile()
        return database.execute_sql(sql, bind(values))

    def run_all(self, many: list[dict[str, Any]]) -> Any:
        """Execute an INSERT of one row for many, as one statement; the database's cursor."""
        sql, bind = self._compiled or self._compile()
        head, row = sql.split(" VALUES ")
        parameters = [parameter for values in many for parameter in bind(values)]
        return database.execute_sql(f"{head} VALUES {', '.join([row] * len(many))}", parameters)

    def all(self, **values: Any) -> list[Any]:
        """Execute it; all rows, as named tuples of the selected columns."""
        cursor = self.run(**values)
        if self._row is None:
            self._row = namedtuple("Row", [column[0] for column in cursor.description])  # type: ignore[misc]
        return [self._row(*row) for row in cursor.fetchall()]

    def models(self, table: Any, **values: Any) -> list[Any]:
        """Execute a query that selects whole rows; their objects."""
        names = [field.name for field in table._meta.sorted_fields]
        return [table.from_row(dict(zip(names, row, strict=True))) for row in self.run(**values).fetchall()]

    def first(self, **values: Any) -> Any:
        """Execute it; the first row as a named tuple, or None."""
        return next(iter(self.all(**values)), None)


@cache
def _insert(table: Any, *columns: str) -> Statement:
    return Statement(lambda values: table.insert({name: getattr(values, name) for name in columns}))


class Table(Model):
    """Base of every table."""

    class Meta:
        database = database
        legacy_table_names = False

    @classmethod
    def add(cls: Any, **row: Any) -> int:
        """Insert one row, compiled once for each set of columns; its id. Foreign keys are given as ids."""
        return _insert(cls, *row).run(**row).lastrowid

    @classmethod
    def from_row(cls: Any, row: dict[str, Any]) -> Any:
        """The object of a row that is known to be good; peewee's constructor takes five times as long."""
        made = cls.__new__(cls)
        made.__data__, made.__rel__, made._dirty = row, {}, set()
        return made

    @classmethod
    def add_all(cls: Any, rows: list[dict[str, Any]]) -> int:
        """Insert rows that have the same columns, by one statement; the id of the first, the others follow it."""
        last: int = _insert(cls, *rows[0]).run_all(rows).lastrowid
        return last - len(rows) + 1


class Fen(BigIntegerField):
    """An amount in integer fen."""


class BasisPoints(BigIntegerField):
    """A rate in integer hundredths of a percent."""


class Timestamp(BigIntegerField):
    """Unix time in whole seconds."""
