"""Pages of a merchant's orders of some types and statuses, found by the counts per bucket.

The counts give the total and the bucket in which a page begins. A bucket contains orders that are neighbours in time
(models/tables/order_counts.py). Rows are counted only in the buckets that a time range cuts.
"""

from __future__ import annotations

from functools import cache, reduce
from itertools import product
from typing import Any

from peewee import SQL, fn

from models.db.base import Statement
from models.queries.order_range import Cells, OrderRange, of_cells
from models.tables.order import Order
from models.tables.order_counts import BUCKET, OrderCount


def _in_buckets(cells: Cells, v: Any) -> Any:
    """The condition on the counts of these cells in the buckets from `low` to `high`."""
    return (OrderCount.merchant == v.merchant) & of_cells(OrderCount, cells) & OrderCount.bucket.between(v.low, v.high)


@cache
def _total(cells: Cells) -> Statement:
    """The query for the number of orders of these cells in those buckets."""
    total = fn.COALESCE(fn.SUM(OrderCount.count), 0)
    return Statement(lambda v: OrderCount.select(total).where(_in_buckets(cells, v)))


@cache
def _counts(cells: Cells) -> Statement:
    """The query for the number of orders of these cells in each of those buckets, the highest first."""
    return Statement(
        lambda v: (
            OrderCount.select(OrderCount.bucket, fn.SUM(OrderCount.count))
            .where(_in_buckets(cells, v))
            .group_by(OrderCount.bucket)
            .order_by(OrderCount.bucket.desc())
        )
    )


@cache
def _count(cells: Cells) -> Statement:
    """The query for the number of orders of these cells from `low` to `high`, which are at most one bucket."""
    return Statement(
        lambda v: Order.select(fn.COUNT(Order.seq)).where(
            Order.merchant == v.merchant, of_cells(Order, cells), Order.seq.between(v.low, v.high)
        )
    )


@cache
def _cells_below(cells: Cells) -> Statement:
    """The query for the orders of these cells from `high` down: an ordered index scan for each cell, merged."""

    def build(v: Any) -> Any:
        walks = [
            Order.select(Order.id, Order.seq).where(
                Order.merchant == v.merchant,
                Order.order_type == order_type,
                Order.status == status,
                Order.seq.between(v.low, v.high),
            )
            for order_type, status in product(*cells)
        ]
        merged = reduce(lambda left, right: left.union_all(right), walks)
        return merged.order_by(SQL("seq").desc()).limit(v.limit).offset(v.skip)

    return Statement(build)


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
            lower = _counts(cells).run(merchant=span.merchant, low=span.low // BUCKET, high=last - 1)
            for bucket, count in lower.fetchall():
                if left < count:
                    high = bucket * BUCKET + BUCKET - 1
                    break
                left -= count
    found = _cells_below(cells).run(merchant=span.merchant, low=span.low, high=high, limit=limit, skip=left)
    return [row[0] for row in found.fetchall()], counted(span, cells)


def counted(span: OrderRange, cells: Cells) -> int:
    """Return the number of orders of these types and statuses in the span."""
    return _counted(span, cells, span.low // BUCKET, span.high // BUCKET)


def _counted(span: OrderRange, cells: Cells, first: int, last: int) -> int:
    """Return the number of orders in the part of these buckets that is in the span."""
    total = _total(cells).run(merchant=span.merchant, low=first, high=last).fetchone()[0]
    # The counts of buckets that are only partly in the span are too high.
    cut = set()
    if span.low > 1 and span.low % BUCKET:
        cut.add(span.low // BUCKET)
    if span.high < span.newest and (span.high + 1) % BUCKET:
        cut.add(span.high // BUCKET)
    for edge in cut & {first, last}:
        low, high = max(span.low, edge * BUCKET), min(span.high, edge * BUCKET + BUCKET - 1)
        total += _count(cells).run(merchant=span.merchant, low=low, high=high).fetchone()[0]
        total -= _total(cells).run(merchant=span.merchant, low=edge, high=edge).fetchone()[0]
    return int(total)
