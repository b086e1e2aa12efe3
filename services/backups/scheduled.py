"""Scheduled backups: their times and the number to keep."""

from __future__ import annotations

import logging
import re
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from peewee import DatabaseError

from models.tables.merchant import Merchant
from runtime.settings import Settings
from runtime.state import Part
from services.backups.backup import backup
from services.errors import OperatorError
from services.platform import files

log = logging.getLogger(__name__)

PREFIX = "scheduled-"  # only files with this name and a time are counted or deleted
TIME = "%Y%m%dT%H%M%SZ"
NAME = re.compile(PREFIX + r"(\d{8}T\d{6}Z)\.sqlite", re.ASCII)

_failed = Part(threading.Event)


class Stopping(Exception):
    """The service is stopping."""


def run(chosen: Settings, stopping: threading.Event) -> None:
    """Make a backup if one is due, then delete the oldest ones. Failures are logged and tried again."""
    folder, now = chosen.backups, datetime.now(UTC)

    def go_on(done: int, total: int) -> None:
        if stopping.is_set():
            raise Stopping

    try:
        if folder.parent == chosen.instance:
            folder.mkdir(mode=0o700, exist_ok=True)  # any other missing folder may be on a disk that is not mounted
        made = _made(folder, now)
        is_due = not made or now - made[-1][0] >= timedelta(hours=chosen.backup_every)
        if is_due and Merchant.select().exists():
            target = folder / f"{PREFIX}{now.strftime(TIME)}.sqlite"
            files.sweep(folder, f"{PREFIX}*")
            backup(target, go_on)
            log.info("Scheduled backup saved: %s", target)
            for _, path in _made(folder, now)[: -chosen.backup_keep]:
                path.unlink()
                log.info("Deleted the backup %s: %s newer ones are kept", path, chosen.backup_keep)
        _failed().clear()
    except Stopping:
        log.info("Scheduled backup interrupted: the service is stopping")
    except (OperatorError, OSError, DatabaseError) as error:
        log.error("Scheduled backup failed, will be retried: %s", error)
        _failed().set()


def has_failed() -> bool:
    """Return whether the last scheduled backup, or the check whether one is due, failed."""
    return _failed().is_set()


def _made(folder: Path, now: datetime) -> list[tuple[datetime, Path]]:
    """Return the scheduled backups by time, oldest first, without those with a time in the future."""
    found = []
    for path in folder.iterdir():
        if (match := NAME.fullmatch(path.name)) and path.is_file():
            with suppress(ValueError):  # the rest of the name is not a time, so it is not a scheduled backup
                found.append((datetime.strptime(match[1], TIME).replace(tzinfo=UTC), path))
    return sorted((at, path) for at, path in found if at <= now)


def newest(chosen: Settings) -> float | None:
    """Return the start of the newest scheduled backup in Unix time; None if there is none or the time is unknown."""
    try:
        made = _made(chosen.backups, datetime.now(UTC))
    except OSError:
        return None
    return made[-1][0].timestamp() if made else None
