"""Pages of a merchant's orders of some types and statuses, found by the counts per bucket.

The counts give the total and the bucket in which a page begins. A bucket contains orders that are neighbours in time
(models/tables/order_counts.py). Rows are counted only in the buckets that a time range cuts.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

from peewee import SQL, fn

from models.db.compiled import compiled
from models.queries.order_range import Cells, OrderRange, of_cells
from models.tables.order import Order
from models.tables.order_counts import BUCKET, OrderCount


def _in_buckets(merchant: int, cells: Cells, low: int, high: int) -> Any:
    """The condition on the counts of these cells in the buckets from `low` to `high`."""
    return (OrderCount.merchant == merchant) & of_cells(OrderCount, cells) & OrderCount.bucket.between(low, high)


@compiled
def _total(merchant: int, low: int, high: int, *cells: Any) -> Any:
    """The number of orders of these cells in those buckets."""
    return OrderCount.select(fn.COALESCE(fn.SUM(OrderCount.count), 0)).where(_in_buckets(merchant, cells, low, high))


@compiled
def _counts(merchant: int, low: int, high: int, *cells: Any) -> Any:
    """The number of orders of these cells in each of those buckets, the highest first."""
    counts = OrderCount.select(OrderCount.bucket, fn.SUM(OrderCount.count)).group_by(OrderCount.bucket)
    return counts.where(_in_buckets(merchant, cells, low, high)).order_by(OrderCount.bucket.desc())


@compiled
def _count(merchant: int, low: int, high: int, *cells: Any) -> Any:
    """The number of orders of these cells from `low` to `high`, which are at most one bucket."""
    mine = (Order.merchant == merchant) & of_cells(Order, cells)
    return Order.select(fn.COUNT(Order.seq)).where(mine, Order.seq.between(low, high))


@compiled
def _cells_below(merchant: int, low: int, high: int, limit: int, skip: int, *cells: Any) -> Any:
    """The orders of these cells from `high` down: an ordered index scan for each cell, merged."""
    walks = [
        Order.select(Order.id, Order.seq).where(
            Order.merchant == merchant,
            Order.order_type == order_type,
            Order.status == status,
            Order.seq.between(low, high),
        )
        for order_type, status in product(*cells)
    ]
    merged = reduce(lambda left, right: left.union_all(right), walks)
    return merged.order_by(SQL("seq").desc()).limit(limit).offset(skip)


def in_buckets(span: OrderRange, cells: Cells, top: int, skip: int, limit: int) -> tuple[list[int], int]:
    """Return the ids of a page of orders of these types and statuses, newest first, and the total of the span.

    Args:
        top: the highest `seq` of the page; the end of the span if `skip` is not 0.
    """
    high, left = top, skip
    if skip >= BUCKET:  # find the bucket in which the page begins, and how many of its orders to skip
        last = span.high // BUCKET
        newest = _counted(span, cells, last, last)
        if skip >= newest:
            high, left = span.low - 1, skip - newest
            for bucket, count in _counts(span.merchant, span.low // BUCKET, last - 1, *cells):
                if left < count:
                    high = bucket * BUCKET + BUCKET - 1
                    break
                left -= count
    found = _cells_below(span.merchant, span.low, high, limit, left, *cells)
    return [row.id for row in found], counted(span, cells)


def counted(span: OrderRange, cells: Cells) -> int:
    """Return the number of orders of these types and statuses in the span."""
    return _counted(span, cells, span.low // BUCKET, span.high // BUCKET)


def _counted(span: OrderRange, cells: Cells, first: int, last: int) -> int:
    """Return the number of orders in the part of these buckets that is in the span."""
    total = _total.first(span.merchant, first, last, *cells)[0]
    # The counts of buckets that are only partly in the span are too high.
    cut = set()
    if span.low > 1 and span.low % BUCKET:
        cut.add(span.low // BUCKET)
    if span.high < span.newest and (span.high + 1) % BUCKET:
        cut.add(span.high // BUCKET)
    for edge in cut & {first, last}:
        low, high = max(span.low, edge * BUCKET), min(span.high, edge * BUCKET + BUCKET - 1)
        total += _count.first(span.merchant, low, high, *cells)[0]
        total -= _total.first(span.merchant, edge, edge, *cells)[0]
    return int(total)
