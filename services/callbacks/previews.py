"""The callbacks that an action on an order will send, shown before an operator confirms it."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

from models.tables.order import COMPLETED, Order
from runtime import clock
from services.callbacks import outbox
from services.callbacks.outbox import Outgoing


def changed(order: Order, **facts: Any) -> Order:
    """Return a copy of the order with these columns; nothing is stored."""
    other = copy(order)
    other.__data__ = {**order.__data__, **facts}
    return other


def of_steps(
    order: Order, statuses: Iterable[str], event: str = "", completed: Order | None = None
) -> tuple[Outgoing, ...]:
    """Return the callbacks of these steps of an order, then the one of an event without a step.

    Args:
        event: such as `order.credited`.
        completed: the order as it will be after its last step, if its amounts change.
    """
    now, previews = clock.now(), list[Outgoing]()
    for status in statuses:
        order = changed(completed if completed and status == COMPLETED else order, status=status, updatetime=now)
        previews += outbox.of_event(order, f"order.{status}", now, even_unwanted=True)
    if event:
        previews += outbox.of_event(order, event, now, even_unwanted=True)
    return tuple(previews)
