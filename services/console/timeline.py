"""The whole history of an order, and of a callback, for the commands and the console."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.ledger import AVAILABLE, CLEARING, HELD, Entry, LedgerAccount, Posting
from models.tables.merchant import Merchant
from models.tables.operator import AuditEntry
from models.tables.order import (
    BUY,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAID,
    PENDING,
    SELL,
    History,
    InternalNote,
    Order,
    PaymentException,
)
from models.tables.outbox import Callback, CallbackAttempt
from models.tables.refund import Refund, RefundHistory, refunds_of
from net.http import USER_AGENT
from services import kinds
from services.callbacks import delivery, epay_notices
from services.deposits import claims
from services.errors import N_, OperatorError
from services.ledger.accounts import is_adjustment
from services.orders.lifecycle import settled
from services.orders.reasons import Reason, Why, reason_of
from services.orders.verdict import CREDIT, REFUND
from services.security import audit, masking


class NextStep(Enum):
    """The service's next step with an order, at its `due_at`."""

    ASK = auto()
    EXPIRE = auto()
    END_CLAIM = auto()
    CREDIT = auto()
    ASK_FOR_LATE_MONEY = auto()
    ASK_FOR_SECOND_PAYMENT = auto()
    APPROVE = auto()
    HAND_OVER = auto()
    ASK_FOR_LATE_PAYOUT = auto()


NEXT_STEPS = {
    (BUY, PENDING): NextStep.ASK,
    (BUY, PAID): NextStep.ASK,
    (BUY, CONFIRMED): NextStep.CREDIT,
    (BUY, COMPLETED): NextStep.ASK_FOR_SECOND_PAYMENT,
    (BUY, CANCELLED): NextStep.ASK_FOR_LATE_MONEY,
    (SELL, PENDING): NextStep.APPROVE,
    (SELL, CONFIRMED): NextStep.HAND_OVER,
    (SELL, CANCELLED): NextStep.ASK_FOR_LATE_PAYOUT,
    (SELL, COMPLETED): NextStep.ASK_FOR_LATE_PAYOUT,
}


@dataclass(frozen=True)
class Event:
    """An event of an order.

    `before` and `after` are statuses, equal for an event without a step; `exception` is the one that was opened, or
    with `settled` the one that was resolved.
    """

    at: int
    who: str
    why: Reason
    before: str = ""
    after: str = ""
    exception: PaymentException | None = None
    settled: bool = False


EVENT, REFUND_STEP, POSTING, CALLBACK, NOTE, AUDIT = "event", "refund", "posting", "callback", "note", "audit"
# Audit entries whose actions the order's history or notes have, too.
IN_HISTORY = {
    "write note",
    "accept order",
    "reject order",
    "mark paid",
    "report payout returned",
    "change payout account",
    "report not received",
    "settle exception",
    "approve payout",
    "refund",
    "approve refund",
    "mark refunded",
    "reject refund",
}


@dataclass(frozen=True)
class Moment:
    """One line of the whole timeline.

    It is an EVENT, a REFUND_STEP with its refund, a POSTING with its entries, a CALLBACK, a NOTE or an AUDIT entry.
    """

    at: int
    kind: str
    what: Any


@dataclass(frozen=True)
class OrderTimeline:
    """An order with all its records, each in the order of writing."""

    order: Order
    history: list[History]
    exceptions: list[PaymentException]
    entries: list[Entry]
    callbacks: list[Callback]
    audit: list[AuditEntry]
    refunds: list[Refund]
    refund_history: list[RefundHistory]
    notes: list[InternalNote]

    @property
    def postings(self) -> list[tuple[Posting, list[Entry]]]:
        """Each posting with its entries."""
        found: dict[int, tuple[Posting, list[Entry]]] = {}
        for entry in self.entries:
            found.setdefault(entry.posting.id, (entry.posting, []))[1].append(entry)
        return list(found.values())

    @property
    def refused_notices(self) -> list[str]:
        """The reasons why notices were refused."""
        told = [reason_of(line) for line in self.history if line.code == Why.NOTICE_REFUSED]
        return [str(reason.args["text"]) for reason in told]

    @property
    def next_step(self) -> NextStep | None:
        """The service's step at the order's `due_at`; None if nothing is due."""
        order = self.order
        if order.due_at is None or (order.status == CONFIRMED and kinds.of(order).is_held(order)):
            return None
        if order.is_buy and order.status == PENDING and order.due_at >= (order.expires_at or 0):
            return NextStep.EXPIRE
        if order.due_at == claims.ends_at(order):
            return NextStep.END_CLAIM
        return NEXT_STEPS.get((order.order_type, order.status))

    @property
    def opened(self) -> dict[int, PaymentException]:
        """The exceptions, by the line of history that opened each."""
        return {each.history_id: each for each in self.exceptions if each.history_id}

    @property
    def timeline(self) -> list[Event]:
        """Return the history, exceptions and resolutions, by time. An exception is at the line that reports it."""
        opened = self.opened
        events = [
            Event(line.at, line.who, reason_of(line), line.before, line.after, opened.get(line.id))
            for line in self.history
        ]
        for exception in self.exceptions:
            if exception.history_id is None:
                events.append(Event(exception.createtime, "service", reason_of(exception), exception=exception))
            if not exception.resolution:
                continue
            why = settled(exception, exception.resolution)
            resolving = next((each for each in events if each.exception is None and each.why == why), None)
            if resolving is not None:
                events[events.index(resolving)] = replace(resolving, exception=exception, settled=True)
            else:  # the end of silence has no line of history
                at, who = exception.resolvedtime or 0, exception.resolved_by or ""
                events.append(Event(at, who, why, exception=exception, settled=True))
        return sorted(events, key=lambda event: event.at)

    @property
    def moments(self) -> list[Moment]:
        """Return payment, ledger, callbacks and operator actions as one timeline."""
        acts = [each for each in self.audit if each.action not in IN_HISTORY or each.detail.startswith("not done")]
        by_id = {each.id: each for each in self.refunds}
        moments = [
            *(Moment(event.at, EVENT, event) for event in self.timeline),
            *(Moment(step.at, REFUND_STEP, (by_id[step.refund_id], step)) for step in self.refund_history),
            *(Moment(posting.createtime, POSTING, (posting, entries)) for posting, entries in self.postings),
            *(Moment(callback.createtime, CALLBACK, callback) for callback in self.callbacks),
            *(Moment(each.createtime, NOTE, each) for each in self.notes),
            *(Moment(entry.at, AUDIT, entry) for entry in acts),
        ]
        return sorted(moments, key=lambda moment: moment.at)

    @property
    def received(self) -> int:
        """The money received for a deposit, in fen: confirmed, in open exceptions, and credited or sent back later."""
        own = self.order.received if self.order.status in (CONFIRMED, COMPLETED) else 0
        others = (each for each in self.exceptions if each.kind in MONEY_IN)
        return own + sum(each.amount for each in others if each.resolution in (None, CREDIT, REFUND))

    @property
    def refunded(self) -> int:
        """The money that went back to the payer by refunds, in fen."""
        return sum(each.amount for each in self.refunds if each.status == COMPLETED)

    @property
    def refunding(self) -> int:
        """The money of refunds that are not completed yet, in fen."""
        return sum(each.amount for each in self.refunds if each.is_open)

    @property
    def moved_by_refunds(self) -> int:
        """The change of the merchant's available balance by refunds, in fen: what they deducted or reserved."""
        of_refunds = (each for each in self.entries if each.posting.purpose.startswith("refund"))
        return sum(each.amount for each in of_refunds if each.account.kind == AVAILABLE)

    @property
    def is_given_back(self) -> bool:
        """Whether a withdrawal was paid out, and then all of its cost returned to the merchant."""
        is_paid_out = not self.order.is_buy and self.order.status == COMPLETED
        return is_paid_out and self.balance(AVAILABLE) + self.balance(HELD) == 0

    @property
    def money(self) -> list[Entry]:
        """The entries of the order's own money, without manual adjustments that name it."""
        return [entry for entry in self.entries if not is_adjustment(entry.posting)]

    def balance(self, kind: str) -> int:
        """The sum of the order's own entries on accounts of this kind, in fen."""
        return sum(entry.amount for entry in self.money if entry.account.kind == kind)

    @property
    def adjusted(self) -> int:
        """The manual adjustments of the merchant's balance that name this order, in fen."""
        return sum(each.amount for each in self.entries if each.account.kind == AVAILABLE) - self.balance(AVAILABLE)

    @property
    def tried(self) -> list[tuple[str, str]]:
        """The members of its group that did not get the order, or lost it, by name: each with why, in English."""
        codes = (Why.MEMBER_LEFT_OUT, Why.MEMBER_CHANGED, Why.MEMBER_FAILED)
        reasons = [reason_of(step) for step in self.history if step.code in codes]
        return [(str(each.args["channel"]), str(each.args["text"])) for each in reasons]

    @property
    def is_charged(self) -> bool:
        """False for a cancelled order whose money never moved through its channel: it has no fees."""
        return self.order.status != CANCELLED or any(entry.account.kind == CLEARING for entry in self.money)


def find(order_no: str) -> Order:
    """Return the order with this number, with merchant and channel. Raises OperatorError."""
    found = (
        Order.select(Order, Merchant, Channel)
        .join_from(Order, Merchant)
        .join_from(Order, Channel)
        .where(Order.order_no == order_no)
        .first()
    )
    if found is None:
        raise OperatorError(N_("no order %(order_no)s"), order_no=order_no)
    return found


def _audit(about: str, keys: Iterable[str]) -> list[AuditEntry]:
    return list(AuditEntry.select().where(AuditEntry.about == about, AuditEntry.key.in_(list(keys))))


def order_timeline(order: Order) -> OrderTimeline:
    """Return the whole history of an order."""
    entries = (
        Entry.select(Entry, Posting, LedgerAccount)
        .join(Posting)
        .switch(Entry)
        .join(LedgerAccount)
        .where(Posting.order == order)
        .order_by(Entry.id)
    )
    told = list(Callback.select().where(Callback.order == order).order_by(Callback.id))
    made = refunds_of(order)
    audit = _audit("order", [order.order_no]) + _audit("callback", [callback.webhook_id for callback in told])
    audit += _audit("refund", [each.refund_no for each in made])
    exceptions = list(PaymentException.select().where(PaymentException.order == order).order_by(PaymentException.id))
    for each in exceptions:
        each.order = order
    of_refunds = RefundHistory.refund.in_([each.id for each in made])
    return OrderTimeline(
        order=order,
        history=list(History.select().where(History.order == order).order_by(History.id)),
        exceptions=exceptions,
        entries=list(entries),
        callbacks=told,
        audit=sorted(audit, key=lambda entry: entry.id),
        refunds=made,
        refund_history=list(RefundHistory.select().where(of_refunds).order_by(RefundHistory.id)) if made else [],
        notes=list(InternalNote.select().where(InternalNote.order == order).order_by(InternalNote.id)),
    )


@dataclass(frozen=True)
class CallbackTimeline:
    """A callback with every attempt; `url` and the responses without the values of the address's query."""

    callback: Callback
    attempts: list[CallbackAttempt]
    url: str
    headers: dict[str, str]
    audit: list[AuditEntry]


def callback_timeline(webhook_id: str) -> CallbackTimeline:
    """Return the whole history of a callback. Raises OperatorError."""
    found = (
        Callback.select(Callback, Merchant, Order)
        .join_from(Callback, Merchant)
        .join_from(Callback, Order)
        .where(Callback.webhook_id == webhook_id)
        .first()
    )
    if found is None:
        raise OperatorError(N_("no callback %(webhook_id)s"), webhook_id=webhook_id)
    attempts = CallbackAttempt.select().where(CallbackAttempt.callback == found).order_by(CallbackAttempt.id)
    own_headers = {} if found.type == epay_notices.TYPE else delivery.headers_of(webhook_id, "", "")
    return CallbackTimeline(
        callback=found,
        attempts=list(attempts),
        url=masking.address(delivery.address_of(found)),
        headers=own_headers | {"User-Agent": USER_AGENT},
        audit=_audit("callback", [webhook_id]),
    )


def personal_values(order: Order) -> dict[str, Any]:
    """Return the personal data of an order by field, decrypted; empty if there is none, or it was erased."""
    opened = kinds.of(order).personal_data(order)
    values: dict[str, Any] = opened.get("account", opened)
    return {name: value for name, value in values.items() if value}


def masked(order: Order) -> dict[str, str]:
    """Return the customer's name (deposit) or the payout account (withdrawal) by field, masked."""
    return masking.masked(personal_values(order))


def reveal(order: Order, actor: audit.Actor) -> dict[str, Any]:
    """Return the same unmasked, after recording the viewer in the audit log."""
    audit.record(actor, "reveal", "order", order.order_no)
    return personal_values(order)


@transaction
def record_reveals(orders: Iterable[Order], actor: audit.Actor) -> None:
    """Record in the audit log that the actor sees the unmasked values of these orders."""
    for order in orders:
        audit.record(actor, "reveal", "order", order.order_no)


def account_ending(order: Order) -> str:
    """Return the last digits of a withdrawal's payout account, masked before them; "" for a deposit."""
    return "" if order.is_buy else masked(order).get("card_number", "")
