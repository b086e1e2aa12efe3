"""The money of a refund: its states in the ledger, and what a channel's report does to each."""

from __future__ import annotations

from enum import Enum, auto

from gateways.base import Report, State
from models.tables.order import (
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    PENDING,
    REFUND_ABNORMAL,
    REFUND_CONFLICT,
    PaymentException,
)
from models.tables.refund import Refund
from services.orders.verdict import CANCEL, CLOSE, COMPLETE, NONE, Proof, Table, Verdict, opens, row


class RefundMoney(Enum):
    """The state in the ledger of a refund's money."""

    HELD = auto()  # reserved, and not sent yet
    IN_FLIGHT = auto()  # reserved, and the channel may have it
    SPENT = auto()  # the payer got it
    FREE = auto()  # it stayed with the merchant


STATES = {
    PENDING: RefundMoney.HELD,
    CONFIRMED: RefundMoney.IN_FLIGHT,
    COMPLETED: RefundMoney.SPENT,
    CANCELLED: RefundMoney.FREE,
}
_abnormal, _conflict = opens(REFUND_ABNORMAL), opens(REFUND_CONFLICT)
_completed, _cancelled = Verdict(COMPLETED, exception=CLOSE), Verdict(CANCELLED, exception=CLOSE)

TABLE: Table = {
    # After a restore, a refund that is not sent here may have been.
    RefundMoney.HELD: row(
        ordered=_completed,
        paid=_conflict,
        unknown=Verdict(CONFIRMED),
        gone=_cancelled,
        under_way=Verdict(CONFIRMED),
        absent=NONE,
        stuck=Verdict(CONFIRMED, exception=REFUND_ABNORMAL),
    ),
    RefundMoney.IN_FLIGHT: row(ordered=_completed, paid=_conflict, unknown=NONE, gone=_cancelled, stuck=_abnormal),
    # A final result that the channel still shows as in progress, or no longer shows, is not contradicted.
    RefundMoney.SPENT: row(paid=_conflict, unknown=NONE, gone=_conflict, stuck=_conflict),
    RefundMoney.FREE: row(
        paid=_conflict, unknown=_conflict, gone=NONE, under_way=_conflict, absent=NONE, stuck=_conflict
    ),
}


def judge(refund: Refund, report: Report, exceptions: list[PaymentException]) -> tuple[Proof, Verdict]:
    """Return the proof in a report on a refund and what it does, given the exceptions about the refund."""
    proof = proof_of(refund, report, exceptions)
    return proof, TABLE[STATES[refund.status]][proof]


def proof_of(refund: Refund, report: Report, exceptions: list[PaymentException]) -> Proof:
    """Return the proof in a report on a refund. A state that the code does not know proves nothing."""
    if report.state is State.PAID and not report.amount:
        return Proof.UNKNOWN
    if report.state is State.PAID and report.amount == refund.amount:
        # An operator has decided, after this contradiction, that the money came back or never left.
        ended = refund.status == CANCELLED and _has_ended(exceptions, CANCEL)
        return Proof.AS_BOOKED if refund.status == COMPLETED or ended else Proof.AS_ORDERED
    if report.state is State.PAID:
        return Proof.MORE if report.amount > refund.amount else Proof.LESS
    if report.state is State.FAILED:
        is_known = refund.status == COMPLETED and _has_ended(exceptions, COMPLETE)
        return Proof.AS_BOOKED if is_known else Proof.GONE
    if report.state is State.STUCK:
        return Proof.AS_BOOKED if any(each.resolution in (COMPLETE, CANCEL) for each in exceptions) else Proof.STUCK
    return {State.OPEN: Proof.UNDER_WAY, State.ABSENT: Proof.ABSENT}.get(report.state, Proof.UNKNOWN)


def _has_ended(exceptions: list[PaymentException], resolution: str) -> bool:
    """Return whether an operator has decided so after a contradiction; an earlier exception says nothing about it."""
    return any(each.kind == REFUND_CONFLICT and each.resolution == resolution for each in exceptions)
