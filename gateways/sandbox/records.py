"""The sandbox's upstream: a simulated channel with records of its own, controlled by testers.

Its records are a small SQLite file next to the service's database, as a real upstream's would be elsewhere: they
survive a crash of the service and share no transaction with it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateways.base import State
from runtime import clock
from runtime.state import current

OUTCOMES = ("success", "fail", "silent", "duplicate", "late", "wrong_amount", "timeout")
SIGNATURE_HEADER = "X-Sandbox-Signature"
PAYOUT_SECONDS = 2
LATE_PAYOUT_SECONDS = 20
REFUND_OUTCOMES = ("success", "processing", "fail", "silent", "timeout", "abnormal", "not_enough", "late_fail")
REFUND_SECONDS = 3  # for which a refund with the outcome `processing` is in progress
REFUND_FAILS_AFTER = 5  # seconds after the success of `late_fail`
# The end of a refund that the simulator sends a notice of, by outcome.
REFUND_NOTICES = {"processing": State.PAID, "abnormal": State.STUCK, "late_fail": State.FAILED}
UNANSWERED = 2  # status checks without a response after the outcome `timeout`

_TABLES = (
    """CREATE TABLE IF NOT EXISTS play (
    order_no TEXT PRIMARY KEY, amount INTEGER NOT NULL DEFAULT 0, outcome TEXT NOT NULL DEFAULT '',
    payout_at REAL, asked INTEGER NOT NULL DEFAULT 0)""",
    "CREATE TABLE IF NOT EXISTS later (order_no TEXT PRIMARY KEY, outcome TEXT NOT NULL, at INTEGER NOT NULL)",
    """CREATE TABLE IF NOT EXISTS refund (
    refund_no TEXT PRIMARY KEY, order_no TEXT NOT NULL, amount INTEGER NOT NULL, outcome TEXT NOT NULL,
    accepted_at REAL, asked INTEGER NOT NULL DEFAULT 0, is_told INTEGER NOT NULL DEFAULT 0)""",
    "CREATE TABLE IF NOT EXISTS next_refund (order_no TEXT PRIMARY KEY, outcome TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS clock (id INTEGER PRIMARY KEY CHECK (id = 1), ahead INTEGER NOT NULL)",
)


@dataclass(frozen=True)
class Play:
    """The simulator's record of one order: amount in fen, chosen outcome, time of the payout request."""

    order_no: str
    amount: int
    outcome: str
    payout_at: float | None
    asked: int

    @property
    def reported_amount(self) -> int:
        """The amount that the channel reports, in fen."""
        return self.amount + 100 if self.outcome == "wrong_amount" else self.amount


@dataclass(frozen=True)
class RefundPlay:
    """The simulator's record of one refund: amount in fen, chosen outcome, time at which it was accepted.

    `asked` counts the status checks without a response; `is_told` is whether the notice of its end was sent.
    """

    refund_no: str
    order_no: str
    amount: int
    outcome: str
    accepted_at: float | None
    asked: int
    is_told: int

    @property
    def state(self) -> State:
        """Its present state, whether or not a status check gets a response."""
        if self.outcome == "fail":
            return State.FAILED
        if self.accepted_at is None or self.outcome == "not_enough":
            return State.ABSENT
        passed = clock.exactly() - self.accepted_at
        if self.outcome == "silent" or (self.outcome == "processing" and 0 <= passed < REFUND_SECONDS):
            return State.OPEN
        if self.outcome == "abnormal":
            return State.STUCK
        return State.FAILED if self.outcome == "late_fail" and passed >= REFUND_FAILS_AFTER else State.PAID

    @property
    def is_open(self) -> bool:
        """True until it has ended: another outcome can be chosen."""
        return self.state in (State.OPEN, State.ABSENT, State.STUCK)


@dataclass(frozen=True)
class Plan:
    """An outcome that an order gets at a Unix time."""

    order_no: str
    outcome: str
    at: int


class Simulator:
    """The records in the SQLite file `path`. Safe for several threads and processes."""

    def __init__(self, path: Path):
        self.path = path

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=5, isolation_level=None)
        for table in _TABLES:
            connection.execute(table)
        return connection

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return rows, none if the file does not exist yet."""
        if not self.path.exists():
            return []
        with closing(self._connect()) as books:
            return books.execute(query, values).fetchall()

    def _write(self, statement: str, *values: object) -> None:
        with closing(self._connect()) as books:
            books.execute(statement, values)

    def find(self, order_no: str) -> Play | None:
        """Return the record of an order, or None."""
        rows = self._rows("SELECT * FROM play WHERE order_no = ?", order_no)
        return Play(*rows[0]) if rows else None

    def set_outcome(self, order_no: str, amount: int, outcome: str) -> None:
        """Set the outcome of the order from now on; `amount` in fen."""
        self._write(
            "INSERT INTO play (order_no, amount, outcome) VALUES (?, ?, ?) ON CONFLICT (order_no) "
            "DO UPDATE SET outcome = excluded.outcome, amount = excluded.amount, asked = 0",
            order_no,
            amount,
            outcome,
        )

    def request_payout(self, order_no: str, amount: int, outcome: str) -> None:
        """Accept a payout request; a repeated request is the same payout, and a tester's outcome is kept."""
        self._write(
            "INSERT INTO play (order_no, amount, outcome, payout_at) VALUES (?, ?, ?, ?) ON CONFLICT (order_no) "
            "DO UPDATE SET payout_at = COALESCE(payout_at, excluded.payout_at), amount = excluded.amount",
            order_no,
            amount,
            outcome,
            clock.exactly(),
        )

    def find_refund(self, refund_no: str) -> RefundPlay | None:
        """Return the record of a refund, or None."""
        rows = self._rows("SELECT * FROM refund WHERE refund_no = ?", refund_no)
        return RefundPlay(*rows[0]) if rows else None

    def refunds(self, order_no: str) -> list[RefundPlay]:
        """Return the refunds of an order, in the order of their requests."""
        rows = self._rows("SELECT * FROM refund WHERE order_no = ? ORDER BY rowid", order_no)
        return [RefundPlay(*row) for row in rows]

    def newest_refunds(self, limit: int) -> list[RefundPlay]:
        """Return the refunds that were requested last, the newest first."""
        return [RefundPlay(*row) for row in self._rows("SELECT * FROM refund ORDER BY rowid DESC LIMIT ?", limit)]

    def request_refund(self, refund_no: str, order_no: str, amount: int, outcome: str) -> RefundPlay:
        """Record a request for a refund; a repeated request is the same refund.

        Args:
            outcome: the outcome of a new one, unless a tester chose one for the order's next refund.
        """
        chosen = "COALESCE((SELECT outcome FROM next_refund WHERE order_no = ?), ?)"
        insert = f"INSERT INTO refund (refund_no, order_no, amount, outcome) VALUES (?, ?, ?, {chosen})"
        with closing(self._connect()) as books:
            made = books.execute(
                f"{insert} ON CONFLICT (refund_no) DO NOTHING", (refund_no, order_no, amount, order_no, outcome)
            )
            if made.rowcount:
                books.execute("DELETE FROM next_refund WHERE order_no = ?", (order_no,))
            books.execute(
                "UPDATE refund SET accepted_at = COALESCE(accepted_at, ?) "
                "WHERE refund_no = ? AND outcome NOT IN ('fail', 'not_enough')",
                (clock.exactly(), refund_no),
            )
            row = books.execute("SELECT * FROM refund WHERE refund_no = ?", (refund_no,)).fetchone()
        return RefundPlay(*row)

    def set_refund_outcome(self, refund_no: str, outcome: str) -> None:
        """Set the outcome of a refund from now on."""
        self._write("UPDATE refund SET outcome = ?, asked = 0, is_told = 0 WHERE refund_no = ?", outcome, refund_no)

    def set_next_refund(self, order_no: str, outcome: str) -> None:
        """Set the outcome of the next refund of an order; the last choice counts."""
        self._write("INSERT OR REPLACE INTO next_refund VALUES (?, ?)", order_no, outcome)

    def next_refunds(self) -> dict[str, str]:
        """Return the chosen outcomes of next refunds, by order number."""
        return dict(self._rows("SELECT order_no, outcome FROM next_refund ORDER BY rowid DESC"))

    def untold_refunds(self) -> list[RefundPlay]:
        """Return the refunds that have reached an end whose notice was not sent yet."""
        rows = self._rows("SELECT * FROM refund WHERE NOT is_told AND outcome IN (?, ?, ?)", *REFUND_NOTICES)
        refunds = [RefundPlay(*row) for row in rows]
        return [each for each in refunds if each.state is REFUND_NOTICES[each.outcome]]

    def set_told(self, refund: RefundPlay) -> None:
        """Record that the notice of a refund's end was sent, unless its outcome was changed."""
        self._write(
            "UPDATE refund SET is_told = 1 WHERE refund_no = ? AND outcome = ?", refund.refund_no, refund.outcome
        )

    def count_unanswered_refund(self, refund_no: str) -> None:
        """Count one more status check of the refund without a response."""
        self._write("UPDATE refund SET asked = asked + 1 WHERE refund_no = ?", refund_no)

    def plan(self, order_no: str, outcome: str, at: int) -> None:
        """Plan an outcome for the order at a Unix time; the last plan counts."""
        self._write("INSERT OR REPLACE INTO later VALUES (?, ?, ?)", order_no, outcome, at)

    def planned(self) -> list[Plan]:
        """Return all plans, the soonest first."""
        return [Plan(*row) for row in self._rows("SELECT order_no, outcome, at FROM later ORDER BY at, order_no")]

    def remove(self, plan: Plan) -> None:
        """Remove a plan, unless it was changed."""
        self._write("DELETE FROM later WHERE (order_no, outcome, at) = (?, ?, ?)", plan.order_no, plan.outcome, plan.at)

    @property
    def ahead(self) -> int:
        """Seconds by which the demo's clock was moved ahead."""
        rows = self._rows("SELECT ahead FROM clock")
        return int(rows[0][0]) if rows else 0

    def store_ahead(self, seconds: int) -> None:
        """Store by how many seconds the demo's clock is ahead."""
        self._write("INSERT OR REPLACE INTO clock VALUES (1, ?)", seconds)

    def count_unanswered(self, order_no: str) -> None:
        """Count one more status check of the order without a response."""
        self._write("UPDATE play SET asked = asked + 1 WHERE order_no = ?", order_no)


def notice(play: Play, secret: str) -> tuple[bytes, str]:
    """Return a notice's body and its signature."""
    state = "failed" if play.outcome == "fail" else "paid"
    body = json.dumps(
        {"order_no": play.order_no, "state": state, "amount": play.reported_amount, "reference": f"SB{play.order_no}"}
    ).encode()
    return body, sign(body, secret)


def refund_notice(refund: RefundPlay, secret: str) -> tuple[bytes, str]:
    """Return the body and the signature of a notice about a refund's present state."""
    facts = {"order_no": refund.order_no, "refund_no": refund.refund_no, "state": refund.state.value}
    body = json.dumps(facts | {"amount": refund.amount, "reference": f"SBR{refund.refund_no}"}).encode()
    return body, sign(body, secret)


def sign(body: bytes, secret: str) -> str:
    """Return the lowercase hex HMAC-SHA256."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def books() -> Simulator:
    """Return the upstream of all sandbox channels of this instance."""
    return Simulator(current().settings.instance / "sandbox.sqlite")
