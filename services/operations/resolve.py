"""Resolve exceptions: which rules fit one, what each would do, and performing an operator's decision."""

from __future__ import annotations

from models.db.writer import transaction
from models.tables.order import CANCELLED, MONEY_IN, UNKNOWN_OUTCOME, Order, PaymentException
from runtime import clock
from schemas.views import STATUS_TEXTS
from services import kinds
from services.callbacks import outbox, previews
from services.callbacks.outbox import Outgoing
from services.errors import N_, OperatorError, refuse
from services.orders import lifecycle
from services.orders.resolution import ResolutionRule
from services.orders.returned import UNKNOWN, Returned
from services.orders.verdict import CREDIT, REFUND, RESOLUTIONS
from services.refunds.resolve import why_not_now
from services.withdrawals.send import LONG

EVENTS = {CREDIT: "order.credited", REFUND: "order.refunded"}  # optional events of merchants


def _fitting(order: Order, exception: PaymentException, resolution: str) -> ResolutionRule | None:
    """Return the first rule of the order's kind for this exception in its present state."""
    kind = kinds.of(order)
    rules = [rule for rule in kind.rules if rule.resolution == resolution and exception.kind in rule.kinds]
    state = kind.state_of(order) if rules else None
    return next((rule for rule in rules if state in rule.states and rule.fits(order, exception)), None)


def find(order: Order, exception: PaymentException, resolution: str) -> ResolutionRule:
    """Return the rule for this exception and resolution. Raises OperatorError with the reason if none matches."""
    kind = kinds.of(order)
    known = dict.fromkeys(rule.resolution for rule in kind.rules)
    if resolution not in known:
        raise OperatorError(f"An exception of this order can be resolved by {' or '.join(known)}, not by {resolution}.")
    rule = _fitting(order, exception, resolution)
    if rule is None:
        raise OperatorError(kind.unfit[resolution])
    refuse(why_not_now(exception) or rule.against(order, exception))
    return rule


def possible(order: Order, exception: PaymentException) -> list[ResolutionRule]:
    """Return all rules that can resolve this exception now."""
    fitting = [rule for name in RESOLUTIONS if (rule := _fitting(order, exception, name))]
    return [] if why_not_now(exception) else [rule for rule in fitting if not rule.against(order, exception)]


def callbacks_of(rule: ResolutionRule, order: Order, exception: PaymentException) -> tuple[Outgoing, ...]:
    """Return the callbacks of the order's steps and of the resolution."""
    passed = rule.steps.index(order.status) + 1 if order.status in rule.steps else 0
    steps = rule.steps[-1:] if order.status == CANCELLED else rule.steps[passed:]
    event = EVENTS.get(rule.resolution, "") if exception.kind in MONEY_IN and rule.resolves else ""
    return previews.of_steps(order, steps, event, rule.ended(order, exception) if rule.ended else None)


def resolvable(order: Order) -> list[PaymentException]:
    """Return the exceptions that an operator can resolve now: the open ones, or otherwise a silence of a day."""
    open_ones = lifecycle.open_exceptions(order)
    if open_ones:
        return open_ones
    silence = PaymentException.select().where(
        PaymentException.order == order,
        PaymentException.resolution.is_null(),
        PaymentException.kind == UNKNOWN_OUTCOME,
        (PaymentException.createtime <= clock.now() - LONG) | (order.status == CANCELLED),
    )
    return list(silence)


def resolve(
    order: Order,
    resolution: str,
    who: str = "operator",
    exception_id: int | None = None,
    amount: int | None = None,
    transfer: Returned = UNKNOWN,
) -> PaymentException:
    """Resolve one open exception of an order by one of RESOLUTIONS, in one transaction, or begin its refund.

    If the channel may have a withdrawal, its status is checked first, outside any transaction.

    Args:
        amount: the exception's amount when it was read, in fen; None to accept any amount.
        transfer: by which an operator sent the money back (`ResolutionRule.sent_back`).

    Raises:
        OperatorError: there is no exception, there are several and no id is given, it can't be resolved that way, it or
            the order changed since it was read, the channel's report contradicts the decision, or another order has the
            transfer's number.
    """
    exception = _named(order, exception_id, amount)
    find(order, exception, resolution)
    kind = kinds.of(order)
    if kind.asks_first(order, exception):
        kind.check(order, resolution, exception)
    return _resolve(order, resolution, who, exception, transfer)


@transaction
def _resolve(order: Order, resolution: str, who: str, seen: PaymentException, transfer: Returned) -> PaymentException:
    checked, order = order, Order.for_update(order.id)
    exception, kind = _named(order, seen.id, seen.amount), kinds.of(order)
    rule = find(order, exception, resolution)
    if order.status != checked.status:
        raise OperatorError(
            N_("The order changed just now. Its status is %(status)s."),
            status=STATUS_TEXTS[order.order_type, order.status],
        )
    if kind.asks_first(order, exception) and not kind.is_as_checked(order, checked):
        raise OperatorError(N_("The withdrawal changed just now. Reload and try again."))
    if not rule.resolves:
        rule.act(order, exception, who)
        return exception
    transfer.refuse_second(order)
    if not exception.resolve(resolution, who, **transfer.columns if rule.sent_back else {}):
        raise OperatorError(N_("This exception was already resolved."))
    rule.act(order, exception, who)
    kind.resume(order)
    lifecycle.note(order, who, lifecycle.settled(exception, resolution))
    if exception.kind in MONEY_IN and resolution in EVENTS:
        outbox.enqueue(order, EVENTS[resolution], exception.id)
    return exception


def _named(order: Order, exception_id: int | None, amount: int | None) -> PaymentException:
    """Return the open exception with this id, or the only one; with this amount, if one is given."""
    found = [exception for exception in resolvable(order) if exception_id in (None, exception.id)]
    if not found:
        raise OperatorError(
            N_(
                "The order has no such open exception. An exception without a channel response can be "
                "resolved after a day."
            )
        )
    if len(found) > 1:
        which = ", ".join(f"{exception.id} ({exception.kind})" for exception in found)
        raise OperatorError(f"several exceptions are open, choose one with --exception: {which}")
    if amount not in (None, found[0].amount):
        raise OperatorError(N_("The amount of this exception was corrected just now. Reload and try again."))
    return found[0]
