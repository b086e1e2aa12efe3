"""Decide on many claims after one confirmation: each in a transaction of its own, once or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from models.db.writer import transaction
from models.tables.order import BUY, PAID, PENDING, Order
from runtime.money import grouped
from schemas.views import STATUS_TEXTS
from services.channels.calls import driver_of
from services.deposits import claims
from services.errors import N_, OperatorError
from services.operations import bulk, perform
from services.operations.actions import ACTS, Act, Effect, Given
from services.operations.bulk import DONE, Outcome, Row
from services.security import audit
from services.security.audit import Actor
from services.statements import claims as matching

RECEIVED, NOT_RECEIVED = KINDS = (Act.MARK_PAID, Act.NOT_RECEIVED)
VERBS = {RECEIVED: "confirm claims", NOT_RECEIVED: "dismiss claims"}
_SETTLES = (Effect.CREDITED, Effect.CREDITED_LATER, Effect.AT_ONCE)  # other effects do not settle the deposit
MAY_BE_RECORDED = N_(
    "An order of this amount was confirmed without or with a similar transaction ID after the upload. Upload the file "
    "again."
)
_WAITING = {RECEIVED: (PENDING, PAID), NOT_RECEIVED: (PAID,)}


@dataclass(frozen=True)
class FromStatement(Given):
    """The values of a payment in a statement that was uploaded at this Unix time.

    `together` are the numbers of all orders that are confirmed by it.
    """

    uploaded: int = 0
    together: frozenset[str] = frozenset()


def preview(kind: Act, orders: Iterable[Order]) -> list[Row]:
    """Return what the bulk action would do to each deposit."""
    return [_row(kind, order) for order in orders]


def _row(kind: Act, order: Order) -> Row:
    if claims.money_in(order) is not None:
        return Row(order, refusal=OperatorError(N_("An exception of this order is open. Resolve it first.")))
    can_wait = order.status in _WAITING[kind] and driver_of(order.channel).by_hand
    found = list(ACTS[kind].possible(order)) if can_wait else []
    action = next((each for each in found if each.effect in _SETTLES), None)
    if action is None:
        text = N_("Not possible in the current order status: %(status)s.")
        return Row(order, refusal=OperatorError(text, status=STATUS_TEXTS[order.order_type, order.status]))
    return Row(order, action)


def decide(kind: Act, shown: dict[str, str], given: dict[str, Given], actor: Actor) -> list[Outcome]:
    """Confirm the claims or report them as not received, each on its own.

    An interruption leaves the remaining ones as they were; a repetition refuses those that are done.

    Args:
        shown: each action's seal as the operator saw it, by order number.
        given: the entered values by order number.
    """
    orders = Order.numbered(BUY, shown)
    summary = N_("%(count)s deposits, %(total)s") % {"count": len(orders), "total": grouped(bulk.total(orders))}
    audit.record(actor, VERBS[kind], "orders", "", summary)
    return bulk.each(orders, lambda order: _decided(kind, order, shown[order.order_no], given[order.order_no], actor))


def _decided(kind: Act, order: Order, seal: str, given: Given, actor: Actor) -> Outcome:
    """Decide on one deposit; record a refusal."""
    try:
        return _one(kind, order, seal, given, actor)
    except OperatorError as refusal:
        audit.record_failure(actor, ACTS[kind].verb, "order", order.order_no, refusal)
        raise


@transaction
def _one(kind: Act, order: Order, seal: str, given: Given, actor: Actor) -> Outcome:
    """Decide on one deposit, in one transaction with its audit entry. Raises OperatorError; nothing is changed."""
    row = _row(kind, Order.for_update(order.id))
    if row.refusal is not None:
        raise row.refusal
    assert row.action is not None
    if isinstance(given, FromStatement):
        claims.take_turns(row.order, row.order.amount)
        if matching.may_be_recorded_since(row.order, given.reference, given.uploaded, given.together):
            raise OperatorError(MAY_BE_RECORDED)
    perform.carry_out(row.order, row.action, seal, given, actor)
    return Outcome(order, DONE)
