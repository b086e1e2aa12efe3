"""The orders of the last days: by day, channel, method, type and status; by hour; compared with the days before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from functools import cached_property, lru_cache
from itertools import chain
from operator import add
from typing import Any, NamedTuple

from models.tables.order import CANCELLED, COMPLETED
from runtime import clock
from runtime.state import Part
from services.console.order_sums import DAY, OrderSums, Pieces, pieces_of
from services.errors import OperatorError
from services.ledger import earnings
from services.ledger.earnings import Earned
from services.platform import cpu_affinity

LENGTHS = (1, 7, 30, 90)  # days of the ranges that are shown; a range of one day is shown by hour
DAYS = 2 * LENGTHS[-1]  # days that are summed: the longest range, and the one before it
WEEK = 7 * DAY
FRESH = 15.0  # seconds for which a result is reused
ZONES = 4  # time zones whose days are cached


class Cell(NamedTuple):
    """Orders of one day (by creation), channel, method, type and status; amounts in fen."""

    day: date
    channel: int
    method: str
    order_type: int
    status: str
    orders: int
    amount: int


class HourCell(NamedTuple):
    """Orders of one hour of a day (by creation), type and status; amounts in fen."""

    day: date
    hour: int
    order_type: int
    status: str
    orders: int
    amount: int


@dataclass(frozen=True)
class Sum:
    """The sums of some orders, in fen; `open` counts those that are neither completed nor cancelled."""

    orders: int = 0
    completed: int = 0
    cancelled: int = 0
    amount: int = 0

    def __add__(self, other: Sum) -> Sum:
        return Sum(*map(add, vars(self).values(), vars(other).values()))

    @property
    def open(self) -> int:
        """The number of open orders."""
        return self.orders - self.completed - self.cancelled

    @property
    def closed(self) -> int:
        """The number of finished orders."""
        return self.completed + self.cancelled


def summed(cells: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, Sum]:
    """Return the sums of cells of either kind, by `key` of each. The amount is that of completed orders."""
    sums: dict[Any, tuple[int, ...]] = {}
    for cell in cells:
        done, cancelled = cell.status == COMPLETED, cell.status == CANCELLED
        added = (cell.orders, cell.orders * done, cell.orders * cancelled, cell.amount * done)
        name = key(cell)
        before = sums.get(name)
        sums[name] = tuple(map(add, before, added)) if before else added
    return {each: Sum(*row) for each, row in sums.items()}


Sums = dict[int, Sum]  # by order type


def added(every: Iterable[Sums]) -> Sums:
    """Return the sums of several sums, by order type."""
    totals: Sums = {}
    for sums in every:
        for order_type, each in sums.items():
            totals[order_type] = totals[order_type] + each if order_type in totals else each
    return totals


@dataclass(frozen=True)
class Slot:
    """The sums of one day, or of one hour: from local time `start`. `is_open`: it is the present one."""

    start: datetime
    sums: Sums
    is_open: bool = False


@dataclass(frozen=True)
class Comparison:
    """Sums of a range and of the one before it, both up to the last full hour of the day.

    `first` and `last` are the days of the range before, `hour` is the hour at which both end on their last day.
    """

    now: Sums
    before: Sums
    first: date
    last: date
    hour: int


@dataclass(frozen=True)
class Statistics:
    """The last DAYS days, up to `today`, as of Unix time `at`, which is in the hour `hour` of the reader's day.

    `hours` has today, and each day that is the last of a range before (LENGTHS days ago). `earned` is by the day of
    booking in China, up to `booked_on`; None while the earnings are being prepared.
    """

    at: int
    today: date
    hour: int
    cells: dict[date, list[Cell]]
    hours: list[HourCell]
    booked_on: date
    earned: dict[date, Earned] | None

    @cached_property
    def daily(self) -> dict[date, Sums]:
        """The sums of each day."""
        return {day: summed(cells, lambda cell: cell.order_type) for day, cells in self.cells.items()}

    def days(self, length: int) -> list[date]:
        """Return the days of a range, the oldest first."""
        return [self.today - timedelta(back) for back in reversed(range(length))]

    def within(self, length: int) -> Iterator[Cell]:
        """Return the cells of a range."""
        return chain.from_iterable(self.cells.get(day, ()) for day in self.days(length))

    def total(self, length: int) -> Sums:
        """Return the sums of a range."""
        return added(self.daily.get(day, {}) for day in self.days(length))

    def series(self, length: int) -> list[Slot]:
        """Return the sums of a range by day, or of a single day by hour."""
        if length == 1:
            today = (cell for cell in self.hours if cell.day == self.today)
            hours: dict[int, Sums] = {}
            for (hour, order_type), each in summed(today, lambda cell: (cell.hour, cell.order_type)).items():
                hours.setdefault(hour, {})[order_type] = each
            return [
                Slot(datetime.combine(self.today, time(hour)), hours.get(hour, {}), hour == self.hour)
                for hour in range(24)
            ]
        return [
            Slot(datetime.combine(day, time()), self.daily.get(day, {}), day == self.today) for day in self.days(length)
        ]

    def earned_in(self, length: int) -> list[Earned] | None:
        """Return the earnings of each day of a range, None while they are being prepared."""
        if self.earned is None:
            return None
        days = (self.booked_on - timedelta(back) for back in reversed(range(length)))
        return [self.earned.get(day, Earned()) for day in days]

    def comparison(self, length: int) -> Comparison | None:
        """Compare a range with the one before it; None before the first full hour of a single day."""
        if length == 1 and not self.hour:
            return None
        last = self.today - timedelta(length)
        first = last - timedelta(length - 1)
        return Comparison(
            self._until(first + timedelta(length), self.today), self._until(first, last), first, last, self.hour
        )

    def _until(self, first: date, last: date) -> Sums:
        """Return the sums from a day up to the last full hour of `last`."""
        whole = [self.daily.get(first + timedelta(ahead), {}) for ahead in range((last - first).days)]
        rest = (cell for cell in self.hours if cell.day == last and cell.hour < self.hour)
        return added([*whole, summed(rest, lambda cell: cell.order_type)])


def _earned(last: date) -> dict[date, Earned] | None:
    """Return the earnings of the DAYS days up to `last`, None while they are being prepared."""
    try:
        return earnings.by_day(last - timedelta(DAYS - 1), last)
    except OperatorError:
        return None


class _Cached:
    """The sums in one zone, and their last result."""

    def __init__(self, pieces: Pieces):
        self.sums = OrderSums(pieces)
        self.cells: dict[date, list[Cell]] = {}
        self.result: Statistics | None = None
        self.looked_at = 0.0

    def look(self, since: int, now: int, local: datetime) -> None:
        """Read what changed."""
        today = local.date()
        for day in self.sums.look(since):
            self.cells[day] = [Cell(*row) for row in self.sums.by_day(day)]
        hours = self.sums.by_hour(today - timedelta(back) for back in (0, *LENGTHS))
        # A copy, because others still read the last result.
        self.result = Statistics(
            at=now,
            today=today,
            hour=local.hour,
            cells=dict(self.cells),
            hours=[HourCell(*row) for row in hours],
            booked_on=(booked_on := earnings.today()),
            earned=_earned(booked_on),
        )
        self.looked_at = clock.steady()


_lock = Part(threading.Lock)  # one request reads at a time, and others wait for its result
_cached = Part(lambda: lru_cache(maxsize=ZONES)(_Cached))


def of(zone: tzinfo) -> Statistics:
    """Return the last DAYS days in this zone, at most FRESH seconds old."""
    now = clock.now()
    local = datetime.fromtimestamp(now, zone)
    week = now // WEEK * WEEK
    since = week - (DAYS + 1) * DAY  # it changes once a week; a zone's pieces change with its clocks only
    with _lock():
        cached = _cached()(pieces_of(zone, since, week + WEEK))
        result = cached.result
        if result is None or result.today != local.date() or clock.steady() - cached.looked_at > FRESH:
            cpu_affinity.do(cached.look, since, now, local)
        assert cached.result is not None
        return cached.result
