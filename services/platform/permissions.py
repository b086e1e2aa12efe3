"""File permissions: keys, settings and data are readable by the service's user only."""

from __future__ import annotations

import logging
import stat
from pathlib import Path

from services.errors import OperatorError
from settings import Settings

log = logging.getLogger(__name__)

OTHERS = stat.S_IRWXO | stat.S_IWGRP  # what makes a file wide: a group may read one, as secrets are often mounted


def _wide(path: Path) -> bool:
    return path.exists() and bool(path.stat().st_mode & OTHERS)


def _narrow(path: Path) -> bool:
    """Take a file from all but its owner; False if it belongs to another user, or is on a read-only disk."""
    try:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & stat.S_IRWXU)
    except OSError:
        return False
    return True


def secure(chosen: Settings) -> None:
    """Narrow the instance folder and its files, and warn if other users could read them until now.

    Raises:
        OperatorError: a key or config.toml is wide and cannot be narrowed.
    """
    folder, data = chosen.instance, chosen.database
    secrets = [path for path in (*sorted(folder.glob("vault.key*")), folder / "config.toml") if _wide(path)]
    files = [path for path in (data, *(Path(f"{data}{end}") for end in ("-wal", "-shm"))) if _wide(path)]
    reachable = _wide(folder)
    for path in secrets:
        if not _narrow(path):
            raise OperatorError(f"other users may read or write {path}, and it cannot be changed: chmod go= it")
    for path in (*files, *(each for each in (folder, folder / "backups") if _wide(each))):
        if not _narrow(path):
            log.warning("Other users may read or write %s, and it cannot be changed: chmod go= it", path)
    if reachable and (wide := [path.name for path in (*secrets, *files)]):
        remedy = ": change the key by `flask vault rotate`" if any("vault.key" in name for name in wide) else ""
        log.warning("Other users could read or write %s in %s until now%s", ", ".join(wide), folder, remedy)
