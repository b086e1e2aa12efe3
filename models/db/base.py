"""The database handle, how its connections are set up, and the base of every table."""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from peewee import AutoField, BigIntegerField, DatabaseProxy, Model, Value

from models.db.postgres import Postgres
from models.db.sqlite import Sqlite
from runtime import Part, current

LARGEST_ID = 2**63 - 1

T = TypeVar("T")


def _of_current(name: str) -> Any:
    return property(lambda self: getattr(current().database, name))


class _Database(DatabaseProxy):
    """The database of the current runtime; what differs between SQLite and Postgres is in their classes."""

    def __init__(self) -> None:
        self._callbacks: list[Any] = []  # peewee calls these when a proxy is initialized, which this one never is

    obj = property(lambda self: current().database)
    # What every order uses is found at once: peewee's own way to it is an error that is caught, each time.
    advisory_lock, atomic, connection = _of_current("advisory_lock"), _of_current("atomic"), _of_current("connection")
    execute, execute_sql = _of_current("execute"), _of_current("execute_sql")
    in_transaction, is_shared = _of_current("in_transaction"), _of_current("is_shared")


database = _Database()


def open_database(path: Path, busy_timeout: float = 5.0) -> None:
    """Point every model at the SQLite file `path`; `busy_timeout` in seconds."""
    sqlite = Sqlite()
    sqlite.init(str(path), timeout=busy_timeout)
    _use(sqlite)


def open_postgres(url: str, connections: int) -> None:
    """Point every model at a Postgres database. Raises NoDriver, or DatabaseError: the address can't be read."""
    _use(Postgres(url, connections))


_constants: Part[dict[str, Any]] = Part(dict)


def constant(name: str, read: Callable[[], T]) -> T:
    """Return a value that does not change in the open database; `read` is called once per open database."""
    value: T | None = _constants().get(name)
    if value is None:
        value = _constants()[name] = read()
    return value


def forget_constants() -> None:
    """Read them again: another database is open, or this one was marked as restored."""
    _constants().clear()


def close_database() -> None:
    """Close this thread's connection, and on Postgres those of all threads."""
    before = current().database
    if before is not None and not before.is_closed():
        before.close()
    if before is not None and before.is_shared:
        before.close_all()


def _use(wanted: Any) -> None:
    forget_constants()
    close_database()
    current().database = wanted


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

    peewee would write a query's SQL each time, which takes far longer than SQLite takes to run it.
    Values that are given to `run` go to the database as they are: whole numbers, texts, None.
    """

    def __init__(self, build: Callable[[Any], Any]):
        self._build = build
        self._compiled: tuple[str, Callable[[dict[str, Any]], list[Any]]] | None = None
        self._compiled_for: Any = None
        self._row: Any = None

    def _compile(self) -> tuple[str, Callable[[dict[str, Any]], list[Any]]]:
        """Its SQL for the kind of database that is open, and what makes the parameters out of the values."""
        kind = type(database.obj)
        if self._compiled and self._compiled_for is kind:
            return self._compiled
        sql, parameters = self._build(_OpenValues()).sql()
        names = [each.name if type(each) is _Open else f"fixed {at}" for at, each in enumerate(parameters)]
        fixed = {name: each for name, each in zip(names, parameters, strict=True) if type(each) is not _Open}

        def bind(values: dict[str, Any]) -> list[Any]:
            given = values | fixed if fixed else values
            return [given[name] for name in names]

        self._compiled, self._compiled_for = (sql, bind), kind
        return self._compiled

    def run(self, **values: Any) -> Any:
        """Execute it; the database's cursor."""
        sql, bind = self._compile()
        return database.execute_sql(sql, bind(values))

    def run_all(self, many: list[dict[str, Any]]) -> Any:
        """Execute an INSERT of one row for many, as one statement; the database's cursor."""
        sql, bind = self._compile()
        head, rest = sql.split(" VALUES ")
        row, *returning = rest.split(" RETURNING ")
        parameters = [parameter for values in many for parameter in bind(values)]
        whole = " RETURNING ".join([f"{head} VALUES {', '.join([row] * len(many))}", *returning])
        return database.execute_sql(whole, parameters)

    def all(self, **values: Any) -> list[Any]:
        """Execute it; all rows, as named tuples of the selected columns."""
        cursor = self.run(**values)
        if self._row is None:
            self._row = namedtuple("Row", [column[0] for column in cursor.description])  # type: ignore[misc]
        return [self._row(*row) for row in cursor.fetchall()]

    def models(self, table: Any, **values: Any) -> list[Any]:
        """Execute a query that selects whole rows; their objects."""
        names = [field.name for field in table._meta.sorted_fields]
        return [table(**dict(zip(names, row, strict=True))) for row in self.run(**values).fetchall()]

    def first(self, **values: Any) -> Any:
        """Execute it; the first row as a named tuple, or None."""
        return next(iter(self.all(**values)), None)


@cache
def _insert(table: Any, *columns: str) -> Statement:
    def build(values: Any) -> Any:
        rows = Model.insert.__func__(table, {name: getattr(values, name) for name in columns})
        key = table._meta.primary_key
        return rows.returning(key) if database.is_shared and isinstance(key, AutoField) else rows

    return Statement(build)


def _ids(cursor: Any, count: int) -> list[int]:
    """The ids of the rows that an INSERT made, in their order; of a table that has ids."""
    if database.is_shared:
        return [row[0] for row in cursor.fetchall()] if cursor.description else []
    last: int = cursor.lastrowid
    return list(range(last - count + 1, last + 1))


def first_ids() -> dict[str, int]:
    """By table, the id of the first row made after the last restore (models/tables/maintenance.py), if any."""

    def read() -> dict[str, int]:
        newest = database.execute_sql("SELECT first_ids FROM restoration ORDER BY id DESC LIMIT 1").fetchone()
        return dict(json.loads(newest[0])) if newest else {}

    return constant("first_ids", read)


def _next_id(table: Any) -> int | None:
    """The id of the next row if SQLite, which goes by the highest id, would give one from before a restore."""
    name = table._meta.table_name
    if database.is_shared or name not in (first := first_ids()):
        return None
    highest = database.execute_sql(f'SELECT MAX(id) FROM "{name}"').fetchone()[0] or 0
    return first[name] if highest + 1 < first[name] else None


class Table(Model):
    """Base of every table."""

    class Meta:
        database = database
        legacy_table_names = False

    @classmethod
    def add(cls: Any, **row: Any) -> int:
        """Insert one row, compiled once for each set of columns; its id. Foreign keys are given as ids."""
        if (next_id := _next_id(cls)) is not None:
            row["id"] = next_id
        return next(iter(_ids(_insert(cls, *row).run(**row), 1)), 0)

    @classmethod
    def insert(cls: Any, __data: Any = None, **row: Any) -> Any:
        """peewee's INSERT of one row, which `create` uses, too."""
        if (next_id := _next_id(cls)) is not None:
            row["id"] = next_id
        return super().insert(__data, **row)

    @classmethod
    def add_all(cls: Any, rows: list[dict[str, Any]]) -> list[int]:
        """Insert rows that have the same columns, by one statement; their ids, where the table has any."""
        if (next_id := _next_id(cls)) is not None:
            rows = [{**row, "id": next_id + at} for at, row in enumerate(rows)]
        return _ids(_insert(cls, *rows[0]).run_all(rows), len(rows))


class Fen(BigIntegerField):
    """An amount in integer fen."""


class BasisPoints(BigIntegerField):
    """A rate in integer hundredths of a percent."""


class Timestamp(BigIntegerField):
    """Unix time in whole seconds."""
