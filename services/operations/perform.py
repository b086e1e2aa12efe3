"""Perform an action that an operator confirmed, exactly as shown, after writing an audit entry."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from models.tables.operator import PayoutRequest
from models.tables.order import SELL, Order
from runtime.money import grouped
from schemas.views import STATUS_TEXTS
from services.errors import N_, OperatorError
from services.operations.actions import ACTS, MOST_CHARACTERS, Act, Action, Effect, Given, possible
from services.operations.refunds import terms
from services.orders.resolution import Case
from services.refunds.approve import total_today
from services.security import audit, masking, second_operator
from services.security.audit import Actor
from services.withdrawals import approve

# What a second operator approves.
REQUESTED = {Act.APPROVE: N_("to approve it"), Act.MARK_PAID: N_("to mark it as paid out")}
CHANGED = N_("The order changed since this page was loaded. Reload and try again.")


def perform(order: Order, key: str, seal: str, given: Given, actor: Actor) -> tuple[Action, Any]:
    """Perform an action that an operator confirmed, unless it would do anything else by now; return it and its result.

    It runs outside any transaction, because it may call the channel. The audit log has the action before it is
    performed, and the reason if it fails.

    Args:
        key, seal: of the action as the operator saw it.

    Raises:
        OperatorError: the order changed since, or the action is refused.
    """
    action = next((each for each in possible(order) if each.key == key), None)
    if action is not None:
        return carry_out(order, action, seal, given, actor)
    status = STATUS_TEXTS[order.order_type, order.status]
    why = OperatorError(N_("Not possible in the current order status: %(status)s."), status=status)
    act = max((act for act in Act if key.startswith(act)), key=len, default=None)
    audit.record_failure(actor, ACTS[act].verb if act else "act", "order", order.order_no, why)
    raise why


def carry_out(order: Order, action: Action, seal: str, given: Given, actor: Actor) -> tuple[Action, Any]:
    """Perform one of the order's possible actions, as `perform` does.

    Bulk actions may call it in their transaction. Then they record a refusal after the rollback.
    """
    is_requested = _is_requested(order, action, given)

    def do() -> tuple[Action, Any]:
        if action.seal != seal:
            raise OperatorError(CHANGED)
        if is_requested:
            return replace(action, effect=Effect.REQUESTED), _request(order, action, given, actor)
        return action, ACTS[action.act].do(order, action, given, actor)

    about, of = "order", order.order_no
    if action.callback:
        about, of = "callback", action.callback.webhook_id
    elif action.refund:
        about, of = "refund", action.refund.refund_no
    verb = "request payout" if is_requested else ACTS[action.act].verb
    return audit.act(actor, verb, about, of, do, _detail(action, given))


def _is_requested(order: Order, action: Action, given: Given) -> bool:
    """Return whether it is only requested, because another operator must approve it. So is an amount above the
    order's."""
    if not ACTS[action.act].pays_out:
        return False
    try:
        return second_operator.is_needed(order, given.fen())
    except OperatorError:  # the action itself reports the error in the amount
        return action.effect is Effect.REQUESTED


def _request(order: Order, action: Action, given: Given, actor: Actor) -> PayoutRequest:
    given.text("reference")  # refused now and not at the approval
    approve.unless_in_file(order, bool(given.in_file))
    return second_operator.request(order, action.act, asdict(given), actor.name)


def _detail(action: Action, given: Given) -> str:
    """Return the typed values for the audit log; *** for one that is refused, because it may be a password."""
    recorded = {}
    for name in ("amount", "reference", "date", "reason"):
        try:
            fen = given.fen() if name == "amount" else None
            recorded[name] = grouped(fen) if fen else given.text(name)
        except OperatorError:
            recorded[name] = masking.HIDDEN
    in_file, shared = given.in_file and N_("in a bank file"), given.shared and N_("shared reference")
    platform, again = given.platform and N_("platform pays"), given.again and N_("same amount again")
    about: Any = action.exception
    exception = about and N_("exception %(number)s: %(kind)s") % {"number": about.id, "kind": about.kind}
    resolution = action.resolution and N_("resolution: %(resolution)s") % {"resolution": action.resolution}
    told: dict[Act, list[Any]] = {
        Act.REJECT: [recorded["reason"], in_file],
        Act.NOT_RECEIVED: [recorded["reason"]],
        Act.REPORT_RETURNED: [recorded["reference"], recorded["date"], recorded["reason"], shared],
        Act.MARK_PAID: [recorded["amount"], recorded["reference"], shared, in_file],
        Act.APPROVE: [action.effect is Effect.REQUESTED and N_("to approve it")],
        Act.SECOND_APPROVAL: [action.requested and REQUESTED[action.requested]],
        Act.REFUND: [recorded["amount"], recorded["reason"], platform, again],
        Act.MARK_REFUNDED: [recorded["reference"], recorded["date"], shared],
        Act.REJECT_REFUND: [recorded["reason"]],
        Act.RESOLVE: [
            *(exception, resolution),
            *((recorded["reference"], recorded["date"], shared) if "transfer" in action.fields else ()),
        ],
    }
    return "; ".join(str(part).strip()[:MOST_CHARACTERS] for part in told.get(action.act, []) if part)


def refund(order: Order, key: str, given: Given, who: str) -> int:
    """Return the amount in fen that the action with this key refunds, or leads to refunding; 0 for other actions.

    The refunds of the order and those that `who` requested today count, too.
    """
    action = next((each for each in possible(order) if each.key == key), None) if order.is_buy else None
    if action is None:
        return 0
    today = total_today(order, who)
    if action.act in (Act.APPROVE_REFUND, Act.MARK_REFUNDED) and action.refund is not None:
        return max(int(action.refund.amount), today)
    if action.effect is Case.SEND_BACK_BY_CHANNEL:
        return action.received + today
    if action.act is not Act.REFUND:
        return 0
    try:
        return terms(order, given.fen(), who, by_platform=bool(given.platform)).quote.amount + today
    except OperatorError:  # the action itself reports the error in the amount
        return today


def payout(order: Order, key: str, given: Given) -> int:
    """Return the amount in fen that the action with this key pays out, or leads to paying out; 0 for other actions."""
    if order.order_type != SELL or key not in (Act.APPROVE, Act.MARK_PAID, Act.SECOND_APPROVAL, Act.CHANGE_ACCOUNT):
        return 0
    request = second_operator.waiting(order)
    if key == Act.SECOND_APPROVAL and request is not None:
        given = Given(**request.asked)
    amount: int = order.amount
    try:
        return max(amount, given.fen() or 0)
    except OperatorError:  # the action itself reports the error in the amount
        return amount
