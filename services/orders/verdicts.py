"""The effect of a channel's report: one table from the order's state and the report's proof to the action.

Each combination has a verdict. Notices, status checks and operators' reports are applied by it, and `orders
reconcile` compares by it. Another kind of order, such as an outgoing refund, adds rows.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from models.tables.order import (
    AMOUNT_CORRECTED,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    LATE_PAYMENT,
    PAID,
    PAID_TWICE,
    PAYOUT_CONFLICT,
    PAYOUT_IN_PROGRESS,
    PAYOUT_MISSING,
    REVERSED,
    SHARED_REFERENCE,
    WRONG_AMOUNT,
)
from services.ledger.postings import HOLD_AGAIN, RELEASE_AGAIN, SPEND_AGAIN


class Books(Enum):
    """The state in the ledger of one payment of a deposit, or of a withdrawal's money."""

    # Deposits
    AWAITED = auto()  # not recorded, and the order waits for it
    QUESTIONED = auto()  # in an open exception, and the order waits for its amount
    LATE = auto()  # not recorded, and the order is cancelled
    ANOTHER = auto()  # not recorded, and the order has other money
    OPEN = auto()  # in an open exception of an order that waits for no payment
    TO_CREDIT = auto()  # the order's own, confirmed and not credited yet
    CREDITED = auto()  # credited, with its order or by an exception
    SENT_BACK = auto()  # returned by an operator
    # Withdrawals
    HELD = auto()  # reserved, and not approved yet
    IN_FLIGHT = auto()  # reserved, and the channel may have it
    SPENT = auto()  # paid out
    SPENT_TWICE = auto()  # paid out, and again under the number in question: an open exception
    FREE = auto()  # returned to the merchant's balance
    HELD_AGAIN = auto()  # it had ended, and is reserved again because the channel has it


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


class Verdict(NamedTuple):
    """The action: the order's new status, the posting, and the exception: its kind to open, ADJUST or CLOSE."""

    status: str = ""
    posting: str = ""
    exception: str = ""


NONE = Verdict()
ADJUST, CLOSE = "adjust", "close"  # effects on the open exception about this money
SPEND, RELEASE = "spend", "release"


def _row(
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
) -> dict[Proof, Verdict]:
    """Return one row of the table. `paid` is for any amount without a verdict of its own."""
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
    }


def _opens(kind: str) -> Verdict:
    return Verdict(exception=kind)


_adjusted, _closed, _reversed = _opens(ADJUST), _opens(CLOSE), _opens(REVERSED)
_wrong, _late, _twice, _more = _opens(WRONG_AMOUNT), _opens(LATE_PAYMENT), _opens(PAID_TWICE), _opens(AMOUNT_CORRECTED)
_conflict, _shared = _opens(PAYOUT_CONFLICT), _opens(SHARED_REFERENCE)
_cancelled = Verdict(CANCELLED)

TABLE: dict[Books, dict[Proof, Verdict]] = {
    Books.AWAITED: _row(
        claimed=Verdict(PAID),
        ordered=Verdict(CONFIRMED),
        shared=_shared,
        paid=_wrong,
        unknown=_wrong,
        ended=NONE,
        gone=_cancelled,
    ),
    Books.QUESTIONED: _row(
        ordered=Verdict(CONFIRMED, exception=CLOSE),
        paid=_adjusted,
        unknown=_adjusted,
        gone=Verdict(CANCELLED, exception=CLOSE),
    ),
    Books.LATE: _row(paid=_late, unknown=_late, ended=NONE, gone=NONE),
    Books.ANOTHER: _row(paid=_twice, unknown=_twice, ended=NONE, gone=NONE),
    Books.OPEN: _row(paid=_adjusted, unknown=_adjusted, gone=_closed),
    Books.TO_CREDIT: _row(
        more=_more,
        paid=_reversed,
        unknown=_reversed,
        gone=Verdict(CANCELLED, exception=CLOSE),
        under_way=_reversed,
    ),
    Books.CREDITED: _row(more=_more, paid=_reversed, unknown=_reversed, gone=_reversed, under_way=_reversed),
    Books.SENT_BACK: _row(more=_more, paid=NONE, unknown=NONE, gone=NONE),
    Books.HELD: _row(
        paid=_conflict, unknown=_conflict, gone=_closed, under_way=_opens(PAYOUT_IN_PROGRESS), absent=NONE
    ),
    Books.IN_FLIGHT: _row(
        ordered=Verdict(COMPLETED, SPEND, CLOSE),
        paid=_conflict,
        unknown=_conflict,
        gone=Verdict(CANCELLED, RELEASE, CLOSE),
        missing=_opens(PAYOUT_MISSING),
    ),
    Books.SPENT: _row(paid=_conflict, unknown=_reversed, gone=_reversed, under_way=_reversed),
    Books.SPENT_TWICE: _row(paid=_adjusted, unknown=_adjusted, gone=_closed),
    Books.FREE: _row(
        paid=_conflict,
        unknown=_conflict,
        gone=_closed,
        under_way=Verdict("", HOLD_AGAIN, PAYOUT_IN_PROGRESS),
        absent=NONE,
    ),
    Books.HELD_AGAIN: _row(
        ordered=Verdict("", SPEND_AGAIN, CLOSE),
        paid=_conflict,
        unknown=_conflict,
        gone=Verdict("", RELEASE_AGAIN, CLOSE),
    ),
}
