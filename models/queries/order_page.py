"""Pages of a merchant's orders, newest first, with their total: by arithmetic and counts, not by reading rows.

A page, or a range of time, is a range of numbers (models/queries/order_range.py). With a filter on type or status, the
counts per bucket locate it (models/queries/count_buckets.py). Only a search for a part of the merchant's own number
that matches many orders, or is shorter than three characters, reads more rows (models/queries/search.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from models.db.compiled import compiled
from models.queries.count_buckets import in_buckets
from models.queries.order_range import EVERY_CELL, between, rows
from models.queries.search import ReadAll, at_once, containing
from models.tables.order import STATUSES, TYPES, Order


@dataclass(frozen=True)
class Page:
    """Some orders, newest first, and the total."""

    orders: list[Any]
    total: int


@compiled
def _by_seq(merchant: int, low: int, high: int) -> Any:
    return Order.select().where(Order.merchant == merchant, Order.seq.between(low, high)).order_by(Order.seq.desc())


@compiled
def _oldest(merchant: int, /, **column: Any) -> Any:
    ((name, value),) = column.items()
    mine = (Order.merchant == merchant) & (getattr(Order, name) == value)
    return Order.select().where(mine).order_by(Order.seq).limit(1)


def oldest(merchant: int, name: str, value: Any) -> Any:
    """Return a merchant's oldest order whose column `name` is `value`, or None."""
    return _oldest.first(merchant, **{name: value})


@compiled
def _seq(merchant: int, order_no: str) -> Any:
    return Order.select(Order.seq).where(Order.merchant == merchant, Order.order_no == order_no)


def seq_of(merchant: int, order_no: str) -> int | None:
    """Return the `seq` of a merchant's order, or None."""
    found = _seq.first(merchant, order_no)
    return found.seq if found else None


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
    orders = _by_seq(merchant, max(span.low, high - limit + 1), high)
    return Page(orders, span.high - span.low + 1)
