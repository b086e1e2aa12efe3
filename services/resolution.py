"""What an operator decides about an exception: one action, once, with the money that belongs to it."""

from __future__ import annotations

import time

from models.ledger import AVAILABLE, CLEARING, FEES, Posting
from models.order import (
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAYOUT_CONFLICT,
    PENDING,
    REVERSED,
    UNKNOWN_OUTCOME,
    WRONG_AMOUNT,
    Order,
    PaymentException,
)
from models.writer import transaction
from services import fees, ledger, lifecycle, postings
from services.channels import LATE
from services.errors import NotPossible, Refused
from services.postings import OPERATOR
from services.settlement import cancel_withdrawal, complete_deposit, complete_withdrawal

LONG = 86_400  # seconds of silence after which a person may decide


def _credit_deposit(order: Order, exception: PaymentException, who: str) -> None:
    """Credit what came in, at the order's own rate, or a confirmed deposit that is good after all.

    A pending order that was not paid in full ends as cancelled.
    """
    if exception.kind == REVERSED and order.status == CONFIRMED:
        complete_deposit(order, "found to be paid after all")
        return
    if exception.kind not in MONEY_IN:
        raise NotPossible("no money came in: there is nothing to credit")
    if not exception.amount:
        raise NotPossible("the channel names no amount: refund it, and adjust the balance if some of it stayed")
    fee = fees.share(exception.amount, order.service_rate)
    lines = {
        (AVAILABLE, order.merchant_id): exception.amount - fee,
        (FEES, OPERATOR): fee,
        (CLEARING, order.channel_id): -exception.amount,
    }
    ledger.post(f"exception {exception.id}", lines, who=who, order=order, memo=exception.kind)
    _close_unpaid(order, exception, who)


def _refund_deposit(order: Order, exception: PaymentException, who: str) -> None:
    """The money goes back outside of this service; a pending order that was not paid in full ends as cancelled."""
    if exception.kind == REVERSED and order.status == CONFIRMED:
        raise NotPossible("a confirmed deposit can't be cancelled: credit it, or leave the exception open")
    _close_unpaid(order, exception, who)


def _close_unpaid(order: Order, exception: PaymentException, who: str) -> None:
    if exception.kind == WRONG_AMOUNT and order.status == PENDING:
        lifecycle.move(order, CANCELLED, who, "paid an amount that does not match")


def _complete_withdrawal(order: Order, exception: PaymentException, who: str) -> None:
    """The operator found that the withdrawal was paid out as ordered."""
    if order.status == CONFIRMED:
        complete_withdrawal(order, who, f"exception {exception.kind}", exception.reference)
    elif order.status == CANCELLED and exception.kind == PAYOUT_CONFLICT:
        _pay_after_all(order, exception, who)
    elif order.status != COMPLETED:
        raise NotPossible(f"the withdrawal is {order.status}: it can't be completed")


def _pay_after_all(order: Order, exception: PaymentException, who: str) -> None:
    """A withdrawal whose hold was returned went out all the same: the merchant's balance pays for it."""
    if exception.amount != order.amount:
        raise NotPossible("not the order's amount went out: correct the balance by ledger adjust, and --cancel")
    try:
        ledger.post(f"exception {exception.id}", postings.late_spend(order), who=who, order=order, memo=exception.kind)
    except Refused:
        raise NotPossible("the merchant's balance does not cover what went out") from None


def _cancel_withdrawal(order: Order, exception: PaymentException, who: str) -> None:
    """The operator found that the withdrawal was not paid out, or got the money back before it was spent."""
    if order.status == CONFIRMED:
        cancel_withdrawal(order, who, f"exception {exception.kind}", due_at=int(time.time()) + LATE[0])
    elif order.status != CANCELLED:
        raise NotPossible(f"the withdrawal is {order.status}: it can't be cancelled")


def _credit_withdrawal(order: Order, exception: PaymentException, who: str) -> None:
    """A completed withdrawal bounced: give back all that it took, fees too."""
    if exception.kind != REVERSED or order.status != COMPLETED:
        raise NotPossible("only a completed withdrawal that was reversed is credited back")
    if Posting.select().where(Posting.order == order, Posting.purpose == "return").exists():
        raise NotPossible("what this withdrawal took was given back already")
    ledger.post("return", postings.give_back(order), who=who, order=order, memo=exception.kind)


def _cancel_deposit(order: Order, exception: PaymentException, who: str) -> None:
    """The operator found that nobody paid, at a channel that does not answer any more."""
    if exception.kind != UNKNOWN_OUTCOME or order.status != PENDING:
        raise NotPossible("only a pending deposit whose channel does not answer is cancelled")
    lifecycle.move(order, CANCELLED, who, f"exception {exception.kind}", due_at=int(time.time()) + LATE[0])


# What may be decided, by whether the order is a deposit.
RESOLUTIONS = {
    True: {"credit": _credit_deposit, "refund": _refund_deposit, "cancel": _cancel_deposit},
    False: {"complete": _complete_withdrawal, "cancel": _cancel_withdrawal, "credit": _credit_withdrawal},
}


def open_exceptions(order: Order) -> list[PaymentException]:
    """The order's open exceptions that an operator can settle, oldest first; silence is settled by an answer."""
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
    """The channel has not answered about the order for so long that a person may decide, who looked there."""
    return list(
        PaymentException.select().where(
            PaymentException.order == order,
            PaymentException.resolution.is_null(),
            PaymentException.kind == UNKNOWN_OUTCOME,
            PaymentException.createtime <= int(time.time()) - LONG,
        )
    )


@transaction
def resolve(order: Order, resolution: str, who: str = "operator", exception_id: int | None = None) -> PaymentException:
    """Settle one open exception of an order by one of RESOLUTIONS, in one transaction.

    Raises:
        NotPossible: there is none, there are several and none is named, or it can't be settled that way.
    """
    actions = RESOLUTIONS[order.is_buy]
    if resolution not in actions:
        raise NotPossible(f"an exception of this order is settled by {' or '.join(actions)}, not by {resolution}")
    order = Order.held(order.id)
    settleable = open_exceptions(order) or _long_silence(order)
    found = [exception for exception in settleable if exception_id in (None, exception.id)]
    if not found:
        raise NotPossible("the order has no such open exception (one of silence only after a day)")
    if len(found) > 1:
        which = ", ".join(f"{exception.id} ({exception.kind})" for exception in found)
        raise NotPossible(f"several exceptions are open, name one: {which}")
    exception = found[0]
    if not exception.resolve(resolution, who):
        raise NotPossible("the exception was settled just now")
    actions[resolution](order, exception, who)
    lifecycle.note(order, who, f"exception {exception.kind}: {resolution}")
    return exception
