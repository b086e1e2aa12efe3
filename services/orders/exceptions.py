"""Exceptions and the rules that resolve them: possible decisions, the money that each moves, and performing one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models.db.writer import transaction
from models.tables.ledger import AVAILABLE, CLEARING, FEES, LedgerAccount
from models.tables.order import (
    AMOUNT_CORRECTED,
    AT_CHANNEL,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAID,
    PENDING,
    REVERSED,
    SHARED_REFERENCE,
    STATUSES,
    UNKNOWN_OUTCOME,
    WRONG_AMOUNT,
    Order,
    PaymentException,
)
from models.tables.payout_batch import PayoutBatchLine
from runtime import clock
from schemas.views import STATUS_TEXTS
from services.callbacks import outbox, previews
from services.callbacks.outbox import Outgoing
from services.channels.calls import LATE
from services.errors import N_, ApiError, OperatorError
from services.ledger import accounts, fees, postings
from services.ledger.postings import OPERATOR, RELEASE_AGAIN, SPEND_AGAIN, Lines
from services.orders import attempts, lifecycle, next_step, payouts, positions, shop_payments
from services.orders.positions import CANCEL, COMPLETE, CREDIT, REFUND, RESOLUTIONS
from services.orders.reasons import Why, because
from services.orders.settle import cancel_withdrawal, complete_deposit, complete_withdrawal
from services.orders.verdicts import Books
from services.security import sandbox_guard

PAYOUTS = (*AT_CHANNEL, UNKNOWN_OUTCOME)
COMPLETE_ORDER = "complete the order"

Act = Callable[[Order, PaymentException, str], object]


def _nothing(order: Order, exception: PaymentException) -> Lines:
    return {}


def _no_objection(order: Order, exception: PaymentException) -> str:
    return ""


@dataclass(frozen=True)
class ResolutionRule:
    """One way to resolve an exception.

    `case` is its name, `lines` are its postings (fen by account), `against` returns a further reason against it or "",
    and `act` performs it in the transaction that closes the exception. `statuses` are those of a deposit, or positions
    of a withdrawal's money. `steps` are the statuses that the order takes, unless it has them already.
    """

    resolution: str
    case: str
    kinds: tuple[str, ...]
    statuses: tuple[str | Books, ...]
    act: Act
    lines: Callable[[Order, PaymentException], Lines] = _nothing
    against: Callable[[Order, PaymentException], str] = _no_objection
    steps: tuple[str, ...] = ()

    def fits(self, order: Order, exception: PaymentException) -> bool:
        """Return whether the rule applies to an exception of this kind and order."""
        place = order.status if order.is_buy else positions.place_of(order)
        return exception.kind in self.kinds and place in self.statuses


def _credit_lines(order: Order, exception: PaymentException) -> Lines:
    """Return the postings that credit the received amount at the order's own rate."""
    fee = fees.apply_rate(exception.amount, order.service_rate)
    return {
        (AVAILABLE, order.merchant_id): exception.amount - fee,
        (FEES, OPERATOR): fee,
        (CLEARING, order.channel_id): -exception.amount,
    }


def _names_no_amount(order: Order, exception: PaymentException) -> str:
    if exception.amount:
        return ""
    return "the channel names no amount: refund it, and adjust the balance if some of it stayed"


def _credit(order: Order, exception: PaymentException, who: str) -> None:
    lines = _credit_lines(order, exception)
    accounts.post(f"exception {exception.id}", lines, who=who, order=order, memo=exception.kind)


def _close_unpaid(order: Order, exception: PaymentException, who: str) -> None:
    """Cancel an order that was not paid in full."""
    again_at = attempts.checked_again_at(order)
    lifecycle.transition(order, CANCELLED, who, because(Why.WRONG_AMOUNT_ENDED), due_at=again_at)


def _credit_and_close(order: Order, exception: PaymentException, who: str) -> None:
    _credit(order, exception, who)
    _close_unpaid(order, exception, who)


def completed(order: Order, exception: PaymentException) -> Order:
    """Return the deposit as it will be once it is completed with this money; nothing is stored."""
    fee = fees.apply_rate(exception.amount, order.service_rate)
    money = {"received_amount": exception.amount, "service_amount": fee}
    money |= {"merchant_actual_amount": exception.amount - fee, "channel_reference": exception.reference}
    return previews.changed(order, status=COMPLETED, updatetime=clock.now(), **money)


def _complete_lines(order: Order, exception: PaymentException) -> Lines:
    return postings.credit(completed(order, exception))


def _cannot_complete(order: Order, exception: PaymentException) -> str:
    if exception.amount < order.amount:
        return "less than the order's amount was received: credit it to the balance, or send it back"
    return shop_payments.why_not_complete(order)


def _complete_order(order: Order, exception: PaymentException, who: str) -> None:
    ended, why = completed(order, exception), because(Why.COMPLETED_BY_OPERATOR, amount=exception.amount)
    facts = ("received_amount", "channel_reference", "service_amount", "merchant_actual_amount")
    shop_payments.take_over(order)
    for status in (PAID, CONFIRMED) if order.status != CANCELLED else ():
        lifecycle.transition(order, status, who, why)
    complete_deposit(order, why, who, **{name: getattr(ended, name) for name in facts})


def _credit_after_all(order: Order, exception: PaymentException, who: str) -> None:
    complete_deposit(order, because(Why.FOUND_PAID), who)


def _cancel_deposit(order: Order, exception: PaymentException, who: str) -> None:
    lifecycle.transition(order, CANCELLED, who, lifecycle.settled(exception, CANCEL), due_at=clock.now() + LATE[0])


def _complete_withdrawal(order: Order, exception: PaymentException, who: str) -> None:
    complete_withdrawal(order, who, lifecycle.settled(exception, COMPLETE), exception.reference)


def _cancel_withdrawal(order: Order, exception: PaymentException, who: str) -> None:
    cancel_withdrawal(order, who, lifecycle.settled(exception, CANCEL), due_at=clock.now() + LATE[0])


def _spend_again(order: Order, exception: PaymentException, who: str) -> None:
    accounts.post(accounts.numbered(order, SPEND_AGAIN), postings.spend(order), who=who, order=order)
    Order.update(channel_reference=exception.reference).where(Order.id == order.id).execute()


def _release_again(order: Order, exception: PaymentException, who: str) -> None:
    accounts.post(accounts.numbered(order, RELEASE_AGAIN), postings.release(order), who=who, order=order)


def _cannot_pay_after_all(order: Order, exception: PaymentException) -> str:
    """Return the reason not to deduct a cancelled withdrawal that was paid after all from the balance, or ""."""
    if exception.amount != order.amount:
        return N_(
            "The amount sent differs from the order. "
            "Correct the balance with ledger adjust, then resolve with --cancel."
        )
    if LedgerAccount.balance_of(AVAILABLE, order.merchant_id) < order.merchant_actual_amount:
        return N_("The merchant's available balance does not cover the payout.")
    return ""


def _pay_after_all(order: Order, exception: PaymentException, who: str) -> None:
    try:
        accounts.post(
            f"exception {exception.id}", postings.late_spend(order), who=who, order=order, memo=exception.kind
        )
    except ApiError:
        raise OperatorError(N_("The merchant's available balance does not cover the payout.")) from None


def _may_be_paid(order: Order, exception: PaymentException) -> str:
    """Return the reason not to end a withdrawal that the bank may still pay by a file, or ""."""
    if PayoutBatchLine.in_file(order) is None:
        return ""
    return N_("The payout is in a bank file without a result. Import the bank's result or discard the file first.")


def _give_back(order: Order, exception: PaymentException, who: str) -> None:
    accounts.post(accounts.numbered(order, "return"), postings.give_back(order), who=who, order=order)


def _of_order(lines: Callable[[Order], Lines]) -> Callable[[Order, PaymentException], Lines]:
    return lambda order, exception: lines(order)


def _leave(order: Order, exception: PaymentException, who: str) -> None:
    """Do nothing."""


_BOUNCED, _SILENT, _QUESTIONED = (REVERSED,), (UNKNOWN_OUTCOME,), (WRONG_AMOUNT, SHARED_REFERENCE)
_ENDED = tuple(status for status in STATUSES if status != CONFIRMED)
_WAITING, _WHOLE = (PENDING, PAID), tuple(kind for kind in MONEY_IN if kind != AMOUNT_CORRECTED)
_HOLD_SPENT, _HOLD_RETURNED = _of_order(postings.spend), _of_order(postings.release)
# By whether the order is a deposit. For each resolution, the first matching rule counts.
RULES: dict[bool, tuple[ResolutionRule, ...]] = {
    True: (
        ResolutionRule(
            *(CREDIT, "credit the payment, cancel", _QUESTIONED, _WAITING, _credit_and_close),
            *(_credit_lines, _names_no_amount, (CANCELLED,)),
        ),
        ResolutionRule(CREDIT, "credit the payment", MONEY_IN, STATUSES, _credit, _credit_lines, _names_no_amount),
        ResolutionRule(
            *(CREDIT, "good after all", _BOUNCED, (CONFIRMED,), _credit_after_all),
            *(_of_order(postings.credit), _no_objection, (COMPLETED,)),
        ),
        ResolutionRule(
            *(COMPLETE, COMPLETE_ORDER, _WHOLE, (*_WAITING, CANCELLED), _complete_order),
            *(_complete_lines, _cannot_complete, (PAID, CONFIRMED, COMPLETED)),
        ),
        ResolutionRule(REFUND, "send back, cancel", _QUESTIONED, _WAITING, _close_unpaid, steps=(CANCELLED,)),
        ResolutionRule(REFUND, "send back", MONEY_IN, STATUSES, _leave),
        ResolutionRule(REFUND, "stays credited", _BOUNCED, _ENDED, _leave),
        ResolutionRule(CANCEL, "nobody paid", _SILENT, (PENDING,), _cancel_deposit, steps=(CANCELLED,)),
        ResolutionRule(CANCEL, "is cancelled", _SILENT, (CANCELLED,), _leave),
    ),
    False: (
        ResolutionRule(
            *(COMPLETE, "money is out", (*PAYOUTS, REVERSED), (Books.IN_FLIGHT,), _complete_withdrawal),
            *(_HOLD_SPENT, _no_objection, (PAID, COMPLETED)),
        ),
        ResolutionRule(COMPLETE, "money is out", PAYOUTS, (Books.HELD_AGAIN,), _spend_again, _HOLD_SPENT),
        ResolutionRule(
            *(COMPLETE, "out after all", PAYOUTS, (Books.FREE,), _pay_after_all),
            *(_of_order(postings.late_spend), _cannot_pay_after_all),
        ),
        ResolutionRule(COMPLETE, "is completed", (*PAYOUTS, REVERSED), (Books.SPENT,), _leave),
        ResolutionRule(
            *(CANCEL, "money is not out", (*PAYOUTS, REVERSED), (Books.IN_FLIGHT,), _cancel_withdrawal),
            *(_HOLD_RETURNED, _may_be_paid, (CANCELLED,)),
        ),
        ResolutionRule(CANCEL, "money is not out", PAYOUTS, (Books.HELD_AGAIN,), _release_again, _HOLD_RETURNED),
        ResolutionRule(CANCEL, "is cancelled", (*PAYOUTS, REVERSED), (Books.FREE,), _leave),
        ResolutionRule(CREDIT, "give back", _BOUNCED, (Books.SPENT,), _give_back, _of_order(postings.give_back)),
    ),
}
# Reasons why no rule matches.
_UNFIT = {
    (True, CREDIT): N_("No payment was received, so nothing can be credited."),
    (True, REFUND): N_("No payment was received, so nothing can be refunded."),
    (True, COMPLETE): N_(
        "Only an unpaid or cancelled deposit can be completed, with a payment that covers the order's amount."
    ),
    (True, CANCEL): N_("Only an unpaid deposit without a response from its channel can be cancelled."),
    (False, COMPLETE): N_("This withdrawal can't be completed in its current status."),
    (False, CANCEL): N_("This withdrawal can't be cancelled in its current status."),
    (False, CREDIT): N_("Only a withdrawal that was paid out and then reversed can be returned to the merchant."),
}


def _fitting(order: Order, exception: PaymentException, resolution: str) -> ResolutionRule | None:
    ways = (way for way in RULES[order.is_buy] if way.resolution == resolution)
    return next((way for way in ways if way.fits(order, exception)), None)


def find(order: Order, exception: PaymentException, resolution: str) -> ResolutionRule:
    """Return the rule for this exception and resolution. Raises OperatorError with the reason if none matches."""
    known = dict.fromkeys(way.resolution for way in RULES[order.is_buy])
    if resolution not in known:
        raise OperatorError(f"An exception of this order can be resolved by {' or '.join(known)}, not by {resolution}.")
    if sandbox_guard.is_barred(order.channel):
        raise OperatorError(sandbox_guard.DEMO_ONLY)
    if resolution == COMPLETE:
        sandbox_guard.refuse_payout(order)
    way = _fitting(order, exception, resolution)
    if way is None:
        raise OperatorError(_UNFIT[order.is_buy, resolution])
    if why := way.against(order, exception):
        raise OperatorError(why)
    return way


def callbacks_of(way: ResolutionRule, order: Order, exception: PaymentException) -> tuple[Outgoing, ...]:
    """Return the callbacks of the order's steps and of the resolution."""
    passed = way.steps.index(order.status) + 1 if order.status in way.steps else 0
    steps = way.steps[-1:] if order.status == CANCELLED else way.steps[passed:]
    event = EVENTS.get(way.resolution, "") if exception.kind in MONEY_IN else ""
    ended = completed(order, exception) if way.case == COMPLETE_ORDER else None
    return previews.of_steps(order, steps, event, ended)


def possible(order: Order, exception: PaymentException) -> list[ResolutionRule]:
    """Return all rules that can resolve this exception now."""
    if sandbox_guard.is_barred(order.channel):
        return []
    fitting = [way for name in RESOLUTIONS if (way := _fitting(order, exception, name))]
    return [way for way in fitting if not way.against(order, exception)]


EVENTS = {CREDIT: "order.credited", REFUND: "order.refunded"}  # optional events of merchants


def open_exceptions(order: Order) -> list[PaymentException]:
    """Return the order's open exceptions that an operator can resolve, oldest first, without `unknown_outcome`."""
    return list(
        PaymentException.select()
        .where(
            PaymentException.order == order,
            PaymentException.resolution.is_null(),
            PaymentException.kind != UNKNOWN_OUTCOME,
        )
        .order_by(PaymentException.id)
    )


def _long_silence(order: Order) -> list[PaymentException]:
    """Return exceptions about a channel's silence that lasted so long that an operator may decide after checking
    there."""
    return list(
        PaymentException.select().where(
            PaymentException.order == order,
            PaymentException.resolution.is_null(),
            PaymentException.kind == UNKNOWN_OUTCOME,
            (PaymentException.createtime <= clock.now() - payouts.LONG) | (order.status == CANCELLED),
        )
    )


def settleable(order: Order) -> list[PaymentException]:
    """Return the exceptions that an operator can resolve now: the open ones, or otherwise a silence of a day."""
    return open_exceptions(order) or _long_silence(order)


def resolve(
    order: Order,
    resolution: str,
    who: str = "operator",
    exception_id: int | None = None,
    amount: int | None = None,
) -> PaymentException:
    """Resolve one open exception of an order by one of `positions.RESOLUTIONS`, in one transaction.

    If the channel may have a withdrawal, its status is checked first, outside any transaction (`payouts`).

    Args:
        amount: the exception's amount when it was read, in fen; None to accept any amount.

    Raises:
        OperatorError: there is no exception, there are several and no id is given, it can't be resolved that way, it or
            the order changed since it was read, or the channel's report contradicts the decision.
    """
    exception = _named(order, exception_id, amount)
    find(order, exception, resolution)
    if payouts.may_be(order, exception):
        payouts.check(order, payouts.OUT if resolution == COMPLETE else payouts.NOT_OUT, exception)
    return _resolve(order, resolution, who, exception)


@transaction
def _resolve(order: Order, resolution: str, who: str, seen: PaymentException) -> PaymentException:
    checked, order = order, Order.for_update(order.id)
    exception = _named(order, seen.id, seen.amount)
    way = find(order, exception, resolution)
    if order.status != checked.status:
        raise OperatorError(
            N_("The order changed just now. Its status is %(status)s."),
            status=STATUS_TEXTS[order.order_type, order.status],
        )
    if payouts.may_be(order, exception) and not payouts.is_as_checked(order, checked):
        raise OperatorError(N_("The withdrawal changed just now. Reload and try again."))
    if not exception.resolve(resolution, who):
        raise OperatorError(N_("This exception was already resolved."))
    way.act(order, exception, who)
    next_step.hold_or_resume(order)
    lifecycle.note(order, who, lifecycle.settled(exception, resolution))
    if exception.kind in MONEY_IN and resolution in EVENTS:
        outbox.enqueue(order, EVENTS[resolution], exception.id)
    return exception


def _named(order: Order, exception_id: int | None, amount: int | None) -> PaymentException:
    """Return the open exception with this id, or the only one; with this amount, if one is given."""
    found = [exception for exception in settleable(order) if exception_id in (None, exception.id)]
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
