"""What an operator decides about an exception: one action, once, with the money that belongs to it."""

from __future__ import annotations

import business_clock
from models.db.writer import transaction
from models.tables.order import CANCELLED, MONEY_IN, UNKNOWN_OUTCOME, Order, PaymentException
from services.callbacks import outbox
from services.errors import N_, OperatorError
from services.orders import lifecycle, payouts, resolutions
from services.orders.positions import COMPLETE, CREDIT, REFUND

EVENTS = {CREDIT: "order.credited", REFUND: "order.refunded"}  # what a merchant that subscribes is told


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
            (PaymentException.createtime <= business_clock.now() - payouts.LONG) | (order.status == CANCELLED),
        )
    )


def settleable(order: Order) -> list[PaymentException]:
    """The exceptions that an operator can settle now: the open ones, else a silence of a day."""
    return open_exceptions(order) or _long_silence(order)


def resolve(
    order: Order,
    resolution: str,
    who: str = "operator",
    exception_id: int | None = None,
    amount: int | None = None,
) -> PaymentException:
    """Settle one open exception of an order by one of `positions.RESOLUTIONS`, in one transaction.

    The channel of a withdrawal that it may have is asked first, outside any transaction (services/orders/payouts.py).

    Args:
        amount: what the exception was about when it was read, in fen; None: whatever it is about now.

    Raises:
        OperatorError: there is none, there are several and none is named, it can't be settled that way, or it was
            corrected, or the order moved on, since it was read; or what the channel reports speaks against it.
    """
    exception = _named(order, exception_id, amount)
    resolutions.find(order, exception, resolution)
    if payouts.may_be(order, exception):
        payouts.check(order, payouts.OUT if resolution == COMPLETE else payouts.NOT_OUT, exception)
    return _resolve(order, resolution, who, exception)


@transaction
def _resolve(order: Order, resolution: str, who: str, seen: PaymentException) -> PaymentException:
    checked, order = order, Order.for_update(order.id)
    exception = _named(order, seen.id, seen.amount)
    way = resolutions.find(order, exception, resolution)
    if order.status != checked.status:
        raise OperatorError(N_("the order moved on just now: it is %(status)s"), status=order.status)
    if payouts.may_be(order, exception) and not payouts.is_as_checked(order, checked):
        raise OperatorError(N_("the withdrawal moved on just now"))
    if not exception.resolve(resolution, who):
        raise OperatorError(N_("the exception was settled just now"))
    way.act(order, exception, who)
    lifecycle.note(order, who, lifecycle.settled(exception, resolution))
    if exception.kind in MONEY_IN and resolution in EVENTS:
        outbox.enqueue(order, EVENTS[resolution], exception.id)
    return exception


def _named(order: Order, exception_id: int | None, amount: int | None) -> PaymentException:
    """The exception that can be settled, by its id, or the only one; about this amount, where one is given."""
    found = [exception for exception in settleable(order) if exception_id in (None, exception.id)]
    if not found:
        raise OperatorError(N_("the order has no such open exception (one of silence only after a day)"))
    if len(found) > 1:
        which = ", ".join(f"{exception.id} ({exception.kind})" for exception in found)
        raise OperatorError(f"several exceptions are open, name one: {which}")
    if amount not in (None, found[0].amount):
        raise OperatorError(N_("the exception was corrected just now: another amount is meant"))
    return found[0]
