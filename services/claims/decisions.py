"""Decide on many claims after one confirmation: each in a transaction of its own, once or not at all."""

from __future__ import annotations

from collections.abc import Iterable

from models.db.writer import transaction
from models.tables.order import BUY, PAID, PENDING, Order
from schemas.views import STATUS_TEXTS, hundredths
from services.channels.calls import driver_of
from services.console import bulk, perform
from services.console.available_actions import of_claim
from services.console.bulk import DONE, Outcome, Row
from services.console.perform import Given
from services.errors import N_, OperatorError
from services.orders import claims
from services.security import audit
from services.security.audit import Actor

RECEIVED, NOT_RECEIVED = KINDS = ("paid", "not-received")  # names of actions on one order
VERBS = {RECEIVED: "confirm claims", NOT_RECEIVED: "dismiss claims"}
_CASES = ("credit", "credit later", "cancel")  # of these actions; the others do not settle the deposit
_WAITING = {RECEIVED: (PENDING, PAID), NOT_RECEIVED: (PAID,)}


def find(numbers: Iterable[str]) -> list[Order]:
    """Return the deposits with these numbers, oldest first, with merchant and channel."""
    return bulk.find(BUY, numbers)


def preview(kind: str, orders: Iterable[Order]) -> list[Row]:
    """Return what the bulk action would do to each deposit."""
    return [_row(kind, order) for order in orders]


def _row(kind: str, order: Order) -> Row:
    if claims.money_in(order) is not None:
        return Row(order, refusal=OperatorError(N_("An exception of this order is open. Resolve it first.")))
    can_wait = order.status in _WAITING[kind] and driver_of(order.channel).by_hand
    found = of_claim(order) if can_wait else []
    action = next((each for each in found if each.name == kind and each.case in _CASES), None)
    if action is None:
        text = N_("Not possible in the current order status: %(status)s.")
        return Row(order, refusal=OperatorError(text, status=STATUS_TEXTS[order.order_type, order.status]))
    return Row(order, action)


def total(rows: Iterable[Row]) -> int:
    """Return the sum of the amounts of the deposits that can be decided on, in fen."""
    return bulk.total(row.order for row in rows if row.action)


def decide(kind: str, shown: dict[str, str], given: dict[str, Given], actor: Actor) -> list[Outcome]:
    """Confirm the claims or report them as not received, each on its own.

    An interruption leaves the remaining ones as they were; a repetition refuses those that are done.

    Args:
        shown: each action's seal as the operator saw it, by order number.
        given: the entered values by order number.
    """
    orders = find(shown)
    summary = f"{len(orders)} deposits, {hundredths(bulk.total(orders))}"
    audit.record(actor, VERBS[kind], "orders", "", summary)
    return bulk.each(
        orders, lambda order: _decided(kind, order, shown[order.order_no], given.get(order.order_no, Given()), actor)
    )


def _decided(kind: str, order: Order, seal: str, given: Given, actor: Actor) -> Outcome:
    """Decide on one deposit; record a refusal."""
    try:
        return _one(kind, order, seal, given, actor)
    except OperatorError as refusal:
        audit.record_failure(actor, perform.DOING[kind][0], "order", order.order_no, refusal)
        raise


@transaction
def _one(kind: str, order: Order, seal: str, given: Given, actor: Actor) -> Outcome:
    """Decide on one deposit, in one transaction with its audit entry. Raises OperatorError; nothing is changed."""
    row = _row(kind, Order.for_update(order.id))
    if row.refusal is not None:
        raise row.refusal
    assert row.action is not None
    perform.perform(row.order, row.action.key, seal, given, actor)
    return Outcome(order, DONE)
