"""A consistent copy of the database, taken while the service runs."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from models import schema
from models.db.base import database
from models.tables.merchant import Merchant
from services.errors import OperatorError
from services.platform import files

PAGES_A_STEP = 1024
STEPS_OF_A_CHECK = 1_000_000  # steps of SQLite's virtual machine, a few milliseconds, between calls of `progress`

Progress = Callable[[int, int], None]


def backup(target: Path, progress: Progress = lambda done, total: None, *, empty: bool = False) -> None:
    """Copy the database into the new file `target`, which gets its name once it is checked and on disk.

    Args:
        progress: called with the copied and the total number of pages; an exception in it ends the copy.
        empty: whether a database without merchants is accepted.

    Raises:
        OperatorError: the target exists, can't be written or has no room; the copy fails its check; or the database is
        empty, so it is probably the wrong one.
        WrongSchema: the database was written by a newer version.
    """
    if database.is_shared:
        raise OperatorError("the service uses Postgres: back it up with pg_dump (docs/scaling.md)")
    schema.missing()
    if not empty and not Merchant.select().exists():
        raise OperatorError(
            f"{database.path} has no merchants: check that ORDERS_INSTANCE is the folder of the service"
        )
    if target.exists():
        raise OperatorError(f"{target} already exists: specify a new file")
    try:
        leave_room(database.path, target.parent)
        with files.unfinished(target) as copy:
            copy_database(sqlite3.connect(database.path), copy, progress)
            check(copy, progress)
            files.finish(copy, target)
    except FileExistsError:
        raise OperatorError(f"{target} already exists: specify a new file") from None
    except OSError as error:
        raise OperatorError(f"{error.filename or target}: {error.strerror}") from None
    except sqlite3.Error as error:
        raise OperatorError(f"{target}: {error}") from None


def leave_room(source: Path, folder: Path) -> None:
    """Refuse a copy that could fill the disk, which would stop a service on the same disk. Raises OperatorError."""
    log = Path(f"{source}-wal")
    size = source.stat().st_size + (log.stat().st_size if log.exists() else 0)
    free = shutil.disk_usage(folder).free
    if free < size * 1.1:
        raise OperatorError(
            f"{folder} has {free / 2**20:.1f} MiB of free space, the copy needs {size * 1.1 / 2**20:.1f} MiB"
        )


def copy_database(opened: sqlite3.Connection, copy: Path, progress: Progress = lambda done, total: None) -> None:
    """Copy an open database into the empty file `copy`, a single file without a log, and close it."""
    with closing(opened) as source, closing(sqlite3.connect(copy)) as made:
        # A single read transaction: otherwise each write of the service would restart the copy.
        source.execute("BEGIN")
        source.execute("SELECT 1 FROM sqlite_master").fetchone()
        source.backup(made, pages=PAGES_A_STEP, progress=lambda _, left, total: progress(total - left, total))
        made.execute("PRAGMA journal_mode=DELETE")


def check(copy: Path, progress: Progress = lambda done, total: None) -> None:
    """Read all of a database file. Raises OperatorError if it is damaged, sqlite3.Error if it is not a database."""
    stopped: list[Exception] = []

    def go_on() -> bool:
        try:
            progress(1, 1)
        except Exception as error:
            stopped.append(error)  # SQLite would only report that it was interrupted
        return bool(stopped)

    with closing(sqlite3.connect(copy)) as made:
        made.set_progress_handler(go_on, STEPS_OF_A_CHECK)
        try:
            (verdict,) = made.execute("PRAGMA integrity_check(1)").fetchone()
        except sqlite3.Error:
            if stopped:
                raise stopped[0] from None
            raise
    if verdict != "ok":
        raise OperatorError(f"the copy is damaged: {verdict.splitlines()[-1]}")
