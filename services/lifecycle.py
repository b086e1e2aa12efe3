"""One step of an order: the conditional update, its line of history and its callback, in one transaction."""

from __future__ import annotations

import logging
from typing import Any

import business_clock
from gateways.base import Report
from models.base import database
from models.order import MONEY_IN, PENDING, UNKNOWN_OUTCOME, History, Order, PaymentException
from models.writer import transaction
from schemas.views import hundredths
from services import callbacks

log = logging.getLogger(__name__)

ANSWERED = "answered"  # how an exception about a channel's silence ends


def begin(orders: list[Order], who: str, why: str) -> None:
    """The first lines of history of orders that were just inserted."""
    History.add_all(
        [{"order": order.id, "after": PENDING, "who": who, "why": why, "at": order.createtime} for order in orders]
    )


def move(order: Order, new: str, who: str, why: str, **facts: Any) -> bool:
    """Move the order to `new`; runs in the caller's transaction (docs/orders.md).

    Args:
        who: merchant, payer, channel, service or operator.
        facts: columns that are stored with the step.

    Returns: False, with nothing changed, where the step is not legal or the order has moved on.
    """
    if not database.in_transaction():
        raise RuntimeError("a step of an order belongs into a transaction")
    before = order.status
    if not order.advance(new, **facts):
        return False
    History.add(order=order.id, before=before, after=new, who=who, why=why, at=order.updatetime)
    callbacks.enqueue(order)
    return True


def note(order: Order, who: str, why: str) -> None:
    """A line of history that says something and moves nothing."""
    History.add(order=order.id, before=order.status, after=order.status, who=who, why=why, at=business_clock.now())


def is_new(order: Order, why: str, most: int = 1, alike: str = "") -> bool:
    """Is that not in the history, nor `most` lines that begin with `alike`?"""
    mine = History.order == order
    if History.select().where(mine, History.why == why).exists():
        return False
    return not alike or History.select().where(mine, History.why.startswith(alike)).count() < most


def note_once(order: Order, who: str, why: str, *, most: int = 1, alike: str = "") -> bool:
    """`note`, where it `is_new`; False where it is not."""
    new = is_new(order, why, most, alike)
    if new:
        note(order, who, why)
    return new


def raise_exception(order: Order, kind: str, detail: str, report: Report | None = None) -> bool:
    """Record something that an operator must see, with what the channel reported.

    Where this very money is on record under a number of its own, but with another amount, and open, it is corrected.

    Returns: False where this very money (or silence) is on record already, and nothing changed.
    """
    said = {"amount": report.amount, "reference": report.reference} if report else {}
    row = PaymentException.insert(order=order, kind=kind, detail=detail, createtime=business_clock.now(), **said)
    if not row.on_conflict_ignore().as_rowcount().execute():
        return report is not None and report.reference != "" and _correct_amount(order, kind, report)
    note(order, "service", f"exception {kind}: {detail}")
    log.warning("order %s: exception %s: %s", order.order_no, kind, detail)
    return True


def _correct_amount(order: Order, kind: str, report: Report) -> bool:
    earlier = PaymentException.get_or_none(
        PaymentException.order == order,
        PaymentException.reference == report.reference,
        PaymentException.kind.in_(MONEY_IN if kind in MONEY_IN else (kind,)),
        PaymentException.amount != report.amount,
    )
    if earlier is None or not earlier.correct(report.amount):
        return False
    now, before = hundredths(report.amount), hundredths(earlier.amount)
    note(order, "service", f"exception {earlier.kind}: {now} under the same number, not {before}")
    return True


@transaction
def outcome_unknown(order: Order, detail: str, ask_again: int) -> None:
    """The channel gave no usable answer: visible from now until it does, and asked again at `ask_again`.

    Nothing, where the order moved on meanwhile, or became an operator's matter: what moved it was an answer.
    """
    now = Order.held(order.id)
    if now.status != order.status or (now.due_at is None and order.due_at is not None):
        return
    order.put_off(ask_again)
    opened = raise_exception(order, UNKNOWN_OUTCOME, detail)
    if not opened:
        silence = (PaymentException.order == order) & (PaymentException.kind == UNKNOWN_OUTCOME)
        # After an answer it begins anew.
        PaymentException.update(createtime=business_clock.now()).where(
            silence, PaymentException.resolution.is_null(False)
        ).execute()
        PaymentException.update(resolution=None, resolved_by=None, resolvedtime=None, detail=detail).where(
            silence
        ).execute()


def outcome_known(order: Order) -> None:
    """The channel answered again: the open exception about its silence, if any, is settled by that."""
    for exception in PaymentException.select().where(
        PaymentException.order == order,
        PaymentException.kind == UNKNOWN_OUTCOME,
        PaymentException.resolution.is_null(),
    ):
        exception.resolve(ANSWERED, "service")
