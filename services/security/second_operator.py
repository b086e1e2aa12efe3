"""Payouts above an amount need the approval of a second operator (`second_operator_above`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import TypeVar

from models.db.writer import transaction
from models.tables.operator import AuditEntry, PayoutRequest
from models.tables.order import Order
from runtime import clock
from runtime.state import current
from services.errors import N_, OperatorError
from services.security import audit

T = TypeVar("T")

ALONE = N_("from the command line, without a second operator")


def is_above(fen: int) -> bool:
    """Return whether a payout of this amount in fen needs two operators."""
    return 0 < current().settings.second_operator_above < fen


def is_needed(order: Order, amount: int | None = None) -> bool:
    """Return whether the payout of this order, or of this amount in fen, needs two operators."""
    return not order.is_buy and (is_above(order.amount) or is_above(amount or 0))


def has_approved(order: Order) -> bool:
    """Return whether a second operator approved this payout. Only the audit log keeps it, also of failed approvals."""
    mine = (AuditEntry.about == "order") & (AuditEntry.key == order.order_no) & (AuditEntry.action == "approve payout")
    return bool(AuditEntry.select().where(mine, ~AuditEntry.detail.startswith(audit.NOT_DONE)).exists())


def waiting(order: Order) -> PayoutRequest | None:
    """Return the valid request that another operator must approve, or None."""
    return PayoutRequest.get_or_none(PayoutRequest.order == order.id, PayoutRequest.status == order.status)


def requested(orders: Collection[Order]) -> set[int]:
    """Return the ids of those of these orders with a valid request that another operator must approve."""
    mine = PayoutRequest.order.in_([order.id for order in orders])
    rows = set(PayoutRequest.select(PayoutRequest.order, PayoutRequest.status).where(mine).tuples())
    return {order.id for order in orders if (order.id, order.status) in rows}


@transaction
def request(order: Order, action: str, given: dict[str, str], who: str) -> PayoutRequest:
    """Record an operator's request for `action`; nothing is paid. Raises OperatorError if there is a request."""
    order = Order.for_update(order.id)
    earlier = waiting(order)
    if earlier is not None:
        raise OperatorError(
            N_("%(who)s has already requested this. Another operator must approve it."), who=earlier.who
        )
    PayoutRequest.delete().where(PayoutRequest.order == order.id).execute()  # only void requests remain
    facts = {"status": order.status, "who": who, "at": clock.now()}
    return PayoutRequest.create(order=order.id, action=action, given=json.dumps(given), **facts)


def _take(order: Order, request_id: int) -> PayoutRequest:
    """Delete the request as shown, in the caller's transaction. Raises OperatorError if it is void or was decided."""
    row = waiting(Order.for_update(order.id))
    if row is None or row.id != request_id:
        raise OperatorError(N_("The request is no longer valid: the order changed or the request was already decided."))
    row.delete_instance()
    return row


@transaction
def approve(order: Order, request_id: int, who: str, carry_out: Callable[[str, dict[str, str]], T]) -> T:
    """Delete a request and perform its action, in one transaction.

    Args:
        carry_out: takes the action and its parameters; it must not call a channel.

    Raises:
        OperatorError: `who` made the request, it is void, or the action is refused.
    """
    row = _take(order, request_id)
    if row.who == who:
        raise OperatorError(N_("You requested this payout, so another operator must approve it."))
    return carry_out(row.action, row.asked)


@transaction
def withdraw(order: Order, request_id: int) -> None:
    """Delete a request; nothing is paid. Raises OperatorError if it is void or does not exist."""
    _take(order, request_id)


@transaction
def alone(order: Order, verb: str, act: Callable[[], T], amount: int | None = None) -> T:
    """Perform an action of the command line, which needs no second operator, and record that."""
    if is_needed(order, amount):
        PayoutRequest.delete().where(PayoutRequest.order == order.id).execute()
        audit.record(audit.HERE, verb, "order", order.order_no, ALONE)
    return act()
