"""SQLite: the setup of its connections, and detection of a replaced database file."""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from peewee import SqliteDatabase, __exception_wrapper__

PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "full",  # committed orders survive a power cut
    "foreign_keys": 1,
    "cache_size": -256,  # KiB for each of the many reading threads; writes by other connections clear it anyway
}
MOST_KEPT = 8  # idle connections, of about 350 KiB each


def _gone(text: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorname = "SQLITE_READONLY_DBMOVED"  # SQLite's own code for this, in the cases that it detects
    return error


def make(file: Path) -> None:
    """Create the file if it is missing. Raises DatabaseError if its log exists without it, or OSError.

    SQLite deletes a log next to an empty file, and with it the orders that are only in the log. A service whose file
    was moved for a moment still writes to that log.
    """
    log = Path(f"{file}-wal")
    is_empty = not file.exists() or not file.stat().st_size
    with __exception_wrapper__:
        if is_empty and log.exists() and log.stat().st_size:
            raise _gone(f"it is gone, and {log.name} has orders of it: put the file back beside that one")
    file.touch(mode=0o600)


class Sqlite(SqliteDatabase):
    """One file, to which the processes of this host write in turn.

    SQLite itself would continue to write to a deleted file and create a new one for the next connection.

    Args:
        path: the file, which must exist.
        busy_timeout: seconds to wait for another process's write.
    """

    is_shared = False  # whether processes on other hosts may write to it at the same time

    def __init__(self, path: Path, busy_timeout: float):
        self.path = path
        self._file: tuple[int, int] | None = None
        self._kept: list[sqlite3.Connection] = []
        super().__init__(
            # Without `mode=rw` SQLite would create a new file while this one is being moved.
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            check_same_thread=False,  # a kept connection is used by one thread after the other
            timeout=busy_timeout,
            # IMMEDIATE takes the write lock at BEGIN. With a deferred BEGIN, two readers that both start to write fail
            # immediately with "database is locked", whatever the busy timeout.
            lock_type="IMMEDIATE",
            pragmas=PRAGMAS,
        )

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _hold_to_file(self) -> None:
        if self._file and self._found() != self._file:
            raise _gone("it was moved, replaced or deleted while it was in use")

    def _connect(self) -> sqlite3.Connection:
        self._hold_to_file()
        with suppress(IndexError):
            return self._kept.pop()
        connection: sqlite3.Connection = super()._connect()
        self._file = self._file or self._found()
        return connection

    def hand_back(self) -> None:
        """Close this thread's connection, or keep it for the next thread that connects.

        A new connection reads the whole schema, which takes 1.4 ms: longer than a payout's step.
        """
        if self.is_closed() or self.in_transaction() or len(self._kept) >= MOST_KEPT:
            self.close()  # raises within a transaction
        else:
            connection = self.connection()
            self.dispose()  # forgets it without closing it
            self._kept.append(connection)

    def close_all(self) -> None:
        """Close idle connections."""
        while self._kept:
            self._kept.pop().close()

    def begin(self, lock_type: str | None = None) -> None:
        """Begin a transaction; raise if the file was moved or replaced."""
        with __exception_wrapper__:
            self._hold_to_file()
        super().begin(lock_type)

    def rollback(self) -> None:
        """Roll back, unless SQLite has done so already (on a full disk, for example). The original error is then
        reported."""
        if self.connection().in_transaction:
            super().rollback()

    def snapshot(self) -> AbstractContextManager[Any]:
        """Return a transaction that sees all tables as of one moment, without a write lock."""
        return self.atomic("DEFERRED")

    def for_update(self, rows: Any, *, skip_locked: bool = False, alone: bool = False) -> Any:
        """Return the query unchanged: only one transaction writes at a time."""
        return rows

    def relied_on(self, rows: Any) -> Any:
        """Return the query unchanged: only one transaction writes at a time."""
        return rows

    def advisory_lock(self, what: str, *ids: int) -> None:
        """Do nothing: only one transaction writes at a time."""
