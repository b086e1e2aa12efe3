"""Replay protection: nonces, and Idempotency-Keys for safe retries (docs/signing.md, docs/orders.md)."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from peewee import IntegrityError

from models.db.base import Statement, database
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


_spent = Statement(lambda v: Nonce.select(Nonce.createtime).where(Nonce.merchant == v.merchant, Nonce.nonce == v.nonce))


class NonceMemory:
    """The nonces of the last minutes, in two generations, each kept for one to two lifetimes.

    Nonces of orders are in the database and not needed here, so orders use no memory. On Postgres all nonces are in the
    database, for other hosts to see, and here only while their request runs.
    """

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
        """Return whether the nonce is in memory."""
        with self._lock:
            return (merchant, nonce) in self._now or (merchant, nonce) in self._before

    def release(self, nonces: list[tuple[int, str]]) -> None:
        """Forget nonces that are in the database now."""
        with self._lock:
            self._now.difference_update(nonces)
            self._before.difference_update(nonces)


memory = Part(NonceMemory)


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


def is_fresh(timestamp: int) -> bool:
    """Return whether a timestamp is within the window and its nonces were not dropped after the clock was set back."""
    if abs(int(time.time()) - timestamp) > WINDOW:
        return False
    clock.seen().use()
    return not clock.seen().is_lost(timestamp, WINDOW + 1, GOOD_FOR)


def spend_nonce(merchant: Merchant, nonce: str) -> None:
    """Spend a nonce in memory. Raises ApiError INVALID_NONCE."""
    if not memory().spend(merchant.id, nonce):
        raise ApiError(Code.INVALID_NONCE, detail=REUSED)


def refuse_order_nonce(merchant: Merchant, nonce: str) -> None:
    """Refuse a nonce that an earlier order used. Raises ApiError INVALID_NONCE."""
    if memory().has(merchant.id, nonce) and _spent.run(merchant=merchant.id, nonce=nonce).fetchone():
        raise ApiError(Code.INVALID_NONCE, detail=REUSED)


def keep_nonce(merchant: Merchant, nonce: str) -> None:
    """Spend the nonce of a request that created no order, for all hosts if there are several.

    Raises:
        ApiError: Code.INVALID_NONCE, an earlier order or another host has used it.
    """
    if not database.is_shared:
        refuse_order_nonce(merchant, nonce)
    elif memory().has(merchant.id, nonce) and not _keep((merchant.id, nonce)):
        raise ApiError(Code.INVALID_NONCE, detail=REUSED)


def _owner(spent: tuple[int, str]) -> int:
    return spent[0]


@grouped(_owner)
def _keep(spent: list[tuple[int, str]]) -> list[bool]:
    """Store nonces in the database; return for each whether it is new."""
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
    refuse_order_nonce(call.merchant, call.nonce)
    now = int(time.time())
    row = IdempotencyKey.get_or_none(
        IdempotencyKey.merchant == call.merchant,
        IdempotencyKey.key == call.idempotency_key,
        IdempotencyKey.createtime > now - KEY_KEPT,
    )
    if row is not None:
        if row.payload_hash != call.payload_hash:
            raise ApiError(Code.IDEMPOTENCY_KEY_REUSED)
        if (
            row.outcome is None and abs(now - row.createtime) < RUNNING
        ):  # otherwise it failed, or the clock was set back
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
        if call.idempotency_key:
            _record_key(call, order, outcome, now)


def _record_key(call: Call, order: Order | None, outcome: int | None, now: int) -> None:
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


_reached = {Nonce: START, IdempotencyKey: START}


def purge() -> None:
    """Delete expired nonces and keys; nothing in the first minutes of a process.

    It continues in each table where the last run stopped.
    """
    old = clock.seen().before(GOOD_FOR)
    if old is None:
        return
    for table, kept in ((Nonce, GOOD_FOR), (IdempotencyKey, KEY_KEPT)):
        for _ in range(PURGE_STEPS):
            _reached[table] = drop_old(table, old + GOOD_FOR - kept, _reached[table], PURGE_STEP)
            if _reached[table] == END:
                _reached[table] = START
                break
