"""What was seen from outside while the service was tortured: by its clients, and by the killer."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Wish:
    """One order that a client wants once; `number` is its merchant_order_no, `amount` in fen.

    With an Idempotency-Key it is asked for under ever new nonces until there is an answer, without
    one by the very same bytes. `told` are the order numbers of all answers, `spent` says that the
    nonce was refused as used after an answer that was never read, `refused` is the code of a refusal.
    After a 503 (`unstored`) the nonce is spent whether there is an order or not.
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
class Seen:
    """All that the clients know at the end of a run; safe from several threads."""

    wishes: list[Wish] = field(default_factory=list)
    accepted: Counter[str] = field(default_factory=Counter)  # answers with code 1 by nonce
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)  # what must not have happened, whatever the database says
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> None:
        """One more of something that the report names."""
        with self._lock:
            self.counts[what] += 1

    def accept(self, nonce: str) -> None:
        """A request with this nonce was answered with success."""
        with self._lock:
            self.accepted[nonce] += 1
