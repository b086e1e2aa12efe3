"""Perform an action that an operator confirmed, exactly as shown, after writing an audit entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, NoReturn

from marshmallow import ValidationError

from models.tables.operator import PayoutRequest
from models.tables.order import Order, PaymentException
from schemas.fields import Sum
from schemas.views import STATUS_TEXTS
from services.callbacks import manual_redelivery
from services.console.available_actions import PAYING_OUT, Action, possible
from services.errors import N_, OperatorError
from services.orders import claims, due, exceptions, payouts
from services.security import audit, masking, second_operator
from services.security.audit import Actor

MOST_CHARACTERS = 200
CHANGED = N_("The order changed since this page was loaded. Reload and try again.")


@dataclass(frozen=True)
class Given:
    """The values that an operator typed for an action; an empty amount is the order's own."""

    reason: str = ""
    amount: str = ""
    reference: str = ""
    shared: str = ""
    in_file: str = ""

    def fen(self) -> int | None:
        """The amount in fen, None for the order's own; 0 for money that was taken back. Raises OperatorError."""
        try:
            return Sum(zero=True).deserialize(self.amount.strip()) if self.amount.strip() else None
        except ValidationError:
            raise OperatorError(N_("Enter an amount, such as 12.50.")) from None

    def text(self, name: str) -> str:
        """Return the reason or the reference. Raises OperatorError if it is too long or unreadable."""
        typed = str(getattr(self, name)).strip()
        if len(typed) > MOST_CHARACTERS or not typed.isprintable():
            text = N_("A reason or transaction ID has at most %(most)s characters, in one line.")
            raise OperatorError(text, most=str(MOST_CHARACTERS))
        return typed


def _mark(order: Order, action: Action, given: Given, who: str) -> bool:
    reference, shared, in_file = given.text("reference"), bool(given.shared), bool(given.in_file)
    return payouts.mark_paid(order, amount=given.fen(), reference=reference, who=who, shared=shared, in_file=in_file)


def _reject(order: Order, action: Action, given: Given, who: str) -> None:
    payouts.reject(order, given.text("reason"), who, bool(given.in_file))


def _return(order: Order, action: Action, given: Given, who: str) -> None:
    payouts.report_returned(order, reference=given.text("reference"), reason=given.text("reason"), who=who)


def _resolve(order: Order, action: Action, given: Given, who: str) -> PaymentException:
    assert action.exception is not None
    return exceptions.resolve(order, action.resolution, who, action.exception.id, action.exception.amount)


def _send_again(order: Order, action: Action, given: Given, who: str) -> int:
    assert action.callback is not None
    return manual_redelivery.redeliver(action.callback.webhook_id)


def _approve(order: Order, action: Action, given: Given, who: str) -> Any:
    def carry_out(name: str, requested: dict[str, str]) -> Any:
        _, act = DOING[name]
        return act(order, action, Given(**requested), who)

    name = who.removeprefix(Actor("").who)
    return second_operator.approve(order, int(action.state), name, carry_out)


def _request(order: Order, action: Action, given: Given, actor: Actor) -> PayoutRequest:
    given.text("reference")  # refused now and not at the approval
    payouts.unless_in_file(order, bool(given.in_file))
    return second_operator.request(order, action.name, asdict(given), actor.name)


# By an action's name: its verb in the audit log, and the function that performs it.
DOING: dict[str, tuple[str, Callable[[Order, Action, Given, str], Any]]] = {
    "accept": ("accept order", lambda order, _, given, who: payouts.accept(order, who)),
    "reject": ("reject order", _reject),
    "paid": ("mark paid", _mark),
    "returned": ("report payout returned", _return),
    "not-received": (
        "report not received",
        lambda order, _, given, who: claims.dismiss(order, given.text("reason"), who),
    ),
    "ask": ("ask channel", lambda order, _, given, who: due.ask_now(order, who)),
    "settle": ("settle exception", _resolve),
    "redeliver": ("redeliver callback", _send_again),
    "redeliver-all": ("redeliver callbacks", lambda order, *_: manual_redelivery.redeliver_of(order)),
    "approve": ("approve payout", _approve),
    "withdraw-request": (
        "withdraw payout request",
        lambda order, action, *_: second_operator.withdraw(order, int(action.state)),
    ),
}


def _recorded(given: Given, name: str) -> str:
    """Return the typed value for the audit log; *** if it is refused, because it may be a password."""
    try:
        return given.amount if name == "amount" and given.fen() else given.text(name)
    except OperatorError:
        return masking.HIDDEN


def _detail(action: Action, given: Given) -> str:
    amount, reference, reason = (_recorded(given, name) for name in ("amount", "reference", "reason"))
    told: dict[str, list[Any]] = {
        "reject": [reason, given.in_file and "in a bank file"],
        "not-received": [reason],
        "returned": [reference, reason],
        "paid": [amount, reference, given.shared and "shared reference", given.in_file and "in a bank file"],
        "accept": [action.case == "request" and "accept"],
        "approve": [action.case],
        "settle": [action.exception and f"{action.exception.id} {action.exception.kind}", action.resolution],
    }
    return " ".join(str(part).strip()[:MOST_CHARACTERS] for part in told.get(action.name, []) if part)


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
    if action is None:
        return _moved_on(order, key, actor)
    return carry_out(order, action, seal, given, actor)


def carry_out(order: Order, action: Action, seal: str, given: Given, actor: Actor) -> tuple[Action, Any]:
    """Perform one of the order's possible actions, as `perform` does."""
    is_requested = _is_requested(order, action, given)
    verb, act = DOING[action.name]

    def do() -> tuple[Action, Any]:
        if action.seal != seal:
            raise OperatorError(CHANGED)
        if is_requested:
            return replace(action, case="request"), _request(order, action, given, actor)
        return action, act(order, action, given, actor.who)

    about, of = ("callback", action.callback.webhook_id) if action.callback else ("order", order.order_no)
    return audit.act(actor, "request payout" if is_requested else verb, about, of, do, _detail(action, given))


def payout(order: Order, key: str, given: Given) -> int:
    """Return the amount in fen that the action with this key pays out, or leads to paying out; 0 for other actions."""
    if order.is_buy or key not in (*PAYING_OUT, "approve"):
        return 0
    request = second_operator.waiting(order)
    if key == "approve" and request is not None:
        given = Given(**request.asked)
    amount: int = order.amount
    try:
        return max(amount, given.fen() or 0)
    except OperatorError:  # the action itself reports the error in the amount
        return amount


def _is_requested(order: Order, action: Action, given: Given) -> bool:
    """Return whether it is only requested, because another operator must approve it. So is an amount above the
    order's."""
    if action.name not in PAYING_OUT:
        return False
    try:
        return second_operator.is_needed(order, given.fen())
    except OperatorError:  # the action itself reports the error in the amount
        return action.case == "request"


def _moved_on(order: Order, key: str, actor: Actor) -> NoReturn:
    why = OperatorError(
        N_("Not possible in the current order status: %(status)s."),
        status=STATUS_TEXTS[order.order_type, order.status],
    )
    name = max((name for name in DOING if key.startswith(name)), key=len, default="")
    verb = DOING[name][0] if name else "act"
    audit.record_failure(actor, verb, "order", order.order_no, why)
    raise why
