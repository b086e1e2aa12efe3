"""The selected orders of a merchant: a range of their numbers, with types and statuses.

A merchant's orders are numbered without a gap in the order of time (`Order.seq`), so a range of time is a range of
numbers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

from models.db.compiled import compiled
from models.tables.order import STATUSES, TYPES, Order

Cells = tuple[tuple[int, ...], tuple[str, ...]]  # order types and statuses; each combination is a cell
EVERY_CELL: Cells = (TYPES, STATUSES)


@dataclass(frozen=True)
class OrderRange:
    """A merchant's orders whose `seq` is from `low` to `high`, both included; `newest` is the merchant's highest
    `seq`."""

    merchant: int
    low: int
    high: int
    newest: int


@compiled
def _newest(merchant: int) -> Any:
    mine = Order.select(Order.seq, Order.createtime).where(Order.merchant == merchant)
    return mine.order_by(Order.seq.desc()).limit(1)


@compiled
def _time(merchant: int, seq: int) -> Any:
    return Order.select(Order.createtime).where(Order.merchant == merchant, Order.seq == seq)


@compiled
def _by_ids(ids: tuple[int, ...]) -> Any:
    return Order.select().where(Order.id.in_(ids)).order_by(Order.seq.desc())


def newest(merchant: int) -> tuple[int, int]:
    """Return the `seq` and `createtime` of a merchant's newest order; zeros if it has none."""
    return _newest.first(merchant) or (0, 0)


def between(merchant: int, since: int | None, until: int | None) -> OrderRange:
    """Return a merchant's orders of a range of Unix time, both ends included; empty if `low` is above `high`."""

    def time_of(seq: int) -> int:
        return int(_time.first(merchant, seq).createtime)

    # An index of times would find a range in two steps instead of about forty, and cost each order a write.
    last, _ = newest(merchant)
    numbers = range(1, last + 1)
    low = 1 if since is None else 1 + bisect_left(numbers, since, key=time_of)
    high = last if until is None else bisect_right(numbers, until, key=time_of)
    return OrderRange(merchant, low, high, last)


def of_cells(table: Any, cells: Cells) -> Any:
    """The condition that a row of `table` is of one of these types and statuses."""
    types, statuses = cells
    return table.order_type.in_(types) & table.status.in_(statuses)


def rows(ids: list[int]) -> list[Any]:
    """Return a merchant's orders with these ids, newest first."""
    return _by_ids(tuple(ids)) if ids else []
