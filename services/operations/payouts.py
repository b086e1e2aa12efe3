"""Bulk actions on payouts: the same action on several withdrawals, after one confirmation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from models.db.base import database
from models.db.writer import transaction
from models.tables.order import CONFIRMED, SELL, Order
from runtime.money import hundredths
from schemas.views import STATUS_TEXTS
from services.errors import N_, OperatorError
from services.operations import bulk, perform
from services.operations.actions import Act, Effect, Given, possible
from services.operations.bulk import DONE, REQUESTED, Outcome
from services.security import audit, second_operator
from services.security.audit import Actor
from services.withdrawals import approve as withdrawals

APPROVE, REJECT, SENT = KINDS = ("approve", "reject", "sent")
ACTS = {APPROVE: Act.APPROVE, REJECT: Act.REJECT, SENT: Act.MARK_PAID}  # by kind, the act on one payout
VERBS = {APPROVE: "approve payouts", REJECT: "reject payouts", SENT: "mark payouts paid"}
_WHY_NOT: dict[str, Callable[[Order], str]] = {
    APPROVE: withdrawals.why_not_approve,
    REJECT: withdrawals.why_not_reject,
    SENT: withdrawals.why_not_mark_sent,
}
OWN_REQUEST = N_("You requested this payout, so another operator must approve it.")
CHANGED = N_("Order %(order_no)s changed since this page was loaded, so no payout was approved. Check and try again.")


@dataclass(frozen=True)
class Row(bulk.Row):
    """A payout of a bulk action."""

    @property
    def seal(self) -> str:
        """A hash that changes if the payout changes or the action would do anything else."""
        order = self.order
        facts = (order.order_no, order.status, order.updatetime, order.amount, order.channel_id, order.account_id)
        return hashlib.sha256(repr((facts, self.action and self.action.seal)).encode()).hexdigest()[:16]

    @property
    def is_requested(self) -> bool:
        """Return whether another operator must approve it afterwards."""
        return self.action is not None and self.action.effect is Effect.REQUESTED


def preview(kind: str, numbers: Iterable[str], who: str) -> list[Row]:
    """Return what the bulk action by this operator would do to each payout, oldest first."""
    return [_row(kind, order, who) for order in Order.numbered(SELL, numbers)]


def _row(kind: str, order: Order, who: str) -> Row:
    action = next((each for each in possible(order) if ACTS[kind] in (each.act, each.requested)), None)
    if action is None or (kind == SENT and order.status != CONFIRMED):
        return Row(order, refusal=_why_not(kind, order))
    request = second_operator.waiting(order)
    if action.act is Act.SECOND_APPROVAL and request is not None and request.who == who:
        return Row(order, refusal=OperatorError(OWN_REQUEST))
    return Row(order, action)


def _why_not(kind: str, order: Order) -> OperatorError:
    if text := _WHY_NOT[kind](order):
        return OperatorError(text)
    status = STATUS_TEXTS[order.order_type, order.status]
    return OperatorError(N_("Not possible in the current order status: %(status)s."), status=status)


def approve(shown: dict[str, str], actor: Actor) -> list[Outcome]:
    """Approve payouts, all in one transaction or none.

    Args:
        shown: each payout's seal as the operator saw it, by order number.

    Raises:
        OperatorError: a payout changed since; nothing is approved.
    """
    return audit.act(actor, VERBS[APPROVE], "payouts", "", lambda: _approve(shown, actor), _summary(shown))


@transaction
def _approve(shown: dict[str, str], actor: Actor) -> list[Outcome]:
    found = Order.select(Order.id).where(Order.order_no.in_(list(shown)))
    list(database.for_update(found.order_by(Order.id)))
    rows = preview(APPROVE, shown, actor.name)
    changed = next((row.order.order_no for row in rows if not _is_as_shown(row, shown)), "")
    missing = shown.keys() - {row.order.order_no for row in rows}
    if changed or missing:
        raise OperatorError(CHANGED, order_no=changed or min(missing))
    return [_performed(row, Given(), actor) for row in rows]


def _is_as_shown(row: Row, shown: dict[str, str]) -> bool:
    return row.action is not None and row.seal == shown[row.order.order_no]


def _performed(row: Row, given: Given, actor: Actor) -> Outcome:
    if row.action is None:
        raise row.refusal or OperatorError(perform.CHANGED)
    action, _ = perform.carry_out(row.order, row.action, row.action.seal, given, actor)
    return Outcome(row.order, REQUESTED if action.effect is Effect.REQUESTED else DONE)


def each(kind: str, shown: dict[str, str], given: dict[str, Given], actor: Actor) -> list[Outcome]:
    """Reject payouts or mark them as sent, each on its own; an interruption leaves the rest as it was.

    Args:
        shown: as for `approve`.
        given: the entered values by order number.
    """
    audit.record(actor, VERBS[kind], "payouts", "", _summary(shown))
    return bulk.each(
        Order.numbered(SELL, shown),
        lambda order: _ONE[kind](order, shown[order.order_no], given[order.order_no], actor),
    )


def _one(kind: str, order: Order, seal: str, given: Given, actor: Actor) -> Outcome:
    row = _row(kind, order, actor.name)
    if row.action is not None and row.seal != seal:
        raise OperatorError(perform.CHANGED)
    return _performed(row, given, actor)


def _reject(order: Order, seal: str, given: Given, actor: Actor) -> Outcome:
    """Reject one payout, outside any transaction, because it may check the status at the channel."""
    return _one(REJECT, order, seal, given, actor)


@transaction
def _locked(order: Order, seal: str, given: Given, actor: Actor) -> Outcome:
    return _one(SENT, Order.for_update(order.id), seal, given, actor)


def _mark(order: Order, seal: str, given: Given, actor: Actor) -> Outcome:
    """Mark one payout as sent in one transaction with its audit entry; record a refusal."""
    try:
        return _locked(order, seal, given, actor)
    except OperatorError as refusal:
        audit.record_failure(actor, "mark paid", "order", order.order_no, refusal)
        raise


_ONE: dict[str, Callable[[Order, str, Given, Actor], Outcome]] = {REJECT: _reject, SENT: _mark}


def _summary(shown: dict[str, str]) -> str:
    orders = Order.numbered(SELL, shown)
    return f"{len(orders)} payouts, {hundredths(bulk.total(orders))}"


def subtotals(orders: list[Order], of: str) -> list[tuple[Any, int, int]]:
    """Return (row, count, fen) for each `merchant` or `channel` of the orders, the largest amount first."""
    found: dict[int, tuple[Any, int, int]] = {}
    for order in orders:
        row = getattr(order, of)
        _, count, fen = found.get(row.id, (row, 0, 0))
        found[row.id] = (row, count + 1, fen + order.amount)
    return sorted(found.values(), key=lambda each: -each[2])
