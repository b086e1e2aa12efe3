"""Refunds that shops request: each is placed once, however often its request is repeated."""

from __future__ import annotations

from peewee import IntegrityError

from models.db.writer import transaction
from models.tables.epay import EpayOrder
from models.tables.merchant import Merchant
from models.tables.order import CANCELLED, COMPLETED, Order
from models.tables.refund import EXCEPTION, Refund, lives, refunds_of
from runtime import clock
from runtime.money import hundredths
from services.callbacks import epay_notices
from services.epay.refusals import Refusal, Refused
from services.errors import ApiError, Code
from services.merchants.cache import Known
from services.refunds import place as placing
from services.refunds import search, send
from services.refunds.place import NotRefundable

WHO = "shop"
REPEATED = 600  # seconds for which a completed part and the next equal request without a number are the same refund
REASONS = {
    placing.Refusal.DISABLED: Refusal.NO_REFUNDS,
    placing.Refusal.STATE: Refusal.NOT_PAID,
    placing.Refusal.WINDOW: Refusal.REFUND_TOO_LATE,
    placing.Refusal.DRIVER: Refusal.NO_REFUNDS_OF_CHANNEL,
    placing.Refusal.EXCEPTION: Refusal.UNDER_REVIEW,
    placing.Refusal.AMOUNT: Refusal.REFUND_AMOUNT,
}


def place(payment: EpayOrder, amount: int, number: str) -> Refund:
    """Place a refund of a shop's payment, and send it at once if it needs no approval; return it as it is then.

    A repeated request returns the same refund. With a number, that is the merchant's refund with this number, also if
    it was requested by the API. Without one, it is the live refund of the whole amount, or the shop's own one of the
    same part, while that is open and for ten minutes after it is completed.

    Args:
        amount: in fen.
        number: the shop's own; empty without one.

    Raises:
        Refused: it is not possible, or was rejected.
    """
    if payment.order is None:
        raise Refused(Refusal.NOT_PAID)
    try:
        try:
            refund, is_new = _placed(payment.order_id, amount, number)
        except IntegrityError:  # a concurrent request for another order has taken the number
            refund, is_new = _placed(payment.order_id, amount, number)
    except NotRefundable as refusal:
        raise Refused(REASONS[refusal.reason], left=hundredths(refusal.left)) from None
    except ApiError as error:
        if error.code is Code.INSUFFICIENT_BALANCE:
            raise Refused(Refusal.BALANCE_TOO_LOW) from None
        raise
    if is_new and refund.approved_by:
        refund = send.send_now(refund)
    if refund.status == CANCELLED:
        raise Refused(Refusal.REFUND_REJECTED)
    return refund


@transaction
def _placed(order_id: int, amount: int, number: str) -> tuple[Refund, bool]:
    """Return the refund and whether it is new. The order is locked before earlier refunds are read."""
    order = Order.for_update(order_id)
    earlier = _numbered(order, amount, number) if number else _repeated(order, amount)
    if earlier is not None:
        earlier.order = order
        return earlier, False
    merchant = Merchant.get_by_id(order.merchant_id)
    return placing.place(order, placing.requested(merchant, amount, WHO, number or None)), True


def _numbered(order: Order, amount: int, number: str) -> Refund | None:
    """Return the merchant's refund with this number. Raises Refused if it is another one than this."""
    mine = (Refund.merchant == order.merchant_id) & (Refund.merchant_refund_no == number)
    found: Refund | None = Refund.get_or_none(mine)
    if found is not None and (found.order_id, found.amount) != (order.id, amount):
        raise Refused(Refusal.REFUND_CHANGED)
    return found


def _repeated(order: Order, amount: int) -> Refund | None:
    """Return the refund that a request without a number repeats, or None."""
    own = [each for each in lives(refunds_of(order)) if each.reference == order.channel_reference]
    equal = [each for each in own if each.amount == amount and each.paid_from != EXCEPTION]
    if amount == order.received:
        return next(iter(equal), None)
    since = clock.now() - REPEATED
    shops = [each for each in equal if each.who == WHO and each.merchant_refund_no is None]
    return next((each for each in shops if each.is_open or (each.completedtime or 0) > since), None)


def find(known: Known, refund_no: str, number: str) -> tuple[Refund, EpayOrder]:
    """Return a merchant's refund by our number or, without one, by the shop's, and the payment.

    Raises:
        Refused: the merchant has none with this number, or its order did not come through the gateway.
    """
    try:
        refund = search.find(known.merchant, {"refund_no": refund_no} if refund_no else {"merchant_refund_no": number})
    except ApiError:  # Code.REFUND_NOT_FOUND
        raise Refused(Refusal.NO_REFUND) from None
    payment = epay_notices.payment_of(refund.order)
    if payment is None or (refund_no and number and refund.merchant_refund_no != number):
        raise Refused(Refusal.NO_REFUND)
    return refund, payment


def refunded(orders: list[Order]) -> dict[int, int]:
    """Return how much the payers of these orders got back of the credited payments, in fen by order id."""
    sums = dict.fromkeys((order.id for order in orders), 0)
    own = (Refund.paid_from != EXCEPTION) & (Refund.reference == Order.channel_reference)
    done = Refund.select(Refund.order, Refund.amount).join(Order).where(own, Refund.status == COMPLETED)
    for order_id, amount in done.where(Refund.order.in_(list(sums))).tuples() if sums else ():
        sums[order_id] += amount
    return sums
