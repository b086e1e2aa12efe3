"""Bulk decisions about refunds: approve or reject several ones after one confirmation."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import dataclass

from models.db.base import database
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import Order
from models.tables.refund import Refund
from runtime.money import grouped
from services.errors import N_, OperatorError
from services.operations import bulk, perform
from services.operations.actions import Act, Action, Given, of_refund
from services.operations.bulk import DONE, LEFT, REFUSED
from services.refunds import approve as approval
from services.security import audit
from services.security.audit import Actor

VERBS = {Act.APPROVE_REFUND: "approve refunds", Act.REJECT_REFUND: "reject refunds"}
CHANGED = N_("Refund %(refund_no)s changed since this page was loaded, so no refund was approved. Check and try again.")


@dataclass(frozen=True)
class Row:
    """A refund of a bulk action: what would be done, or why nothing can be done."""

    refund: Refund
    action: Action | None = None
    refusal: OperatorError | None = None

    @property
    def seal(self) -> str:
        """A hash that changes if the refund changes or the action would do anything else."""
        facts = (self.refund.refund_no, self.refund.status, self.refund.amount, self.action and self.action.seal)
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one refund: DONE, REFUSED with `refusal`, or LEFT because the time was over."""

    refund: Refund
    state: str
    refusal: OperatorError | None = None


def numbered(numbers: Iterable[str]) -> list[Refund]:
    """Return the refunds with these numbers, oldest first, with order, merchant and channel."""
    found = (
        Refund.select(Refund, Order, Merchant, Channel)
        .join_from(Refund, Order)
        .join_from(Refund, Merchant)
        .join_from(Refund, Channel)
    )
    return list(found.where(Refund.refund_no.in_(list(numbers))).order_by(Refund.createtime, Refund.id))


def preview(act: Act, numbers: Iterable[str], who: str) -> list[Row]:
    """Return what the bulk action by this operator would do to each refund, oldest first."""
    return [_row(act, refund, who) for refund in numbered(numbers)]


def _row(act: Act, refund: Refund, who: str) -> Row:
    action = next((each for each in of_refund(refund) if each.act is act), None)
    if action is None:
        why = approval.why_not_approve(refund) if act is Act.APPROVE_REFUND else approval.why_not_reject(refund)
        return Row(refund, refusal=OperatorError(why))
    if act is Act.APPROVE_REFUND and approval.waits_for_another(refund, who):
        return Row(refund, refusal=OperatorError(approval.OWN_REQUEST))
    return Row(refund, action)


def approve(shown: dict[str, str], actor: Actor) -> list[Outcome]:
    """Approve refunds, all in one transaction or none.

    Args:
        shown: each refund's seal as the operator saw it, by refund number.

    Raises:
        OperatorError: a refund changed since; nothing is approved.
    """
    return audit.act(
        actor, VERBS[Act.APPROVE_REFUND], "refunds", "", lambda: _approve(shown, actor), _summary(numbered(shown))
    )


@transaction
def _approve(shown: dict[str, str], actor: Actor) -> list[Outcome]:
    orders = Refund.select(Refund.order).where(Refund.refund_no.in_(list(shown)))
    list(database.for_update(Order.select(Order.id).where(Order.id.in_(orders)).order_by(Order.id)))
    rows = preview(Act.APPROVE_REFUND, shown, actor.who)
    unchanged = {row.refund.refund_no for row in rows if row.action and row.seal == shown[row.refund.refund_no]}
    if changed := [refund_no for refund_no in shown if refund_no not in unchanged]:
        raise OperatorError(CHANGED, refund_no=changed[0])
    return [_performed(row, Given(), actor) for row in rows]


def reject(shown: dict[str, str], reason: str, actor: Actor) -> list[Outcome]:
    """Reject refunds one by one; an interruption leaves the rest unchanged.

    After a restore, the channel's status of each is checked first.

    Args:
        shown: as for `approve`.
    """
    every = numbered(shown)
    audit.record(actor, VERBS[Act.REJECT_REFUND], "refunds", "", _summary(every))
    until, outcomes = time.monotonic() + bulk.LONGEST, []
    for refund in every:
        row = _row(Act.REJECT_REFUND, refund, actor.who)
        if time.monotonic() > until:
            outcomes.append(Outcome(refund, LEFT))
            continue
        try:
            if row.action is not None and row.seal != shown[refund.refund_no]:
                raise OperatorError(approval.CHANGED)
            outcomes.append(_performed(row, Given(reason=reason), actor))
        except OperatorError as refusal:
            outcomes.append(Outcome(refund, REFUSED, refusal))
    return outcomes


def _performed(row: Row, given: Given, actor: Actor) -> Outcome:
    if row.action is None:
        raise row.refusal or OperatorError(approval.CHANGED)
    perform.carry_out(row.refund.order, row.action, row.action.seal, given, actor)
    return Outcome(row.refund, DONE)


def _summary(refunds: list[Refund]) -> str:
    return N_("%(count)s refunds, %(total)s") % {"count": len(refunds), "total": grouped(bulk.total(refunds))}
