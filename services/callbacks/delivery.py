"""Delivery of callbacks: select due rows, claim them, send each, record the attempt; redelivery by an operator.

A callback is a signed POST, the notice of an epay order a signed GET.

A callback is sent up to eight times:

    failed attempt    the next follows after (10 % more or less)
    1                 5 seconds
    2                 5 minutes
    3                 30 minutes
    4                 2 hours
    5                 5 hours
    6, 7              10 hours
    8, or a 410       never: it has failed, until someone redelivers it
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator
from functools import partial
from http.client import HTTPException
from math import ceil
from typing import Any
from urllib.parse import urljoin

from peewee import SQL, Case, fn
from urllib3.exceptions import HTTPError

from models.db.compiled import compiled, compiled_rows
from models.db.writer import transaction
from models.tables.epay import EpayOrder
from models.tables.merchant import Merchant
from models.tables.order import Order
from models.tables.outbox import DEAD, DELIVERED, WAITING, Callback, CallbackAttempt
from net import http
from runtime import clock
from runtime.state import current
from schemas.messages import N_, Message
from services.callbacks import epay_notices
from services.errors import OperatorError
from services.merchants import cache, epay_accounts
from services.platform.worker_pool import Health, WorkerPool, claim
from services.security import masking, vault
from services.security.signing import sign_webhook

log = logging.getLogger(__name__)

RETRY_SECONDS = (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)  # seconds after the first to the seventh failed attempt
TIMEOUT = 10.0
LEASE = 25  # seconds that one attempt may take; then its claim expires, and the callback is due again
CLOCK_SKEW = 5  # seconds by which hosts' clocks may differ
SLOW = 2.0  # seconds after which a delivery counts as a failure for the worker pool
KEPT = 1024  # bytes of a response that are stored
NOT_MODIFIED, GONE = 304, 410

_NOT_FOUND = N_("Callback not found.")
_NO_ADDRESS = N_("%(key)s has no callback URL. Set one first.")
_NOT_ALLOWED = N_(
    "The host of notify_url is not in the list of allowed hosts. Allow it first: tillbook epay set %(key)s --host"
)
_LOCATION = "Location: "  # begins what is stored of a redirect: a line with its masked target
_REDIRECT = N_("The server redirects. Redirects are not followed: enter the final address.")
_REDIRECT_TO = N_("The server redirects to %(address)s. Redirects are not followed: enter the final address.")


@compiled
def _merchants_due(now: int) -> Any:
    due = Callback.select(SQL("1")).where(Callback.merchant == Merchant.id, Callback.due_at <= now)
    return Merchant.select(Merchant.id).where(fn.EXISTS(due))


@compiled_rows(Merchant)
def _merchant_of(merchant_id: int) -> Any:
    return Merchant.select().where(Merchant.id == merchant_id)


@compiled_rows(Callback)
def _due_of(merchant_id: int, now: int, limit: int) -> Any:
    due = (Callback.merchant == merchant_id, Callback.due_at <= now)
    return Callback.select().where(*due).order_by(Callback.due_at).limit(limit)


def sweep(pool: WorkerPool) -> int:
    """Start an attempt for each due callback that the pool has a worker for; return the number of attempts."""
    with pool.sweeping:
        now = clock.now()
        merchants = pool.take_announced() or [row.id for row in _merchants_due(now)]
        if unseen := pool.unseen(merchants):
            pool.learn(dict(stored_health(unseen)))
        due = pool.choose(merchants, partial(_due_callbacks, now))
        claimed = claim(due, now + LEASE)
        for callback in claimed:
            pool.submit(callback.merchant_id, deliver, callback)
    return len(claimed)


def _due_callbacks(now: int, merchant_id: int, limit: int) -> list[Callback]:
    """Return a merchant's due callbacks with their merchant, oldest first, so that workers read nothing."""
    callbacks: list[Callback] = _due_of(merchant_id, now, limit)
    if callbacks:
        merchant = _merchant_of.first(merchant_id)
        for callback in callbacks:
            callback.merchant = merchant
    return callbacks


def deliver(callback: Callback) -> bool:
    """Send a claimed callback once and record the attempt; return whether it was delivered quickly."""
    at, started = clock.now(), time.monotonic()
    if callback.type == epay_notices.TYPE:
        status, answer = _notify(callback)
    else:
        status, answer = send(callback.merchant, callback.webhook_id, callback.body)
    took, delivered = time.monotonic() - started, is_delivered(callback, status, answer)
    now, attempts = clock.now(), callback.attempts + 1
    state, due_at = WAITING, None
    if delivered:
        state = DELIVERED
    elif status == GONE or attempts > len(RETRY_SECONDS):
        log.warning("Callback %s failed after %d attempts", callback.webhook_id, attempts)
        state = DEAD
    else:
        due_at = now + round(RETRY_SECONDS[attempts - 1] * random.uniform(0.9, 1.1))
    attempt = {"at": at, "status": status, "milliseconds": round(took * 1000), "answer": answer}
    outcome = {"attempts": attempts, "state": state, "due_at": due_at, "updatetime": now}
    _record(callback, attempt, outcome)
    return delivered and took < SLOW


def is_delivered(callback: Callback, status: int | None, answer: str) -> bool:
    """Return whether this response to an attempt confirms the callback."""
    if callback.type == epay_notices.TYPE:
        return epay_notices.is_received(status, answer)
    return status is not None and 200 <= status < 300


@compiled
def _set_outcome(callback_id: int, claimed: int, before: int, /, **outcome: Any) -> Any:
    unmoved = (Callback.id == callback_id, Callback.due_at == claimed, Callback.attempts == before)
    return Callback.update(**outcome).where(*unmoved)


@transaction
def _record(callback: Callback, attempt: dict[str, Any], outcome: dict[str, Any]) -> None:
    """Store an attempt, and its outcome unless the claim expired or the callback was redelivered meanwhile."""
    CallbackAttempt.add(callback=callback.id, **attempt)
    _set_outcome(callback.id, callback.due_at, callback.attempts, **outcome)


def callback_url(merchant: Merchant) -> str:
    """Return the merchant's callback URL, or "". A path alone is an address of this service: the demo inbox."""
    return urljoin(current().settings.public_url, merchant.callback_url) if merchant.callback_url else ""


def _payment_of(notice: Callback) -> EpayOrder:
    payment = EpayOrder.of_order(notice.order_id)
    assert payment is not None  # it is never deleted
    return payment


def _why_not_notified(merchant: Merchant, payment: EpayOrder) -> str:
    if epay_accounts.allows(cache.by_id(merchant.id).account, payment.notify_url):
        return ""
    return Message(_NOT_ALLOWED, key=merchant.key)


def _notify(callback: Callback) -> tuple[int | None, str]:
    """Send the notice of an epay order, signed; return as `send`."""
    payment = _payment_of(callback)
    if why := _why_not_notified(callback.merchant, payment):
        return None, why
    account = cache.by_id(callback.merchant_id).account  # it is never deleted
    url = epay_notices.address(account, payment, callback.body, callback.attempts)
    return _exchange("GET", url, "", {})


def headers_of(webhook_id: str, timestamp: str, signature: str) -> dict[str, str]:
    """Return the headers of a callback sent at that time."""
    return {
        "Content-Type": "application/json",
        "webhook-id": webhook_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signature,
    }


def send(merchant: Merchant, webhook_id: str, body: str) -> tuple[int | None, str]:
    """Send one signed POST; return the HTTP status (None without one) and the first KiB of the response or error."""
    if not merchant.callback_url:
        return None, "the merchant has no callback_url"
    now = int(time.time())
    secrets_now = vault.valid_secrets(merchant, "callback_secret")
    headers = headers_of(webhook_id, str(now), sign_webhook(secrets_now, webhook_id, now, body))
    return _exchange("POST", callback_url(merchant), body, headers)


def _exchange(method: str, url: str, body: str, headers: dict[str, str]) -> tuple[int | None, str]:
    allowed = current().settings.private_callbacks_allowed
    try:
        with http.exchange(method, url, body.encode(), headers, seconds=TIMEOUT, private_allowed=allowed) as response:
            try:
                start = response.raw.read(KEPT, decode_content=False).decode("utf-8", "replace")
            except (OSError, HTTPError, HTTPException) as error:  # it does not change the status
                start = f"({type(error).__name__} in the body)"
            location = response.headers.get("Location")
            if location and is_redirect(response.status_code):
                try:
                    target = masking.address(urljoin(url, location))
                except ValueError:  # not an address
                    target = masking.HIDDEN
                start = f"{_LOCATION}{target}\n{start}"
            return response.status_code, start[:KEPT]
    except (OSError, ValueError, HTTPError, HTTPException) as error:  # those of requests are OSErrors
        return None, masking.error(f"{type(error).__name__}: {error}")[:KEPT]


def is_redirect(status: int | None) -> bool:
    """Return whether the response leads to another address. It is not followed: the operator enters that address."""
    return status is not None and 300 <= status < 400 and status != NOT_MODIFIED


def address_of(callback: Callback) -> str:
    """Return the address that the merchant or its shop gave for a callback; empty without one."""
    is_notice = callback.type == epay_notices.TYPE
    return _payment_of(callback).notify_url if is_notice else callback_url(callback.merchant)


def redirect_problem(status: int | None, answer: str) -> str:
    """Return what to do if a stored response is a redirect, as a text to translate; otherwise ""."""
    if not is_redirect(status):
        return ""
    first = answer.partition("\n")[0]
    if not first.startswith(_LOCATION) or (target := first.removeprefix(_LOCATION)) == masking.HIDDEN:
        return _REDIRECT
    return Message(_REDIRECT_TO, address=target)


# By the number of attempts: the longest time that a callback may wait, claimed or between attempts.
_LONGEST = Case(
    Callback.attempts, [(tries, max(LEASE, ceil(pause * 1.1))) for tries, pause in enumerate(RETRY_SECONDS, 1)], LEASE
)


@transaction
def release() -> int:
    """Make callbacks due that wait longer than a retry can, because the clock was set back; return their number.

    CLOCK_SKEW allows for a sending host whose clock is slightly ahead.
    """
    now = clock.now()
    stuck: int = Callback.update(due_at=now).where(Callback.due_at > now + _LONGEST + CLOCK_SKEW).execute()
    return stuck


def why_unsent(callback: Callback) -> str:
    """Return the reason why a callback cannot be sent, and what to do; empty if it can.

    The shop of an epay payment may have left the host that it named. Then nothing is signed for it.
    """
    merchant = callback.merchant
    if callback.type != epay_notices.TYPE:
        return "" if merchant.callback_url else Message(_NO_ADDRESS, key=merchant.key)
    return _why_not_notified(merchant, _payment_of(callback))


def redeliver(webhook_id: str) -> int:
    """Make one callback due again. Raises OperatorError if it does not exist or its merchant has no callback URL."""
    callback = Callback.get_or_none(Callback.webhook_id == webhook_id)
    if callback is None:
        raise OperatorError(_NOT_FOUND)
    if why := why_unsent(callback):
        raise OperatorError(why)
    return due_again(Callback.id == callback.id)


def redeliver_of(order: Order) -> int:
    """Make the callbacks of an order due again; return their number. Raises OperatorError if none can be sent."""
    refusals = {each.id: why_unsent(each) for each in Callback.select().where(Callback.order == order)}
    if all(refusals.values()):
        raise OperatorError(next(iter(refusals.values()), _NOT_FOUND))
    return due_again(Callback.id.in_([number for number, why in refusals.items() if not why]))


@transaction
def due_again(*selected: Any) -> int:
    """Make the callbacks that fulfil all these conditions due now, with all their attempts; return their number."""
    now = clock.now()
    count: int = Callback.update(state=WAITING, attempts=0, due_at=now, updatetime=now).where(*selected).execute()
    return count


def _newest(state: str) -> Any:
    newest = Callback.select(Callback.createtime).where(Callback.merchant == Merchant.id, Callback.state == state)
    return newest.order_by(Callback.createtime.desc()).limit(1)


def _last_waiting() -> Any:
    """A query for the creation time of the tried callback that is due last; retries are due after new callbacks."""
    created = Case(None, [(Callback.attempts > 0, Callback.createtime)])
    waiting = Callback.select(created).where(Callback.merchant == Merchant.id, Callback.due_at > 0)
    return waiting.order_by(Callback.due_at.desc()).limit(1)


AT_ONCE = 500  # merchants in one statement


def stored_health(merchant_ids: list[int]) -> Iterator[tuple[int, Health]]:
    """Yield each merchant's health by the outcome of its last attempts, for a new process."""
    for start in range(0, len(merchant_ids), AT_ONCE):
        some = Merchant.id.in_(merchant_ids[start : start + AT_ONCE])
        rows = Merchant.select(Merchant.id, _newest(DELIVERED), _newest(DEAD), _last_waiting()).where(some)
        for merchant_id, delivered, *failures in rows.tuples():
            failed = max((at for at in failures if at is not None), default=None)
            if delivered is None and failed is None:
                yield merchant_id, Health.UNKNOWN
            else:
                is_good = delivered is not None and (failed is None or delivered >= failed)
                yield merchant_id, Health.GOOD if is_good else Health.FAILING
