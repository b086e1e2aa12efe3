"""Attempts to pay a deposit: each is opened at the channel under a number of its own, for one browser."""

from __future__ import annotations

from peewee import ForeignKeyField, IntegerField, TextField

from models.db.base import Table, Timestamp
from models.tables.order import Order


class Attempt(Table):
    """One attempt, of a channel that opens a payment when the page is viewed; `count` is from 1 for each order.

    `opened` is what the payer is shown, as JSON, and `refusal` the channel's words; both are empty until it answers.
    `triedtime` is when it was asked last.
    """

    order = ForeignKeyField(Order, index=False)
    count = IntegerField()
    browser = TextField()
    opened = TextField(default="")
    refusal = TextField(default="")
    triedtime = Timestamp()


Attempt.add_index(Attempt.order, Attempt.count, name="attempt_count", unique=True)
