"""Lists with keyset pagination; a `Browse` defines the rows of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from peewee import fn

from models.queries import keyset
from models.queries.keyset import Key, Line, Page, Summary
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import InternalNote, PaymentException

AT_ONCE = 500  # rows of an export that are read together
MOST_COUNTED = 10_000  # rows of a summary
MOST_CHECKED = 100_000  # rows that a summary checks for conditions without an index


@dataclass(frozen=True)
class Found:
    """A page of rows, newest first.

    `summary` counts all rows that match and sums their amounts, up to MOST_COUNTED, for lists of money. `older` and
    `newer` are the ids of the rows before and after which the neighbouring pages are; None if there is no
    such page. `total` is set if it costs nothing; `looked_to` is the Unix time at which the search of this page
    stopped.
    """

    rows: list[Any]
    older: int | None = None
    newer: int | None = None
    total: int | None = None
    looked_to: int | None = None
    summary: Summary | None = None


class Browse:
    """One list. `wanted` are the given filters by name; times in Unix seconds, amounts in fen."""

    table: Any
    sorted_by = ""  # the name of this order of the rows among the list's choices
    summed: dict[str, Any] | None = None  # the amounts of the summary by name; None for a list without a summary
    timed = True  # a row's key is its time and id; otherwise its id
    span = ("since", "until")  # the names of the wanted range of that time

    def __init__(self, wanted: dict[str, Any] | None = None):
        self.wanted = wanted or {}

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns that order the rows."""
        return (self.table.createtime, self.table.id) if self.timed else (self.table.id,)

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """Return the lines with the rows between two keys, both excluded."""
        return [self.line([], above, below)]

    def line(self, part: list[Any], above: Key | None, below: Key | None) -> Line:
        """Return the rows between two keys in one part of an index with this order."""
        return Line(self.table, part, self.columns, self.columns, above, below, self.condition())

    def conditions(self) -> list[Any]:
        """Return the wanted conditions that no index serves."""
        return []

    def condition(self) -> Any:
        """Return all conditions as one; None if there are none."""
        wanted = self.conditions()
        return reduce(and_, wanted) if wanted else None

    def equal(self, **columns: Any) -> list[Any]:
        """Return the conditions that columns equal the wanted values, by the names of their filters."""
        return [column == self.wanted[name] for name, column in columns.items() if name in self.wanted]

    def within(self, time: Any) -> list[Any]:
        """Return the conditions of `since` and `until` on a column of times."""
        since = [time >= self.wanted["since"]] if "since" in self.wanted else []
        return [*since, time <= self.wanted["until"]] if "until" in self.wanted else since

    def summary(self, few: list[Key] | None) -> Summary | None:
        """Return the number of all rows that match, and the sums of their amounts; None for a list without it."""
        if self.summed is None:
            return None
        if few is None:
            return keyset.summary(self.lines(None, None), self.summed, MOST_COUNTED, MOST_CHECKED)
        ids = [key[-1] for key in few[:MOST_COUNTED]]
        sums = [fn.COALESCE(fn.SUM(column), 0) for column in self.summed.values()]
        found = self.table.select(*sums).where(self.table.id.in_(ids)).tuples().get() if sums else ()
        return Summary(len(ids), dict(zip(self.summed, map(int, found), strict=True)), more=len(few) > len(ids))

    def few(self) -> list[Key] | None:
        """Return the keys of all rows if they are few; None if they are read page by page."""
        return None

    def total(self) -> int | None:
        """Return the number of rows if that costs nothing, otherwise None."""
        return None

    def key(self, row_id: int) -> Key | None:
        """Return the key of a row; None if it does not exist."""
        return self.table.select(*self.columns).where(self.table.id == row_id).tuples().first()

    def time_of(self, key: Key) -> int | None:
        """Return the time of the row with this key."""
        return key[0] if self.timed else None

    def query(self) -> Any:
        """The query for the rows with all displayed values."""
        return self.table.select()

    def rows(self, ids: list[int]) -> list[Any]:
        """Return the rows of these ids, in this order."""
        by_id = {row.id: row for row in self.query().where(self.table.id.in_(ids))}
        return [by_id[each] for each in ids if each in by_id]

    def exported(self, ids: list[int]) -> list[Any]:
        """Return the rows of these ids, in this order, with what only an export shows."""
        return self.rows(ids)

    def in_time(self, above: Key | None, below: Key | None) -> tuple[Key | None, Key | None]:
        """Return the bounds, narrowed to the wanted time range; for keys of time and id."""
        since, until = (self.wanted.get(name) for name in self.span)
        lows = [above, None if since is None else (since, 0)]
        highs = [below, None if until is None else (until + 1, 0)]
        low = max((each for each in lows if each), default=None)
        return low, min((each for each in highs if each), default=None)


def merchants(wanted: dict[str, Any]) -> list[int]:
    """Return the ids of the wanted merchants: one, or all."""
    if "merchant" in wanted:
        return [wanted["merchant"]]
    return [row_id for (row_id,) in Merchant.select(Merchant.id).order_by(Merchant.id).tuples()]


def add_owners(rows: list[Any]) -> list[Any]:
    """Add merchant and channel to the rows, reading each once."""
    for table, name in ((Merchant, "merchant"), (Channel, "channel")):
        having = [row for row in rows if hasattr(row, f"{name}_id")]
        ids = {getattr(row, f"{name}_id") for row in having}
        known = {each.id: each for each in table.select().where(table.id.in_(ids))} if ids else {}
        for row in having:
            setattr(row, name, known[getattr(row, f"{name}_id")])
    return rows


def mark_open_exceptions(orders: list[Any]) -> list[Any]:
    """Add `needs_review` to the orders, by one query: whether an exception of the order is open."""
    ids = [order.id for order in orders]
    is_open = PaymentException.resolution.is_null()
    found = PaymentException.select(PaymentException.order).where(PaymentException.order.in_(ids), is_open)
    marked = {order_id for (order_id,) in found.tuples()} if ids else set()
    for order in orders:
        order.needs_review = order.id in marked
    return orders


def mark_notes(orders: list[Any]) -> list[Any]:
    """Add `has_note` to the orders, by one query: whether operators wrote a note on it."""
    ids = [order.id for order in orders]
    found = InternalNote.select(InternalNote.order).where(InternalNote.order.in_(ids))
    noted = {order_id for (order_id,) in found.tuples()} if ids else set()
    for order in orders:
        order.has_note = order.id in noted
    return orders


@dataclass(frozen=True)
class Cursor:
    """The place where a page of a list begins, and the direction in which its rows are found.

    Args:
        up: whether the page has newer rows than its beginning.
        start: the key of the row before the page; None for an end of the list.
    """

    up: bool
    start: Key | None = None

    def page(self, browse: Browse, few: list[Key] | None, limit: int) -> Page:
        """Return the rows from here on in this direction; `few` has the keys of all rows if they are known."""
        above, below = (self.start, None) if self.up else (None, self.start)
        if few is None:
            return keyset.page(browse.lines(above, below), limit, newer=self.up)
        fit = [key for key in few if (above is None or key > above) and (below is None or key < below)]
        ids = [key[-1] for key in sorted(fit, reverse=not self.up)]
        return Page(ids[:limit], more=len(ids) > limit)


def _cursor(browse: Browse, before: int | None, after: int | None, first: Cursor) -> Cursor:
    if after == 0:
        return Cursor(up=True)
    for up, row_id in ((True, after), (False, before)):
        start = browse.key(row_id) if row_id else None
        if start is not None:
            return Cursor(up, start)
    return first


def find(
    browse: Browse,
    *,
    before: int | None = None,
    after: int | None = None,
    limit: int = 50,
    oldest_first: bool = False,
) -> Found:
    """Return a page: the newest rows, those older than the row `before`, or those newer than `after` (0: oldest).

    With `oldest_first` the first page has the oldest rows, and all pages are in this order.
    """
    first, few = Cursor(up=oldest_first), browse.few()
    cursor = _cursor(browse, before, after, first)
    page = cursor.page(browse, few, limit)
    goes_back = cursor.start is not None and cursor.up != first.up
    if goes_back and not page.more:  # the rest before the first page, which has a whole page of rows instead
        cursor, page = first, first.page(browse, few, limit)
    onward = (page.reached[-1] if page.reached else page.ids[-1]) if page.more else None
    back = page.ids[0] if page.ids and cursor.start is not None else None
    return Found(
        rows=browse.rows(page.ids if cursor.up == oldest_first else page.ids[::-1]),
        older=back if cursor.up else onward,
        newer=onward if cursor.up else back,
        total=browse.total() if few is None else len(few),
        summary=browse.summary(few),
        looked_to=browse.time_of(page.reached) if page.reached else None,
    )


def every(browse: Browse) -> Iterator[list[Any]]:
    """Yield all rows, newest first, in batches, each by short queries of its own."""
    few = browse.few()
    if few is None:
        pages = keyset.every(browse.lines(None, None), AT_ONCE)
    else:
        ids = [key[-1] for key in sorted(few, reverse=True)]
        pages = (ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE))
    for ids in pages:
        yield browse.exported(ids)


def capped(query: Any) -> int:
    """Return the number of rows, counted up to 100."""
    return int(query.limit(100).count())
