"""The actions that an operator may perform on an order now, as data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from models.tables.ledger import AVAILABLE
from models.tables.order import CANCELLED, COMPLETED, CONFIRMED, PAID, PENDING, Order, PaymentException
from models.tables.outbox import Callback
from models.tables.payout_batch import PayoutBatchLine
from services.callbacks import delivery, previews
from services.callbacks.outbox import Outgoing
from services.channels.calls import driver_of
from services.ledger import postings
from services.ledger.postings import Lines
from services.orders import claims, due, exceptions, payouts, positions
from services.orders.positions import COMPLETE
from services.security import sandbox_guard, second_operator


@dataclass(frozen=True)
class Action:
    """One possible action.

    `sends` are the callbacks that it causes, if they are shown first. `case` is the exact name, `lines` are its
    postings (fen by account). With `asks`, the status is checked first and may prevent the action. `fields` are the
    values that the operator enters. `batch` is the number of a bank file by which the bank may still pay, or 0.
    """

    name: str
    case: str
    lines: Lines = field(default_factory=dict)
    asks: bool = False
    fields: tuple[str, ...] = ()
    exception: PaymentException | None = None
    resolution: str = ""
    callback: Callback | None = None
    state: str = ""
    sends: tuple[Outgoing, ...] = ()
    batch: int = 0

    @property
    def key(self) -> str:
        """The action's key among those of its order."""
        of = self.exception.id if self.exception else self.callback.id if self.callback else ""
        return "-".join(str(part) for part in (self.name, of, self.resolution) if part)

    @property
    def seal(self) -> str:
        """A hash that changes if the action would now do anything else."""
        exception = (self.exception.kind, self.exception.amount) if self.exception else ()
        facts = (self.key, self.case, sorted(self.lines.items()), self.asks, exception, self.state, self.batch)
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

    def moves(self, kind: str) -> int:
        """The change of accounts of this kind, in fen."""
        return sum(fen for (account, _), fen in self.lines.items() if account == kind)

    @property
    def decides(self) -> bool:
        """Whether it decides about money that was received, or that a payer claims to have sent."""
        return self.exception is not None or self.name == "not-received"

    @property
    def received(self) -> int:
        """The received amount that the decision is about, in fen; 0 if there is none, or it is unknown."""
        return int(self.exception.amount) if self.exception else 0

    @property
    def available(self) -> int:
        """The change of the merchant's available balance, in fen."""
        return self.moves(AVAILABLE)


def _accept(order: Order) -> Iterator[Action]:
    if not payouts.why_not_accept(order):
        yield Action("accept", "manual" if driver_of(order.channel).by_hand else "at the channel")


def _reject(order: Order) -> Iterator[Action]:
    if not payouts.why_not_reject(order):
        asks = payouts.may_be(order)
        case, lines = "ask first" if asks else "return", postings.release(order)
        yield Action("reject", case, lines, asks, ("reason",), state=order.status)


# The effect of an operator's confirmation that the order's amount was transferred.
_PAID = {
    (True, PENDING): "credit",
    (True, PAID): "credit",
    (True, CONFIRMED): "paid again",
    (True, COMPLETED): "paid again",
    (True, CANCELLED): "late",
    (False, CONFIRMED): "spend",
    (False, COMPLETED): "sent again",
    (False, CANCELLED): "sent although cancelled",
}


def _mark_paid(order: Order) -> Iterator[Action]:
    if payouts.why_not_mark_paid(order):
        return
    case, lines = _PAID[order.is_buy, order.status], {}
    if order.is_buy and positions.credited_by_hand(positions.exceptions_of(order)):
        case = "paid again"
    if case == "spend":
        lines = postings.spend(order)
    elif case == "credit":
        case = "credit later" if order.channel.settlement_days else case
        lines = {} if order.channel.settlement_days else postings.credit(order)
    steps = {"credit": (PAID, CONFIRMED, COMPLETED), "credit later": (PAID, CONFIRMED)}.get(case, ())
    sends = previews.of_steps(order, [step for step in steps if step != order.status])
    yield Action("paid", case, lines, fields=("amount", "reference"), sends=sends)


def _returned(order: Order) -> Iterator[Action]:
    if not payouts.why_not_return(order):
        yield Action("returned", "reverse", fields=("reference", "note"), state=order.status)


def _not_received(order: Order) -> Iterator[Action]:
    if not claims.why_not_dismiss(order):
        asks = driver_of(order.channel).checks_status
        case, sends = "ask first" if asks else "cancel", previews.of_steps(order, (CANCELLED,))
        yield Action("not-received", case, asks=asks, fields=("note",), state=order.status, sends=sends)


def _ask(order: Order) -> Iterator[Action]:
    if not due.why_not_ask(order):
        yield Action("ask", "deposit" if order.is_buy else "withdrawal", asks=True)


def _settle(order: Order) -> Iterator[Action]:
    for exception in exceptions.settleable(order):
        for way in exceptions.possible(order, exception):
            yield Action(
                "settle",
                way.case,
                way.lines(order, exception),
                asks=payouts.may_be(order, exception),
                exception=exception,
                resolution=way.resolution,
                state=order.status,
                sends=exceptions.callbacks_of(way, order, exception),
            )


def _redeliver(order: Order) -> Iterator[Action]:
    every = Callback.select().where(Callback.order == order).order_by(Callback.id)
    again = [action for callback in every for action in of_callback(callback)]
    yield from again
    if len(again) > 1:
        yield Action("redeliver-all", "all", state=" ".join(action.state for action in again))


def of_callback(callback: Callback) -> list[Action]:
    """Return the actions that an operator may perform on a callback now."""
    if delivery.why_unsent(callback):
        return []
    state = f"{callback.state} {callback.attempts} {callback.due_at}"
    return [Action("redeliver", callback.state, callback=callback, state=state)]


def of_claim(order: Order) -> list[Action]:
    """Return the actions that an operator may perform on a deposit of a manual channel without an open exception."""
    return [*_mark_paid(order), *_not_received(order)]


RULES = (_accept, _reject, _mark_paid, _returned, _not_received, _ask, _settle, _redeliver)
PAYING_OUT = ("accept", "paid")


def _by_two(order: Order, found: list[Action]) -> Iterator[Action]:
    """Yield the actions; a payout that needs a second operator is requested or approved instead."""
    request = second_operator.waiting(order)
    paying_out = [action for action in found if action.name in PAYING_OUT]
    yield from (action for action in found if action not in paying_out)
    if request is None:
        for action in paying_out:
            yield replace(action, case="request", lines={})
        return
    yield from (
        replace(action, name="approve", case=action.name, fields=(), state=str(request.id))
        for action in paying_out
        if action.name == request.action
    )
    yield Action("withdraw-request", "any", state=str(request.id))


def _despite_file(order: Order, action: Action) -> Action:
    """Return the action; one that ends a payout by which a bank file may still pay must be confirmed knowingly."""
    line = PayoutBatchLine.in_file(order) if action.name in ("reject", "paid") and not order.is_buy else None
    return action if line is None else replace(action, batch=line.batch_id, fields=(*action.fields, "in_file"))


def possible(order: Order) -> list[Action]:
    """Return the actions that an operator may perform on an order now."""
    found = [_despite_file(order, action) for rule in RULES for action in rule(order)]
    if sandbox_guard.withholds(order):
        found = [action for action in found if action.name not in PAYING_OUT and action.resolution != COMPLETE]
    by_two = second_operator.is_needed(order) or second_operator.waiting(order)
    return list(_by_two(order, found)) if by_two else found
