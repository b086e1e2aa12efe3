"""Atomic and durable writing of files that only their owner can read."""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from runtime.settings import Settings
from services.errors import OperatorError

UNFINISHED = ".unfinished"


def moment() -> str:
    """Return the present UTC time, for a unique file name."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"


def fsync(path: Path) -> None:
    """Make a file's content, or the names in a folder, survive a power cut. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def give_to_owner_of(like: Path, path: Path) -> None:
    """Give the file to the owner of `like`, if root acts for the service's user."""
    if os.geteuid() == 0:
        owner = like.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """Yield an empty file next to `target`, mode 600, with the folder's owner; delete it at the end if not renamed."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=UNFINISHED)
    os.close(handle)
    path = Path(name)
    try:
        give_to_owner_of(target.parent, path)
        yield path
    finally:
        path.unlink(missing_ok=True)


def sweep(folder: Path, name: str) -> None:
    """Delete abandoned unfinished files for a target of this name (or pattern)."""
    for path in folder.glob(f".{name}.*{UNFINISHED}*"):  # includes SQLite's additional files
        path.unlink(missing_ok=True)


def finish(path: Path, target: Path) -> None:
    """Give an unfinished file its name, which must be free. Raises FileExistsError, OSError."""
    fsync(path)
    link(path, target)
    path.unlink(missing_ok=True)
    fsync(target.parent)


def link(path: Path, target: Path) -> None:
    """Give a file a second name, which must be free, or rename it if links are not supported. Raises OSError."""
    try:
        os.link(path, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: the name is checked, then the file renamed
        if target.exists():
            raise FileExistsError(f"{target} already exists") from None
        path.rename(target)


def replace(path: Path, target: Path) -> None:
    """Replace `target` by an unfinished file, atomically."""
    fsync(path)
    path.replace(target)
    fsync(target.parent)


def write(target: Path, text: str, put: Callable[[Path, Path], None]) -> None:
    """Write a whole file, readable by its owner only; `put` is `finish` or `replace`. Raises OSError."""
    with unfinished(target) as path:
        path.write_text(text, "utf-8")
        if put is replace:
            with suppress(FileNotFoundError):
                give_to_owner_of(target, path)
        put(path, target)


log = logging.getLogger(__name__)

# Permissions that others must not have; a group may read, because secrets are often mounted so.
OTHERS = stat.S_IRWXO | stat.S_IWGRP


def _wide(path: Path) -> bool:
    return path.exists() and bool(path.stat().st_mode & OTHERS)


def _narrow(path: Path) -> bool:
    """Restrict a file to its owner; False if it belongs to another user, or is on a read-only disk."""
    try:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & stat.S_IRWXU)
    except OSError:
        return False
    return True


def secure(chosen: Settings) -> None:
    """Restrict the instance folder and its files, and warn if other users could read them until now.

    Raises:
        OperatorError: a key or config.toml is readable by others and can't be restricted.
    """
    folder, data = chosen.instance, chosen.database
    secrets = [path for path in (*sorted(folder.glob("vault.key*")), folder / "config.toml") if _wide(path)]
    files = [path for path in (data, *(Path(f"{data}{end}") for end in ("-wal", "-shm"))) if _wide(path)]
    reachable = _wide(folder)
    for path in secrets:
        if not _narrow(path):
            raise OperatorError(
                f"other users can read or write {path}, and its permissions cannot be changed. Run: chmod go= {path}"
            )
    for path in (*files, *(each for each in (folder, folder / "backups") if _wide(each))):
        if not _narrow(path):
            log.warning(
                "Other users can read or write %s, and its permissions cannot be changed. Run: chmod go= %s", path, path
            )
    if reachable and (wide := [path.name for path in (*secrets, *files)]):
        remedy = ". Change the key with `tillbook vault rotate`" if any("vault.key" in name for name in wide) else ""
        log.warning("Other users could read or write %s in %s until now%s", ", ".join(wide), folder, remedy)
