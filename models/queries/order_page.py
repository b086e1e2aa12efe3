"""Pages of a merchant's orders, newest first, with their total: by arithmetic and counts, not by reading rows.

A page, or a range of time, is a range of numbers (models/queries/order_range.py). With a filter on type or status, the
counts per bucket locate it (models/queries/count_buckets.py). Only a search for a part of the merchant's own number
that matches many orders, or is shorter than three characters, reads more rows (models/queries/search.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from models.db.base import Statement
from models.queries.count_buckets import in_buckets
from models.queries.order_range import EVERY_CELL, between, rows
from models.queries.search import ReadAll, at_once, containing
from models.tables.order import STATUSES, TYPES, Order


@dataclass(frozen=True)
class Page:
    """Some orders, newest first, and the total."""

    orders: list[Any]
    total: int


_by_seq = Statement(
    lambda v: (
        Order.select().where(Order.merchant == v.merchant, Order.seq.between(v.low, v.high)).order_by(Order.seq.desc())
    )
)


@cache
def _by(name: str) -> Statement:
    return Statement(
        lambda v: (
            Order.select()
            .where(Order.merchant == v.merchant, getattr(Order, name) == v.value)
            .order_by(Order.seq)
            .limit(1)
        )
    )


def oldest(merchant: int, name: str, value: Any) -> Any:
    """Return a merchant's oldest order whose column `name` is `value`, or None."""
    return _by(name).first(merchant=merchant, value=value)


_seq = Statement(lambda v: Order.select(Order.seq).where(Order.merchant == v.merchant, Order.order_no == v.order_no))


def seq_of(merchant: int, order_no: str) -> int | None:
    """Return the `seq` of a merchant's order, or None."""
    found = _seq.run(merchant=merchant, order_no=order_no).fetchone()
    return int(found[0]) if found else None


def page(merchant: int, query: dict[str, Any], read_all: ReadAll = at_once, before: int | None = None) -> Page:
    """Return one page of a merchant's orders, by the loaded fields of `orderQueryList` (docs/orders.md).

    Args:
        read_all: runs a query that must read all orders of the merchant.
        before: the `seq` of the last order of the page before; the total still counts all matches.
    """
    span = between(merchant, query.get("start_time"), query.get("end_time"))
    if span.low > span.high:
        return Page([], 0)
    limit, skip = query["limit"], (query["page"] - 1) * query["limit"]
    top = span.high if before is None else min(span.high, before - 1)
    types = (query["order_type"],) if "order_type" in query else TYPES
    statuses = (query["status"],) if "status" in query else STATUSES
    cells = (types, statuses)
    if "merchant_order_no" in query:
        ids, total = containing(query["merchant_order_no"], span, cells, top, skip, limit, read_all)
        return Page(rows(ids), total)
    if cells != EVERY_CELL:
        ids, total = in_buckets(span, cells, top, skip, limit)
        return Page(rows(ids), total)
    high = top - skip
    orders = _by_seq.all(merchant=merchant, low=max(span.low, high - limit + 1), high=high)
    return Page(orders, span.high - span.low + 1)
