"""Pages of a merchant's orders, newest first, with their total: by arithmetic and counts, not by reading rows.

A merchant's orders are numbered without a gap in the order of time (`Order.seq`), so a page, or a
range of time, is a range of numbers. With a filter on type or status the counts per bucket
(models/tally.py) say how many there are and in which bucket a page begins. Only a part of the
merchant's own number that is in many orders, or shorter than three characters, makes it read on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cache, reduce
from itertools import product
from typing import Any

from peewee import SQL, fn

from models.base import Statement
from models.order import STATUSES, TYPES, Order
from models.search import candidates, indexed
from models.tally import BUCKET, Tally

RARE = 2_000  # candidates of the trigram index up to which each is looked at

Cells = tuple[tuple[int, ...], tuple[str, ...]]  # order types and statuses, each of the ones with each of the others
EVERY_CELL: Cells = (TYPES, STATUSES)


@dataclass(frozen=True)
class Page:
    """Some orders, newest first, and how many there are in all."""

    orders: list[Any]
    total: int


@dataclass(frozen=True)
class Span:
    """A merchant's orders whose `seq` is from `low` to `high`, both included, of those up to `newest`."""

    merchant: int
    low: int
    high: int
    newest: int


_newest = Statement(
    lambda v: (
        Order.select(Order.seq, Order.createtime)
        .where(Order.merchant == v.merchant)
        .order_by(Order.seq.desc())
        .limit(1)
    )
)
_time = Statement(lambda v: Order.select(Order.createtime).where(Order.merchant == v.merchant, Order.seq == v.seq))
_by_seq = Statement(
    lambda v: (
        Order.select().where(Order.merchant == v.merchant, Order.seq.between(v.low, v.high)).order_by(Order.seq.desc())
    )
)


def newest(merchant: int) -> tuple[int, int]:
    """The `seq` and `createtime` of a merchant's newest order; zeros where there is none."""
    return _newest.run(merchant=merchant).fetchone() or (0, 0)


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
    """A merchant's oldest order whose column `name` is `value`, or None."""
    return _by(name).first(merchant=merchant, value=value)


def page(merchant: int, query: dict[str, Any]) -> Page:
    """One page of a merchant's orders, by the loaded fields of `orderQueryList` (docs/orders.md)."""
    span = _span(merchant, query.get("start_time"), query.get("end_time"))
    if span.low > span.high:
        return Page([], 0)
    limit, skip = query["limit"], (query["page"] - 1) * query["limit"]
    types = (query["order_type"],) if "order_type" in query else TYPES
    statuses = (query["status"],) if "status" in query else STATUSES
    cells = (types, statuses)
    if "merchant_order_no" in query:
        return _containing(query["merchant_order_no"], span, cells, skip, limit)
    if cells != EVERY_CELL:
        return _in_cells(span, cells, skip, limit)
    high = span.high - skip
    orders = _by_seq.all(merchant=merchant, low=max(span.low, high - limit + 1), high=high)
    return Page(orders, span.high - span.low + 1)


def _span(merchant: int, since: int | None, until: int | None) -> Span:
    def time_of(seq: int) -> int:
        return int(_time.run(merchant=merchant, seq=seq).fetchone()[0])

    # An index of times would find a range in two steps instead of some forty, and cost each order a write.
    last, _ = newest(merchant)
    numbers = range(1, last + 1)
    low = 1 if since is None else 1 + bisect_left(numbers, since, key=time_of)
    high = last if until is None else bisect_right(numbers, until, key=time_of)
    return Span(merchant, low, high, last)


def _of_cells(table: Any, cells: Cells) -> Any:
    types, statuses = cells
    return table.order_type.in_(types) & table.status.in_(statuses)


@cache
def _total(cells: Cells) -> Statement:
    """How many of these cells are in the buckets from `low` to `high`."""
    return Statement(
        lambda v: Tally.select(fn.COALESCE(fn.SUM(Tally.count), 0)).where(
            Tally.merchant == v.merchant, _of_cells(Tally, cells), Tally.bucket.between(v.low, v.high)
        )
    )


@cache
def _counts(cells: Cells) -> Statement:
    """How many of these cells are in each bucket from `low` to `high`, the highest first."""
    return Statement(
        lambda v: (
            Tally.select(Tally.bucket, fn.SUM(Tally.count))
            .where(Tally.merchant == v.merchant, _of_cells(Tally, cells), Tally.bucket.between(v.low, v.high))
            .group_by(Tally.bucket)
            .order_by(Tally.bucket.desc())
        )
    )


@cache
def _count(cells: Cells) -> Statement:
    """How many of these cells there are from `low` to `high`; a bucket at most, so that counting is quick."""
    return Statement(
        lambda v: Order.select(fn.COUNT(Order.seq)).where(
            Order.merchant == v.merchant, _of_cells(Order, cells), Order.seq.between(v.low, v.high)
        )
    )


@cache
def _cells_below(cells: Cells) -> Statement:
    """Orders of these cells from `high` down: an ordered walk through the index for each cell, merged."""

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


def _in_cells(span: Span, cells: Cells, skip: int, limit: int) -> Page:
    total = _tallied(span, cells, span.low // BUCKET, span.high // BUCKET)
    high, left = (span.high, skip) if skip < BUCKET else _start(span, cells, skip)
    found = _cells_below(cells).run(merchant=span.merchant, low=span.low, high=high, limit=limit, skip=left)
    return Page(_rows([row[0] for row in found.fetchall()]), total)


def _tallied(span: Span, cells: Cells, first: int, last: int) -> int:
    """How many there are in the part of these buckets that lies in the span."""
    total = _total(cells).run(merchant=span.merchant, low=first, high=last).fetchone()[0]
    for edge in _cut(span) & {first, last}:
        low, high = max(span.low, edge * BUCKET), min(span.high, edge * BUCKET + BUCKET - 1)
        total += _count(cells).run(merchant=span.merchant, low=low, high=high).fetchone()[0]
        total -= _total(cells).run(merchant=span.merchant, low=edge, high=edge).fetchone()[0]
    return int(total)


def _start(span: Span, cells: Cells, skip: int) -> tuple[int, int]:
    """Where to begin so as to skip so many: at which `seq`, and how many are left to skip from there."""
    last = span.high // BUCKET
    top = _tallied(span, cells, last, last)
    if skip < top:
        return span.high, skip
    skip -= top
    for bucket, count in _counts(cells).run(merchant=span.merchant, low=span.low // BUCKET, high=last - 1).fetchall():
        if skip < count:
            return bucket * BUCKET + BUCKET - 1, skip
        skip -= count
    return span.low - 1, 0


def _cut(span: Span) -> set[int]:
    """The buckets of which a span holds only a part, so that their counts say too much."""
    cut = set()
    if span.low > 1 and span.low % BUCKET:
        cut.add(span.low // BUCKET)
    if span.high < span.newest and (span.high + 1) % BUCKET:
        cut.add(span.high // BUCKET)
    return cut


@cache
def _by_ids(count: int) -> Statement:
    return Statement(lambda v: Order.select().where(Order.id.in_([getattr(v, f"id{at}") for at in range(count)])))


def _rows(ids: list[int]) -> list[Any]:
    if not ids:
        return []
    rows = _by_ids(len(ids)).all(**{f"id{at}": order_id for at, order_id in enumerate(ids)})
    return sorted(rows, key=lambda row: row.seq, reverse=True)


def _containing(text: str, span: Span, cells: Cells, skip: int, limit: int) -> Page:
    """Orders whose number contains `text`: those that the index names, and the tail that it has not reached."""
    reached = indexed()
    ids = candidates(text, RARE)
    if ids is None:
        found = Order.select(Order.id).where(*_wanted(text, span, cells, Order.merchant, Order.seq))
        newest_first = found.order_by(Order.seq.desc()).limit(limit).offset(skip)
        return Page(_rows([row[0] for row in newest_first.tuples()]), found.count())
    # The sums keep SQLite from walking through the merchant's orders instead of going to the few named.
    wanted = _wanted(text, span, cells, Order.merchant + 0, Order.seq + 0)
    named = Order.select(Order.seq, Order.id).where(*wanted, Order.id.in_(ids))
    tail = Order.select(Order.seq, Order.id).where(*wanted, Order.id > reached)
    both = sorted({*named.tuples(), *tail.tuples()}, reverse=True)
    return Page(_rows([order_id for _, order_id in both[skip : skip + limit]]), len(both))


def _wanted(text: str, span: Span, cells: Cells, merchant: Any, seq: Any) -> list[Any]:
    wanted = [merchant == span.merchant, seq.between(span.low, span.high), Order.merchant_order_no.contains(text)]
    return wanted if cells == EVERY_CELL else [*wanted, _of_cells(Order, cells)]
