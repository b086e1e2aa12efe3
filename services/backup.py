"""A consistent copy of the database, taken while the service runs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from models.base import database
from models.merchant import Merchant
from services.errors import NotPossible

PAGES_A_STEP = 1024


def backup(target: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> None:
    """Copy the database into the new file `target`, checked before it gets its name.

    Args:
        progress: called with the pages done and the pages in all.

    Raises:
        NotPossible: the target is there already, can't be written, or the copy fails its check; or the
            database is empty, so that it can hardly be the one that is meant.
    """
    if database.is_shared:
        raise NotPossible("the database is Postgres's: back it up by pg_dump (docs/scaling.md)")
    if not Merchant.select().exists():
        raise NotPossible(f"{database.database} has no merchant: is ORDERS_INSTANCE the same as the service's?")
    if target.exists():
        raise NotPossible(f"{target} is there already")
    unfinished = target.with_name(target.name + ".unfinished")
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        with closing(sqlite3.connect(unfinished)) as copy, closing(sqlite3.connect(database.database)) as source:
            # One view of it all: else each write of the service would start the copy over.
            source.execute("BEGIN")
            source.execute("SELECT 1 FROM sqlite_master").fetchone()
            source.backup(copy, pages=PAGES_A_STEP, progress=lambda _, left, total: progress(total - left, total))
            (verdict,) = copy.execute("PRAGMA integrity_check").fetchone()
        if verdict != "ok":
            raise NotPossible(f"the copy is damaged: {verdict}")
        unfinished.rename(target)
    except (OSError, sqlite3.Error) as error:
        raise NotPossible(f"{target}: {error}") from None
    finally:
        unfinished.unlink(missing_ok=True)
