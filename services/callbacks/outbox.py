"""Callbacks to merchants: written with the change they tell of, swept from the outbox, signed, retried."""

from __future__ import annotations

import hmac
import json
import logging
import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from http.client import HTTPException
from math import ceil
from typing import Any
from urllib.parse import urljoin

import requests
from peewee import Case, fn
from urllib3.exceptions import HTTPError

import business_clock
from gateways.http import Deadline
from models.db.base import Statement
from models.db.writer import after_commit, transaction
from models.tables.merchant import Merchant
from models.tables.order import Order
from models.tables.outbox import DEAD, DELIVERED, WAITING, Callback, CallbackAttempt, webhook_key
from runtime import Part, current
from schemas.views import order_view
from services.callbacks import http
from services.merchants import cache
from services.platform.fair_pool import Due, FairPool, start_due
from services.security import vault
from services.security.signing import sign_webhook

log = logging.getLogger(__name__)

PAUSES = (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)  # seconds after the first to the seventh failure
TIMEOUT = 10.0
LEASE = 25  # seconds that one attempt may take before another worker may try
APART = 5  # seconds that the clocks of hosts may differ
SLOW = 2.0  # seconds after which a delivery counts as no better than a failure, where workers are shared out
KEPT = 1024  # bytes of an answer that are kept
GONE = 410


_wakers: Part[list[Callable[[], None]]] = Part(list)
_is_woken = Part(threading.Event)
_new: Part[deque[int]] = Part(deque)  # merchants with callbacks that were committed since the last sweep


def when_enqueued(waker: Callable[[], None] | None) -> None:
    """Call this once callbacks are committed, so that they need not wait for the next sweep; None: nobody."""
    _wakers()[:] = [waker] if waker else []
    _is_woken().clear()
    _new().clear()


def _wake(merchant: int) -> None:
    if _wakers():
        _new().append(merchant)
        if not _is_woken().is_set():
            _is_woken().set()
            _wakers()[0]()


def new_webhook_id() -> str:
    """A random id, for a test callback."""
    return f"msg_{secrets.token_hex(16)}"


def webhook_id_of(order_no: str, event: str, about: int | None = None) -> str:
    """The id of one event of an order: always the same, so that a database restored from a backup repeats it.

    Args:
        about: the id of the exception that the event is about, if it can happen several times per order.
    """
    event_name = "\n".join([order_no, event] if about is None else [order_no, event, str(about)])
    return f"msg_{hmac.digest(webhook_key(), event_name.encode(), 'sha256').hex()[:32]}"


def body_of(event: str, at: int, data: dict[str, Any]) -> str:
    """A callback's body, byte for byte as it is signed and sent."""
    timestamp = business_clock.rfc3339(at)
    return json.dumps({"type": event, "timestamp": timestamp, "data": data}, ensure_ascii=False, separators=(",", ":"))


_same = Statement(lambda v: Callback.select(Callback.id).where(Callback.webhook_id == v.webhook_id))


def enqueue(order: Order, event: str = "", about: int | None = None) -> None:
    """Write the callback for an event of the order if its merchant subscribed to it; in the caller's transaction.

    If this very event is in the outbox already, that callback stays and no other is written.

    Args:
        event: such as `order.credited`; the order's present status by default.
        about: the id of the exception that the event is about.
    """
    merchant = cache.by_id(order.merchant_id).merchant
    event = event or f"order.{order.status}"
    if event.removeprefix("order.") not in merchant.events.split(","):
        return
    webhook_id = webhook_id_of(order.order_no, event, about)
    if _same.first(webhook_id=webhook_id):
        return
    now = business_clock.now()
    after_commit(partial(_wake, order.merchant_id))
    Callback.add(
        webhook_id=webhook_id,
        merchant=order.merchant_id,
        order=order.id,
        type=event,
        body=body_of(event, now, order_view.of(order)),
        # With nowhere to go it waits for `flask callback redeliver`.
        state=WAITING if merchant.callback_url else DEAD,
        due_at=now if merchant.callback_url else None,
        createtime=now,
        updatetime=now,
    )


_outcome = Statement(
    lambda v: Callback.update(attempts=v.attempts, updatetime=v.updatetime, due_at=v.due_at, state=v.state).where(
        Callback.id == v.row, Callback.due_at == v.claimed, Callback.attempts == v.before
    )
)


def address_of(merchant: Merchant) -> str:
    """Where its callbacks go; "" for nowhere. A path alone is an address of this service: the demo inbox."""
    return urljoin(current().settings.public_url, merchant.callback_url) if merchant.callback_url else ""


def headers_of(webhook_id: str, timestamp: str, signature: str) -> dict[str, str]:
    """The headers that a callback is sent with at that time."""
    return {
        "Content-Type": "application/json",
        "webhook-id": webhook_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signature,
    }


def send(merchant: Merchant, webhook_id: str, body: str) -> tuple[int | None, str]:
    """One signed POST: the HTTP status (None where there is none) and the first KiB of the answer or the error."""
    if not merchant.callback_url:
        return None, "the merchant has no callback_url"
    now = int(time.time())
    secrets_now = vault.valid_secrets(merchant, "callback_secret")
    headers = headers_of(webhook_id, str(now), sign_webhook(secrets_now, webhook_id, now, body))
    url, private_allowed = address_of(merchant), current().settings.private_callbacks_allowed
    try:
        with (
            Deadline(TIMEOUT),
            http.post(url, body.encode(), headers, timeout=TIMEOUT, private_allowed=private_allowed) as answer,
        ):
            return answer.status_code, _start_of(answer)
    except (OSError, ValueError, HTTPError, HTTPException) as error:  # requests' own are OSErrors
        return None, f"{type(error).__name__}: {error}"[:KEPT]


def _start_of(answer: requests.Response) -> str:
    """The first KiB as it was sent; what can't be read of it doesn't change the status."""
    try:
        start = answer.raw.read(KEPT, decode_content=False)
    except (OSError, HTTPError, HTTPException) as error:
        return f"({type(error).__name__} in the body)"
    return start.decode("utf-8", "replace")


def attempt(callback: Callback) -> bool:
    """Send a claimed callback once and record how that went; True where it was delivered, and not slowly."""
    at, started = business_clock.now(), time.monotonic()
    status, answer = send(callback.merchant, callback.webhook_id, callback.body)
    took = time.monotonic() - started
    now = business_clock.now()
    delivered = status is not None and 200 <= status < 300
    tries = callback.attempts + 1
    facts = {"attempts": tries, "updatetime": now, "due_at": None, "state": WAITING}
    if delivered:
        facts["state"] = DELIVERED
    elif status == GONE or tries > len(PAUSES):
        facts["state"] = DEAD
        log.warning("callback %s is dead after %d attempts", callback.webhook_id, tries)
    else:
        facts["due_at"] = now + round(PAUSES[tries - 1] * random.uniform(0.9, 1.1))
    _record(callback, facts, at=at, status=status, milliseconds=round(took * 1000), answer=answer)
    return delivered and took < SLOW


@transaction
def _record(callback: Callback, facts: dict[str, Any], **attempt: Any) -> None:
    """Keep a try, and what follows from it unless its claim ran out or the callback was redelivered meanwhile."""
    CallbackAttempt.add(callback=callback.id, **attempt)
    _outcome.run(row=callback.id, claimed=callback.due_at, before=callback.attempts, **facts)


# By the number of attempts: how long one may wait at most, claimed or put off.
_LONGEST = Case(
    Callback.attempts, [(tries, max(LEASE, ceil(pause * 1.1))) for tries, pause in enumerate(PAUSES, 1)], LEASE
)


@transaction
def release() -> int:
    """Make due what waits longer than it can have been put off: the clock was set back since; how many."""
    now = business_clock.now()
    # Another host's clock may be a little ahead, and it be at work.
    stuck: int = Callback.update(due_at=now).where(Callback.due_at > now + _LONGEST + APART).execute()
    return stuck


def _newest(state: str) -> Any:
    newest = Callback.select(Callback.createtime).where(Callback.merchant == Merchant.id, Callback.state == state)
    return newest.order_by(Callback.createtime.desc()).limit(1)


AT_ONCE = 100  # merchants that are looked up by one statement
_last_tries = Statement(
    lambda v: Merchant.select(
        Merchant.id,
        _newest(DELIVERED),
        _newest(DEAD),
        Callback.select(fn.MAX(Callback.createtime)).where(
            Callback.merchant == Merchant.id, Callback.due_at.is_null(False), Callback.attempts > 0
        ),
    ).where(Merchant.id.in_([getattr(v, f"id{number}") for number in range(AT_ONCE)]))
)


def _went_well(merchants: list[int]) -> dict[int, bool]:
    """Was the newest callback of each that was tried delivered? Without those of whom none was tried."""
    found = {}
    for start in range(0, len(merchants), AT_ONCE):
        some = merchants[start : start + AT_ONCE]
        ids = {f"id{number}": some[min(number, len(some) - 1)] for number in range(AT_ONCE)}
        for merchant, delivered, *failed in _last_tries.run(**ids).fetchall():
            last_failed = max((at for at in failed if at is not None), default=-1)
            if delivered is not None or last_failed >= 0:
                found[merchant] = delivered is not None and delivered >= last_failed
    return found


DUE = Due(Callback, Callback.merchant, went_well=_went_well)


def sweep(pool: FairPool) -> int:
    """Start an attempt for each callback that is due and that the pool has room for; how many were started.

    Where callbacks were committed just now, it may look at their merchants alone.
    """
    started, looks_again = 0, True
    while looks_again:
        _is_woken().clear()  # before looking: what is committed from here on wakes it again
        named = {_new().popleft() for _ in range(len(_new()))}
        started += start_due(pool, DUE, attempt, LEASE, named)
        looks_again = _is_woken().is_set()  # no second sweep is started beside this one
    return started
