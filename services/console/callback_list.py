"""The list of callbacks, and how many were given up lately."""

from __future__ import annotations

from typing import Any

from peewee import fn

import business_clock
from models.queries.keyset import Key, Line
from models.tables.order import Order
from models.tables.outbox import CALLBACK_STATES, DEAD, Callback, CallbackAttempt
from services.console.lists import Browse, capped, merchants, name_owners

FAILING_FOR = 7 * 86_400  # seconds for which a callback that was given up counts as one to look at


class Callbacks(Browse):
    """Callbacks, by `state`, `merchant`, `event`, `order` (its number), `since`, `until`."""

    table = Callback

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """One for each merchant and state."""
        states = [self.wanted["state"]] if "state" in self.wanted else CALLBACK_STATES
        bounds, condition = self.in_time(above, below), self.condition()
        return [
            Line(
                Callback,
                [Callback.merchant == merchant, Callback.state == state],
                self.columns,
                self.columns,
                *bounds,
                condition,
            )
            for merchant in merchants(self.wanted)
            for state in states
        ]

    def condition(self) -> Any:
        """The event."""
        return Callback.type == self.wanted["event"] if "event" in self.wanted else None

    def few(self) -> list[Key] | None:
        """Those of one order."""
        if "order" not in self.wanted:
            return None
        own = Callback.select(*self.columns).join(Order).where(Order.order_no == self.wanted["order"])
        exact = {"state": Callback.state, "event": Callback.type, "merchant": Callback.merchant}
        wanted = [column == self.wanted[name] for name, column in exact.items() if name in self.wanted]
        return list((own.where(*wanted) if wanted else own).tuples())

    def query(self) -> Any:
        """Without what is sent."""
        columns = [field for field in Callback._meta.sorted_fields if field is not Callback.body]
        return Callback.select(*columns, Order.order_no).join(Order)

    def rows(self, ids: list[int]) -> list[Any]:
        """With the order's number, the merchant, and `last`: the newest attempt, or None."""
        rows = name_owners(super().rows(ids))
        newest = CallbackAttempt.select(fn.MAX(CallbackAttempt.id)).where(CallbackAttempt.callback.in_(ids))
        last = CallbackAttempt.select().where(CallbackAttempt.id.in_(newest.group_by(CallbackAttempt.callback)))
        by_callback = {attempt.callback_id: attempt for attempt in last} if ids else {}
        for row in rows:
            row.last = by_callback.get(row.id)
        return rows


def callbacks_failing() -> int:
    """How many callbacks of the last days were given up, counted up to 100."""
    recent = Callback.createtime >= business_clock.now() - FAILING_FOR
    dead = (Callback.state == DEAD) & Callback.merchant.in_(merchants({}))
    return capped(Callback.select(Callback.createtime).where(dead, recent))
