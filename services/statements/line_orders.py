"""The order of each line of a statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from models.tables.channel import Channel
from models.tables.order import SELL, Order
from runtime.clock import CHINA
from services.channels.order_numbers import order_no_of, payout_number
from services.statements.parse import Line

AT_ONCE = 1_000  # values that one query can name
COLUMNS = (
    *(Order.id, Order.order_no, Order.merchant, Order.channel, Order.order_type, Order.status, Order.amount),
    *(Order.received_amount, Order.channel_amount, Order.channel_reference, Order.createtime),
)
_PAYOUT = re.compile(r"[0-9]{19}", re.ASCII)


def chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the values in lists that one query can name."""
    rest = iter(values)
    while chunk := list(islice(rest, AT_ONCE)):
        yield chunk


def orders_of(channel: Channel, lines: list[Line]) -> dict[int, Order]:
    """Return the orders of lines, by line: by the order number, a payout's second number, or the channel's reference.

    The number of a deposit's second attempt counts as the order's.
    """
    numbers = {line.number for line in lines} - {""}
    named = {number: order_no_of(number) for number in numbers}
    orders = {order.order_no: order for order in _named(Order.order_no, set(named.values()))}
    known = {number: orders[order_no] for number, order_no in named.items() if order_no in orders}
    known |= _payouts(channel, numbers - set(known))
    references = {line.reference for line in lines if line.number not in known} - {""}
    by_reference: dict[str, list[Order]] = {}
    for order in _named(Order.channel_reference, references, Order.channel == channel):
        by_reference.setdefault(order.channel_reference, []).append(order)
    found = {line.at: known.get(line.number) or _only(by_reference.get(line.reference, [])) for line in lines}
    return {at: order for at, order in found.items() if order is not None}


def _only(orders: list[Order]) -> Order | None:
    return orders[0] if len(orders) == 1 else None


def _named(column: Any, values: Iterable[str], *conditions: Any) -> Iterator[Order]:
    for chunk in chunks(values):
        yield from Order.select(*COLUMNS).where(column.in_(chunk), *conditions)


def _payouts(channel: Channel, numbers: set[str]) -> dict[str, Order]:
    """Return the withdrawals with these second numbers, by number."""
    times = [time for number in numbers if (time := _payout_time(number)) is not None]
    if not times:
        return {}
    payouts = Order.select(*COLUMNS).where(
        Order.channel == channel, Order.order_type == SELL, Order.createtime.between(min(times), max(times))
    )
    return {number: order for order in payouts.iterator() if (number := payout_number(order)) in numbers}


def _payout_time(number: str) -> int | None:
    """Return the creation time of the withdrawal with this second number; None if it is not such a number."""
    if not _PAYOUT.fullmatch(number):
        return None
    try:
        return int(datetime.strptime(number[:14], "%Y%m%d%H%M%S").replace(tzinfo=CHINA).timestamp())
    except ValueError:
        return None
