"""The callback outbox: each callback is written in the transaction of the change that it reports."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

import business_clock
from models.db.base import Statement
from models.db.writer import after_commit
from models.tables.order import Order
from models.tables.outbox import DEAD, WAITING, Callback, webhook_key
from runtime import Part
from schemas.views import order_view
from services.merchants import cache

_listeners: Part[list[Callable[[int], None]]] = Part(list)


def when_enqueued(listener: Callable[[int], None] | None) -> None:
    """Register a function to call with the merchant's id once a callback is committed; None removes it."""
    _listeners()[:] = [listener] if listener else []


def _tell(merchant_id: int) -> None:
    for listener in _listeners():
        listener(merchant_id)


def new_webhook_id() -> str:
    """Return a random id, for a test callback."""
    return f"msg_{secrets.token_hex(16)}"


def webhook_id_of(order_no: str, event: str, about: int | None = None) -> str:
    """Return the id of one event of an order. It is always the same, so a database restored from a backup repeats it.

    Args:
        about: the id of the event's exception, if the event can happen several times for an order.
    """
    event_name = "\n".join([order_no, event] if about is None else [order_no, event, str(about)])
    return f"msg_{hmac.digest(webhook_key(), event_name.encode(), 'sha256').hex()[:32]}"


def body_of(event: str, at: int, data: dict[str, Any]) -> str:
    """Return a callback's body, byte for byte as it is signed and sent."""
    timestamp = business_clock.rfc3339(at)
    return json.dumps({"type": event, "timestamp": timestamp, "data": data}, ensure_ascii=False, separators=(",", ":"))


_same = Statement(lambda v: Callback.select(Callback.id).where(Callback.webhook_id == v.webhook_id))


def enqueue(order: Order, event: str = "", about: int | None = None) -> None:
    """Write the callback for an event of the order if its merchant subscribed to it, in the caller's transaction.

    If the outbox has this event already, nothing is written.

    Args:
        event: such as `order.credited`; the order's present status by default.
        about: the id of the event's exception.
    """
    merchant = cache.by_id(order.merchant_id).merchant
    event = event or f"order.{order.status}"
    if event.removeprefix("order.") not in merchant.events.split(","):
        return
    webhook_id = webhook_id_of(order.order_no, event, about)
    if _same.first(webhook_id=webhook_id):
        return
    now = business_clock.now()
    after_commit(partial(_tell, order.merchant_id))
    Callback.add(
        webhook_id=webhook_id,
        merchant=order.merchant_id,
        order=order.id,
        type=event,
        body=body_of(event, now, order_view.of(order)),
        # Without a callback URL it waits for `orders callback redeliver`.
        state=WAITING if merchant.callback_url else DEAD,
        due_at=now if merchant.callback_url else None,
        createtime=now,
        updatetime=now,
    )
