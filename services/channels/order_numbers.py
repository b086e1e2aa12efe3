"""Order numbers, here and at channels. Their dates are in China's time zone."""

from __future__ import annotations

import re
import secrets
from itertools import count

from models.db.base import database
from models.tables.order import SELL, Order
from runtime import clock
from runtime.clock import in_china

ENDINGS = 100_000  # range of the ids' last digits in payout numbers
# The creation times of earlier orders whose ids have the same ending: one primary key lookup per 100,000 orders.
_ALIKE = f"""WITH RECURSIVE earlier (id) AS
    (SELECT CAST(? AS BIGINT) UNION ALL SELECT id - {ENDINGS} FROM earlier WHERE id > {ENDINGS})
    SELECT createtime FROM earlier JOIN "order" USING (id) WHERE createtime >= ? AND order_type = ?"""

_ORDER_NO = re.compile(r"(?<![0-9])[0-9]{24}(?![0-9])")
_ATTEMPT = re.compile(r"([0-9]{24})(?:_([0-9]{1,4}))?")


def new_order_no() -> str:
    """Return 24 digits: the date, then 16 random ones, because the number is in a public address."""
    return f"{in_china(clock.now()):%Y%m%d}{secrets.randbelow(10**16):016d}"


def order_no_of(number: str) -> str:
    """Return the order number in a channel's number of an attempt; any other text unchanged."""
    found = _ATTEMPT.fullmatch(number)
    return found[1] if found else number


def attempt_of(number: str) -> int:
    """Return which attempt a channel's number of a deposit is: 1 for the first."""
    found = _ATTEMPT.fullmatch(number)
    return int(found[2] or 1) if found else 1


def order_numbers_in(text: str) -> list[str]:
    """Return what may be order numbers in a text: 24 digits that are not a part of a longer number."""
    return _ORDER_NO.findall(text)


def payout_number(order: Order) -> str:
    """Return a withdrawal's payout number: 19 digits, its date and time and the last five of its id (`keep_apart`)."""
    return f"{in_china(order.createtime):%Y%m%d%H%M%S}{order.id % ENDINGS:05d}"


def keep_apart(order: Order) -> None:
    """Advance a new withdrawal's createtime while an earlier one has its payout number, in the caller's transaction.

    After a clock was set back, ids 100,000 apart can have the same second. A channel would take both for one payout.
    """
    if order.id < ENDINGS:
        return
    rows = database.execute_sql(_ALIKE.replace("?", database.param), (order.id - ENDINGS, order.createtime, SELL))
    taken = {createtime for (createtime,) in rows.fetchall()}
    if order.createtime in taken:
        free = next(time for time in count(order.createtime) if time not in taken)
        order.__data__.update(createtime=free, updatetime=free)
        Order.update(createtime=free, updatetime=free).where(Order.id == order.id).execute()
