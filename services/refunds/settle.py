"""Settle a refund by its channel's reports: `money.py` decides what each does, and here it is done in one commit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from gateways.base import Notice, Report, State
from models.db.writer import transaction
from models.tables.order import (
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    OF_REFUNDS,
    PAID,
    PENDING,
    REFUND_ABNORMAL,
    REVERSED,
    Order,
    PaymentException,
)
from models.tables.refund import EXCEPTION, UNCREDITED, Refund, RefundHistory, lives, refunds_of
from runtime import clock
from services.callbacks import outbox
from services.channels.calls import LATE, LEASE, driver_of
from services.deposits import money as deposit_money
from services.deposits import resolve as resolve_deposit
from services.deposits import settle as settle_deposit
from services.ledger import accounts, postings
from services.orders import lifecycle
from services.orders.lifecycle import exceptions_of
from services.orders.reasons import ASKED, Reason, Why, because, reported
from services.orders.verdict import CANCEL, CLOSE, COMPLETE, CORRECTED, CREDIT, NONE, REFUND, Position, Proof
from services.refunds import money

MOST_NOTED = 10  # lines about unusable responses in a refund's history
PURPOSES = {COMPLETED: "refund", CANCELLED: "refund_release"}


def exceptions_about(refund: Refund) -> list[PaymentException]:
    """Return the exceptions about the refund itself, oldest first. They name it by its number."""
    every = exceptions_of(refund.order)
    return [each for each in every if each.kind in OF_REFUNDS and each.reference == refund.refund_no]


def note(refund: Refund, who: str, why: Reason) -> None:
    """Write a line of the refund's history without a step."""
    status = refund.status
    RefundHistory.add(refund=refund.id, before=status, after=status, who=who, at=clock.now(), **why.columns)


def note_once(refund: Refund, who: str, why: Reason) -> None:
    """Write the line unless the history has it, or too many with its code."""
    lines = list(RefundHistory.select().where(RefundHistory.refund == refund.id, RefundHistory.code == why.code.value))
    if len(lines) < MOST_NOTED and not any(line.args == why.columns["args"] for line in lines):
        note(refund, who, why)


def transition(refund: Refund, new: str, who: str, why: Reason, *, about: int | None = None, **facts: object) -> bool:
    """Move the refund to `new` with its ledger entries, history and callback, in the caller's transaction.

    Args:
        refund: locked, after its order, which is `refund.order`.
        about: the id of the exception by which an operator changes a final status.
        facts: columns that are stored with the step.

    Returns: False, with nothing changed, if the transition is illegal or the refund has changed.

    Raises:
        ApiError: Code.INSUFFICIENT_BALANCE, if an operator completes a cancelled one.
    """
    order, before = refund.order, refund.status
    lines = postings.refund(refund, order, before, new)
    if not refund.move_to(new, **facts):
        return False
    if any(lines.values()):
        purpose = "refund_return" if (before, new) == (COMPLETED, CANCELLED) else PURPOSES[new]
        accounts.post(accounts.numbered(order, purpose), lines, who=who, order=order)
    RefundHistory.add(refund=refund.id, before=before, after=new, who=who, at=refund.updatetime, **why.columns)
    outbox.enqueue_refund(refund, order, about)
    return True


@transaction
def apply_report(refund: Refund, report: Report, who: str = "channel", why: Reason = ASKED) -> bool:
    """Apply a channel's or an operator's report on a refund. A repeated report changes nothing.

    Args:
        report: `amount` is the refund's, in fen.

    Returns: True if anything changed.
    """
    asked, refund = refund, lock(refund)
    if report.state in (State.OPEN, State.ABSENT) and refund.status != asked.status:
        return False  # outdated: it has no result, and the refund has changed
    exceptions, why = exceptions_about(refund), reported(report.detail, why)
    proof, verdict = money.judge(refund, report, exceptions)
    if verdict == NONE:
        return False
    changed = False
    if verdict.status == CONFIRMED:
        changed = transition(refund, CONFIRMED, who, why, due_at=clock.now(), senttime=clock.now())
    elif verdict.status == COMPLETED:
        changed = complete(refund, who, why, report.reference)
    elif verdict.status == CANCELLED:
        changed = cancel(refund, who, why)
    if verdict.exception == CLOSE:
        for each in exceptions:
            if each.is_open:
                lifecycle.close_exception(each, COMPLETE if verdict.status == COMPLETED else CANCEL, who)
        return changed
    if verdict.exception:
        return raise_exception(refund, verdict.exception, _cause(refund, proof, report), report.amount) or changed
    return changed


def _cause(refund: Refund, proof: Proof, report: Report) -> Reason:
    if proof in (Proof.MORE, Proof.LESS):
        return because(Why.REFUND_OTHER_AMOUNT, amount=report.amount, expected=int(refund.amount))
    text = report.detail or report.state.value
    if refund.is_open:
        return because(Why.REFUND_STUCK, text=text)
    return because(Why.REFUND_CONTRADICTED, status=refund.status, text=text)


def raise_exception(refund: Refund, kind: str, cause: Reason, amount: int = 0) -> bool:
    """Open an exception about a refund, in the caller's transaction; False if one is open. Checks continue hourly."""
    opened = lifecycle.raise_exception(refund.order, kind, cause, amount or int(refund.amount), refund.refund_no)
    if opened:
        note(refund, "service", cause)
    if refund.is_open:
        refund.set_due(clock.now() + LATE[1])
    return opened


def complete(refund: Refund, who: str, why: Reason, reference: str = "", about: int | None = None) -> bool:
    """Complete a refund that the payer received, with its effects on the order, in the caller's transaction."""
    if refund.status == PENDING and not transition(refund, CONFIRMED, who, why, senttime=clock.now()):
        return False
    facts, was_cancelled = {"channel_reference": reference} if reference else {}, refund.status == CANCELLED
    if not transition(refund, COMPLETED, who, why, about=about, due_at=_checked_at(refund), **facts):
        return False
    order = refund.order
    if was_cancelled:
        _explain_reversal(refund, who)
    if refund.paid_from == EXCEPTION:
        _resolve_exception(refund, who)
    elif refund.paid_from == UNCREDITED and order.status == CONFIRMED:
        back = [each for each in lives(refunds_of(order)) if each.paid_from == UNCREDITED and not each.is_open]
        if sum(each.amount for each in back) >= order.received:
            lifecycle.transition(order, CANCELLED, who, because(Why.REFUNDED_BEFORE_CREDIT))
    settle_deposit.hold_or_resume(order)
    return True


def _explain_reversal(refund: Refund, who: str) -> None:
    """Take the money of a refund that was cancelled and happened after all out of an open `reversed`."""
    for each in exceptions_of(refund.order):
        if each.is_open and each.kind == REVERSED and each.reference == refund.reference and each.amount:
            if each.amount > refund.amount:
                lifecycle.add_to_exception(each, -refund.amount, who)
            else:
                lifecycle.close_exception(each, CORRECTED, who)


def _resolve_exception(refund: Refund, who: str) -> None:
    """Resolve the exception whose money went back, unless a report of the channel has closed it meanwhile.

    If an operator credited that money after the refund seemed to have failed, it is missing now.
    """
    order, exception = refund.order, PaymentException.get_by_id(refund.exception_id)
    left = exception.amount - refund.amount
    if exception.resolution in (CREDIT, COMPLETE, REFUND):
        position = deposit_money.position_of(
            order, refund.reference, exceptions_of(order), refunds_of(order), refund.channel_id
        )
        report = Report(State.PAID, refund.amount, refund.channel_reference, channel=refund.channel_id)
        fen = min(int(refund.amount), position.least)
        if fen > 0:
            settle_deposit.record_less(order, fen, report, refund.reference, position, who)
    if not exception.is_open:
        return
    if left > 0:  # more was received meanwhile
        lifecycle.add_to_exception(exception, -refund.amount, who)
        return
    exception.resolve(REFUND, refund.approved_by)
    if order.status in (PENDING, PAID):
        resolve_deposit.close_unpaid(order, exception, who)
    lifecycle.note(order, who, lifecycle.settled(exception, REFUND))
    outbox.enqueue(order, "order.refunded", exception.id)


def _checked_at(refund: Refund) -> int | None:
    """Return when to check whether the channel contradicts the result of a refund that ends now; None if it can't."""
    return None if driver_of(refund.channel).by_hand else clock.now() + LATE[0]


def cancel(refund: Refund, who: str, why: Reason, about: int | None = None) -> bool:
    """Cancel a refund of which no money moved, and return what it reserved, in the caller's transaction."""
    # Also if it was not sent: a report that money is missing seemed to be explained by it, and is repeated then.
    if not transition(refund, CANCELLED, who, why, about=about, due_at=_checked_at(refund)):
        return False
    settle_deposit.hold_or_resume(refund.order)
    return True


def lock(refund: Refund) -> Refund:
    """Lock a refund after its order; return it as it is now, with its order."""
    order = Order.for_update(refund.order_id)
    locked = Refund.for_update(refund.id)
    locked.order = order
    return locked


@transaction
def outcome_unknown(refund: Refund, text: str, again_at: int | None, is_long: bool) -> None:
    """Record that there was no usable response, and act again at `again_at`.

    Args:
        is_long: there has been no result for so long that an operator may decide.
    """
    claimed, refund = refund, lock(refund)
    if not refund.is_as(claimed):
        return
    note_once(refund, "channel", because(Why.NO_ANSWER, text=text))
    refund.set_due(again_at)
    if is_long and refund.status == CONFIRMED and not exceptions_about(refund):
        raise_exception(refund, REFUND_ABNORMAL, because(Why.REFUND_SILENT, text=text))


def take_notice(order: Order, notice: Notice, channel: int = 0) -> None:
    """Apply what a genuine notice says about a refund of the order.

    Without a report on the refund, its status is checked now, unless a worker has claimed it. A refund with an unknown
    number was made at the channel.
    """
    refund = Refund.get_or_none(Refund.refund_no == notice.refund_no, Refund.order == order.id)
    if refund is None:
        if notice.refund is not None and order.is_buy:
            take_unknown(order, notice.refund_no, notice.refund, notice.payment, channel)
        return
    refund.order = order
    if notice.refund is not None:
        apply_report(refund, notice.refund, "channel", because(Why.NOTICE))
    elif refund.is_open and refund.due_at is not None and refund.due_at > clock.now() + LEASE:
        refund.set_due(clock.now())


@transaction
def take_unknown(order: Order, number: str, report: Report, payment: str, channel: int = 0) -> bool:
    """Record a refund of the order that this service did not request, from a verified report of its channel.

    It reduces an open exception about the money, and opens or raises `reversed` for the rest, once for each number.
    What other reports have recorded already, without the refund's number, is not recorded again.

    Args:
        payment: the channel's number for the refunded payment; "" for the order's own.

    Returns: True if it is new.
    """
    order = Order.for_update(order.id)
    report = replace(report, channel=channel)
    if report.state is not State.PAID:
        return False  # no money moved
    placed = Refund.find(number)
    if placed is not None and placed.order_id == order.id:
        return False  # it was placed just now, after a restore, and its own status check finds the same
    if is_told(order, number):
        return False
    reference = payment or str(order.channel_reference)
    why = because(Why.REFUND_ELSEWHERE, amount=report.amount, number=number, payment=reference)
    lifecycle.note(order, "channel", why)
    position = deposit_money.position_of(order, reference, exceptions_of(order), refunds_of(order), channel)
    # Of a payment that the ledger does not have any more, nothing else can be missing.
    booked = max(position.least + position.refunded, 0)
    less = min(report.amount, _unrecorded(order, reference, position), booked)
    if less > 0:
        settle_deposit.record_less(order, less, report, reference, position, "channel")
        for each in exceptions_of(order):
            if each.is_open and each.kind == REVERSED and each.reference == reference:
                each.change(**because(Why.REFUNDS_NAMED, amount=int(each.amount)).columns)
        settle_deposit.hold_or_resume(order)
    return True


def is_told(order: Order, number: str) -> bool:
    """Return whether the history has a refund of this number that this service did not request."""
    return number in [each["number"] for each in _told(order)]


def _told(order: Order) -> list[dict[str, Any]]:
    return [json.loads(line.args) for line in lifecycle.lines_about(order, Why.REFUND_ELSEWHERE)]


def _unrecorded(order: Order, reference: str, position: Position) -> int:
    """Return how much of the payment's refunds that the channel named is in no exception, in fen."""
    went_back = [each for each in position.exceptions if each.kind == REVERSED and each.resolution != CORRECTED]
    if any(not each.amount and not each.is_open for each in went_back):
        return 0  # an operator resolved a refund of unknown amount: all that is missing was decided then
    named = sum(int(each["amount"]) for each in _told(order) if each.get("payment", reference) == reference)
    recorded: list[int] = [each.amount for each in went_back]
    recorded += [each.returned or 0 for each in position.exceptions if each.kind in MONEY_IN]
    return int(named - sum(recorded))
