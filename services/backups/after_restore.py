"""After a restore: skip row ids that may have been used; pause payouts, refunds and the expiry of manual deposits."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from peewee import DatabaseError

from models import schema
from models.db.base import database, forget_constants
from models.db.writer import transaction
from models.tables.maintenance import Restoration, paused_since
from models.tables.operator import AuditEntry
from runtime import clock
from services.errors import N_, OperatorError
from services.security import audit, sessions

log = logging.getLogger(__name__)

AHEAD = 1_000_003  # how far ids continue above the highest known: more rows than can have been lost
PAUSED = N_("payouts, refunds and the expiry of manual deposits are paused until `tillbook db resume`")
NEXT_STEPS = N_("""\
next steps:
  1. start the service: it checks the status of open orders at the channels that it can query
  2. compare with the statement of each channel: `tillbook reconcile CHANNEL STATEMENT`
  3. compare orders and results since the backup with your merchants: `tillbook order list`
  4. find payments for orders that the backup lacks: `tillbook order unknown`
  5. record manual payments, payouts and refunds since the backup, then run `tillbook db resume`""")

Ids = Mapping[str, int]


def highest_ids(first_row: Callable[[str], Any]) -> Ids:
    """Return the highest id of each table, as far as the tables can be read.

    Args:
        first_row: runs a query on the database and returns the first row.
    """
    found: dict[str, int] = {}
    for table in schema.NUMBERED:
        name = table._meta.table_name
        with suppress(sqlite3.Error, DatabaseError):
            found[name] = first_row(f'SELECT COALESCE(MAX(id), 0) FROM "{name}"')[0]
    with suppress(sqlite3.Error, DatabaseError, TypeError):  # no such table, or it is empty
        reserved = json.loads(first_row("SELECT first_ids FROM restoration ORDER BY id DESC LIMIT 1")[0])
        found |= {name: max(found.get(name, 0), first - 1) for name, first in reserved.items()}
    return found


@transaction
def mark(replaced: Ids | None = None) -> None:
    """Record in the open database that it was restored from a backup.

    Args:
        replaced: the highest ids of the replaced database.
    """
    known = highest_ids(lambda query: database.execute_sql(query).fetchone())
    both = [known, replaced or {}]
    first = {name: max(ids.get(name, 0) for ids in both) + AHEAD for name in {name for ids in both for name in ids}}
    Restoration.add(at=clock.now(), first_ids=json.dumps(first))
    forget_constants()
    schema.continue_ids()
    if AuditEntry.table_exists():  # missing in backups of releases up to 0.3.0
        audit.record(audit.HERE, "restore", "database")
    sessions.forget()


@transaction
def resume() -> None:
    """Resume payouts, refunds and the expiry of manual deposits. Raises OperatorError if they are not paused."""
    paused = Restoration.resumed.is_null()
    if not Restoration.update(resumed=clock.now()).where(paused).execute():
        raise OperatorError("nothing is paused: payouts, refunds and the expiry of manual deposits are running")
    audit.record(audit.HERE, "resume", "database")


def warn() -> None:
    """Log a warning if something is paused."""
    if paused_since() is not None:
        log.warning("The database was restored from a backup: %s", PAUSED)
