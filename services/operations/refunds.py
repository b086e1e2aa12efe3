"""What operators do with refunds: what one would do, its request, and the check of its status."""

from __future__ import annotations

from dataclasses import dataclass

from models.db.writer import transaction
from models.tables.ledger import AVAILABLE, LedgerAccount
from models.tables.maintenance import paused_since
from models.tables.order import COMPLETED, CONFIRMED, Order
from models.tables.refund import BALANCE, EXCEPTION, Refund, lives, refunds_of
from runtime import clock
from services.channels.calls import driver_of
from services.errors import N_, ApiError, OperatorError
from services.ledger import postings
from services.ledger.postings import Lines
from services.refunds import approve, place
from services.refunds.place import MOST_REASON, NotRefundable, Quote, Refusal, Wanted

REPEATED_WITHIN = 600  # seconds in which the same amount of an order must be confirmed
NOT_COVERED = N_("The merchant's available balance does not cover the refund.")
REPEATED = N_("This amount of the order was refunded within the last ten minutes. Confirm that you refund it again.")


@dataclass(frozen=True)
class Terms:
    """A refund before an operator requests it, as the operator confirms it. Amounts in fen.

    `available` is the merchant's balance now. `is_repeated`: the same amount was refunded a short time ago.
    `is_reviewed`: another operator must approve it. `lines` are its postings once it is completed.
    """

    quote: Quote
    available: int
    is_repeated: bool
    is_reviewed: bool
    lines: Lines

    @property
    def available_after(self) -> int:
        """The merchant's available balance after the refund."""
        return self.available - (self.quote.deducted if self.quote.paid_from == BALANCE else 0)


def refunded_of(order: Order) -> int:
    """Return the completed refunds of the order's own payment, in fen."""
    return sum(each.amount for each in _own(order) if each.status == COMPLETED)


def _own(order: Order) -> list[Refund]:
    own = [each for each in lives(refunds_of(order)) if each.reference == order.channel_reference]
    return [each for each in own if each.paid_from != EXCEPTION]


def why_not_refund(order: Order) -> tuple[str, bool]:
    """Return the reason not to refund a deposit now, "" for none, and whether its page shows that reason.

    It does not if the order has no payment, or all of it was refunded.
    """
    try:
        place.quote(order, None)
    except NotRefundable as refusal:
        shows = refusal.reason is not Refusal.STATE and (refusal.reason is not Refusal.AMOUNT or refusal.left > 0)
        return refusal.for_operator.args[0], shows and _is_received(order)
    return "", False


def _is_received(order: Order) -> bool:
    return order.is_buy and order.status in (CONFIRMED, COMPLETED) and _left(order) > 0


def _left(order: Order) -> int:
    return int(order.received) - sum(each.amount for each in _own(order))


def state_of(order: Order) -> str:
    """Return what a refund of the order depends on, besides its amount and who pays."""
    made = [(each.refund_no, each.status) for each in refunds_of(order)]
    return repr((order.status, order.received, order.service_amount, order.merchant.refund_fees, made))


def terms(order: Order, amount: int | None, who: str, *, by_platform: bool) -> Terms:
    """Return what a refund of this amount in fen does; None for all that is left.

    Raises:
        OperatorError: the order can't be refunded, or not by this amount.
    """
    try:
        quote = place.quote(order, amount, by_platform=by_platform)
    except NotRefundable as refusal:
        raise refusal.for_operator from None
    shown = Refund(
        merchant=order.merchant_id,
        amount=quote.amount,
        service_amount=quote.fee,
        merchant_actual_amount=quote.deducted,
        paid_from=quote.paid_from,
    )
    return Terms(
        quote,
        available=LedgerAccount.balance_of(AVAILABLE, order.merchant_id),
        is_repeated=_is_repeated(order, quote.amount),
        is_reviewed=approve.needs_second(order, quote.amount, who),
        lines=postings.refund(shown, order, "", COMPLETED),
    )


def _is_repeated(order: Order, amount: int) -> bool:
    since = clock.now() - REPEATED_WITHIN
    return any(each.amount == amount and each.createtime >= since for each in _own(order))


def check_reason(reason: str) -> None:
    """Raise OperatorError if the reason is too long for channels."""
    if len(reason.encode()) > MOST_REASON:
        raise OperatorError(N_("The reason is too long: at most 80 letters, or 26 Chinese characters."), "reason")


@transaction
def request(
    order: Order,
    amount: int | None,
    who: str,
    *,
    reason: str = "",
    by_platform: bool = False,
    again: bool = False,
    alone: bool = False,
    state: str | None = None,
) -> Refund:
    """Place a refund that an operator requests; the next sweep sends it, if no other operator must approve it.

    Args:
        amount: in fen; None for all that is left.
        again: the operator knows that the same amount was refunded a short time ago.
        alone: from the command line, which needs no second operator.
        state: `state_of` the order as the operator saw it; None for any.

    Raises:
        OperatorError: the order can't be refunded, or not by this amount; the balance does not cover it; the same
            amount was refunded a short time ago; the order changed.
    """
    order = Order.for_update(order.id)
    if state not in (None, state_of(order)):
        raise OperatorError(N_("The order changed since this page was loaded. Reload and try again."))
    check_reason(reason)
    wanted = terms(order, amount, who, by_platform=by_platform)
    if wanted.is_repeated and not again:
        raise OperatorError(REPEATED, "again")
    approved_by = "" if wanted.is_reviewed and not alone else who
    placing = Wanted(
        amount=wanted.quote.amount, who=who, approved_by=approved_by, reason=reason, by_platform=by_platform
    )
    try:
        return place.place(order, placing)
    except ApiError:  # the balance is the only one that a placed refund can lack
        raise OperatorError(NOT_COVERED, "amount") from None


def asks_before_reject(refund: Refund) -> bool:
    """Return whether a rejection first checks the status at the channel, which may have the refund."""
    return paused_since() is not None and not driver_of(refund.channel).by_hand


def find(refund_no: str) -> Refund:
    """Return the refund with this number, with its order. Raises OperatorError."""
    found: Refund | None = Refund.select(Refund, Order).join(Order).where(Refund.refund_no == refund_no).first()
    if found is None:
        raise OperatorError(N_("no refund %(refund_no)s"), refund_no=refund_no)
    return found
