"""SQLite: how its connections are set up, and a file that is held to."""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from peewee import SqliteDatabase, __exception_wrapper__

PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "full",  # a committed order survives a power cut
    "foreign_keys": 1,
    "cache_size": -256,  # KiB for each of the many threads that read; what another connection writes empties it anyway
}


def _gone(text: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorname = "SQLITE_READONLY_DBMOVED"  # what SQLite calls it, where it looks
    return error


def make(file: Path) -> None:
    """Make the file if it is missing. Raises DatabaseError if its log exists without it, or OSError.

    SQLite deletes a log that it finds beside an empty file, with all that is only in the log; and a service whose
    file was moved for a moment still writes to it.
    """
    log = Path(f"{file}-wal")
    is_empty = not file.exists() or not file.stat().st_size
    with __exception_wrapper__:
        if is_empty and log.exists() and log.stat().st_size:
            raise _gone(f"it is gone, and {log.name} has orders of it: put the file back beside that one")
    file.touch(mode=0o600)


class Sqlite(SqliteDatabase):
    """One file, which this host's processes write to in turn; of no name until `init`.

    SQLite itself would go on writing to one that was deleted, and make a new one for the next connection.
    """

    is_shared = False  # may processes of other hosts write to it, at the same time?
    _file: tuple[int, int] | None = None

    def __init__(self) -> None:
        # IMMEDIATE takes the write lock at BEGIN: with a deferred BEGIN two readers that both turn
        # writers fail at once with "database is locked", whatever the busy timeout.
        super().__init__(None, lock_type="IMMEDIATE", pragmas=PRAGMAS)

    def init(self, database: Any, **named: Any) -> None:
        """Work with another file from here on."""
        self._file = None
        super().init(database, pragmas=PRAGMAS, **named)

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.database)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _hold_to_file(self) -> None:
        if self._file and self._found() != self._file:
            raise _gone("it was moved, replaced or deleted while it was in use")

    def _connect(self) -> sqlite3.Connection:
        self._hold_to_file()
        # By `mode=rw` it must be there: else SQLite makes a new one in the very moment in which it is moved.
        there = f"{Path(self.database).absolute().as_uri()}?mode=rw"
        options = {"timeout": self._timeout, "isolation_level": None} | self.connect_params
        connection = sqlite3.connect(there, uri=True, **options)
        try:
            self._add_conn_hooks(connection)
        except BaseException:
            connection.close()
            raise
        self._file = self._file or self._found()
        return connection

    def begin(self, lock_type: str | None = None) -> None:
        """Begin a transaction, unless the file is gone."""
        with __exception_wrapper__:
            self._hold_to_file()
        super().begin(lock_type)

    def rollback(self) -> None:
        """Roll back, unless SQLite has done so already (a full disk, say): the original error is the one to report."""
        if self.connection().in_transaction:
            super().rollback()

    def snapshot(self) -> AbstractContextManager[Any]:
        """A transaction that sees all tables as of one moment; it takes no write lock."""
        return self.atomic("DEFERRED")

    def for_update(self, rows: Any, *, skip_locked: bool = False, alone: bool = False) -> Any:
        """The query as it is: a transaction that writes is alone."""
        return rows

    def relied_on(self, rows: Any) -> Any:
        """The query as it is: a transaction that writes is alone."""
        return rows

    def advisory_lock(self, what: str, *ids: int) -> None:
        """Nothing: a transaction that writes is alone."""
