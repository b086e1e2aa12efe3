"""The actions that operators take on orders: one table of what each is, when it is possible, and what it does."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from marshmallow import ValidationError

from models.tables.ledger import AVAILABLE
from models.tables.order import BUY, CANCELLED, COMPLETED, CONFIRMED, PAID, PENDING, SELL, Order, PaymentException
from models.tables.outbox import Callback
from models.tables.payout_batch import PayoutBatchLine
from models.tables.refund import Refund, refunds_of
from schemas.fields import Sum
from services import kinds
from services.callbacks import delivery, previews
from services.callbacks.outbox import Outgoing
from services.channels.calls import driver_of
from services.deposits import claims, money
from services.errors import N_, OperatorError
from services.ledger import postings
from services.ledger.postings import Lines
from services.operations import refunds, resolve
from services.orders.lifecycle import exceptions_of
from services.orders.reasons import Why, because
from services.orders.resolution import Case
from services.orders.returned import UNKNOWN, Returned, returned
from services.refunds import approve as refund_approval
from services.refunds import send as send_refund
from services.security import second_operator
from services.security.audit import Actor
from services.withdrawals import approve, change_account, send

MOST_CHARACTERS = 200


class Act(StrEnum):
    """Everything that an operator can do with an order; the values are keys in forms, and the commands' names."""

    APPROVE = "approve"
    REJECT = "reject"
    MARK_PAID = "paid"
    CHANGE_ACCOUNT = "change-account"
    REPORT_RETURNED = "returned"
    NOT_RECEIVED = "not-received"
    CHECK = "check"
    RESOLVE = "resolve"
    REDELIVER = "redeliver"
    REDELIVER_ALL = "redeliver-all"
    SECOND_APPROVAL = "second-approval"
    WITHDRAW_REQUEST = "withdraw-request"
    REFUND = "refund"
    APPROVE_REFUND = "approve-refund"
    MARK_REFUNDED = "mark-refunded"
    CHECK_REFUND = "check-refund"
    REJECT_REFUND = "reject-refund"


class Effect(StrEnum):
    """The effect of an action, if its act can have several. Resolutions have those of `Case`."""

    PAID_BY_HAND = "paid_by_hand"  # an approved withdrawal: by the operator
    PAID_BY_CHANNEL = "paid_by_channel"
    REQUESTED = "requested"  # another operator must approve it
    AT_ONCE = "at_once"
    AFTER_CHECK = "after_check"  # the status is checked first, which may prevent it
    CREDITED = "credited"
    CREDITED_LATER = "credited_later"  # after the settlement delay
    PAID_AGAIN = "paid_again"
    PAID_LATE = "paid_late"  # the deposit is cancelled
    SPENT = "spent"
    SENT_AGAIN = "sent_again"
    SENT_AFTER_END = "sent_after_end"  # the withdrawal is cancelled


@dataclass(frozen=True)
class Given:
    """The values that an operator typed for an action; an empty amount is the order's own."""

    reason: str = ""
    amount: str = ""
    reference: str = ""
    shared: str = ""
    in_file: str = ""
    platform: str = ""
    again: str = ""
    date: str = ""

    def fen(self) -> int | None:
        """The amount in fen, None for the order's own; 0 for money that was taken back. Raises OperatorError."""
        try:
            return Sum(zero=True).deserialize(self.amount.strip()) if self.amount.strip() else None
        except ValidationError:
            raise OperatorError(N_("Enter an amount, such as 12.50.")) from None

    def text(self, name: str) -> str:
        """Return the reason, the reference or the date. Raises OperatorError if it is too long or unreadable."""
        typed = str(getattr(self, name)).strip()
        if len(typed) > MOST_CHARACTERS or not typed.isprintable():
            text = N_("A reason or transaction ID has at most %(most)s characters, in one line.")
            raise OperatorError(text, most=str(MOST_CHARACTERS))
        return typed


@dataclass(frozen=True)
class Action:
    """One possible action on an order.

    `sends` are the callbacks that it causes, if they are shown first. `lines` are its postings (fen by account). With
    `asks`, the status is checked first and may prevent the action. `fields` are the values that the operator enters.
    `batch` is the number of a bank file by which the bank may still pay, or 0. `requested` is the act that a second
    approval carries out. `refund` is the one that it decides on. With `is_only_proof`, the field `transfer` needs the
    number of the transfer that returned the money, because nothing else proves it.
    """

    act: Act
    effect: Effect | Case = Effect.AT_ONCE
    lines: Lines = field(default_factory=dict)
    asks: bool = False
    fields: tuple[str, ...] = ()
    exception: PaymentException | None = None
    resolution: str = ""
    callback: Callback | None = None
    state: str = ""
    sends: tuple[Outgoing, ...] = ()
    batch: int = 0
    requested: Act | None = None
    refund: Refund | None = None
    is_only_proof: bool = False

    @property
    def key(self) -> str:
        """The action's key among those of its order."""
        of = self.exception or self.callback or self.refund
        return "-".join(str(part) for part in (self.act, of.id if of else "", self.resolution) if part)

    @property
    def seal(self) -> str:
        """A hash that changes if the action would now do anything else."""
        exception = (self.exception.kind, self.exception.amount) if self.exception else ()
        does = (self.key, self.effect, self.requested, sorted(self.lines.items()), self.asks)
        return hashlib.sha256(repr((*does, exception, self.state, self.batch)).encode()).hexdigest()[:16]

    def moves(self, kind: str) -> int:
        """The change of accounts of this kind, in fen."""
        return sum(fen for (account, _), fen in self.lines.items() if account == kind)

    @property
    def decides(self) -> bool:
        """Whether it decides about money that was received, or that a payer claims to have sent."""
        return self.exception is not None or self.act is Act.NOT_RECEIVED

    @property
    def received(self) -> int:
        """The received amount that the decision is about, in fen; 0 if there is none, or it is unknown."""
        return int(self.exception.amount) if self.exception else 0

    @property
    def available(self) -> int:
        """The change of the merchant's available balance, in fen."""
        return self.moves(AVAILABLE)


# --- when an action is possible, and what it would do


def _approve(order: Order) -> Iterator[Action]:
    if not approve.why_not_approve(order):
        by_hand = driver_of(order.channel).by_hand
        yield Action(Act.APPROVE, Effect.PAID_BY_HAND if by_hand else Effect.PAID_BY_CHANNEL)


def _reject(order: Order) -> Iterator[Action]:
    if not approve.why_not_reject(order):
        asks = send.may_be_at_channel(order)
        effect, lines = Effect.AFTER_CHECK if asks else Effect.AT_ONCE, postings.release(order)
        yield Action(Act.REJECT, effect, lines, asks, ("reason",), state=order.status)


# The effect of an operator's confirmation that the order's amount was transferred.
_TRANSFERRED = {
    (BUY, PENDING): Effect.CREDITED,
    (BUY, PAID): Effect.CREDITED,
    (BUY, CONFIRMED): Effect.PAID_AGAIN,
    (BUY, COMPLETED): Effect.PAID_AGAIN,
    (BUY, CANCELLED): Effect.PAID_LATE,
    (SELL, CONFIRMED): Effect.SPENT,
    (SELL, COMPLETED): Effect.SENT_AGAIN,
    (SELL, CANCELLED): Effect.SENT_AFTER_END,
}


def _mark_paid(order: Order) -> Iterator[Action]:
    if kinds.of(order).why_not_mark_paid(order):
        return
    effect, lines = _TRANSFERRED[order.order_type, order.status], {}
    steps: tuple[str, ...] = ()
    if order.order_type == BUY and money.credited_by_hand(exceptions_of(order)):
        effect = Effect.PAID_AGAIN
    if effect is Effect.SPENT:
        lines = postings.spend(order)
    elif effect is Effect.CREDITED and order.channel.settlement_days:
        effect, steps = Effect.CREDITED_LATER, (PAID, CONFIRMED)
    elif effect is Effect.CREDITED:
        lines, steps = postings.credit(order), (PAID, CONFIRMED, COMPLETED)
    sends = previews.of_steps(order, [step for step in steps if step != order.status])
    yield Action(Act.MARK_PAID, effect, lines, fields=("amount", "reference"), sends=sends)


def _change_account(order: Order) -> Iterator[Action]:
    account = change_account.present(order) if not change_account.why_not(order) else None
    if account is not None:
        yield Action(Act.CHANGE_ACCOUNT, state=str(account.id))


def _report_returned(order: Order) -> Iterator[Action]:
    if not approve.why_not_return(order):
        yield Action(Act.REPORT_RETURNED, fields=("transfer", "note"), is_only_proof=True, state=order.status)


def _not_received(order: Order) -> Iterator[Action]:
    if not claims.why_not_dismiss(order):
        asks, sends = driver_of(order.channel).checks_status, previews.of_steps(order, (CANCELLED,))
        effect = Effect.AFTER_CHECK if asks else Effect.AT_ONCE
        yield Action(Act.NOT_RECEIVED, effect, asks=asks, fields=("note",), state=order.status, sends=sends)


def _check(order: Order) -> Iterator[Action]:
    if not kinds.why_not_ask(order):
        yield Action(Act.CHECK, asks=True)


def _resolve(order: Order) -> Iterator[Action]:
    for exception in resolve.resolvable(order):
        for rule in resolve.possible(order, exception):
            yield Action(
                Act.RESOLVE,
                rule.case,
                rule.lines(order, exception),
                asks=kinds.of(order).asks_first(order, exception),
                fields=("transfer",) if rule.sent_back else (),
                is_only_proof=rule.sent_back and driver_of(exception.channel).by_hand,
                exception=exception,
                resolution=rule.resolution,
                state=order.status,
                sends=resolve.callbacks_of(rule, order, exception),
            )


def of_callback(callback: Callback) -> list[Action]:
    """Return the actions that an operator may perform on a callback now."""
    if delivery.why_unsent(callback):
        return []
    state = f"{callback.state} {callback.attempts} {callback.due_at}"
    return [Action(Act.REDELIVER, callback=callback, state=state)]


def _redeliver(order: Order) -> Iterator[Action]:
    every = Callback.select().where(Callback.order == order).order_by(Callback.id)
    again = [action for callback in every for action in of_callback(callback)]
    yield from again
    if len(again) > 1:
        yield Action(Act.REDELIVER_ALL, state=" ".join(action.state for action in again))


def _withdraw_request(order: Order) -> Iterator[Action]:
    if request := second_operator.waiting(order):
        yield Action(Act.WITHDRAW_REQUEST, state=str(request.id))


def _refund(order: Order) -> Iterator[Action]:
    if not refunds.why_not_refund(order)[0]:
        fields = ("amount", "reason", "platform", "again")
        yield Action(Act.REFUND, fields=fields, state=refunds.state_of(order))


def of_refund(refund: Refund) -> Iterator[Action]:
    """Yield the actions that an operator may perform on a refund now. `refund.order` is its order."""
    by_hand = driver_of(refund.channel).by_hand
    state = f"{refund.status} {refund.approved_by} {refund.amount}"

    def lines(status: str) -> Lines:
        return postings.refund(refund, refund.order, refund.status, status)

    if not refund_approval.why_not_approve(refund):
        effect = Effect.PAID_BY_HAND if by_hand else Effect.PAID_BY_CHANNEL
        yield Action(Act.APPROVE_REFUND, effect, refund=refund, state=state)
    if not refund_approval.why_not_mark_refunded(refund):
        moved, fields = lines(COMPLETED), ("transfer",)
        yield Action(Act.MARK_REFUNDED, lines=moved, fields=fields, is_only_proof=True, refund=refund, state=state)
    if refund.is_open and not send_refund.why_not_ask(refund):
        yield Action(Act.CHECK_REFUND, asks=True, refund=refund)
    if not refund_approval.why_not_reject(refund):
        asks = refunds.asks_before_reject(refund)
        effect = Effect.AFTER_CHECK if asks else Effect.AT_ONCE
        yield Action(Act.REJECT_REFUND, effect, lines(CANCELLED), asks, fields=("reason",), refund=refund, state=state)


def _of_refunds(order: Order) -> Iterator[Action]:
    for refund in refunds_of(order):
        refund.order = order
        yield from of_refund(refund)


# --- what it does


def _do_mark_paid(order: Order, action: Action, given: Given, actor: Actor) -> bool:
    typed = {"amount": given.fen(), "reference": given.text("reference"), "shared": bool(given.shared)}
    return kinds.of(order).mark_paid(order, **typed, who=actor.who, in_file=bool(given.in_file))


def _do_reject(order: Order, action: Action, given: Given, actor: Actor) -> None:
    approve.reject(order, given.text("reason"), actor.who, bool(given.in_file))


def _transfer(order: Order, action: Action, given: Given) -> Returned:
    """Return the transfer of returned money that the operator typed, if the action has it. Raises OperatorError."""
    if "transfer" not in action.fields:
        return UNKNOWN
    typed = given.text("reference"), given.text("date")
    return returned(order, *typed, shared=bool(given.shared), is_needed=action.is_only_proof)


def _do_resolve(order: Order, action: Action, given: Given, actor: Actor) -> PaymentException:
    assert action.exception is not None
    about = action.exception.id, action.exception.amount
    return resolve.resolve(order, action.resolution, actor.who, *about, _transfer(order, action, given))


def _do_redeliver(order: Order, action: Action, given: Given, actor: Actor) -> int:
    assert action.callback is not None
    return delivery.redeliver(action.callback.webhook_id)


def _do_report_returned(order: Order, action: Action, given: Given, actor: Actor) -> None:
    transfer = _transfer(order, action, given)
    approve.report_returned(order, transfer=transfer, reason=given.text("reason"), who=actor.who)


def _do_second_approval(order: Order, action: Action, given: Given, actor: Actor) -> Any:
    def carry_out(requested: str, typed: dict[str, str]) -> Any:
        return ACTS[Act(requested)].do(order, action, Given(**typed), actor)

    return second_operator.approve(order, int(action.state), actor.name, carry_out)


def _do_refund(order: Order, action: Action, given: Given, actor: Actor) -> Refund:
    return refunds.request(
        order,
        given.fen(),
        actor.who,
        reason=given.text("reason"),
        by_platform=bool(given.platform),
        again=bool(given.again),
        state=action.state,
    )


def _do_approve_refund(order: Order, action: Action, given: Given, actor: Actor) -> Refund:
    assert action.refund is not None
    return refund_approval.approve(action.refund, actor.who)


def _do_mark_refunded(order: Order, action: Action, given: Given, actor: Actor) -> Refund:
    assert action.refund is not None
    return refund_approval.mark_refunded(action.refund, _transfer(order, action, given), actor.who)


def _do_check_refund(order: Order, action: Action, given: Given, actor: Actor) -> Any:
    assert action.refund is not None
    return send_refund.ask_now(action.refund, because(Why.CHANNEL_ASKED_BY, who=actor.who))


def _do_reject_refund(order: Order, action: Action, given: Given, actor: Actor) -> Refund:
    assert action.refund is not None
    return refund_approval.reject(action.refund, given.text("reason"), actor.who)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One act: its verb in the audit log, when it is possible, and what it does.

    `verb` stays as it is, because the log keeps earlier entries and is filtered by it.
    `possible` yields it, and acts that follow from it, for an order in which it can be done now, and `do` does it.
    `pays_out`: it leads to a payout, so a second operator may have to approve it.
    """

    verb: str
    pays_out: bool = False
    possible: Callable[[Order], Iterator[Action]] = lambda order: iter(())
    do: Callable[[Order, Action, Given, Actor], Any]


ACTS = {
    Act.APPROVE: Rule(
        verb="accept order",
        pays_out=True,
        possible=_approve,
        do=lambda order, action, given, actor: approve.approve(order, actor.who),
    ),
    Act.REJECT: Rule(
        verb="reject order",
        possible=_reject,
        do=_do_reject,
    ),
    Act.MARK_PAID: Rule(verb="mark paid", pays_out=True, possible=_mark_paid, do=_do_mark_paid),
    Act.CHANGE_ACCOUNT: Rule(
        verb="change payout account",
        possible=_change_account,
        do=lambda order, action, given, actor: change_account.change(order, int(action.state), actor.who),
    ),
    Act.REPORT_RETURNED: Rule(
        verb="report payout returned",
        possible=_report_returned,
        do=_do_report_returned,
    ),
    Act.NOT_RECEIVED: Rule(
        verb="report not received",
        possible=_not_received,
        do=lambda order, action, given, actor: claims.dismiss(order, given.text("reason"), actor.who),
    ),
    Act.CHECK: Rule(
        verb="ask channel",
        possible=_check,
        do=lambda order, action, given, actor: kinds.ask_now(order, because(Why.CHANNEL_ASKED_BY, who=actor.who)),
    ),
    Act.RESOLVE: Rule(verb="settle exception", possible=_resolve, do=_do_resolve),
    Act.REDELIVER: Rule(verb="redeliver callback", possible=_redeliver, do=_do_redeliver),
    Act.REDELIVER_ALL: Rule(
        verb="redeliver callbacks",
        do=lambda order, action, given, actor: delivery.redeliver_of(order),
    ),
    Act.SECOND_APPROVAL: Rule(verb="approve payout", do=_do_second_approval),
    Act.WITHDRAW_REQUEST: Rule(
        verb="withdraw payout request",
        possible=_withdraw_request,
        do=lambda order, action, given, actor: second_operator.withdraw(order, int(action.state)),
    ),
    Act.REFUND: Rule(verb="refund", possible=_refund, do=_do_refund),
    # `possible` of this one yields those on the order's refunds.
    Act.APPROVE_REFUND: Rule(verb="approve refund", possible=_of_refunds, do=_do_approve_refund),
    Act.MARK_REFUNDED: Rule(verb="mark refunded", do=_do_mark_refunded),
    Act.CHECK_REFUND: Rule(verb="check refund", do=_do_check_refund),
    Act.REJECT_REFUND: Rule(verb="reject refund", do=_do_reject_refund),
}


def possible(order: Order) -> list[Action]:
    """Return the actions that an operator may perform on an order now."""
    found = [_despite_file(order, action) for act in Act for action in ACTS[act].possible(order)]
    request = second_operator.waiting(order)
    if request is None and not second_operator.is_needed(order):
        return found
    # A payout that needs a second operator is requested instead, or approved if it was.
    paying_out = [action for action in found if _pays_out(order, action)]
    found = [action for action in found if action not in paying_out]
    if request is None:
        return found + [replace(action, effect=Effect.REQUESTED, lines={}) for action in paying_out]
    asked, state = Act(request.action), str(request.id)
    return found + [
        replace(action, act=Act.SECOND_APPROVAL, requested=asked, effect=Effect.AT_ONCE, fields=(), state=state)
        for action in paying_out
        if action.act is asked
    ]


def _pays_out(order: Order, action: Action) -> bool:
    return order.order_type == SELL and ACTS[action.act].pays_out


def _despite_file(order: Order, action: Action) -> Action:
    """Return the action; one that ends a payout by which a bank file may still pay must be confirmed knowingly."""
    ends = order.order_type == SELL and action.act in (Act.REJECT, Act.MARK_PAID)
    line = PayoutBatchLine.in_file(order) if ends else None
    return action if line is None else replace(action, batch=line.batch_id, fields=(*action.fields, "in_file"))
