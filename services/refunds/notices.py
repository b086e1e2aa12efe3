"""Notices of channels about refunds, which arrive at the address of the payment's notices."""

from __future__ import annotations

from gateways.base import Notice
from models.tables.order import Order
from models.tables.refund import Refund
from runtime import clock
from services.channels.calls import LEASE
from services.orders.reasons import Why, because
from services.refunds import settle


def take_refund_notice(order: Order, notice: Notice) -> None:
    """Apply what a genuine notice says about a refund of the order.

    Without a report on the refund, its status is checked now, unless a worker has claimed it. A refund with an unknown
    number was made at the channel.
    """
    refund = Refund.get_or_none(Refund.refund_no == notice.refund_no, Refund.order == order.id)
    if refund is None:
        if notice.refund is not None and order.is_buy:
            settle.take_unknown(order, notice.refund_no, notice.refund, notice.payment)
        return
    refund.order = order
    if notice.refund is not None:
        settle.apply_report(refund, notice.refund, "channel", because(Why.NOTICE))
    elif refund.is_open and refund.due_at is not None and refund.due_at > clock.now() + LEASE:
        refund.set_due(clock.now())
