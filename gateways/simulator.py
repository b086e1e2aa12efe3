"""The sandbox's upstream: a made-up channel with books of its own, told by testers what to do.

Its books are a small SQLite file beside the service's database, as another company's would be
elsewhere: they outlive a crash of the service and share no transaction with it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

OUTCOMES = ("success", "fail", "silent", "duplicate", "late", "wrong_amount", "timeout")
SIGNATURE_HEADER = "X-Sandbox-Signature"
PAYOUT_SECONDS = 2
LATE_PAYOUT_SECONDS = 20
UNANSWERED = 2  # questions that go unanswered after the outcome `timeout`

_TABLE = """
CREATE TABLE IF NOT EXISTS play (
    order_no TEXT PRIMARY KEY, amount INTEGER NOT NULL DEFAULT 0, outcome TEXT NOT NULL DEFAULT '',
    payout_at REAL, asked INTEGER NOT NULL DEFAULT 0)
"""


@dataclass(frozen=True)
class Play:
    """What the simulator knows of one order: amount in fen, what it was told, when a payout was handed in."""

    order_no: str
    amount: int
    outcome: str
    payout_at: float | None
    asked: int

    @property
    def reported_amount(self) -> int:
        """The amount that the channel will name, in fen."""
        return self.amount + 100 if self.outcome == "wrong_amount" else self.amount


class Simulator:
    """The books in the SQLite file `path`. Safe from several threads and processes."""

    def __init__(self, path: Path):
        self.path = path

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=5, isolation_level=None)
        connection.execute(_TABLE)
        return connection

    def find(self, order_no: str) -> Play | None:
        """What is in the books about an order."""
        if not self.path.exists():
            return None
        with closing(self._connect()) as books:
            row = books.execute("SELECT * FROM play WHERE order_no = ?", (order_no,)).fetchone()
        return Play(*row) if row else None

    def tell(self, order_no: str, amount: int, outcome: str) -> None:
        """From now on, this is the outcome for the order; `amount` in fen."""
        with closing(self._connect()) as books:
            books.execute(
                "INSERT INTO play (order_no, amount, outcome) VALUES (?, ?, ?) ON CONFLICT (order_no) "
                "DO UPDATE SET outcome = excluded.outcome, amount = excluded.amount, asked = 0",
                (order_no, amount, outcome),
            )

    def hand_in(self, order_no: str, amount: int, outcome: str) -> None:
        """Take a payout; again for the same order is the same payout, and what a tester said stands."""
        with closing(self._connect()) as books:
            books.execute(
                "INSERT INTO play (order_no, amount, outcome, payout_at) VALUES (?, ?, ?, ?) ON CONFLICT (order_no) "
                "DO UPDATE SET payout_at = COALESCE(payout_at, excluded.payout_at), amount = excluded.amount",
                (order_no, amount, outcome, time.time()),
            )

    def count_question(self, order_no: str) -> None:
        """One more question about the order went unanswered."""
        with closing(self._connect()) as books:
            books.execute("UPDATE play SET asked = asked + 1 WHERE order_no = ?", (order_no,))


def notice(play: Play, secret: str) -> tuple[bytes, str]:
    """A notice's body and its signature."""
    state = "failed" if play.outcome == "fail" else "paid"
    body = json.dumps(
        {"order_no": play.order_no, "state": state, "amount": play.reported_amount, "reference": f"SB{play.order_no}"}
    ).encode()
    return body, sign(body, secret)


def sign(body: bytes, secret: str) -> str:
    """Lowercase hex HMAC-SHA256."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
