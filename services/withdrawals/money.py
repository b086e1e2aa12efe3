"""The money of a withdrawal: its states in the ledger, and what a channel's report does to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from peewee import fn

from gateways.base import Report, State
from models.db.compiled import compiled
from models.tables.ledger import AVAILABLE, HELD, Entry, LedgerAccount, Posting
from models.tables.order import (
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    PAID,
    PAYOUT_CONFLICT,
    PAYOUT_IN_PROGRESS,
    PAYOUT_MISSING,
    PENDING,
    REVERSED,
    Order,
    PaymentException,
)
from runtime import clock
from services.ledger.accounts import IS_ADJUSTMENT
from services.ledger.postings import HOLD_AGAIN, RELEASE_AGAIN, SPEND_AGAIN
from services.orders.lifecycle import exceptions_of, lines_about, unless_shared
from services.orders.reasons import Why, reason_of
from services.orders.verdict import (
    ADJUST,
    CANCEL,
    CLOSE,
    COMPLETE,
    FAILED,
    NONE,
    Judged,
    Position,
    Proof,
    Table,
    Verdict,
    opens,
    row,
)


class WithdrawalMoney(Enum):
    """The state in the ledger of a withdrawal's money."""

    HELD = auto()  # reserved, and not approved yet
    IN_FLIGHT = auto()  # reserved, and the channel may have it
    SPENT = auto()  # paid out
    SPENT_TWICE = auto()  # paid out, and again under the number in question: an open exception
    FREE = auto()  # returned to the merchant's balance
    HELD_AGAIN = auto()  # it had ended, and is reserved again because the channel has it


_conflict, _reversed, _adjusted, _closed = opens(PAYOUT_CONFLICT), opens(REVERSED), opens(ADJUST), opens(CLOSE)

TABLE: Table = {
    WithdrawalMoney.HELD: row(
        paid=_conflict, unknown=_conflict, gone=_closed, under_way=opens(PAYOUT_IN_PROGRESS), absent=NONE
    ),
    WithdrawalMoney.IN_FLIGHT: row(
        ordered=Verdict(COMPLETED, exception=CLOSE),
        paid=_conflict,
        unknown=_conflict,
        gone=Verdict(CANCELLED, exception=CLOSE),
        missing=opens(PAYOUT_MISSING),
    ),
    WithdrawalMoney.SPENT: row(paid=_conflict, unknown=_reversed, gone=_reversed, under_way=_reversed),
    WithdrawalMoney.SPENT_TWICE: row(paid=_adjusted, unknown=_adjusted, gone=_closed),
    WithdrawalMoney.FREE: row(
        paid=_conflict,
        unknown=_conflict,
        gone=_closed,
        under_way=Verdict("", HOLD_AGAIN, PAYOUT_IN_PROGRESS),
        absent=NONE,
    ),
    WithdrawalMoney.HELD_AGAIN: row(
        ordered=Verdict("", SPEND_AGAIN, CLOSE),
        paid=_conflict,
        unknown=_conflict,
        gone=Verdict("", RELEASE_AGAIN, CLOSE),
    ),
}


# The codes of exceptions that a report other than a failure opened.
NOT_FAILED = (Why.PAYOUT_IN_PROGRESS, Why.PAYOUT_NOT_THERE)
# The kinds and ends of exceptions about a payout that the channel reported as not made, and that report.
NOT_PAID = {
    (REVERSED, None): State.FAILED,
    (REVERSED, COMPLETE): State.FAILED,
    (PAYOUT_CONFLICT, FAILED): State.FAILED,
    (PAYOUT_MISSING, COMPLETE): State.ABSENT,
}


def judge(order: Order, report: Report, exceptions: list[PaymentException]) -> Judged:
    """Judge a report on a withdrawal's payout, given all its exceptions; change nothing. Call it in a transaction."""
    counted = counted_exceptions(order, report, exceptions)
    position = position_of(order, report.reference, counted, partial(moved, order))
    proof = unless_shared(order, proof_of(order, report, position), report)
    return Judged(report.reference, position, proof, TABLE[position.money][proof])


def judge_each(order: Order, report: Report, exceptions: list[PaymentException]) -> Iterator[Judged]:
    """Judge a report on the payout that it names; then on the order's own, if it only ends a second one."""
    judged = judge(order, report, exceptions)
    yield judged
    if judged.position.money is WithdrawalMoney.SPENT_TWICE and judged.verdict.exception == CLOSE:
        yield judge(order, report, exceptions)  # the exceptions of the second one are closed now


def verdict_on(order: Order, report: Report, position: Position) -> Verdict:
    """Return what a report does to a payout in this position, if the channel's number is of no other order."""
    return TABLE[position.money][proof_of(order, report, position)]


def moved(order: Order, *kinds: str) -> int:
    """Return the sum of the order's postings on these accounts of its merchant, in fen, without adjustments."""
    return int(_moved.first(order.id, order.merchant_id, kinds).fen)


@compiled
def _moved(order_id: int, merchant_id: int, kinds: tuple[str, ...]) -> Any:
    entries = Entry.select(fn.COALESCE(fn.SUM(Entry.amount), 0).alias("fen")).join(Posting).switch(Entry)
    own = (LedgerAccount.kind.in_(kinds), LedgerAccount.owner == merchant_id)
    return entries.join(LedgerAccount).where(Posting.order == order_id, ~IS_ADJUSTMENT, *own)


def state_of(order: Order) -> WithdrawalMoney:
    """Return the state of a withdrawal's money in the ledger, regardless of exceptions."""
    return position_of(order, "", [], partial(moved, order)).money


def is_held_again(order: Order) -> bool:
    """Return whether a cancelled withdrawal's money is reserved again because the channel is paying it out."""
    return order.status in (CANCELLED, COMPLETED) and state_of(order) is WithdrawalMoney.HELD_AGAIN


def is_in_progress(order: Order) -> bool:
    """Return whether an ended withdrawal is still in progress at its channel."""
    is_open = any(each.is_open and each.kind == PAYOUT_IN_PROGRESS for each in exceptions_of(order))
    return is_open or is_held_again(order)


def position_of(
    order: Order, reference: str, exceptions: list[PaymentException], left_on: Callable[..., int]
) -> Position:
    """Return the position of the payout with this number of the channel.

    Args:
        left_on: returns the sum of the order's postings on accounts of these kinds, in fen, as `moved` does.
    """
    about = [each for each in exceptions if each.reference == reference]
    doubled = [each for each in about if each.kind == PAYOUT_CONFLICT and each.is_open]
    if order.status in (PENDING, CONFIRMED):
        state = WithdrawalMoney.HELD if order.status == PENDING else WithdrawalMoney.IN_FLIGHT
    elif order.status != PAID and left_on(HELD) > 0:
        state = WithdrawalMoney.HELD_AGAIN
    elif order.status == PAID or left_on(AVAILABLE, HELD) < 0:
        state = WithdrawalMoney.SPENT_TWICE if doubled else WithdrawalMoney.SPENT
    else:
        state = WithdrawalMoney.FREE
    return Position(state, order.amount, order.amount, about)


def proof_of(order: Order, report: Report, position: Position) -> Proof:
    """Return the proof in a report, given the position of the money."""
    if report.is_unsized:
        return Proof.AS_BOOKED if position.is_unsized else Proof.UNKNOWN
    if report.state is State.FAILED:
        ends = {(REVERSED, COMPLETE)} | (
            {(PAYOUT_CONFLICT, FAILED)} if report.reference != order.channel_reference else set()
        )
        failed = [each for each in position.exceptions if each.code not in NOT_FAILED]
        known = any((each.kind, each.resolution) in ends for each in failed)
        return Proof.AS_BOOKED if known and position.money is WithdrawalMoney.SPENT else Proof.GONE
    if report.state is State.OPEN:
        return Proof.UNDER_WAY
    if report.state is State.ABSENT:
        return _proof_of_absence(order, position)
    if report.state is State.STUCK:
        return Proof.STUCK  # it is about a refund, and proves nothing about a payout
    if _is_on_record(order, report, position):
        return Proof.AS_BOOKED
    if report.amount == order.amount:
        return Proof.AS_ORDERED
    return Proof.MORE if report.amount > order.amount else Proof.LESS


def _proof_of_absence(order: Order, position: Position) -> Proof:
    """Return the proof in a report that a payout is unknown: one that the channel has shown must not be sent again."""
    ended = [each.resolution for each in position.exceptions if each.kind == PAYOUT_MISSING]
    if position.money is WithdrawalMoney.SPENT and COMPLETE in ended:
        return Proof.AS_BOOKED
    shows_all = (order.shown_from or 0) <= clock.now()
    is_missing = position.money is WithdrawalMoney.IN_FLIGHT and shows_all and was_shown(order)
    return Proof.MISSING if is_missing else Proof.ABSENT


def _is_on_record(order: Order, report: Report, position: Position) -> bool:
    """Return whether this payout is recorded: as the order's own, or in an open or accordingly resolved exception."""
    spent = position.money in (WithdrawalMoney.SPENT, WithdrawalMoney.SPENT_TWICE)
    if spent and (report.reference, report.amount) == (order.channel_reference, order.amount):
        return True
    ends = {None, COMPLETE} if spent else {None, CANCEL}
    conflicts = [each for each in position.exceptions if each.kind == PAYOUT_CONFLICT and each.resolution in ends]
    mended = position.money is WithdrawalMoney.IN_FLIGHT and report.amount == order.amount
    return any(each.amount == report.amount for each in conflicts) and not mended


def shown_reference(order: Order) -> str | None:
    """Return the channel's number for a payout that it has shown, "" without a number; None if it never showed one."""
    lines = lines_about(order, Why.PAYOUT_SHOWN)
    numbers = [str(reason_of(line).args["reference"]) for line in reversed(lines)]
    return next(filter(None, numbers), "") if numbers else None


def was_shown(order: Order) -> bool:
    """Return whether the channel has ever shown this payout."""
    return shown_reference(order) is not None


def is_changed(exception: PaymentException, report: Report) -> bool:
    """Return whether a report about a payout differs from the one that this exception is about."""
    if exception.reference != report.reference and "" not in (exception.reference, report.reference):
        return False
    end = (exception.kind, exception.resolution)
    if end == (PAYOUT_CONFLICT, CANCEL):
        return bool(exception.amount != (report.amount if report.state is State.PAID else 0))
    if end not in NOT_PAID or exception.code in NOT_FAILED or report.is_unsized:
        return False
    return report.state is not NOT_PAID[end]


def counted_exceptions(order: Order, report: Report, every: list[PaymentException]) -> list[PaymentException]:
    """Return those of a withdrawal's exceptions that count: without resolved ones whose report has changed.

    If the channel repeats the report that such an exception is about, this is a new difference.
    """
    if not every:
        return []
    changed = {reason_of(line).args["exception"] for line in lines_about(order, Why.REPORT_CHANGED)}
    if not report.by_operator:
        changed |= {str(each.id) for each in every if is_changed(each, report)}
    return [each for each in every if each.is_open or str(each.id) not in changed]
