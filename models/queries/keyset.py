"""Keyset pagination: pages that start where the last one ended, and iteration over all rows.

Rows may come from several lines (each merchant's orders, each account's entries), which are read in parallel and
merged. A condition that no index serves is checked row by row, in stretches, so a page may end early once it has
checked enough rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from peewee import SQL, Tuple, fn

from models.db.base import LARGEST_ID

Key = tuple[int, ...]

FIRST, MOST = 101, 1_000  # rows that one statement reads along a line: at first, later
FIRST_STRETCH, LONGEST_STRETCH = 1_000, 20_000  # rows that one statement checks for a condition
LOOKS_THROUGH = 200_000  # rows checked for a page, apart from the rest of the last stretches


@dataclass(frozen=True)
class Line:
    """Rows of `table` in the order of an index.

    Args:
        part: conditions on the first columns of the index; empty for the table itself. None of them may be about the
        position: of two bounds on the same side a database might use the wrong one.
        position: the columns that order the rows in the index.
        key: the columns by which lines are merged; they rise with the position, and the last is the row's id.
        above, below: exclusive bounds of the position; None for no bound.
        condition: a further condition, which no index serves.
    """

    table: Any
    part: list[Any]
    position: tuple[Any, ...]
    key: tuple[Any, ...]
    above: Key | None = None
    below: Key | None = None
    condition: Any = None

    def query(self, newer: bool, *also: Any) -> Any:
        """The query for key and position of the rows, from one end or the other."""
        columns = [each.alias(f"c{at}") for at, each in enumerate((*self.key, *self.position))]
        wanted = [*self.part, *_bounds(self.position, self.above, self.below), *also]
        rows = self.table.select(*columns)
        named = [SQL(f"c{at}") for at in range(len(self.key), len(columns))]
        return (rows.where(*wanted) if wanted else rows).order_by(
            *[each.asc() if newer else each.desc() for each in named]
        )

    def split(self, row: tuple[int, ...]) -> tuple[Key, Key]:
        """Split a row of the query into key and position."""
        return row[: len(self.key)], row[len(self.key) :]

    def beyond(self, position: Key, newer: bool) -> Line:
        """Return the rest of the line after a position."""
        return replace(self, above=position) if newer else replace(self, below=position)


@dataclass(frozen=True)
class Step:
    """A row that was found, or how far a line was searched."""

    key: Key
    looked: int = 0


@dataclass(frozen=True)
class Page:
    """The ids of some rows in reading order, and whether there may be more; `reached` is where the search stopped."""

    ids: list[int] = field(default_factory=list)
    more: bool = False
    reached: Key | None = None


def _bounds(columns: tuple[Any, ...], above: Key | None, below: Key | None) -> Iterator[Any]:
    if above is not None:
        yield Tuple(*columns) > Tuple(*above)
    if below is not None:
        yield Tuple(*columns) < Tuple(*below)


def _end(line: Line, newer: bool) -> Key:
    """Return an explicit end, even without a bound: databases plan a range differently from all rows."""
    given = line.below if newer else line.above
    return given or (LARGEST_ID if newer else 0,) * len(line.position)


def _rows(line: Line, newer: bool) -> Iterator[Step]:
    """Yield the rows of a line without a condition; each statement reads more of them than the one before."""
    size = FIRST
    while True:
        rows = [line.split(row) for row in line.query(newer).limit(size).tuples()]
        yield from (Step(key) for key, _ in rows)
        if len(rows) < size:
            return
        line = line.beyond(rows[-1][1], newer)
        size = min(size * 4, MOST)


def _matches(line: Line, newer: bool) -> Iterator[Step]:
    """Yield the rows that fulfil the line's condition, stretch by stretch, and a step at the end of each stretch."""
    size = FIRST_STRETCH
    while True:
        edge = line.query(newer).limit(1).offset(size - 1).tuples().first()
        key, position = line.split(edge) if edge else ((), None)
        end = _end(line, newer) if position is None else (*position[:-1], position[-1] + (1 if newer else -1))
        stretch = replace(line, below=end) if newer else replace(line, above=end)
        found = list(stretch.query(newer, line.condition).tuples())  # no cursor stays open between steps
        yield from (Step(stretch.split(row)[0]) for row in found)
        if position is None:
            return
        yield Step(key, looked=size)
        line = line.beyond(position, newer)
        size = min(size * 4, LONGEST_STRETCH)


def _merged(lines: list[Line], newer: bool) -> Iterator[Step]:
    steps = [_rows(line, newer) if line.condition is None else _matches(line, newer) for line in lines]
    return heapq.merge(*steps, key=lambda step: step.key, reverse=not newer)


def page(lines: list[Line], limit: int, newer: bool = False) -> Page:
    """Return the first rows of some lines, the newest or (`newer`) the oldest, between their bounds."""
    ids: list[int] = []
    looked = 0
    for step in _merged(lines, newer):
        if not step.looked:
            if len(ids) == limit:
                return Page(ids, more=True)
            ids.append(step.key[-1])
        else:
            looked += step.looked
            if looked >= LOOKS_THROUGH:
                return Page(ids, more=True, reached=step.key)
    return Page(ids)


def every(lines: list[Line], at_once: int) -> Iterator[list[int]]:
    """Yield the ids of all rows, newest first, in batches; no cursor stays open between them."""
    found = (step.key[-1] for step in _merged(lines, newer=False) if not step.looked)
    while ids := list(islice(found, at_once)):
        yield ids


@dataclass(frozen=True)
class Summary:
    """The number of rows and the sums over them by name; `more` if there may be further rows."""

    count: int
    totals: dict[str, int]
    more: bool = False


def summary(lines: list[Line], columns: dict[str, Any], most: int, looks: int) -> Summary:
    """Count the rows of some lines and sum columns, up to `most` rows and at most `looks` checked ones."""
    count, totals, more = 0, dict.fromkeys(columns, 0), False
    for line in lines:
        if line.condition is not None:
            edge = line.query(False).limit(1).offset(looks // len(lines)).tuples().first()
            if edge is not None:
                more, line = True, replace(line, above=line.split(edge)[1])
        bounds = _bounds(line.position, _end(line, newer=False), line.below)
        condition = [] if line.condition is None else [line.condition]
        summed = [column.alias(name) for name, column in columns.items()]
        rows = line.table.select(line.key[-1].alias("row_id"), *summed).where(*line.part, *bounds, *condition)
        rows = rows.limit(most + 1 - count).alias("counted")
        sums = [fn.COALESCE(fn.SUM(getattr(rows.c, name)), 0) for name in columns]
        found, *added = line.table.select(fn.COUNT(rows.c.row_id), *sums).from_(rows).tuples().get()
        count += found
        totals = {name: totals[name] + int(fen) for name, fen in zip(columns, added, strict=True)}
        if count > most:
            return Summary(most, totals, more=True)
    return Summary(count, totals, more)
