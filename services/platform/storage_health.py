"""Whether the database can be read and written now: said in the log, by `/healthz`, and to callers."""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from peewee import DatabaseError

from models.db.base import database
from models.db.errors import HANGING, Fault, fault_of
from models.tables.setup_version import raise_version
from runtime import Part, current

log = logging.getLogger(__name__)

LOG_SECONDS = 10  # a line about one fault at most so often: a full disk must not be filled with lines about it
LEAST_FREE = 512 * 1024  # bytes, as many as some dozens of orders take
FRESH = 2  # seconds that a trial write counts
PATIENCE = 0.2  # seconds that a caller waits for a write probe to end
HANGS = 10.0  # seconds after which a trial that does not end is a fault of its own

_said: Part[dict[Fault, float]] = Part(dict)


def report(error: BaseException) -> Fault | None:
    """The fault behind an error, logged at intervals; None if it is another error."""
    fault = fault_of(error)
    if fault is not None and time.monotonic() - _said().get(fault, -LOG_SECONDS) >= LOG_SECONDS:
        _said()[fault] = time.monotonic()
        log.error("%s (%s)", fault.text, error)
    return fault


def surviving(job: Callable[..., Any]) -> Callable[..., Any]:
    """The job, which gives up until its next turn where the database can't be used."""

    @wraps(job)
    def run(*arguments: Any) -> Any:
        try:
            return job(*arguments)
        except Exception as error:
            if report(error) is None:
                raise

    return run


def free(folder: Path) -> int:
    """Bytes that may still be written to the disk of a folder. Raises OSError."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _need_room() -> None:
    """Raise OSError where the disk has hardly any room left: a write as small as a trial's may still find some."""
    if free(current().settings.instance) < LEAST_FREE:
        raise OSError(errno.ENOSPC, f"less than {LEAST_FREE} bytes free")


class _Trial:
    """A look and a small write in a thread of its own: the health is the database's, telling it waits for nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = -float(FRESH)
        self._began = 0.0
        self._fault: Fault | None = None
        self._thread: threading.Thread | None = None

    def __call__(self) -> Fault | None:
        """The fault that prevents writing, if any, by the last write probe."""
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            if not running and time.monotonic() - self._at >= FRESH:
                self._thread = threading.Thread(target=current().bound(self._run), name="trial", daemon=True)
                self._thread.start()
                self._began = time.monotonic()
        if (thread := self._thread) is not None:
            thread.join(PATIENCE)
            if thread.is_alive() and time.monotonic() - self._began > HANGS:
                return HANGING
        return self._fault

    def _run(self) -> None:
        try:
            if not database.is_shared:
                _need_room()
            database.execute_sql("SELECT 1 FROM merchant LIMIT 1")
            raise_version()
            self._fault = None
        except (DatabaseError, sqlite3.Error, OSError) as error:
            self._fault = report(error)
            if self._fault is None:
                raise
        finally:
            self._at = time.monotonic()
            database.close()


_trial = Part(_Trial)


def trial() -> Fault | None:
    """Return what keeps the database from being written, if anything, by the last trial that has ended."""
    return _trial()()
