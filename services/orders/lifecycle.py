"""The steps of an order and its exceptions, each in one transaction with its line of history and its callback."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateways.base import Report, State
from models.db.base import database
from models.db.compiled import compiled_rows
from models.db.writer import transaction
from models.tables.order import CANCELLED, PENDING, UNKNOWN_OUTCOME, History, Order, PaymentException
from runtime import clock
from services.callbacks import outbox
from services.channels import groups, payment_numbers
from services.orders.reasons import ASKED, Reason, Why, because
from services.orders.verdict import RETURNED, Proof

log = logging.getLogger(__name__)

ANSWERED = "answered"  # the resolution of an exception about a channel's silence
MOST_REFUSED = 10  # lines about refused notices in an order's history, because anybody can send notices


@dataclass(frozen=True)
class Acted:
    """The result of an act on an order that has not ended: the channel's reports, and the reason for its history.

    `again_at` is the Unix time of the next act if they do not change the order; None for never.
    """

    again_at: int | None
    reports: Sequence[Report] = ()
    why: Reason = ASKED


def heard(locked: Order, asked: Order, report: Report, exceptions: list[PaymentException]) -> bool:
    """Record that the channel responded; False if its report is outdated: it has no result, and the order has changed.

    Args:
        locked: the order, locked in the caller's transaction, with all its exceptions.
        asked: the order when its status was checked.
    """
    if report.proven:
        outcome_known(exceptions)
    return report.state not in (State.OPEN, State.ABSENT, State.ENDED) or locked.status == asked.status


def exceptions_of(order: Order) -> list[PaymentException]:
    """Return all exceptions of an order, oldest first."""
    return _exceptions_of(order.id)


@compiled_rows(PaymentException)
def _exceptions_of(order_id: int) -> Any:
    return PaymentException.select().where(PaymentException.order == order_id).order_by(PaymentException.id)


def open_exceptions(order: Order) -> list[PaymentException]:
    """Return the order's open exceptions that an operator can resolve, oldest first, without `unknown_outcome`."""
    return [each for each in exceptions_of(order) if each.is_open and each.kind != UNKNOWN_OUTCOME]


def begin(orders: list[Order], who: list[str], why: Reason) -> None:
    """Write the first line of history of orders that were just inserted; `who` has the actor of each."""
    lines = zip(orders, who, strict=True)
    History.add_all(
        [{"order": order.id, "after": PENDING, "who": by, "at": order.createtime, **why.columns} for order, by in lines]
    )


def transition(order: Order, new: str, who: str, why: Reason, **facts: Any) -> bool:
    """Move the order to `new` in the caller's transaction (docs/orders.md).

    Args:
        who: merchant, payer, channel, service or operator.
        facts: columns that are stored with the step.

    Returns: False, with nothing changed, if the transition is illegal or the order has changed.
    """
    return transitions(order, [(new, who, why)], **facts)


def transitions(order: Order, steps: list[tuple[str, str, Reason]], **facts: Any) -> bool:
    """Take steps (status, who, why) that happen at the same moment, as `transition` takes one."""
    if not database.in_transaction():
        raise RuntimeError("a step of an order belongs into a transaction")
    before = [order.status, *(new for new, _, _ in steps)]
    if not order.move_to(*before[1:], **facts):
        return False
    if order.group_id and CANCELLED in before:
        groups.give_back(order) if before[-1] == CANCELLED else groups.count_again(order)
    same = {"order": order.id, "at": order.updatetime}
    History.add_all(
        [
            {**same, "before": old, "after": new, "who": who, **why.columns}
            for old, (new, who, why) in zip(before, steps, strict=False)
        ]
    )
    for new, _, _ in steps:
        order.status = new  # each callback has the status after its own step
        outbox.enqueue(order)
    return True


def note(order: Order, who: str, why: Reason) -> int:
    """Write a line of history without a step; return its id."""
    status = order.status
    return History.add(order=order.id, before=status, after=status, who=who, at=clock.now(), **why.columns)


def is_new(order: Order, why: Reason, most: int | None = None) -> bool:
    """Return False if the history has this reason already, or `most` lines with its code."""
    lines = lines_about(order, why.code)
    if any(line.args == why.columns["args"] for line in lines):
        return False
    return most is None or len(lines) < most


def lines_about(order: Order, code: Why) -> list[History]:
    """Return the lines of an order's history with this reason, oldest first."""
    return _lines_about(order.id, code)


@compiled_rows(History)
def _lines_about(order_id: int, code: str) -> Any:
    return History.select().where(History.order == order_id, History.code == code).order_by(History.id)


def note_once(order: Order, who: str, why: Reason, most: int | None = None) -> bool:
    """Write the line if it `is_new`; False if it is not."""
    new = is_new(order, why, most)
    if new:
        note(order, who, why)
    return new


def note_refused_notice(order: Order, reason: str) -> None:
    """Record that a notice was not genuine; each reason once, and a limited number."""
    why = because(Why.NOTICE_REFUSED, text=reason)
    if is_new(order, why, MOST_REFUSED):  # otherwise anybody could keep the writer busy
        _note_refused(order, why)


@transaction
def _note_refused(order: Order, why: Reason) -> None:
    note_once(order, "channel", why, MOST_REFUSED)


def raise_exception(
    order: Order,
    kind: str,
    cause: Reason,
    amount: int = 0,
    reference: str = "",
    returned: int | None = None,
    channel: int = 0,
) -> bool:
    """Open an exception for an operator, with its line of history.

    Args:
        amount: its money, in fen; 0 if unknown.
        reference: the channel's number for the payment.
        returned: the part that the channel sent back before, in fen.
        channel: the id of the channel that has its money; 0 for the order's.

    Returns: False, with nothing changed, if one of this kind is open for this money.
    """
    row = {"order": order, "kind": kind, "amount": amount, "reference": reference, "returned": returned}
    row["channel"] = channel or order.channel_id
    opened = PaymentException.insert(createtime=clock.now(), **row, **cause.columns).on_conflict_ignore()
    if not opened.as_rowcount().execute():
        return False
    same = (PaymentException.order == order) & (PaymentException.reference == reference)
    this = (same, PaymentException.kind == kind, PaymentException.resolution.is_null())
    PaymentException.update(history=note(order, "service", cause)).where(*this).execute()
    log.warning("Order %s: exception %s: %s", order.order_no, kind, cause.text())
    return True


def close_exception(exception: PaymentException, resolution: str, who: str) -> bool:
    """Close an exception that a channel's report has resolved, with its line of history; False if it was closed."""
    if not exception.resolve(resolution, who):
        return False
    note(exception.order, who, settled(exception, resolution))
    return True


def change_exception(exception: PaymentException, amount: int, report: Report, who: str) -> bool:
    """Change an open exception's amount, in the caller's transaction; it closes if nothing is left."""
    before, unsized = exception.amount, report.is_unsized
    if amount == before:
        return False
    if not amount and not unsized:
        outbox.enqueue(exception.order, "order.refunded", exception.id)
        return close_exception(exception, RETURNED, who)
    facts: dict[str, object] = dict(because(Why.RETURNED_UNKNOWN).columns) if unsized else {}
    if report.returned:
        facts["returned"] = report.returned
    exception.change(amount=amount, **facts)
    about: dict[str, str | int] = {"kind": exception.kind, "exception": str(exception.id), "before": before}
    code = Why.EXCEPTION_UNSIZED if unsized else Why.EXCEPTION_CORRECTED
    note(exception.order, who, Reason(code, {**about, "amount": amount}))
    return True


def add_to_exception(exception: PaymentException, fen: int, who: str) -> None:
    """Change an open exception's amount by `fen`, which may be negative, in the caller's transaction."""
    before, amount = int(exception.amount), int(exception.amount) + fen
    exception.change(amount=amount)
    about: dict[str, str | int] = {"kind": exception.kind, "exception": str(exception.id), "before": before}
    note(exception.order, who, Reason(Why.EXCEPTION_CORRECTED, {**about, "amount": amount}))


def unless_shared(order: Order, proof: Proof, report: Report) -> Proof:
    """Return SHARED if another order has the channel's number: one payment is neither credited nor deducted twice."""
    if (
        proof is Proof.AS_ORDERED
        and not report.by_operator
        and payment_numbers.first_with(order, report.reference, report.channel)
    ):
        return Proof.SHARED
    return proof


def shared_by(order: Order, reference: str, channel: int = 0) -> Reason:
    """Return the reason that the channel's number is recorded for another order."""
    first = payment_numbers.first_with(order, reference, channel)
    return because(Why.SHARED_REFERENCE, reference=reference, order_no=first.order_no if first else "")


def settled(exception: PaymentException, resolution: str) -> Reason:
    """Return the reason for a history line about a resolved exception."""
    return because(Why.EXCEPTION_SETTLED, kind=exception.kind, exception=str(exception.id), resolution=resolution)


@transaction
def outcome_unknown(order: Order, detail: str, ask_again: int) -> None:
    """Record that the channel does not respond, and check the status again at `ask_again`.

    Does nothing if the order changed meanwhile or waits for an operator, because the channel responded then.
    """
    locked = Order.for_update(order.id)
    if locked.status != order.status or (locked.due_at is None and order.due_at is not None):
        return
    order.set_due(ask_again)
    raise_silence(order, because(Why.NO_ANSWER, text=detail))


def raise_silence(order: Order, cause: Reason) -> None:
    """Open an exception about the channel's silence, or reopen an earlier one, in the caller's transaction."""
    silence = (PaymentException.order == order) & (PaymentException.kind == UNKNOWN_OUTCOME)
    earlier = PaymentException.select().where(silence).order_by(PaymentException.id.desc()).first()
    if earlier is None:
        raise_exception(order, UNKNOWN_OUTCOME, cause)
        return
    again: dict[str, Any] = {"resolution": None, "resolved_by": None, "resolvedtime": None}
    if earlier.resolution is not None:
        again["createtime"] = clock.now()  # after a response, the silence starts again
    PaymentException.update(**again, **cause.columns).where(PaymentException.id == earlier.id).execute()


def outcome_known(exceptions: list[PaymentException]) -> None:
    """Close the open exception about the channel's silence, among all of an order, after its response."""
    for each in exceptions:
        if each.kind == UNKNOWN_OUTCOME and each.is_open:
            each.resolve(ANSWERED, "service")
