"""The orders of each channel and type that finished last, for the alerts about success rates.

They are read from the history once, and from then on its new lines only, so that each look costs the same at any number
of orders.
"""

from __future__ import annotations

import threading
from itertools import islice
from typing import NamedTuple

from peewee import fn

from models.db.base import database
from models.tables.order import CANCELLED, COMPLETED, History, Order
from runtime import clock
from runtime.state import Part

WINDOW = 900  # seconds: all orders of this time are judged,
LEAST = 20  # or so many, if there are fewer,
MOST = 2_000  # but not more
OLDEST = 86_400  # seconds after which a finished order says nothing about the present
FIRST = 50_000  # lines of the history that are read at first
OVERLAP = 2_000  # lines that are read again each time: on Postgres one may become visible after later ones


class Finished(NamedTuple):
    """When an order finished, when it was created, and whether it was completed."""

    at: int
    createtime: int
    completed: bool


class _Known:
    """The orders that finished last, by channel and type, and then by id in the order in which they finished."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.line = 0  # of the history, up to which they have been read
        self.orders: dict[tuple[int, int], dict[int, Finished]] = {}

    def look(self) -> None:
        """Read the new lines of the history."""
        newest = History.select(fn.MAX(History.id)).scalar() or 0
        if newest < self.line:  # of another database
            self.line, self.orders = 0, {}
        read = self.line - (OVERLAP if database.is_shared else 0) if self.line else newest - FIRST
        lines = History.select(
            *(Order.channel, Order.order_type, Order.id, History.at, Order.createtime, History.after)
        ).join(Order)
        finished = (History.id > read, History.id <= newest, History.after.in_((COMPLETED, CANCELLED)))
        for channel, order_type, order_id, at, createtime, after in (
            lines.where(*finished).order_by(History.id).tuples()
        ):
            orders = self.orders.setdefault((channel, order_type), {})
            orders.pop(order_id, None)  # a cancelled order may be paid later
            orders[order_id] = Finished(at, createtime, after == COMPLETED)
        for orders in self.orders.values():
            for order_id in list(islice(orders, max(0, len(orders) - MOST))):
                del orders[order_id]
        self.line = newest


_known = Part(_Known)


def newest() -> dict[tuple[int, int], list[Finished]]:
    """Return the finished orders to judge, by channel and order type: of the last 15 minutes, or the last 20.

    Each is at most a day old, so there may be fewer.
    """
    known, now = _known(), clock.now()
    with known.lock:
        known.look()
        every = {
            key: [each for each in orders.values() if each.at > now - OLDEST] for key, orders in known.orders.items()
        }
    return {key: orders[-max(LEAST, sum(each.at > now - WINDOW for each in orders)) :] for key, orders in every.items()}
