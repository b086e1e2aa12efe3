"""The rules by which operators resolve exceptions: what each does, and when. Each kind of order has its own rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from models.tables.order import Order, PaymentException
from services.ledger.postings import Lines


class Case(StrEnum):
    """Every way to resolve an exception."""

    # Deposits
    CREDIT_AND_CANCEL = "credit_and_cancel"  # the payment is credited, and the order cancelled
    CREDIT = "credit"
    VALID_AFTER_ALL = "valid_after_all"  # the confirmed deposit is credited
    COMPLETE_ORDER = "complete_order"
    SEND_BACK_AND_CANCEL = "send_back_and_cancel"
    SEND_BACK = "send_back"
    STAYS_CREDITED = "stays_credited"
    NOBODY_PAID = "nobody_paid"
    # Withdrawals
    PAID_OUT = "paid_out"  # the held money is spent
    PAID_AFTER_ALL = "paid_after_all"  # it is deducted from the balance
    IS_COMPLETED = "is_completed"
    NOT_PAID_OUT = "not_paid_out"  # the held money is returned
    GIVE_BACK = "give_back"
    # Refunds
    SEND_BACK_BY_CHANNEL = "send_back_by_channel"  # a refund at the channel, which resolves it once it is completed
    REFUND_RECEIVED = "refund_received"  # the payer got the money
    REFUND_CAME_BACK = "refund_came_back"  # the money is at the channel
    # Both
    IS_CANCELLED = "is_cancelled"


def _nothing(order: Order, exception: PaymentException, who: str) -> None:
    """Leave the order and the money as they are."""


def _no_lines(order: Order, exception: PaymentException) -> Lines:
    return {}


def _always(order: Order, exception: PaymentException) -> bool:
    return True


def _no_objection(order: Order, exception: PaymentException) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class ResolutionRule:
    """One way to resolve an exception: for each resolution of an order's kind, the first rule that fits counts.

    `kinds` are those of the exception, `states` those of the order: its status, or the state of a withdrawal's money.
    `lines` are the postings (fen by account), `against` returns a further reason against it or "", and `act` performs
    it in the transaction that closes the exception. `steps` are the statuses that the order takes, unless it has them
    already. `ended` returns the order as it will be, nothing stored, if that differs by more than its status. `fits`
    is a further condition. If not `resolves`, it only begins what will resolve the exception. With `sent_back`, an
    operator has sent the money back by a transfer outside the service.
    """

    resolution: str
    case: Case
    kinds: tuple[str, ...]
    states: tuple[Any, ...]
    act: Callable[[Order, PaymentException, str], object] = _nothing
    lines: Callable[[Order, PaymentException], Lines] = _no_lines
    against: Callable[[Order, PaymentException], str] = _no_objection
    fits: Callable[[Order, PaymentException], bool] = _always
    resolves: bool = True
    sent_back: bool = False
    steps: tuple[str, ...] = ()
    ended: Callable[[Order, PaymentException], Order] | None = None


def of_order(lines: Callable[[Order], Lines]) -> Callable[[Order, PaymentException], Lines]:
    """Return the postings of an order as those of a rule."""
    return lambda order, exception: lines(order)
