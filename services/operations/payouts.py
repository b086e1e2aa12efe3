"""Bulk actions on payouts: the same action on several withdrawals, after one confirmation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from models.db.base import database
from models.db.writer import transaction
from models.tables.order import CONFIRMED, SELL, Order
from runtime.money import grouped
from schemas.views import STATUS_TEXTS
from services.errors import N_, OperatorError
from services.operations import bulk, perform
from services.operations.actions import ACTS, Act, Effect, Given, possible
from services.operations.bulk import DONE, REQUESTED, Outcome
from services.security import audit, second_operator
from services.security.audit import Actor
from services.withdrawals import approve as withdrawals

VERBS = {Act.APPROVE: "approve payouts", Act.REJECT: "reject payouts", Act.MARK_PAID: "mark payouts paid"}
_WHY_NOT: dict[Act, Callable[[Order], str]] = {
    Act.APPROVE: withdrawals.why_not_approve,
    Act.REJECT: withdrawals.why_not_reject,
    Act.MARK_PAID: withdrawals.why_not_mark_sent,
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


def preview(act: Act, numbers: Iterable[str], who: str) -> list[Row]:
    """Return what the bulk action by this operator would do to each payout, oldest first."""
    return [_row(act, order, who) for order in Order.numbered(SELL, numbers)]


def _row(act: Act, order: Order, who: str) -> Row:
    action = next((each for each in possible(order) if act in (each.act, each.requested)), None)
    if action is None or (act is Act.MARK_PAID and order.status != CONFIRMED):
        if text := _WHY_NOT[act](order):
            return Row(order, refusal=OperatorError(text))
        status = STATUS_TEXTS[order.order_type, order.status]
        text = N_("Not possible in the current order status: %(status)s.")
        return Row(order, refusal=OperatorError(text, status=status))
    request = second_operator.waiting(order)
    if action.act is Act.SECOND_APPROVAL and request is not None and request.who == who:
        return Row(order, refusal=OperatorError(OWN_REQUEST))
    return Row(order, action)


def approve(shown: dict[str, str], actor: Actor) -> list[Outcome]:
    """Approve payouts, all in one transaction or none.

    Args:
        shown: each payout's seal as the operator saw it, by order number.

    Raises:
        OperatorError: a payout changed since; nothing is approved.
    """
    return audit.act(actor, VERBS[Act.APPROVE], "payouts", "", lambda: _approve(shown, actor), _summary(shown))


@transaction
def _approve(shown: dict[str, str], actor: Actor) -> list[Outcome]:
    found = Order.select(Order.id).where(Order.order_no.in_(list(shown)))
    list(database.for_update(found.order_by(Order.id)))
    rows = preview(Act.APPROVE, shown, actor.name)
    unchanged = {row.order.order_no for row in rows if row.action is not None and row.seal == shown[row.order.order_no]}
    if changed := [order_no for order_no in shown if order_no not in unchanged]:
        raise OperatorError(CHANGED, order_no=changed[0])
    return [_performed(row, Given(), actor) for row in rows]


def _performed(row: Row, given: Given, actor: Actor) -> Outcome:
    if row.action is None:
        raise row.refusal or OperatorError(perform.CHANGED)
    action, _ = perform.carry_out(row.order, row.action, row.action.seal, given, actor)
    return Outcome(row.order, REQUESTED if action.effect is Effect.REQUESTED else DONE)


def each(act: Act, shown: dict[str, str], given: dict[str, Given], actor: Actor) -> list[Outcome]:
    """Reject payouts or mark them as sent, each on its own; an interruption leaves the rest as it was.

    Args:
        shown: as for `approve`.
        given: the entered values by order number.
    """
    audit.record(actor, VERBS[act], "payouts", "", _summary(shown))
    one = _one if act is Act.REJECT else _one_at_once  # a rejection may check the status at the channel
    return bulk.each(
        Order.numbered(SELL, shown),
        lambda order: one(act, order, shown[order.order_no], given[order.order_no], actor),
    )


def _one(act: Act, order: Order, seal: str, given: Given, actor: Actor) -> Outcome:
    row = _row(act, order, actor.name)
    if row.action is not None and row.seal != seal:
        raise OperatorError(perform.CHANGED)
    return _performed(row, given, actor)


@transaction
def _locked(act: Act, order: Order, seal: str, given: Given, actor: Actor) -> Outcome:
    return _one(act, Order.for_update(order.id), seal, given, actor)


def _one_at_once(act: Act, order: Order, seal: str, given: Given, actor: Actor) -> Outcome:
    """Act on one payout, in one transaction with its audit entry; record a refusal."""
    try:
        return _locked(act, order, seal, given, actor)
    except OperatorError as refusal:
        audit.record_failure(actor, ACTS[act].verb, "order", order.order_no, refusal)
        raise


def _summary(shown: dict[str, str]) -> str:
    orders = Order.numbered(SELL, shown)
    return N_("%(count)s payouts, %(total)s") % {"count": len(orders), "total": grouped(bulk.total(orders))}
