"""Order numbers, here and at channels; their dates are China's."""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from itertools import count

import business_clock
from gateways.base import CHINA
from models.db.base import database
from models.tables.order import SELL, Order

ENDINGS = 100_000  # of ids, in payout numbers
# When earlier orders were placed whose ids end alike: one look by the primary key for each 100,000 orders.
_ALIKE = f"""WITH RECURSIVE earlier (id) AS
    (SELECT CAST(? AS BIGINT) UNION ALL SELECT id - {ENDINGS} FROM earlier WHERE id > {ENDINGS})
    SELECT createtime FROM earlier JOIN "order" USING (id) WHERE createtime >= ? AND order_type = ?"""

_ATTEMPT = re.compile(r"([0-9]{24})(_[0-9]{1,2})?")


def in_china(timestamp: float, shape: str = "%Y%m%d") -> str:
    """The date in China, YYYYMMDD, or the time in another shape."""
    return datetime.fromtimestamp(timestamp, CHINA).strftime(shape)


def new_order_no() -> str:
    """24 digits: the date, then 16 at random, for the number stands in a public address."""
    return f"{in_china(business_clock.now())}{secrets.randbelow(10**16):016d}"


def order_no_of(number: str) -> str:
    """The order that a channel's number of an attempt belongs to; any other text as it is."""
    found = _ATTEMPT.fullmatch(number)
    return found[1] if found else number


def payout_number(order: Order) -> str:
    """A withdrawal's other name: 19 digits, its date and time and the last five of its id (`keep_apart`)."""
    return f"{in_china(order.createtime, '%Y%m%d%H%M%S')}{order.id % ENDINGS:05d}"


def keep_apart(order: Order) -> None:
    """Move a new withdrawal's createtime on while an earlier one has its payout number; in the caller's transaction.

    A clock that was set back can give ids 100,000 apart the same second. A channel would take both for one payout.
    """
    if order.id < ENDINGS:
        return
    rows = database.execute_sql(_ALIKE.replace("?", database.param), (order.id - ENDINGS, order.createtime, SELL))
    taken = {createtime for (createtime,) in rows.fetchall()}
    if order.createtime in taken:
        free = next(time for time in count(order.createtime) if time not in taken)
        order.__data__.update(createtime=free, updatetime=free)
        Order.update(createtime=free, updatetime=free).where(Order.id == order.id).execute()
