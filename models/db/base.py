"""The database handle, its connections, and the base class of all tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from peewee import AutoField, BigIntegerField, DatabaseProxy, Model

from models.db.compiled import Compiled
from models.db.postgres import Postgres
from models.db.sqlite import Sqlite
from runtime.state import Part, current

LARGEST_ID = 2**63 - 1

T = TypeVar("T")


def _of_current(name: str) -> Any:
    return property(lambda self: getattr(current().database, name))


class _Database(DatabaseProxy):
    """The database of the current runtime. The differences between SQLite and Postgres are in their classes."""

    def __init__(self) -> None:
        self._callbacks: list[Any] = []  # peewee calls these when a proxy is initialized; this one never is

    obj = property(lambda self: current().database)
    # Attributes that every order uses: peewee's proxy would find each by catching an AttributeError.
    advisory_lock, atomic, connection = _of_current("advisory_lock"), _of_current("atomic"), _of_current("connection")
    execute, execute_sql = _of_current("execute"), _of_current("execute_sql")
    in_transaction, is_shared = _of_current("in_transaction"), _of_current("is_shared")


database = _Database()


def open_database(path: Path, busy_timeout: float = 5.0) -> None:
    """Point every model at the SQLite file `path`; `busy_timeout` in seconds."""
    _use(Sqlite(path, busy_timeout))


def open_postgres(url: str, connections: int) -> None:
    """Point every model at a Postgres database. Raises NoDriver, or DatabaseError for an invalid address."""
    _use(Postgres(url, connections))


_constants: Part[dict[str, Any]] = Part(dict)


def constant(name: str, read: Callable[[], T]) -> T:
    """Return a value that does not change in the open database; `read` is called once per open database."""
    value: T | None = _constants().get(name)
    if value is None:
        value = _constants()[name] = read()
    return value


def forget_constants() -> None:
    """Read constants again, after another database was opened or this one was marked as restored."""
    _constants().clear()


def close_database() -> None:
    """Close this thread's connection and the idle ones."""
    before = current().database
    if before is None:
        return
    if not before.is_closed():
        before.close()
    before.close_all()


def _use(wanted: Any) -> None:
    forget_constants()
    close_database()
    current().database = wanted


@cache
def _insert_into(table: Any) -> Compiled:
    def insert(**row: Any) -> Any:
        rows, key = super(Table, table).insert(row), table._meta.primary_key
        return rows.returning(key) if database.is_shared and isinstance(key, AutoField) else rows

    return Compiled(insert)


def _ids(cursor: Any, count: int) -> list[int]:
    """Return the ids of the rows that an INSERT created, in their order. Only for tables with ids."""
    if database.is_shared:
        return [row[0] for row in cursor.fetchall()] if cursor.description else []
    last: int = cursor.lastrowid
    return list(range(last - count + 1, last + 1))


def first_ids() -> dict[str, int]:
    """Return the id of each table's first row after the last restore, if any (models/tables/maintenance.py)."""

    def read() -> dict[str, int]:
        newest = database.execute_sql("SELECT first_ids FROM restoration ORDER BY id DESC LIMIT 1").fetchone()
        return dict(json.loads(newest[0])) if newest else {}

    return constant("first_ids", read)


def _next_id(table: Any) -> int | None:
    """Return the id of the next row after a restore, or None if the database chooses it correctly.

    SQLite continues after the highest id, which could reuse ids from before the restore.
    """
    name = table._meta.table_name
    if database.is_shared or name not in (first := first_ids()):
        return None
    highest = database.execute_sql(f'SELECT MAX(id) FROM "{name}"').fetchone()[0] or 0
    return first[name] if highest + 1 < first[name] else None


class Table(Model):
    """Base class of all tables."""

    class Meta:
        database = database
        legacy_table_names = False

    @classmethod
    def add(cls, **row: Any) -> int:
        """Insert one row and return its id. Foreign keys are passed as ids."""
        return next(iter(cls.add_all([row])), 0)

    @classmethod
    def insert(cls: Any, __data: Any = None, **row: Any) -> Any:
        """Insert one row as peewee does; `create` calls this too."""
        if (next_id := _next_id(cls)) is not None:
            row["id"] = next_id
        return super().insert(__data, **row)

    @classmethod
    def add_all(cls: Any, rows: list[dict[str, Any]]) -> list[int]:
        """Insert rows with the same columns by one statement; return their ids, if the table has ids."""
        if (next_id := _next_id(cls)) is not None:
            rows = [{**row, "id": next_id + at} for at, row in enumerate(rows)]
        return _ids(_insert_into(cls).insert(rows), len(rows))


class Fen(BigIntegerField):
    """An amount in integer fen."""


class BasisPoints(BigIntegerField):
    """A rate in integer basis points (hundredths of a percent)."""


class Timestamp(BigIntegerField):
    """Unix time in whole seconds."""
