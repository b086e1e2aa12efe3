"""Sums of orders by local day and hour, in blocks of neighbouring ids that are cached.

The database sums a block. It is read again once the history shows that one of its orders changed. Orders cause no
counting, and a busy day costs a few blocks for each view.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from operator import add
from typing import Any

from peewee import SQL, fn

from models.db.base import database
from models.db.compiled import Compiled, compiled
from models.tables.merchant import Merchant
from models.tables.order import History, Order

HOUR, DAY = 3_600, 86_400
BLOCK = 8_192  # orders, neighbours by id, that are summed together in about 20 ms
# Lines of history that are checked again each time: on Postgres one may become visible after later ones.
OVERLAP = 5_000
EPOCH = date(1970, 1, 1).toordinal()

Pieces = tuple[tuple[int, int], ...]  # the Unix time from which an offset applies, and the offset to UTC in seconds


@lru_cache(maxsize=64)
def pieces_of(zone: tzinfo, since: int, until: int) -> Pieces:
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


def _of_block(pieces: Pieces) -> Compiled:
    """The query for the sums of the orders of a range of ids, created since a time."""
    (_, first), *later = pieces
    moved = "".join(f" WHEN createtime >= {start} THEN {offset}" for start, offset in reversed(later))
    ahead = f"(CASE{moved} ELSE {first} END)" if later else str(first)
    hour = SQL(f"(createtime + {ahead}) / {HOUR}")  # local, counted from 1970
    keys = (hour, Order.channel, Order.payment_method, Order.order_type, Order.status)
    places = [SQL(str(place)) for place in range(1, len(keys) + 1)]
    of_all = Order.select(*keys, fn.COUNT(Order.id), fn.SUM(Order.amount)).group_by(*places)
    return Compiled(lambda low, high, since: of_all.where(Order.id.between(low, high), Order.createtime >= since))


@compiled
def _created_at(order_id: int) -> Any:
    return Order.select(Order.createtime).where(Order.id >= order_id).order_by(Order.id).limit(1)


def _moved(block: int) -> Compiled:
    """The query for the blocks of this size with orders in newer lines of the history."""
    # The expression has no index, so this scans those lines only.
    return Compiled(lambda line: History.select(SQL(f"order_id / {block}")).where(History.id > line).distinct())


def _newest(table: Any) -> int:
    return table.select(fn.MAX(table.id)).scalar() or 0


def _first(since: int) -> int:
    """Return an id such that all orders created since then have it or a higher one, even if a clock was set back a
    day."""
    if Merchant.any_demo():  # seeded orders are inserted later than others of their time
        return 1

    def is_later(order_id: int) -> bool:
        row = _created_at.first(order_id)
        return row is None or row.createtime >= since - DAY

    return bisect_left(range(1, _newest(Order) + 1), True, key=is_later) + 1


Totals = dict[tuple[Any, ...], tuple[int, ...]]  # orders and amount by key


def _add(totals: Totals, key: tuple[Any, ...], added: tuple[int, ...]) -> None:
    before = totals.get(key)
    totals[key] = tuple(map(add, before, added)) if before else added


class _Block:
    """The sums of one block: for each day by channel, method, type and status, and by hour, type and status."""

    def __init__(self, rows: list[tuple[Any, ...]]):
        self.days: dict[int, Totals] = {}
        self.hours: dict[int, Totals] = {}
        for slot, channel, method, order_type, status, *added in rows:
            day, hour = divmod(slot, 24)
            _add(self.days.setdefault(day, {}), (channel, method, order_type, status), tuple(added))
            _add(self.hours.setdefault(day, {}), (hour, order_type, status), tuple(added))


class OrderSums:
    """The sums by day and hour in one zone: the values of each block when it was last read, and their sums by day."""

    def __init__(self, pieces: Pieces):
        self._sums, self._moved, self._size = _of_block(pieces), _moved(BLOCK), BLOCK
        self._since = 0
        self._begin()

    def _begin(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._days: dict[int, Totals] = {}
        self._line = 0  # of the history, up to which the blocks have everything
        self._first = 0
        self._last = -1  # the newest order that the blocks have

    def look(self, since: int) -> set[date]:
        """Read new and changed blocks of orders created since a Unix time, and forget older ones.

        Returns: the days whose sums may have changed.
        """
        # Read before the blocks, so that changes meanwhile are read again.
        line, newest = _newest(History), _newest(Order)
        if since < self._since:
            self._begin()
        if since != self._since or self._last < 0:
            self._since, self._first = since, _first(since)
        first = self._first // self._size
        changed: set[int] = set()
        for old in [block for block in self._blocks if block < first]:
            changed |= self._replace(old, None)
        for block in sorted(self._to_read(first, newest)):
            low, high = max(block * self._size, self._first), block * self._size + self._size - 1
            changed |= self._replace(block, _Block(self._sums(low, high, since)))
        self._line, self._last = line, newest
        return {date.fromordinal(EPOCH + day) for day in changed}

    def _to_read(self, first: int, newest: int) -> set[int]:
        """Return the blocks with new orders or orders that changed."""
        if self._last < 0:
            return set(range(first, newest // self._size + 1))
        grown = range(max(self._last // self._size, first), newest // self._size + 1) if newest > self._last else ()
        seen = self._line - (OVERLAP if database.is_shared else 0)
        moved = {row[0] for row in self._moved(seen)}
        return {*grown, *(block for block in moved if block >= first)}

    def _replace(self, number: int, new: _Block | None) -> set[int]:
        """Replace or remove a block; return the days of its orders."""
        old = self._blocks.pop(number, None)
        for day, totals in old.days.items() if old else ():
            for key, row in totals.items():
                _add(self._days[day], key, tuple(-each for each in row))
        if new:
            self._blocks[number] = new
            for day, totals in new.days.items():
                for key, row in totals.items():
                    _add(self._days.setdefault(day, {}), key, row)
        return {*(old.days if old else ()), *(new.days if new else ())}

    def by_day(self, day: date) -> list[tuple[Any, ...]]:
        """Return the sums of a day as rows of day, channel, method, type, status and the totals."""
        sums = self._days.get(day.toordinal() - EPOCH, {})
        return [(day, *key, *row) for key, row in sums.items() if row[0]]

    def by_hour(self, days: Iterable[date]) -> list[tuple[Any, ...]]:
        """Return the sums of the hours of some days as rows of day, hour, type, status and the totals."""
        rows: list[tuple[Any, ...]] = []
        for day in days:
            sums: Totals = {}
            for block in self._blocks.values():
                for key, added in block.hours.get(day.toordinal() - EPOCH, {}).items():
                    _add(sums, key, added)
            rows += [(day, *key, *row) for key, row in sums.items()]
        return rows
