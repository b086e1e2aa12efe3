"""What a channel's report can prove about an order's money, and what it does: only the words of the kinds' tables.

Each kind of order has its table in its `money.py`, with the states of its money beside their rows. Notices, status
checks, operators' reports and `tillbook reconcile` all judge by it. Another kind of order adds a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

from models.tables.order import PaymentException
from services.orders.reasons import Why

# The ends of exceptions. An operator decides the first four, the channel's reports prove the others.
CREDIT, REFUND, COMPLETE, CANCEL = RESOLUTIONS = ("credit", "refund", "complete", "cancel")
CORRECTED, RETURNED, PAID_OUT, FAILED = ("corrected", "returned", "paid_out", "failed")


class Proof(Enum):
    """A report, compared with the ledger."""

    CLAIMED = auto()  # reported as paid, without proof
    AS_ORDERED = auto()  # paid, the order's amount
    SHARED = auto()  # the same, under a number that is recorded for another order of the channel
    AS_BOOKED = auto()  # the recorded amount
    MORE = auto()
    LESS = auto()
    UNKNOWN = auto()  # some or all of it was refunded, amount unknown
    ENDED = auto()  # expired unpaid, or some or all of it was refunded: unknown which
    GONE = auto()  # no money: it failed, or all of it was returned
    UNDER_WAY = auto()  # a deposit is not paid yet, a payout is in progress
    ABSENT = auto()  # the channel does not know the order
    MISSING = auto()  # the channel does not know a payout that it has shown before
    STUCK = auto()  # a refund does not reach the payer


class Verdict(NamedTuple):
    """The action: the order's new status, with what that posts, or the posting of a withdrawal that had ended; and the
    exception: its kind to open, ADJUST or CLOSE.
    """

    status: str = ""
    posting: str = ""
    exception: str = ""


NONE = Verdict()
ADJUST, CLOSE = "adjust", "close"  # effects on the open exception about this money

Table = dict[Any, dict[Proof, Verdict]]  # by the state of the money


def opens(kind: str) -> Verdict:
    """Return the verdict that only opens an exception of this kind, or has the effect ADJUST or CLOSE on one."""
    return Verdict(exception=kind)


def row(
    *,
    paid: Verdict,
    gone: Verdict,
    unknown: Verdict,
    ended: Verdict | None = None,
    ordered: Verdict | None = None,
    shared: Verdict | None = None,
    more: Verdict | None = None,
    claimed: Verdict = NONE,
    under_way: Verdict = NONE,
    absent: Verdict | None = None,
    missing: Verdict | None = None,
    stuck: Verdict = NONE,
) -> dict[Proof, Verdict]:
    """Return one row of a table. `paid` is for any amount without a verdict of its own."""
    absent = under_way if absent is None else absent
    return {
        Proof.CLAIMED: claimed,
        Proof.AS_ORDERED: ordered or paid,
        Proof.SHARED: shared or paid,
        Proof.AS_BOOKED: NONE,
        Proof.MORE: more or paid,
        Proof.LESS: paid,
        Proof.UNKNOWN: unknown,
        Proof.ENDED: unknown if ended is None else ended,
        Proof.GONE: gone,
        Proof.UNDER_WAY: under_way,
        Proof.ABSENT: absent,
        Proof.MISSING: absent if missing is None else missing,
        Proof.STUCK: stuck,
    }


@dataclass(frozen=True)
class Position:
    """The state of one payment or payout in the ledger, and the limits of its amount at the channel, in fen.

    `money` is a state of the kind's table. The limits differ by refunds that were made or are possible. `exceptions`
    are those about the payment. `refunded` is the part that this service refunds, or has refunded.
    """

    money: Any
    least: int
    most: int
    exceptions: list[PaymentException]
    refunded: int = 0

    @property
    def open(self) -> list[PaymentException]:
        """The open exceptions."""
        return [each for each in self.exceptions if each.is_open]

    @property
    def is_unsized(self) -> bool:
        """True if an exception about a refund of unknown amount is open, or was resolved without an amount."""
        unknown = [each for each in self.exceptions if each.code == Why.RETURNED_UNKNOWN]
        return any(each.is_open or not each.amount for each in unknown)


class Judged(NamedTuple):
    """One payment or payout of a report: its number at the channel, its position, the proof, and the verdict."""

    reference: str
    position: Position
    proof: Proof
    verdict: Verdict
