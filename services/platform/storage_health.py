"""The health of the database, readable and writable, for the log, `/healthz` and callers."""

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
from runtime.state import Part, current

log = logging.getLogger(__name__)

LOG_SECONDS = 10  # at most one line about a fault in this time, so that the log does not fill a full disk
LEAST_FREE = 512 * 1024  # bytes: the space of a few dozen orders
FRESH = 2  # seconds for which a write probe counts
PATIENCE = 0.2  # seconds that a caller waits for a write probe to end
HANGS = 10.0  # seconds after which an unfinished write probe is a fault itself

_logged: Part[dict[Fault, float]] = Part(dict)


def report(error: BaseException) -> Fault | None:
    """Return the fault behind an error, logged at intervals; None if it is another error."""
    fault = fault_of(error)
    if fault is not None and time.monotonic() - _logged().get(fault, -LOG_SECONDS) >= LOG_SECONDS:
        _logged()[fault] = time.monotonic()
        log.error("%s (%s)", fault.text, error)
    return fault


def surviving(job: Callable[..., Any]) -> Callable[..., Any]:
    """Return the job, whose runs end early if the database can't be used."""

    @wraps(job)
    def run(*arguments: Any) -> Any:
        try:
            return job(*arguments)
        except Exception as error:
            if report(error) is None:
                raise

    return run


def free(folder: Path) -> int:
    """Return the free bytes on the disk of a folder. Raises OSError."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


class _WriteProbe:
    """A read and a small write in a thread of its own, so that a slow database does not delay the report of its
    health."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = -float(FRESH)
        self._began = 0.0
        self._fault: Fault | None = None
        self._thread: threading.Thread | None = None

    def __call__(self) -> Fault | None:
        """Return the fault that prevents writing, if any, by the last write probe."""
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            if not running and time.monotonic() - self._at >= FRESH:
                self._thread = threading.Thread(target=current().bound(self._run), name="write-probe", daemon=True)
                self._thread.start()
                self._began = time.monotonic()
        if (thread := self._thread) is not None:
            thread.join(PATIENCE)
            if thread.is_alive() and time.monotonic() - self._began > HANGS:
                return HANGING
        return self._fault

    def _run(self) -> None:
        try:
            # A probe's small write could still succeed when the disk is almost full.
            if not database.is_shared and free(current().settings.instance) < LEAST_FREE:
                raise OSError(errno.ENOSPC, f"less than {LEAST_FREE} bytes free")
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


_write_probe = Part(_WriteProbe)


def write_fault() -> Fault | None:
    """Return the fault that prevents writing to the database, if any, by the last completed write probe."""
    return _write_probe()()
