"""The facts seen from outside during the torture: by the clients, and by the killer."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Wish:
    """One order that a client wants once; `number` is its merchant_order_no, `amount` in fen.

    With an Idempotency-Key it is requested with new nonces until there is a response, without one by the same bytes.
    `told` are the order numbers in all responses. `spent` means that the nonce was refused as used after an unread
    response. `refused` is the code of a refusal. After a 503 (`unstored`) the nonce is used, with or without an order.
    """

    number: str
    merchant: str
    order_type: int
    amount: int
    channel: int
    key: str
    told: list[str] = field(default_factory=list)
    spent: bool = False
    unstored: bool = False
    refused: int | None = None


@dataclass
class RefundWish:
    """One refund that a client wants once; `number` is its merchant_refund_no, `amount` in fen.

    It is requested with new nonces until there is a response. `told` are the refund numbers in all responses,
    `refused` is the code of a refusal.
    """

    number: str
    merchant: str
    order_no: str
    amount: int
    told: list[str] = field(default_factory=list)
    refused: int | None = None


@dataclass
class Seen:
    """The clients' facts at the end of a run; safe for several threads."""

    wishes: list[Wish] = field(default_factory=list)
    refunds: list[RefundWish] = field(default_factory=list)
    accepted: Counter[str] = field(default_factory=Counter)  # responses with code 1 by nonce
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)  # violations, whatever the database contains
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> None:
        """One more of something that the report names."""
        with self._lock:
            self.counts[what] += 1

    def accept(self, nonce: str) -> None:
        """A request with this nonce was answered with success."""
        with self._lock:
            self.accepted[nonce] += 1
