"""The callback outbox: each callback is written in the transaction of the change that it reports."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from models.db.compiled import compiled
from models.db.writer import after_commit
from models.tables.order import COMPLETED, Order
from models.tables.outbox import DEAD, WAITING, Callback, webhook_key
from models.tables.refund import Refund
from runtime import clock
from runtime.state import Part
from schemas.views import order_view, refund_view
from services.callbacks import epay_notices
from services.merchants import cache

REFUND_RESULTS = ("refund.completed", "refund.cancelled")  # refund.confirmed is for merchants that subscribe to it


class _Listener:
    call: Callable[[int], None] | None = None


_listener = Part(_Listener)


def when_enqueued(call: Callable[[int], None] | None) -> None:
    """Register a function to call with the merchant's id once a callback is committed; None removes it."""
    _listener().call = call


def _tell(merchant_id: int) -> None:
    if call := _listener().call:
        call(merchant_id)


def new_webhook_id() -> str:
    """Return a random id, for a test callback or a test message to a destination."""
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
    timestamp = clock.rfc3339(at)
    return json.dumps({"type": event, "timestamp": timestamp, "data": data}, ensure_ascii=False, separators=(",", ":"))


@compiled
def _same(webhook_id: str) -> Any:
    return Callback.select(Callback.id).where(Callback.webhook_id == webhook_id)


@dataclass(frozen=True)
class Outgoing:
    """A callback that an event of an order can send: its type, its body, and whether the merchant receives it.

    `is_wanted`: the merchant subscribes to this type; `has_address`: there is an address to send it to.
    """

    event: str
    body: str
    is_wanted: bool
    has_address: bool


def of_event(order: Order, event: str, at: int, *, even_unwanted: bool = False) -> Iterator[Outgoing]:
    """Yield what an event of the order sends: the merchant's callback, and the notice of a completed epay order.

    Epay orders send callbacks only if the merchant wants both.

    Args:
        even_unwanted: yield a callback to which the merchant does not subscribe, too.
    """
    known, payment = cache.by_id(order.merchant_id), epay_notices.payment_of(order)
    subscribed = event.removeprefix("order.") in known.merchant.events.split(",")
    if payment is not None and known.epay is not None:
        subscribed = subscribed and bool(known.epay.webhooks)
        if event == f"order.{COMPLETED}":
            yield Outgoing(epay_notices.TYPE, epay_notices.body_of(known.epay, payment, order), True, True)
    if subscribed or even_unwanted:
        yield Outgoing(event, body_of(event, at, order_view.of(order)), subscribed, bool(known.merchant.callback_url))


def enqueue(order: Order, event: str = "", about: int | None = None) -> None:
    """Write the callbacks for an event of the order that its merchant wants, in the caller's transaction.

    If the outbox has one already, it is not written again.

    Args:
        event: such as `order.credited`; the order's present status by default.
        about: the id of the event's exception.
    """
    now = clock.now()
    for each in of_event(order, event or f"order.{order.status}", now):
        _add(order, each, webhook_id_of(order.order_no, each.event, about), now)


def enqueue_refund(refund: Refund, order: Order, about: int | None = None) -> None:
    """Write the callback for a refund's present status, if its merchant wants it, in the caller's transaction.

    Args:
        about: the id of the exception by which an operator changed a final status.
    """
    event, now = f"refund.{refund.status}", clock.now()
    known, payment = cache.by_id(order.merchant_id), epay_notices.payment_of(order)
    wanted = {*REFUND_RESULTS, *known.merchant.events.split(",")}
    if event in wanted and (payment is None or known.epay is None or known.epay.webhooks):
        body = body_of(event, now, refund_view.of(refund))
        outgoing = Outgoing(event, body, True, bool(known.merchant.callback_url))
        _add(order, outgoing, webhook_id_of(refund.refund_no, event, about), now)


def _add(order: Order, each: Outgoing, webhook_id: str, now: int) -> None:
    if not _same(webhook_id):
        after_commit(partial(_tell, order.merchant_id))
        Callback.add(
            webhook_id=webhook_id,
            merchant=order.merchant_id,
            order=order.id,
            type=each.event,
            body=each.body,
            # Without a callback URL it waits for `tillbook callback redeliver`.
            state=WAITING if each.has_address else DEAD,
            due_at=now if each.has_address else None,
            createtime=now,
            updatetime=now,
        )
