"""What an operator decides about an exception: one action, once, with the money that belongs to it."""

from __future__ import annotations

import business_clock
from models.order import CANCELLED, UNKNOWN_OUTCOME, Order, PaymentException
from models.writer import transaction
from services import lifecycle, ways
from services.errors import N_, NotPossible
from services.reasons import Reason

LONG = 86_400  # seconds of silence after which a person may decide


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
            (PaymentException.createtime <= business_clock.now() - LONG) | (order.status == CANCELLED),
        )
    )


def settleable(order: Order) -> list[PaymentException]:
    """The exceptions that an operator can settle now: the open ones, else a silence of a day."""
    return open_exceptions(order) or _long_silence(order)


@transaction
def resolve(
    order: Order,
    resolution: str,
    who: str = "operator",
    exception_id: int | None = None,
    amount: int | None = None,
) -> PaymentException:
    """Settle one open exception of an order by one of `ways.RESOLUTIONS`, in one transaction.

    Args:
        amount: what the exception was about when it was read, in fen; None: whatever it is about now.

    Raises:
        NotPossible: there is none, there are several and none is named, it can't be settled that way, or it was
            corrected, or the order moved on, since it was read.
    """
    seen, order = order.status, Order.held(order.id)
    found = [exception for exception in settleable(order) if exception_id in (None, exception.id)]
    if not found:
        raise NotPossible(N_("the order has no such open exception (one of silence only after a day)"))
    if len(found) > 1:
        which = ", ".join(f"{exception.id} ({exception.kind})" for exception in found)
        raise NotPossible(f"several exceptions are open, name one: {which}")
    exception = found[0]
    if amount not in (None, exception.amount):
        raise NotPossible(N_("the exception was corrected just now: another amount is meant"))
    way = ways.find(order, exception, resolution)
    if order.status != seen:
        raise NotPossible(N_("the order moved on just now: it is %(status)s"), status=order.status)
    if not exception.resolve(resolution, who):
        raise NotPossible(N_("the exception was settled just now"))
    way.act(order, exception, who)
    about = {"kind": exception.kind, "exception": str(exception.id), "resolution": resolution}
    lifecycle.note(order, who, Reason("exception_settled", about))
    return exception
