"""Callbacks to merchants: written with the change they tell of, swept from the outbox, signed, retried."""

from __future__ import annotations

import json
import logging
import random
import secrets
import threading
import time
from datetime import UTC, datetime
from urllib.parse import urljoin

import requests
from peewee import fn
from requests_hardened import Config, HTTPSession

import settings
from models.base import database
from models.merchant import Merchant
from models.order import Order
from models.outbox import DEAD, DELIVERED, WAITING, Callback, CallbackAttempt
from schemas.views import order_view
from services import vault
from services.errors import NotPossible
from services.fairpool import FairPool
from services.signing import sign_webhook

log = logging.getLogger(__name__)

PAUSES = (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)  # seconds after the first to the seventh failure
TIMEOUT = 10.0
LEASE = 25  # seconds that one attempt may take before another worker may try
KEPT = 1024  # bytes of an answer that are kept
GONE = 410


def enqueue(order: Order) -> None:
    """Write the callback for the order's present status where its merchant wants it; in the caller's transaction."""
    if order.status not in order.merchant.events.split(","):
        return
    now = int(time.time())
    event = f"order.{order.status}"
    body = {
        "type": event,
        "timestamp": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "data": order_view.dump(order),
    }
    Callback.insert(
        webhook_id=f"msg_{secrets.token_hex(16)}",
        merchant=order.merchant_id,
        order=order,
        type=event,
        body=json.dumps(body, ensure_ascii=False, separators=(",", ":")),
        due_at=now,
        createtime=now,
        updatetime=now,
    ).execute()


_local = threading.local()


def _session() -> requests.Session:
    """This thread's session: no redirects, no proxies, and private addresses refused when it connects."""
    if not hasattr(_local, "session"):
        _local.session = HTTPSession(
            Config(
                ip_filter_enable=not settings.active().private_callbacks_allowed,
                ip_filter_allow_loopback_ips=False,
                never_redirect=True,
                default_timeout=(4.0, TIMEOUT),
                user_agent_override=f"merchant-orders/{settings.VERSION}",
            )
        )
        _local.session.trust_env = False
    return _local.session


def _send(callback: Callback, merchant: Merchant) -> tuple[int | None, str]:
    """One signed POST: the HTTP status (None where there is none) and the first KiB of the answer or the error."""
    if not merchant.callback_url:
        return None, "the merchant has no callback_url"
    now = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "webhook-id": callback.webhook_id,
        "webhook-timestamp": str(now),
        "webhook-signature": sign_webhook(
            vault.valid_secrets(merchant, "callback_secret"), callback.webhook_id, now, callback.body
        ),
    }
    # A path alone is an address of this service: the demo inbox.
    url = urljoin(settings.active().public_url, merchant.callback_url)
    try:
        with _session().post(url, data=callback.body.encode(), headers=headers, stream=True) as answer:
            start = next(answer.iter_content(KEPT), b"")
            return answer.status_code, start.decode("utf-8", "replace")
    except requests.RequestException as error:
        return None, f"{type(error).__name__}: {error}"[:KEPT]


def attempt(callback: Callback) -> bool:
    """Send a claimed callback once and record how that went; True where it was delivered."""
    merchant = Merchant.get_by_id(callback.merchant_id)
    started = time.monotonic()
    status, answer = _send(callback, merchant)
    took = time.monotonic() - started
    now = int(time.time())
    delivered = status is not None and 200 <= status < 300 and took <= TIMEOUT
    tries = callback.attempts + 1
    facts = {"attempts": tries, "updatetime": now, "due_at": None}
    if delivered:
        facts["state"] = DELIVERED
    elif status == GONE or tries > len(PAUSES):
        facts["state"] = DEAD
        log.warning("callback %s is dead after %d attempts", callback.webhook_id, tries)
    else:
        facts["due_at"] = now + round(PAUSES[tries - 1] * random.uniform(0.9, 1.1))
    with database.atomic():
        CallbackAttempt.insert(
            callback=callback, at=now, status=status, milliseconds=round(took * 1000), answer=answer
        ).execute()
        Callback.update(facts).where(Callback.id == callback.id, Callback.state == WAITING).execute()
    return delivered


def sweep(pool: FairPool) -> int:
    """Start an attempt for each callback that is due and that the pool has room for; how many were started."""
    now = int(time.time())
    due = Callback.due_at <= now
    started = 0
    for (merchant,) in list(Callback.select(Callback.merchant).where(due).group_by(Callback.merchant).tuples()):
        rows = Callback.select().where(due, Callback.merchant == merchant).order_by(Callback.due_at)
        for callback in list(rows.limit(pool.room(merchant))):
            if callback.claim(now + LEASE):
                pool.submit(merchant, attempt, callback)
                started += 1
    return started


def redeliver(callbacks: list[Callback]) -> int:
    """Make callbacks due again from the first attempt on, whatever came of them; how many."""
    if not callbacks:
        raise NotPossible("no such callback")
    now = int(time.time())
    ids = [callback.id for callback in callbacks]
    return Callback.update(state=WAITING, attempts=0, due_at=now, updatetime=now).where(Callback.id.in_(ids)).execute()


def counts() -> dict[str, int]:
    """How many callbacks are in each state."""
    return dict(Callback.select(Callback.state, fn.COUNT(Callback.id)).group_by(Callback.state).tuples())
