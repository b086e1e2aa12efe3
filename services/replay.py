"""No request counts twice: nonces, and Idempotency-Keys for a safe retry (docs/signing.md, docs/orders.md)."""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass
from typing import Any

from peewee import IntegrityError

from models.merchant import Merchant
from models.order import Order
from models.replay import IdempotencyKey, Nonce
from models.writer import transaction
from services import signing
from services.errors import Refused

WINDOW = 300  # seconds that a request's timestamp may differ from the server's clock
KEY_KEPT = 24 * 3600
RUNNING = 60  # seconds after which a first request that left no outcome is known to have died


class NonceMemory:
    """The nonces of the last minutes, in two generations: remembered for one to two lifetimes."""

    LIFETIME = 2 * WINDOW

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Start empty."""
        self._now: set[tuple[int, str]] = set()
        self._before: set[tuple[int, str]] = set()
        self._turns_at = time.time() + self.LIFETIME

    def spend(self, merchant: int, nonce: str) -> bool:
        """True the first time."""
        with self._lock:
            if time.time() >= self._turns_at:
                self._before, self._now = self._now, set()
                self._turns_at = time.time() + self.LIFETIME
            if (merchant, nonce) in self._now or (merchant, nonce) in self._before:
                return False
            self._now.add((merchant, nonce))
            return True


memory = NonceMemory()


@dataclass(frozen=True)
class Call:
    """One authenticated request: whose it is, its nonce, and what makes it the same as another."""

    merchant: Merchant
    nonce: str
    payload: dict[str, Any]
    idempotency_key: str = ""

    @property
    def payload_hash(self) -> str:
        """A digest of what the payload says, the four auth fields aside: alike where the same would be signed."""
        return hashlib.sha256(signing.string_to_sign("", self.payload).encode()).hexdigest()


def spend_nonce(merchant: Merchant, nonce: str) -> None:
    """Spend a nonce in memory, and look whether an order spent it before the process began.

    Raises:
        Refused: 40104, it was used before.
    """
    known = Nonce.select().where(Nonce.merchant == merchant, Nonce.nonce == nonce)
    if not memory.spend(merchant.id, nonce) or known.exists():
        raise Refused(40104)


def earlier(call: Call) -> IdempotencyKey | None:
    """What an earlier request with this Idempotency-Key left.

    Raises:
        Refused: 42201, it had another payload; 40902, it is still running.
    """
    if not call.idempotency_key:
        return None
    now = int(time.time())
    row = IdempotencyKey.get_or_none(
        IdempotencyKey.merchant == call.merchant,
        IdempotencyKey.key == call.idempotency_key,
        IdempotencyKey.createtime > now - KEY_KEPT,
    )
    if row is not None:
        if row.payload_hash != call.payload_hash:
            raise Refused(42201)
        if row.outcome is None and row.createtime > now - RUNNING:
            raise Refused(40902, retry_after=1)
    return row


@transaction
def record(call: Call, order: Order | None, outcome: int | None = None) -> None:
    """Spend the nonce and the key for good; in the order's own transaction where there is one.

    Args:
        order: None where the request was refused; `outcome` is the code then.

    Raises:
        Refused: 40104 or 40902, another request was quicker.
    """
    now = int(time.time())
    try:
        Nonce.insert(merchant=call.merchant, nonce=call.nonce, createtime=now).execute()
    except IntegrityError:
        raise Refused(40104) from None
    if call.idempotency_key:
        mine = (IdempotencyKey.merchant == call.merchant) & (IdempotencyKey.key == call.idempotency_key)
        IdempotencyKey.delete().where(mine, IdempotencyKey.createtime <= now - KEY_KEPT).execute()
        try:
            IdempotencyKey.insert(
                merchant=call.merchant,
                key=call.idempotency_key,
                payload_hash=call.payload_hash,
                order=order,
                outcome=outcome,
                createtime=now,
            ).execute()
        except IntegrityError:
            raise Refused(40902, retry_after=1) from None


@transaction
def finish(call: Call, outcome: int) -> None:
    """Keep the code that the first request is answered with."""
    if call.idempotency_key:
        IdempotencyKey.update(outcome=outcome).where(
            IdempotencyKey.merchant == call.merchant, IdempotencyKey.key == call.idempotency_key
        ).execute()


@transaction
def purge() -> None:
    """Drop nonces that no timestamp can bring back, and keys past their day."""
    now = int(time.time())
    Nonce.delete().where(Nonce.createtime < now - 2 * WINDOW).execute()
    IdempotencyKey.delete().where(IdempotencyKey.createtime <= now - KEY_KEPT).execute()
