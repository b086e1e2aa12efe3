"""The callbacks that an action on an order will send, shown before an operator confirms it."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any

import business_clock
from models.tables.order import COMPLETED, Order
from schemas.views import order_view
from services.callbacks import outbox
from services.merchants import cache


@dataclass(frozen=True)
class Preview:
    """One callback: its type, its body, and whether the merchant receives it.

    `is_wanted`: the merchant subscribes to this type; `has_address`: it has a callback URL.
    """

    event: str
    body: str
    is_wanted: bool
    has_address: bool


def changed(order: Order, **facts: Any) -> Order:
    """Return a copy of the order with these columns; nothing is stored."""
    other = copy(order)
    other.__data__ = {**order.__data__, **facts}
    return other


def of_steps(
    order: Order, statuses: Iterable[str], event: str = "", completed: Order | None = None
) -> tuple[Preview, ...]:
    """Return the callbacks of these steps of an order, then the one of an event without a step.

    Args:
        event: such as `order.credited`.
        completed: the order as it will be after its last step, if its amounts change.
    """
    now, previews = business_clock.now(), []
    for status in statuses:
        order = changed(completed if completed and status == COMPLETED else order, status=status, updatetime=now)
        previews.append(_of(order, f"order.{status}", now))
    if event:
        previews.append(_of(order, event, now))
    return tuple(previews)


def _of(order: Order, event: str, now: int) -> Preview:
    merchant = cache.by_id(order.merchant_id).merchant
    is_wanted = event.removeprefix("order.") in merchant.events.split(",")
    body = outbox.body_of(event, now, order_view.of(order))
    return Preview(event, body, is_wanted, bool(merchant.callback_url))
