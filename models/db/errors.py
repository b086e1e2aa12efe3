"""The meaning of database and disk errors: tables by the database's error names."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from peewee import InterfaceError, OperationalError, PeeweeException

from models.db.keyed_mutex import LockTimeout
from models.db.postgres import sqlstate
from runtime.texts import N_


@dataclass(frozen=True)
class Fault:
    """The reason why nothing can be stored or read: a code for machines and a text for the operator.

    `retry_after`: seconds after which a caller may try again.
    """

    word: str
    text: str
    retry_after: int


LOCKED = Fault("locked", N_("The database is locked by another process."), 1)
FULL = Fault("disk_full", N_("The database disk is full."), 5)
READ_ONLY = Fault("read_only", N_("The database or its disk is read-only."), 5)
FAILING = Fault("disk_error", N_("The database disk is failing."), 5)
MISSING = Fault("missing", N_("The database file is missing, was replaced or cannot be opened."), 5)
DAMAGED = Fault("damaged", N_("The database file is damaged. Restore a backup."), 30)
HANGING = Fault("hanging", N_("A database write does not finish."), 5)
AWAY = Fault("unreachable", N_("Postgres cannot be reached, is restarting or has no free connections."), 2)

# By the beginning of the extended error name; the first match counts.
SQLITE = {
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_PROTOCOL": LOCKED,
    "SQLITE_FULL": FULL,
    "SQLITE_READONLY_DBMOVED": MISSING,
    "SQLITE_READONLY": READ_ONLY,
    "SQLITE_IOERR": FAILING,
    "SQLITE_CANTOPEN": MISSING,
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_NOTADB": DAMAGED,
}
# By the beginning of the SQLSTATE; the first match counts.
POSTGRES = {
    "08": AWAY,
    "57014": LOCKED,  # a statement took too long
    "57": AWAY,
    "53100": FULL,
    "53": AWAY,
    "25006": READ_ONLY,
    "55P03": LOCKED,
    "40": LOCKED,
    "58": FAILING,
    "XX": DAMAGED,
}
SYSTEM = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EFBIG: FULL,
    errno.EROFS: READ_ONLY,
    errno.EIO: FAILING,
}


def _named(names: dict[str, Fault], name: str) -> Fault | None:
    return next((fault for start, fault in names.items() if name.startswith(start)), None)


def fault_of(error: BaseException) -> Fault | None:
    """Return the fault behind an error of peewee, the database driver or the system; None for any other error."""
    if isinstance(error, LockTimeout):
        return LOCKED
    state = sqlstate(error)
    if state is not None:
        if not state:  # the connection failed, or was lost
            return AWAY if isinstance(error, (OperationalError, InterfaceError)) else None
        return _named(POSTGRES, state)
    while isinstance(error, PeeweeException) and hasattr(error, "orig"):
        error = error.orig  # the driver's own error; errors while connecting are wrapped twice
    name = getattr(error, "sqlite_errorname", None)
    known = _named(SQLITE, name) if name else None
    return known or (SYSTEM.get(error.errno or 0) if isinstance(error, OSError) else None)


def first_line(error: Exception) -> str:
    """Return the database's message without the row, whose values Postgres adds in further lines."""
    return str(error).partition("\n")[0]
