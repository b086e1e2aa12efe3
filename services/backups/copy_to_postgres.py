"""Copy to Postgres: every row of the SQLite file into an empty database, in one transaction, then compared."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from peewee import AutoField, BooleanField, DatabaseError, IntegerField

from models import schema
from models.db.base import database, open_database, open_postgres
from models.db.postgres import NoDriver
from models.queries import search
from services.errors import OperatorError
from services.ledger import integrity
from services.platform import instance_lock


def _sums(table: Any, length: str = "LENGTH") -> str:
    """A query for the number of rows, and for each column the sum of its numbers or of its texts' lengths."""
    measures = ["COUNT(*)"]
    for field in table._meta.sorted_fields:
        if isinstance(field, (AutoField, IntegerField)) or hasattr(field, "rel_field"):
            measures.append(f'SUM("{field.column_name}")')
        elif isinstance(field, BooleanField):
            measures.append(f'SUM(CASE WHEN "{field.column_name}" THEN 1 ELSE 0 END)')
        else:
            measures.append(f'SUM({length}("{field.column_name}"))')
    return f'SELECT {", ".join(measures)} FROM "{table._meta.table_name}"'


@contextmanager
def _frozen(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the SQLite file that locks it against writing. Raises OperatorError if another process writes."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=1)) as source:
        try:
            source.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise OperatorError(f"{file} is in use ({error}): stop the service first") from None
        yield source
        source.execute("ROLLBACK")


def _compare(source: sqlite3.Connection, table: Any) -> int:
    """Return the number of rows. Raises OperatorError if the two databases differ."""
    # SQLite's own LENGTH stops at a NUL, which has become U+FFFD in Postgres.
    source.create_function("characters", 1, lambda text: None if text is None else len(text), deterministic=True)
    before = list(source.execute(_sums(table, "CHARACTERS")).fetchone())
    after = list(database.execute_sql(_sums(table)).fetchone())
    if before != after:
        raise OperatorError(f"{table._meta.table_name} differs after the copy: {before} before, {after} after")
    return int(before[0])


def copy(url: str, connections: int, progress: Callable[[str, int], None] = lambda name, rows: None) -> None:
    """Copy the open SQLite database into an empty Postgres database, in one transaction.

    The number of rows, the sums of each column and the ledger are compared before the commit.

    Args:
        progress: called with each table and the number of its rows.

    Raises:
        OperatorError: the target is not empty or can't be reached, the service is running, another process writes to
        the source, or the two differ. The target is then empty.
    """
    if database.is_shared:
        raise OperatorError("the service already uses Postgres (database_url)")
    file = database.path
    try:
        # Also refuse if the service is running but idle: it would continue to use the file afterwards.
        with instance_lock.locked(file.resolve().parent), _frozen(file) as source:
            try:
                open_postgres(url, connections)
                with database.atomic():
                    database.take_time()
                    _fill(source, progress)
            finally:
                open_database(file)
    except NoDriver as error:
        raise OperatorError(str(error)) from None
    except DatabaseError as error:
        raise OperatorError(f"Postgres: {' '.join(str(error).split())}") from None


def _fill(source: sqlite3.Connection, progress: Callable[[str, int], None]) -> None:
    if database.get_tables():
        raise OperatorError("the target database is not empty: specify a new one")
    (encoding,) = database.execute_sql("SHOW server_encoding").fetchone()
    if encoding != "UTF8":
        raise OperatorError(f"the target's encoding is {encoding}: create a database with UTF8")

    def rows() -> None:
        for table in schema.TABLES:
            name, columns = table._meta.table_name, [field.column_name for field in table._meta.sorted_fields]
            names = ", ".join(f'"{column}"' for column in columns)
            database.copy_in(name, columns, source.execute(f'SELECT {names} FROM "{name}"'))
            progress(name, _compare(source, table))

    schema.create(fill=rows)
    schema.continue_ids()
    search.index_all()
    off = {name: found for name, found in integrity.verify() if found}
    if off:
        raise OperatorError(f"the ledger check failed: {', '.join(off)}")
