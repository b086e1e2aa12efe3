"""Sums of the orders of the last days, by day, channel, method, type and status, at any number of orders.

The database sums rows in blocks of neighbouring ids. A block's sums are cached, and read again once the history shows
that one of its orders changed. Orders cause no counting, and a busy day costs a few blocks for each view.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import chain
from operator import add
from typing import Any, NamedTuple

from peewee import SQL, fn

import business_clock
from models.db.base import Statement
from models.tables.merchant import Merchant
from models.tables.order import CANCELLED, COMPLETED, History, Order
from runtime import Part
from services.platform import clock, cpu_affinity

DAYS = 30
DAY = 86_400
WEEK = 7 * DAY
BLOCK = 8_192  # orders, neighbours by id, that are summed together in about 20 ms
FRESH = 15.0  # seconds for which a result is reused
ZONES = 4  # time zones whose days are cached
# Lines of history that are checked again each time: on Postgres one may become visible after later ones.
OVERLAP = 5_000
EPOCH = date(1970, 1, 1).toordinal()


class Cell(NamedTuple):
    """Orders of one day (by creation), channel, method, type and status; amounts in fen."""

    day: date
    channel: int
    method: str
    order_type: int
    status: str
    orders: int
    amount: int
    fees: int
    commission: int


@dataclass(frozen=True)
class Sum:
    """The sums of some orders, in fen; `open` counts those that are neither completed nor cancelled."""

    orders: int = 0
    completed: int = 0
    cancelled: int = 0
    amount: int = 0
    fees: int = 0
    commission: int = 0

    @property
    def open(self) -> int:
        """The number of open orders."""
        return self.orders - self.completed - self.cancelled

    @property
    def closed(self) -> int:
        """The number of finished orders."""
        return self.completed + self.cancelled


@dataclass(frozen=True)
class Statistics:
    """The last DAYS days, up to `today`, as of Unix time `at`. Amounts and fees in sums are of completed orders."""

    at: int
    today: date
    cells: list[Cell]

    @property
    def days(self) -> list[date]:
        """All days, the oldest first."""
        return [self.today - timedelta(back) for back in reversed(range(DAYS))]

    def by(self, key: Callable[[Cell], Any], wanted: Callable[[Cell], bool] = lambda cell: True) -> dict[Any, Sum]:
        """Return the sums of the cells, by `key` of each."""
        sums: dict[Any, tuple[int, ...]] = {}
        for cell in filter(wanted, self.cells):
            done, cancelled = cell.status == COMPLETED, cell.status == CANCELLED
            money = (cell.amount, cell.fees, cell.commission) if done else (0, 0, 0)
            added = (cell.orders, cell.orders * done, cell.orders * cancelled, *money)
            name = key(cell)
            sums[name] = tuple(map(add, sums.get(name, (0,) * 6), added))
        return {each: Sum(*row) for each, row in sums.items()}


Pieces = tuple[tuple[int, int], ...]  # the Unix time from which an offset applies, and the offset to UTC in seconds


def _pieces(zone: tzinfo, since: int, until: int) -> Pieces:
    """Return a zone's offsets in a time range; zones with the same offsets share a cache."""

    def offset(at: int) -> int:
        return int((datetime.fromtimestamp(at, zone).utcoffset() or timedelta()).total_seconds())

    found = [(0, offset(since))]
    for start in range(since, until, DAY):
        after = offset(start + DAY)
        if after != offset(start):
            change = bisect_left(range(start, start + DAY), True, key=lambda at: offset(at) == after)
            found.append((start + change, after))
    return tuple(found)


def _day(pieces: Pieces) -> Any:
    """The local day of an order as a number, in SQL."""
    (_, first), *later = pieces
    moved = "".join(f" WHEN createtime >= {start} THEN {offset}" for start, offset in reversed(later))
    ahead = f"(CASE{moved} ELSE {first} END)" if later else str(first)
    return SQL(f"(createtime + {ahead}) / {DAY}")


def _of_block(pieces: Pieces) -> Statement:
    """The query for the sums of the orders of a range of ids, created since a time."""
    keys = (_day(pieces), Order.channel, Order.payment_method, Order.order_type, Order.status)
    sums = [fn.SUM(each) for each in (Order.amount, Order.service_amount, Order.channel_amount)]
    return Statement(
        lambda v: (
            Order.select(*keys, fn.COUNT(Order.id), *sums)
            .where(Order.id.between(v.low, v.high), Order.createtime >= v.since)
            .group_by(*(SQL(str(place)) for place in range(1, len(keys) + 1)))
        )
    )


_created_at = Statement(lambda v: Order.select(Order.createtime).where(Order.id >= v.id).order_by(Order.id).limit(1))


def _moved(block: int) -> Statement:
    """The query for the blocks of this size with orders in newer lines of the history."""
    # The expression has no index, so this scans those lines only.
    return Statement(lambda v: History.select(SQL(f"order_id / {block}")).where(History.id > v.line).distinct())


def _newest(table: Any) -> int:
    return table.select(fn.MAX(table.id)).scalar() or 0


def _first(since: int) -> int:
    """Return an id such that all orders created since then have it or a higher one, even if a clock was set back a
    day."""
    if Merchant.any_demo():  # seeded orders are inserted later than others of their time
        return 1

    def is_later(order_id: int) -> bool:
        row = _created_at.run(id=order_id).fetchone()
        return row is None or row[0] >= since - DAY

    return bisect_left(range(1, _newest(Order) + 1), True, key=is_later) + 1


class _Days:
    """The sums by day in one zone: the values of each block when it was last read."""

    def __init__(self, pieces: Pieces, since: int):
        self._sums, self._moved, self._since, self._size = _of_block(pieces), _moved(BLOCK), since, BLOCK
        self._blocks: dict[int, list[tuple[Any, ...]]] = {}
        self._line = 0  # of the history, up to which the blocks have everything
        self._first = 0
        self._last = -1  # the block that is still being filled
        self.result: Statistics | None = None
        self.looked_at = 0.0

    def look(self, first: date, last: date) -> list[Cell]:
        """Read new and changed blocks; return the cells of all these days."""
        # Read before the blocks, so that changes meanwhile are read again.
        line, newest = _newest(History), _newest(Order)
        if self._last < 0:
            self._first = _first(self._since)
        blocks = set(range(max(self._last, self._first // self._size), newest // self._size + 1))
        if self._last >= 0:
            moved = {row[0] for row in self._moved.run(line=self._line - OVERLAP).fetchall()}
            blocks |= {block for block in moved if block >= self._first // self._size}
        for block in sorted(blocks):
            low, high = max(block * self._size, self._first), block * self._size + self._size - 1
            self._blocks[block] = self._sums.run(low=low, high=high, since=self._since).fetchall()
        self._line, self._last = line, newest // self._size
        return list(self._cells(first.toordinal() - EPOCH, last.toordinal() - EPOCH))

    def _cells(self, first: int, last: int) -> Iterator[Cell]:
        sums: dict[tuple[Any, ...], tuple[int, ...]] = {}
        for row in chain.from_iterable(self._blocks.values()):
            key, added = row[:5], row[5:]
            if first <= key[0] <= last:
                sums[key] = tuple(map(add, sums.get(key, (0,) * 4), added))
        for (number, *rest), row in sums.items():
            yield Cell(date.fromordinal(EPOCH + number), *rest, *row)


_lock = Part(threading.Lock)  # one request reads at a time, and others wait for its result
_days = Part(lambda: lru_cache(maxsize=ZONES)(_Days))


def of(zone: tzinfo) -> Statistics:
    """Return the last DAYS days in this zone, at most FRESH seconds old."""
    now = business_clock.now()
    today = datetime.fromtimestamp(now, zone).date()
    week = now // WEEK * WEEK  # the cache is kept for a week
    since = week - (DAYS + 1) * DAY
    with _lock():
        days = _days()(_pieces(zone, since, week + WEEK), since)
        if days.result is None or days.result.today != today or clock.steady() - days.looked_at > FRESH:
            cells = cpu_affinity.do(lambda: days.look(today - timedelta(DAYS - 1), today))
            days.result, days.looked_at = Statistics(now, today, cells), clock.steady()
        return days.result
