"""Restores of the database from a backup: where ids continue, and what is paused until an operator resumes."""

from __future__ import annotations

from peewee import TextField, fn

from models.db.base import Statement, Table, Timestamp


class Restoration(Table):
    """One restore. `first_ids` is a JSON object: by table, the id of the first row made after it (models/db/base.py).

    Payouts and the expiry of manual deposits are paused until `resumed`.
    """

    at = Timestamp()
    first_ids = TextField()
    resumed = Timestamp(null=True)


_paused = Statement(lambda v: Restoration.select(Restoration.at).where(Restoration.resumed.is_null()).limit(1))


def newest() -> int | None:
    """When the database was restored last, as Unix time."""
    at: int | None = Restoration.select(fn.MAX(Restoration.at)).scalar()
    return at


def paused_since() -> int | None:
    """When the database was restored, as Unix time, if nobody has resumed since; otherwise None."""
    row = _paused.run().fetchone()
    return int(row[0]) if row else None
