"""The ways to settle an exception: of which orders and exceptions each can be chosen, what it moves, what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import business_clock
from models.ledger import AVAILABLE, CLEARING, FEES, LedgerAccount, Posting
from models.order import (
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAYOUT_CONFLICT,
    PENDING,
    REVERSED,
    STATUSES,
    UNKNOWN_OUTCOME,
    WRONG_AMOUNT,
    Order,
    PaymentException,
)
from services import fees, ledger, lifecycle, postings
from services.channels import LATE
from services.errors import N_, NotPossible, Refused
from services.postings import OPERATOR, Lines
from services.settlement import cancel_withdrawal, complete_deposit, complete_withdrawal

CREDIT, REFUND, COMPLETE, CANCEL = RESOLUTIONS = ("credit", "refund", "complete", "cancel")
ANY_KIND = (*MONEY_IN, PAYOUT_CONFLICT, REVERSED, UNKNOWN_OUTCOME)

Act = Callable[[Order, PaymentException, str], object]


def _nothing(order: Order, exception: PaymentException) -> Lines:
    return {}


def _no_objection(order: Order, exception: PaymentException) -> str:
    return ""


@dataclass(frozen=True)
class Way:
    """One way to settle an exception.

    `case` names what it does, `lines` what it moves (fen by account), `against` what else may speak against it
    ("" where nothing does), `act` does it inside the transaction in which the exception is closed.
    """

    resolution: str
    case: str
    kinds: tuple[str, ...]
    statuses: tuple[str, ...]
    act: Act
    lines: Callable[[Order, PaymentException], Lines] = _nothing
    against: Callable[[Order, PaymentException], str] = _no_objection

    def fits(self, order: Order, exception: PaymentException) -> bool:
        """Is it about such an exception of such an order?"""
        return exception.kind in self.kinds and order.status in self.statuses


def _credit_lines(order: Order, exception: PaymentException) -> Lines:
    """What came in is credited at the order's own rate."""
    fee = fees.share(exception.amount, order.service_rate)
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
    ledger.post(f"exception {exception.id}", lines, who=who, order=order, memo=exception.kind)


def _close_unpaid(order: Order, exception: PaymentException, who: str) -> None:
    """An order that was not paid in full ends as cancelled."""
    lifecycle.move(order, CANCELLED, who, "paid an amount that does not match")


def _credit_and_close(order: Order, exception: PaymentException, who: str) -> None:
    _credit(order, exception, who)
    _close_unpaid(order, exception, who)


def _complete_deposit(order: Order, exception: PaymentException, who: str) -> None:
    complete_deposit(order, "found to be paid after all", who)


def _cancel_deposit(order: Order, exception: PaymentException, who: str) -> None:
    lifecycle.move(order, CANCELLED, who, f"exception {exception.kind}", due_at=business_clock.now() + LATE[0])


def _complete_withdrawal(order: Order, exception: PaymentException, who: str) -> None:
    complete_withdrawal(order, who, f"exception {exception.kind}", exception.reference)


def _cancel_withdrawal(order: Order, exception: PaymentException, who: str) -> None:
    cancel_withdrawal(order, who, f"exception {exception.kind}", due_at=business_clock.now() + LATE[0])


def _cannot_pay_after_all(order: Order, exception: PaymentException) -> str:
    """What speaks against having the merchant's balance pay for a cancelled withdrawal that went out all the same."""
    if exception.amount != order.amount:
        return "not the order's amount went out: correct the balance by ledger adjust, and --cancel"
    if LedgerAccount.balance_of(AVAILABLE, order.merchant_id) < order.merchant_actual_amount:
        return "the merchant's balance does not cover what went out"
    return ""


def _pay_after_all(order: Order, exception: PaymentException, who: str) -> None:
    try:
        ledger.post(f"exception {exception.id}", postings.late_spend(order), who=who, order=order, memo=exception.kind)
    except Refused:
        raise NotPossible(N_("the merchant's balance does not cover what went out")) from None


def _given_back(order: Order, exception: PaymentException) -> str:
    given = Posting.select().where(Posting.order == order, Posting.purpose == "return").exists()
    return "what this withdrawal took was given back already" if given else ""


def _give_back(order: Order, exception: PaymentException, who: str) -> None:
    ledger.post("return", postings.give_back(order), who=who, order=order, memo=exception.kind)


def _of_order(lines: Callable[[Order], Lines]) -> Callable[[Order, PaymentException], Lines]:
    return lambda order, exception: lines(order)


def _leave(order: Order, exception: PaymentException, who: str) -> None:
    """Nothing moves."""


_BOUNCED = (REVERSED,)
_ENDED = tuple(status for status in STATUSES if status != CONFIRMED)
_HOLD_SPENT, _HOLD_RETURNED = _of_order(postings.spend), _of_order(postings.release)
# By whether the order is a deposit. Of each resolution, the first that fits counts.
WAYS: dict[bool, tuple[Way, ...]] = {
    True: (
        Way(
            *(CREDIT, "credit what came, cancel", (WRONG_AMOUNT,), (PENDING,), _credit_and_close),
            *(_credit_lines, _names_no_amount),
        ),
        Way(CREDIT, "credit what came", MONEY_IN, STATUSES, _credit, _credit_lines, _names_no_amount),
        Way(CREDIT, "good after all", _BOUNCED, (CONFIRMED,), _complete_deposit, _of_order(postings.credit)),
        Way(REFUND, "send back, cancel", (WRONG_AMOUNT,), (PENDING,), _close_unpaid),
        Way(REFUND, "send back", MONEY_IN, STATUSES, _leave),
        Way(REFUND, "stays credited", _BOUNCED, _ENDED, _leave),
        Way(CANCEL, "nobody paid", (UNKNOWN_OUTCOME,), (PENDING,), _cancel_deposit),
    ),
    False: (
        Way(COMPLETE, "money is out", ANY_KIND, (CONFIRMED,), _complete_withdrawal, _HOLD_SPENT),
        Way(
            *(COMPLETE, "out after all", (PAYOUT_CONFLICT,), (CANCELLED,), _pay_after_all),
            *(_of_order(postings.late_spend), _cannot_pay_after_all),
        ),
        Way(COMPLETE, "is completed", ANY_KIND, (COMPLETED,), _leave),
        Way(CANCEL, "money is not out", ANY_KIND, (CONFIRMED,), _cancel_withdrawal, _HOLD_RETURNED),
        Way(CANCEL, "is cancelled", ANY_KIND, (CANCELLED,), _leave),
        Way(CREDIT, "give back", _BOUNCED, (COMPLETED,), _give_back, _of_order(postings.give_back), _given_back),
    ),
}
# Why none fits.
_UNFIT = {
    (True, CREDIT): "no money came in: there is nothing to credit",
    (True, REFUND): "a confirmed deposit can't be cancelled, and where no money came in there is none to send back: "
    "credit it, cancel it, or leave the exception open",
    (True, CANCEL): "only a pending deposit whose channel does not answer is cancelled",
    (False, COMPLETE): "the withdrawal is {status}: it can't be completed",
    (False, CANCEL): "the withdrawal is {status}: it can't be cancelled",
    (False, CREDIT): "only a completed withdrawal that was reversed is credited back",
}


def _fitting(order: Order, exception: PaymentException, resolution: str) -> Way | None:
    ways = (way for way in WAYS[order.is_buy] if way.resolution == resolution)
    return next((way for way in ways if way.fits(order, exception)), None)


def find(order: Order, exception: PaymentException, resolution: str) -> Way:
    """The way to settle this exception by this resolution. Raises NotPossible: there is none, and why."""
    known = dict.fromkeys(way.resolution for way in WAYS[order.is_buy])
    if resolution not in known:
        raise NotPossible(f"an exception of this order is settled by {' or '.join(known)}, not by {resolution}")
    way = _fitting(order, exception, resolution)
    if way is None:
        raise NotPossible(_UNFIT[order.is_buy, resolution].format(status=order.status))
    if why := way.against(order, exception):
        raise NotPossible(why)
    return way


def possible(order: Order, exception: PaymentException) -> list[Way]:
    """All ways in which this exception can be settled now."""
    fitting = [way for name in RESOLUTIONS if (way := _fitting(order, exception, name))]
    return [way for way in fitting if not way.against(order, exception)]
