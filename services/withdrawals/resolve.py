"""The rules by which operators resolve the exceptions of withdrawals."""

from __future__ import annotations

from models.tables.ledger import AVAILABLE, LedgerAccount
from models.tables.order import (
    AT_CHANNEL,
    CANCELLED,
    COMPLETED,
    PAID,
    REVERSED,
    UNKNOWN_OUTCOME,
    Order,
    PaymentException,
)
from models.tables.payout_batch import PayoutBatchLine
from runtime import clock
from services.channels.calls import LATE
from services.errors import N_, ApiError, OperatorError
from services.ledger import accounts, postings
from services.ledger.postings import RELEASE_AGAIN, SPEND_AGAIN
from services.orders import lifecycle
from services.orders.resolution import Case, ResolutionRule, of_order
from services.orders.verdict import CANCEL, COMPLETE, CREDIT
from services.withdrawals import send, settle
from services.withdrawals.money import WithdrawalMoney

_UNCOVERED = N_("The merchant's available balance does not cover the payout.")


def _complete(order: Order, exception: PaymentException, who: str) -> None:
    settle.complete(order, who, lifecycle.settled(exception, COMPLETE), exception.reference)


def _cancel(order: Order, exception: PaymentException, who: str) -> None:
    settle.cancel(order, who, lifecycle.settled(exception, CANCEL), due_at=clock.now() + LATE[0])


def _spend_again(order: Order, exception: PaymentException, who: str) -> None:
    accounts.post(accounts.numbered(order, SPEND_AGAIN), postings.spend(order), who=who, order=order)
    Order.update(channel_reference=exception.reference).where(Order.id == order.id).execute()


def _release_again(order: Order, exception: PaymentException, who: str) -> None:
    accounts.post(accounts.numbered(order, RELEASE_AGAIN), postings.release(order), who=who, order=order)


def _cannot_deduct(order: Order, exception: PaymentException) -> str:
    """Return the reason not to deduct a cancelled withdrawal that was paid after all from the balance, or ""."""
    if exception.amount != order.amount:
        return N_(
            "The amount sent differs from the order. "
            "Correct the balance with ledger adjust, then resolve with --cancel."
        )
    if LedgerAccount.balance_of(AVAILABLE, order.merchant_id) < order.merchant_actual_amount:
        return _UNCOVERED
    return ""


def _deduct(order: Order, exception: PaymentException, who: str) -> None:
    purpose, lines = f"exception {exception.id}", postings.late_spend(order)
    try:
        accounts.post(purpose, lines, who=who, order=order, memo=exception.kind)
    except ApiError:
        raise OperatorError(_UNCOVERED) from None


def _bank_may_pay(order: Order, exception: PaymentException) -> str:
    """Return the reason not to end a withdrawal that the bank may still pay by a file, or ""."""
    if PayoutBatchLine.in_file(order) is None:
        return ""
    return N_("The payout is in a bank file without a result. Import the bank's result or discard the file first.")


def _give_back(order: Order, exception: PaymentException, who: str) -> None:
    accounts.post(accounts.numbered(order, "return"), postings.give_back(order), who=who, order=order)


def check(order: Order, resolution: str, exception: PaymentException) -> None:
    """Ask the channel before an operator decides about a payout that it may have. Raises OperatorError."""
    send.check(order, send.OUT if resolution == COMPLETE else send.NOT_OUT, exception)


_PAYOUTS = (*AT_CHANNEL, UNKNOWN_OUTCOME)

RULES = (
    ResolutionRule(
        resolution=COMPLETE,
        case=Case.PAID_OUT,
        kinds=(*_PAYOUTS, REVERSED),
        states=(WithdrawalMoney.IN_FLIGHT,),
        act=_complete,
        lines=of_order(postings.spend),
        steps=(PAID, COMPLETED),
    ),
    ResolutionRule(
        resolution=COMPLETE,
        case=Case.PAID_OUT,
        kinds=_PAYOUTS,
        states=(WithdrawalMoney.HELD_AGAIN,),
        act=_spend_again,
        lines=of_order(postings.spend),
    ),
    ResolutionRule(
        resolution=COMPLETE,
        case=Case.PAID_AFTER_ALL,
        kinds=_PAYOUTS,
        states=(WithdrawalMoney.FREE,),
        act=_deduct,
        lines=of_order(postings.late_spend),
        against=_cannot_deduct,
    ),
    ResolutionRule(
        resolution=COMPLETE,
        case=Case.IS_COMPLETED,
        kinds=(*_PAYOUTS, REVERSED),
        states=(WithdrawalMoney.SPENT,),
    ),
    ResolutionRule(
        resolution=CANCEL,
        case=Case.NOT_PAID_OUT,
        kinds=(*_PAYOUTS, REVERSED),
        states=(WithdrawalMoney.IN_FLIGHT,),
        act=_cancel,
        lines=of_order(postings.release),
        against=_bank_may_pay,
        steps=(CANCELLED,),
    ),
    ResolutionRule(
        resolution=CANCEL,
        case=Case.NOT_PAID_OUT,
        kinds=_PAYOUTS,
        states=(WithdrawalMoney.HELD_AGAIN,),
        act=_release_again,
        lines=of_order(postings.release),
    ),
    ResolutionRule(
        resolution=CANCEL,
        case=Case.IS_CANCELLED,
        kinds=(*_PAYOUTS, REVERSED),
        states=(WithdrawalMoney.FREE,),
    ),
    ResolutionRule(
        resolution=CREDIT,
        case=Case.GIVE_BACK,
        kinds=(REVERSED,),
        states=(WithdrawalMoney.SPENT,),
        act=_give_back,
        lines=of_order(postings.give_back),
    ),
)
# By resolution: why no rule fits.
UNFIT = {
    COMPLETE: N_("This withdrawal can't be completed in its current status."),
    CANCEL: N_("This withdrawal can't be cancelled in its current status."),
    CREDIT: N_("Only a withdrawal that was paid out and then reversed can be returned to the merchant."),
}
