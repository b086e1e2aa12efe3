"""Runs of the ledger integrity check, restores, and the progress of erasing personal data."""

from __future__ import annotations

import json
from typing import Any

from peewee import BigIntegerField, Check, ForeignKeyField, TextField, fn

from models.db.base import Table, Timestamp
from models.db.compiled import compiled
from models.tables.order import Order

HOLDS, OFF, FAILED = ("holds", "off", "failed")


class Verification(Table):
    """One run. `beat` is its last heartbeat; `outcome` is null while it runs, and `failed` if it did not finish.

    `found` is a JSON object of the failures, by check: `{check: [lines]}`.
    """

    who = TextField()
    started = Timestamp()
    beat = Timestamp()
    milliseconds = BigIntegerField(null=True)
    entries = BigIntegerField()
    outcome = TextField(null=True, constraints=[Check("outcome IN ('holds', 'off', 'failed')")])
    found = TextField(default="{}")

    @property
    def off(self) -> dict[str, list[str]]:
        """The failures, by check."""
        return {name: lines for name, lines in json.loads(self.found).items() if lines}


class Restoration(Table):
    """One restore. `first_ids` is a JSON object: by table, the id of the first row created after it
    (models/db/base.py).

    Payouts and the expiry of manual deposits are paused until `resumed`.
    """

    at = Timestamp()
    first_ids = TextField()
    resumed = Timestamp(null=True)


@compiled
def _paused() -> Any:
    return Restoration.select(Restoration.at).where(Restoration.resumed.is_null()).limit(1)


def newest() -> int | None:
    """Return the Unix time of the last restore, or None."""
    at: int | None = Restoration.select(fn.MAX(Restoration.at)).scalar()
    return at


def paused_since() -> int | None:
    """Return the Unix time of the last restore if sending has not been resumed since; otherwise None."""
    row = _paused.first()
    return row.at if row else None


class ErasureProgress(Table):
    """At most one row: the id of the last order that was examined."""

    order_id = BigIntegerField()

    @classmethod
    def reached(cls) -> int:
        """Return the id of the last order that was examined, 0 before the first."""
        return cls.select(cls.order_id).scalar() or 0

    @classmethod
    def reach(cls, order_id: int) -> None:
        """Store that the orders up to this id were examined."""
        if not cls.update(order_id=order_id).execute():
            cls.add(order_id=order_id)


class ErasureDelayed(Table):
    """An order that was examined before it could be erased; `due_at` is when it is examined again."""

    order = ForeignKeyField(Order, unique=True)
    due_at = Timestamp(index=True)
