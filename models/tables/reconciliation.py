"""Comparisons of channels' statements with the orders, made in the console."""

from __future__ import annotations

from peewee import BigIntegerField, ForeignKeyField, TextField

from models.db.base import Table, Timestamp
from models.tables.channel import Channel


class Reconciliation(Table):
    """The latest comparison of one file, for the same days, with the orders of a channel. The file is not stored.

    `since` and `until` are the days of the statement in China, such as 2026-05-01. `hash` is the file's SHA-256.
    `differences` counts them all; `result` is a JSON object with the sums and at most a few hundred of them
    (services/statements/kept_results.py).
    """

    channel = ForeignKeyField(Channel, index=False)
    hash = TextField()
    file = TextField()
    since = TextField()
    until = TextField()
    lines = BigIntegerField()
    matched = BigIntegerField()
    differences = BigIntegerField()
    result = TextField()
    who = TextField()
    createtime = Timestamp()
    updatetime = Timestamp()

    class Meta:
        indexes = ((("channel", "hash", "since", "until"), True),)
