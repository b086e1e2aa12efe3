"""Replace the database by a backup, which is checked first; the replaced database is kept."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from peewee import DatabaseError, fn

from models import schema
from models.db.base import database, open_database
from models.tables.maintenance import Restoration
from models.tables.order import Order
from runtime.settings import Settings
from services.backups import after_restore
from services.backups.backup import check, copy_database, leave_room
from services.errors import OperatorError
from services.ledger import integrity
from services.platform import files, instance_lock
from services.security import key_rotation, vault

HEADER = b"SQLite format 3\0"
PATIENCE = 3  # seconds for other commands, and for the ledger check of a killed service, to close the database
LOGS = ("-wal", "-journal")  # files that belong to a database that was not closed


@dataclass(frozen=True)
class Restored:
    """The contents of a restored database, and the path of the replaced one."""

    orders: int
    newest: int | None
    missing: list[str]
    kept: Path | None


Step = Callable[[str], None]


def restore(backup: Path, chosen: Settings, *, verified: bool = True, step: Step = lambda doing: None) -> Restored:
    """Replace the instance's database by a backup, atomically.

    Args:
        verified: refuse a backup whose ledger fails the integrity check.
        step: called with a description of each step before it starts.

    Raises:
        OperatorError: the service is running, or the backup is damaged, belongs to another program, or can't be copied.
        WrongSchema: it was written by a newer version.
        VaultLocked: the key does not decrypt its secrets.
    """
    if chosen.database_url:
        raise OperatorError("the service uses Postgres: restore it with pg_restore (docs/scaling.md)")
    target = chosen.database.resolve()
    try:
        chosen.instance.mkdir(mode=0o700, parents=True, exist_ok=True)
        with instance_lock.locked(target.parent):
            files.sweep(target.parent, target.name)
            leave_room(backup, target.parent)
            with files.unfinished(target) as copy:
                step("copying")
                copy_database(_opened(backup), copy)
                step("checking the file")
                check(copy)
                open_database(copy)
                try:
                    missing = _check_content(chosen, verified, step)
                    orders, newest = Order.select(fn.COUNT(Order.id), fn.MAX(Order.createtime)).tuples().get()
                    with database.atomic():
                        # An older version lacks this table; the migration that creates it skips an existing one.
                        database.create_tables([Restoration], safe=True)
                        after_restore.mark(_highest_ids(target))
                finally:
                    database.close()
                    open_database(chosen.database)
                files.fsync(copy)  # before the swap, because it is slow: no command may open the database during it
                kept = _keep(target)
                files.replace(copy, target)
    except (OSError, DatabaseError, sqlite3.Error) as error:
        raise OperatorError(f"{backup} cannot be restored: {error}") from None
    return Restored(orders, newest, missing, kept)


def _opened(backup: Path) -> sqlite3.Connection:
    """Open the backup read-only, without creating a log file if it has none."""
    alone = not any(Path(f"{backup}{ending}").exists() for ending in LOGS)
    return sqlite3.connect(f"{backup.resolve().as_uri()}?{'immutable=1' if alone else 'mode=ro'}", uri=True)


def _check_content(chosen: Settings, verified: bool, step: Step) -> list[str]:
    """Check the open database; return its missing migrations."""
    if not schema.has_tables():
        raise OperatorError("the file is not a database of this service")
    missing = schema.missing()
    vault.open_vault(chosen.vault_key, chosen.instance / "vault.key", create=False)
    for name in key_rotation.check(vault.key_ring()):
        step(f"decrypting {name}")
    # The ledger of an older version is checked once it is migrated.
    for name, off in integrity.verify() if verified and not missing else ():
        step(name)
        if off:
            raise OperatorError(
                f"its ledger check failed: {name}: {off[0]} (--unverified restores it without the check)"
            )
    return missing


def _highest_ids(present: Path) -> after_restore.Ids:
    """Return the highest id of each table in the database that will be replaced; {} if it can't be read."""
    if not present.exists():
        return {}
    try:
        with closing(_opened(present)) as opened:
            return after_restore.highest_ids(lambda query: opened.execute(query).fetchone())
    except sqlite3.Error:
        return {}


def _keep(present: Path) -> Path | None:
    """Keep the present database and its log under another name; return that name, or None if there is no database."""
    kept = present.with_name(f"before-restore-{files.moment()}{present.suffix}")
    if was_there := present.exists():
        _close_log(present)
        files.link(present, kept)
    # SQLite would apply an old log file to the new file.
    Path(f"{present}-shm").unlink(missing_ok=True)  # an index of the log, which SQLite creates again
    for ending in LOGS:
        old = Path(f"{present}{ending}")
        if old.exists() and old.stat().st_size:
            old.rename(f"{kept}{ending}")
            was_there = True
        old.unlink(missing_ok=True)
    files.fsync(present.parent)
    return kept if was_there else None


def _close_log(present: Path) -> None:
    """Write the log into the file, so that the file is complete; a damaged one stays as it is, with its log."""
    with present.open("rb") as file:
        if file.read(len(HEADER)) != HEADER:
            return  # SQLite would delete the log of a file that is not a database
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            with closing(sqlite3.connect(present)) as opened:
                (mode,) = opened.execute("PRAGMA journal_mode=DELETE").fetchone()
        except sqlite3.DatabaseError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY"):
                return
            mode = "busy"
        if mode == "delete":
            return
        if time.monotonic() > give_up:
            raise OperatorError("another process has the database open: stop it first")
        time.sleep(0.05)
