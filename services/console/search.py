"""Search in the whole service: orders by number, reference or amount, refunds, exceptions, merchants, channels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from peewee import fn

from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import Order, PaymentException
from models.tables.refund import Refund
from services.console.lists import add_owners, mark_open_exceptions, merchants
from services.console.order_list import Orders
from services.console.refund_list import Refunds, with_number

MOST = 10  # rows of each kind
RECENT = 100_000  # orders that are searched for an amount: amounts have no index


@dataclass(frozen=True)
class Hits:
    """Up to MOST rows of each kind, the newest first.

    `orders` have exactly this number, or are the only ones that contain it. `by_reference` have this transaction ID of
    the channel, `by_amount` this amount, among the latest RECENT orders. `more` states that the numbers of further
    orders may contain the text.
    """

    orders: list[Any]
    by_reference: list[Any]
    by_amount: list[Any]
    refunds: list[Any]
    exceptions: list[Any]
    merchants: list[Any]
    channels: list[Any]
    more: bool = False

    @property
    def any(self) -> bool:
        """Whether there is a row of any kind."""
        of_orders = (self.orders, self.by_reference, self.by_amount)
        return any((*of_orders, self.refunds, self.exceptions, self.merchants, self.channels))


def exactly(number: str) -> list[Order]:
    """Return the order with this order number, otherwise up to MOST orders with this merchant order number."""
    by_number = Order.find(number)
    if by_number:
        return [by_number]
    own = Order.select().where(Order.merchant.in_(merchants({})), Order.merchant_order_no == number)
    return list(own.limit(MOST))


def find(text: str, fen: int | None) -> Hits:
    """Search for a text that is not empty; `fen` is the amount that it states, None for none."""
    exact = exactly(text)
    containing = None if exact else Orders({"text": text}).few()
    ids = [key[-1] for key in sorted(containing or [], reverse=True)]
    channels = [row_id for (row_id,) in Channel.select(Channel.id).tuples()]
    known = (Order.channel_reference != "") & (Order.channel_reference == text)
    by_reference = Order.select().where(Order.channel.in_(channels), known).limit(MOST)
    newest = Order.select(fn.MAX(Order.id)).scalar() or 0
    of_amount = Order.select().where(Order.id > newest - RECENT, Order.amount == fen)
    by_amount = [] if fen is None else of_amount.order_by(Order.id.desc()).limit(MOST)
    return Hits(
        orders=_complete(exact or Orders().rows(ids[:MOST])),
        by_reference=_complete(by_reference),
        by_amount=_complete(by_amount),
        refunds=_refunds(text),
        exceptions=_exceptions(text, fen),
        merchants=_named(Merchant, text, Merchant.key, Merchant.name),
        channels=_named(Channel, text, Channel.name),
        more=not exact and (containing is None or len(ids) > MOST),
    )


def _complete(orders: Iterable[Any]) -> list[Any]:
    return mark_open_exceptions(add_owners(sorted(orders, key=lambda order: order.id, reverse=True)))


def _refunds(text: str) -> list[Any]:
    """Return refunds with this number: their own, the merchant's, or the channel's."""
    found = Refund.select(Refund.id).where(with_number(text, of_order=False)).limit(MOST)
    return Refunds().rows(sorted((row_id for (row_id,) in found.tuples()), reverse=True))


def _exceptions(text: str, fen: int | None) -> list[PaymentException]:
    """Return exceptions with this reference, and open ones with this amount."""
    known = (PaymentException.reference != "") & (PaymentException.reference == text)
    found = list(PaymentException.select().where(known).limit(MOST))
    if fen is not None:
        is_open = PaymentException.resolution.is_null()
        found.extend(PaymentException.select().where(is_open, PaymentException.amount == fen).limit(MOST))
    found = sorted({row.id: row for row in found}.values(), key=lambda row: row.id, reverse=True)[:MOST]
    by_id = {order.id: order for order in Order.select().where(Order.id.in_([row.order_id for row in found]))}
    add_owners(list(by_id.values()))
    for row in found:
        row.order = by_id[row.order_id]
    return found


def _named(table: Any, text: str, *columns: Any) -> list[Any]:
    """Return rows of a short table of which a column contains the text."""
    return list(
        table.select().where(reduce(or_, [each.contains(text) for each in columns])).order_by(table.id).limit(MOST)
    )
