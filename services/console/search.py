"""Search in the whole service: orders by number, amount or payer, refunds, exceptions, merchants, channels.

Nothing is decided by a search: it only lists rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from peewee import Case, fn

from models.queries import keyset
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import BUY, PAID, PENDING, Order, PaymentException
from models.tables.refund import Refund
from services.console.lists import add_owners, mark_notes, mark_open_exceptions, merchants
from services.console.order_list import Claims, Orders
from services.console.refund_list import Refunds, with_number
from services.security import vault

MOST = 10  # rows of each kind
MOST_ORDERS = 30
RECENT = 100_000  # newest rows that are searched for what has no index: amounts, times, and the ends of numbers
LEAST_END = 4  # characters of the end of a number
AROUND = 15 * 60  # seconds before and after a time
MOST_CLAIMS = 1_000  # newest open claims whose payers' names are decrypted


@dataclass(frozen=True)
class Hits:
    """The rows of each kind: up to MOST_ORDERS orders, and MOST of the others.

    `orders` have this number, a number of theirs ends with it, or the merchant's number contains it, in this order.
    `claims` are open ones of the payer with this name. `by_amount` have this amount, unpaid deposits first;
    `at_other_times` too, if none has it at the given time. `more` states that further orders may have such a number.
    """

    orders: list[Any]
    claims: list[Any]
    by_amount: list[Any]
    at_other_times: list[Any]
    refunds: list[Any]
    exceptions: list[Any]
    merchants: list[Any]
    channels: list[Any]
    more: bool = False

    @property
    def any(self) -> bool:
        """Whether there is a row of any kind."""
        of_orders = (self.orders, self.claims, self.by_amount, self.at_other_times)
        return any((*of_orders, self.refunds, self.exceptions, self.merchants, self.channels))


def exactly(number: str) -> list[Order]:
    """Return the order with this order number, otherwise up to MOST orders with this merchant order number."""
    by_number = Order.find(number)
    if by_number:
        return [by_number]
    own = Order.select().where(Order.merchant.in_(merchants({})), Order.merchant_order_no == number)
    return list(own.limit(MOST))


def find(text: str, fen: int | None = None, at: int | None = None, *, payers: bool = False) -> Hits:
    """Search for a text that is not empty.

    Args:
        fen: the amount that the text states, None for none.
        at: the Unix time that it states beside the amount, None for none. Then the text is no number.
        payers: whether to search for the text as the name of a payer.
    """
    orders, more = _numbered(text) if at is None else ([], False)
    by_amount = [] if fen is None else _complete(_of_amount(fen, at))
    others = [] if fen is None or at is None or by_amount else _complete(_of_amount(fen))
    return Hits(
        orders=_complete(orders[:MOST_ORDERS]),
        claims=_complete(_claims_of(text)) if payers else [],
        by_amount=by_amount,
        at_other_times=others,
        refunds=_refunds(text) if at is None else [],
        exceptions=_exceptions(text, fen),
        merchants=_named(Merchant, text, Merchant.key, Merchant.name),
        channels=_named(Channel, text, Channel.name),
        more=more or len(orders) > MOST_ORDERS,
    )


def _complete(orders: Iterable[Any]) -> list[Any]:
    return mark_notes(mark_open_exceptions(add_owners(list(orders))))


def _newest(table: Any) -> Any:
    """Return the condition for the latest RECENT rows, which the primary key serves."""
    return table.id > (table.select(fn.MAX(table.id)).scalar() or 0) - RECENT


def _ending(table: Any, text: str, *numbers: Any) -> Any:
    """Return a query for the newest rows of which a number ends with the text; for none if the text is too short."""
    rows = table.select().order_by(table.id.desc()).limit(MOST_ORDERS + 1)
    if len(text) < LEAST_END:
        return rows.where(table.id.in_([]))
    return rows.where(_newest(table), reduce(or_, [number.endswith(text) for number in numbers]))


def _numbered(text: str) -> tuple[list[Order], bool]:
    """Return orders by their numbers, and whether further ones may contain the text."""
    exact = exactly(text)
    channels = [row_id for (row_id,) in Channel.select(Channel.id).tuples()]
    known = (Order.channel_reference != "") & (Order.channel_reference == text)
    by_reference = Order.select().where(Order.channel.in_(channels), known).limit(MOST)
    ending = _ending(Order, text, Order.order_no, Order.merchant_order_no, Order.channel_reference)
    containing = None if exact else Orders({"text": text}).few()
    ids = sorted((key[-1] for key in containing or []), reverse=True)
    whole = sorted([*exact, *by_reference], key=lambda order: order.id, reverse=True)
    found = {order.id: order for order in (*whole, *ending, *Orders().rows(ids[: MOST_ORDERS + 1]))}
    return list(found.values()), not exact and (containing is None or len(ids) > MOST_ORDERS)


def _of_amount(fen: int, at: int | None = None) -> Any:
    """Return a query for orders of an amount: unpaid deposits first, then the newest.

    Args:
        at: the Unix time around which they were created, completed, or changed last, such as claimed; None for any.
    """
    wanted = [_newest(Order), Order.amount == fen]
    if at is not None:
        times = (Order.createtime, Order.updatetime, Order.completedtime)
        wanted.append(reduce(or_, [time.between(at - AROUND, at + AROUND) for time in times]))
    is_unpaid = (Order.order_type == BUY) & Order.status.in_((PENDING, PAID))
    unpaid_first = Case(None, [(is_unpaid, 0)], 1)
    return Order.select().where(*wanted).order_by(unpaid_first, Order.id.desc()).limit(MOST_ORDERS)


def _claims_of(name: str) -> list[Any]:
    """Return the newest open claims of the payer with this name, or with all these words in the name.

    Names are encrypted, so the latest MOST_CLAIMS are decrypted and compared. A part of a word is not compared: the
    search must not help to guess a name letter by letter.
    """
    claims, words = Claims(), name.casefold().split()
    ids = keyset.page(claims.lines(None, None), MOST_CLAIMS).ids
    sealed = Order.select(Order.id, Order.customer_name).where(Order.id.in_(ids), Order.customer_name != "").tuples()
    found = []
    for row_id, name_of_payer in sealed:
        theirs = vault.decrypt(name_of_payer).casefold().split()
        if set(words) <= set(theirs) or "".join(words) == "".join(theirs):
            found.append(row_id)
    return claims.rows(sorted(found, reverse=True)[:MOST_ORDERS])


def _refunds(text: str) -> list[Any]:
    """Return refunds of which a number is or ends with this text: their own, the merchant's, or the channel's."""
    exact = Refund.select(Refund.id).where(with_number(text, of_order=False)).limit(MOST)
    ending = _ending(Refund, text, Refund.refund_no, Refund.merchant_refund_no, Refund.channel_reference)
    ids = {*(row_id for (row_id,) in exact.tuples()), *(row.id for row in ending)}
    return Refunds().rows(sorted(ids, reverse=True)[:MOST])


def _exceptions(text: str, fen: int | None) -> list[PaymentException]:
    """Return exceptions of which a number is or ends with this text, and open ones with this amount.

    The numbers are that of the payment, and that of the transfer that returned it.
    """
    known = (PaymentException.reference != "") & (PaymentException.reference == text)
    found = list(PaymentException.select().where(known).limit(MOST))
    found.extend(PaymentException.select().where(PaymentException.return_reference == text).limit(MOST))
    found.extend(_ending(PaymentException, text, PaymentException.reference, PaymentException.return_reference))
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
