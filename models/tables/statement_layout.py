"""The columns of channels' account statements, as operators confirmed them."""

from __future__ import annotations

from peewee import ForeignKeyField, TextField

from models.db.base import Table, Timestamp
from models.tables.channel import Channel


class StatementLayout(Table):
    """The roles of the columns in a channel's files with this header (services/statements/layouts.py).

    `header` and `roles` are JSON arrays of the same length.
    """

    channel = ForeignKeyField(Channel, index=False)
    header = TextField()
    roles = TextField()
    who = TextField()
    createtime = Timestamp()

    class Meta:
        indexes = ((("channel", "header"), True),)
