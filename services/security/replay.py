"""Replay protection: nonces, and Idempotency-Keys for safe retries (docs/signing.md, docs/orders.md).

A nonce is spent in this process's memory when its request is authenticated, and stored in the transaction of the order
that the request creates. The nonce of a request without an order stays in memory for as long as a timestamp can be
valid; on Postgres it is stored at once, because the merchant's next request may reach another process.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from peewee import IntegrityError

from models.db.base import database
from models.db.compiled import compiled
from models.db.writer import after_commit, grouped, transaction
from models.tables.merchant import Merchant
from models.tables.order import Order
from models.tables.replay import END, START, IdempotencyKey, Nonce, drop_old
from runtime import clock
from runtime.state import Part
from services.errors import N_, ApiError, Code
from services.security import signing

WINDOW = 300  # seconds that a request's timestamp may differ from the server's clock
GOOD_FOR = 2 * WINDOW + 60  # seconds after which no timestamp can make a nonce valid again, roundings included
KEY_KEPT = 24 * 3600
PURGE_STEP, PURGE_STEPS = 1_000, 20  # rows checked in one transaction, and transactions of one purge
REUSED = N_("already used; send a new nonce with each request")
RUNNING = 60  # seconds after which a first request without an outcome counts as failed


@compiled
def _stored(merchant_id: int, nonce: str) -> Any:
    return Nonce.select(Nonce.createtime).where(Nonce.merchant == merchant_id, Nonce.nonce == nonce)


@dataclass(frozen=True)
class Call:
    """An authenticated request: its merchant, nonce, payload and Idempotency-Key.

    A request of another protocol has no nonce: its number at the merchant makes it unique.
    """

    merchant: Merchant
    nonce: str
    payload: dict[str, Any]
    idempotency_key: str = ""

    @property
    def payload_hash(self) -> str:
        """A digest of the string to sign without the four auth fields; equal for the same payload."""
        return hashlib.sha256(signing.string_to_sign("", self.payload).encode()).hexdigest()


class NonceMemory:
    """The spent nonces that are not stored, in two generations, each kept for one to two lifetimes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: set[tuple[int, str]] = set()
        self._before: set[tuple[int, str]] = set()
        self._turns_at = clock.steady() + GOOD_FOR

    def spend(self, merchant: int, nonce: str) -> bool:
        """Remember a nonce; False if it was used before."""
        with self._lock:
            if clock.steady() >= self._turns_at:
                self._before, self._now = self._now, set()
                self._turns_at = clock.steady() + GOOD_FOR
            if (merchant, nonce) in self._now or (merchant, nonce) in self._before:
                return False
            self._now.add((merchant, nonce))
            return True

    def has(self, merchant: int, nonce: str) -> bool:
        """Return whether the nonce was spent and is not stored yet."""
        with self._lock:
            return (merchant, nonce) in self._now or (merchant, nonce) in self._before

    def release(self, nonces: list[tuple[int, str]]) -> None:
        """Forget nonces that are stored now."""
        with self._lock:
            self._now.difference_update(nonces)
            self._before.difference_update(nonces)


memory = Part(NonceMemory)


def is_fresh(timestamp: int) -> bool:
    """Return whether a timestamp is within the window and its nonces were not dropped after the clock was set back."""
    if abs(int(time.time()) - timestamp) > WINDOW:
        return False
    clock.seen().use()
    return not clock.seen().is_lost(timestamp, WINDOW + 1, GOOD_FOR)


def spend(merchant: Merchant, nonce: str) -> None:
    """Spend a nonce in memory. Raises ApiError INVALID_NONCE."""
    if not memory().spend(merchant.id, nonce):
        raise ApiError(Code.INVALID_NONCE, detail=REUSED)


def keep(call: Call) -> None:
    """Keep the nonce of a request that creates no order; nothing if it was stored with an order of this request.

    Raises:
        ApiError: Code.INVALID_NONCE, an earlier order or a request at another process has used it.
    """
    if not memory().has(call.merchant.id, call.nonce):
        return
    if not database.is_shared:
        _refuse_stored(call)
    elif not _store((call.merchant.id, call.nonce)):
        raise ApiError(Code.INVALID_NONCE, detail=REUSED)


def _refuse_stored(call: Call) -> None:
    if _stored(call.merchant.id, call.nonce):
        raise ApiError(Code.INVALID_NONCE, detail=REUSED)


def _merchant_of(spent: tuple[int, str]) -> int:
    return spent[0]


@grouped(_merchant_of)
def _store(spent: list[tuple[int, str]]) -> list[bool]:
    """Store nonces without orders; return for each whether it is new."""
    # No wait for the disk: a crash may lose these nonces, as it loses those in memory.
    database.execute_sql("SET LOCAL synchronous_commit = off")
    now = int(time.time())
    rows = [{"merchant": merchant, "nonce": nonce, "createtime": now} for merchant, nonce in sorted(spent)]
    added = Nonce.insert_many(rows).on_conflict_ignore().returning(Nonce.merchant, Nonce.nonce).tuples().execute()
    new = set(added)
    after_commit(lambda: memory().release(spent))
    return [each in new for each in spent]


def earlier(call: Call) -> IdempotencyKey | None:
    """Return the record of an earlier request with this Idempotency-Key, or None.

    Raises:
        ApiError: Code.IDEMPOTENCY_KEY_REUSED, its payload was different; Code.REQUEST_IN_PROGRESS.
    """
    if not call.idempotency_key:
        return None
    _refuse_stored(call)
    now = int(time.time())
    row = IdempotencyKey.get_or_none(
        IdempotencyKey.merchant == call.merchant,
        IdempotencyKey.key == call.idempotency_key,
        IdempotencyKey.createtime > now - KEY_KEPT,
    )
    if row is not None:
        if row.payload_hash != call.payload_hash:
            raise ApiError(Code.IDEMPOTENCY_KEY_REUSED)
        is_running = abs(now - row.createtime) < RUNNING  # otherwise it failed, or the clock was set back
        if row.outcome is None and is_running:
            raise ApiError(Code.REQUEST_IN_PROGRESS, retry_after=1)
    return row


@transaction
def record(spent: Sequence[tuple[Call, Order | None, int | None]]) -> None:
    """Store nonces and keys, in the transaction of their orders if there are any.

    Args:
        spent: each call, its order (None if refused) and the code of its response, if known.

    Raises:
        ApiError: Code.INVALID_NONCE or Code.REQUEST_IN_PROGRESS, a concurrent request was faster.
    """
    now = int(time.time())
    nonces = [(call.merchant.id, call.nonce) for call, _, _ in spent]
    after_commit(lambda: memory().release(nonces))
    try:
        Nonce.add_all([{"merchant": merchant, "nonce": nonce, "createtime": now} for merchant, nonce in nonces])
    except IntegrityError:
        raise ApiError(Code.INVALID_NONCE, detail=REUSED) from None
    for call, order, outcome in spent:
        if not call.idempotency_key:
            continue
        mine = (IdempotencyKey.merchant == call.merchant) & (IdempotencyKey.key == call.idempotency_key)
        IdempotencyKey.delete().where(mine, IdempotencyKey.createtime <= now - KEY_KEPT).execute()
        try:
            IdempotencyKey.add(
                merchant=call.merchant.id,
                key=call.idempotency_key,
                payload_hash=call.payload_hash,
                order=order and order.id,
                outcome=outcome,
                createtime=now,
            )
        except IntegrityError:
            raise ApiError(Code.REQUEST_IN_PROGRESS, retry_after=1) from None


@transaction
def finish(call: Call, outcome: int) -> None:
    """Store the code of the first request's response."""
    if call.idempotency_key:
        IdempotencyKey.update(outcome=outcome).where(
            IdempotencyKey.merchant == call.merchant, IdempotencyKey.key == call.idempotency_key
        ).execute()


_reached = Part(lambda: {Nonce: START, IdempotencyKey: START})  # the last key that a purge checked


def purge() -> None:
    """Delete expired nonces and keys; nothing in the first minutes of a process.

    It continues in each table where the last run stopped.
    """
    old = clock.seen().before(GOOD_FOR)
    if old is None:
        return
    reached = _reached()
    for table, kept in ((Nonce, GOOD_FOR), (IdempotencyKey, KEY_KEPT)):
        for _ in range(PURGE_STEPS):
            reached[table] = drop_old(table, old + GOOD_FOR - kept, reached[table], PURGE_STEP)
            if reached[table] == END:
                reached[table] = START
                break
