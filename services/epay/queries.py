"""Payments as shops query them, and a merchant's figures."""

from __future__ import annotations

from dataclasses import dataclass

from peewee import fn

from gateways.base import ChannelError, Payer
from models.tables.epay import REPLACED, EpayOrder
from models.tables.ledger import AVAILABLE, LedgerAccount
from models.tables.order import BUY, COMPLETED, PENDING, History, Order
from models.tables.order_counts import OrderCount
from runtime import clock
from runtime.clock import in_china
from services.callbacks import epay_notices
from services.channels.calls import driver_of
from services.deposits import attempts
from services.epay.refusals import Refusal, Refused
from services.merchants.cache import Known
from services.orders.reasons import reason_of

DAY = 86_400


def find(known: Known, trade_no: str, out_trade_no: str) -> EpayOrder:
    """Return a merchant's payment by our number or, without one, by the shop's. Raises Refused."""
    if not trade_no:
        payment = EpayOrder.of_shop(known.merchant.id, out_trade_no)
    elif first := Order.get_or_none(Order.order_no == trade_no, Order.merchant == known.merchant):
        payment = EpayOrder.of_shop(known.merchant.id, first.merchant_order_no)
    else:
        payment = EpayOrder.without_order(trade_no)
    if (
        payment is None
        or payment.merchant_id != known.merchant.id
        or (trade_no and payment.trade_no != trade_no)  # the number of another of its orders
    ):
        raise Refused(Refusal.NO_ORDER)
    return payment


@dataclass(frozen=True)
class ShopRequest:
    """What a shop asked for, of one of the payment's orders.

    `before` is the number of the order that it replaces, `after` that of the order that replaced it; empty without one.
    """

    payment: EpayOrder
    before: str
    after: str


def request_of(order: Order) -> ShopRequest | None:
    """Return what the shop asked for if the order came through the gateway, or None."""
    payment = epay_notices.payment_of(order) if order.is_buy else None
    if payment is None:
        return None
    mine = (Order.merchant == order.merchant_id) & (Order.merchant_order_no == payment.out_trade_no)
    lines = History.select(History, Order).join(Order).where(mine, History.code == REPLACED).order_by(History.id)
    pairs = [(line.order.order_no, str(reason_of(line).args["order_no"])) for line in lines]
    after = [then for first, then in pairs if first == order.order_no and payment.order_id != order.id][-1:]
    before = [first for first, then in pairs if then == order.order_no and first not in after][-1:]
    return ShopRequest(payment, "".join(before), "".join(after))


def page(known: Known, limit: int, offset: int) -> list[EpayOrder]:
    """Return a page of a merchant's payments with their orders, newest first."""
    query = EpayOrder.select(EpayOrder, Order).left_outer_join(Order).where(EpayOrder.merchant == known.merchant)
    return list(query.order_by(EpayOrder.id.desc()).limit(limit).offset(offset))


def is_paid(payment: EpayOrder) -> bool:
    """Return whether the payment counts as paid for the shop: its order is completed."""
    return payment.order is not None and payment.order.status == COMPLETED


def code_of(payment: EpayOrder) -> str:
    """Return the text of the QR code that pays exactly this amount; empty if the payer must see a page.

    A code of a manual channel has no amount, and the payer must also see its instructions and report the payment. A
    payer whose money is being checked must not pay again.
    """
    order = payment.order
    if order is None or order.status != PENDING or driver_of(order.channel).by_hand:
        return ""
    is_checked = order.due_at is None  # an operator decides about money that arrived
    if is_checked or clock.now() >= (order.expires_at or 0):
        return ""
    try:
        shown = attempts.shown_to(order, Payer("", "pc")).opened
    except ChannelError:
        return ""
    return shown.qr if shown is not None else ""


@dataclass(frozen=True)
class Summary:
    """A merchant's balance in fen, the number of its deposits, and of those completed today and yesterday in China."""

    available: int
    orders: int
    today: int
    yesterday: int


def summary(known: Known) -> Summary:
    """Return the figures of a merchant."""
    merchant, now = known.merchant, clock.now()
    midnight = int(in_china(now).replace(hour=0, minute=0, second=0).timestamp())
    mine = (OrderCount.merchant == merchant) & (OrderCount.order_type == BUY)
    orders = OrderCount.select(fn.SUM(OrderCount.count)).where(mine).scalar()

    def completed(start: int, end: int) -> int:
        during = (Order.merchant == merchant) & Order.completedtime.between(start, end - 1)
        return int(Order.select().where(during, Order.order_type == BUY).count())

    return Summary(
        LedgerAccount.balance_of(AVAILABLE, merchant.id),
        int(orders or 0),
        completed(midnight, now + 1),
        completed(midnight - DAY, midnight),
    )
