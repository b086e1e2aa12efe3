"""Requests of one operator to pay out a large withdrawal, which another operator must approve."""

from __future__ import annotations

import json

from peewee import Check, ForeignKeyField, TextField

from models.db.base import Table, Timestamp
from models.tables.order import Order


class PayoutRequest(Table):
    """One request: what `who` wants to do to a withdrawal, `given` with it as JSON.

    It is void once the order's status is another one than `status`.
    """

    order = ForeignKeyField(Order, index=False)
    action = TextField(constraints=[Check("action IN ('accept', 'paid')")])
    given = TextField()
    status = TextField()
    who = TextField()
    at = Timestamp()

    @property
    def asked(self) -> dict[str, str]:
        """What was given with it, by name."""
        return dict(json.loads(self.given))


PayoutRequest.add_index(PayoutRequest.order, name="payout_request_order", unique=True)
