"""Key figures of the overview: the volume of a range, its change against the range before, and the matching lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from babel.dates import format_skeleton
from babel.numbers import format_compact_decimal
from flask import url_for
from flask_babel import gettext, lazy_gettext, ngettext

from blueprints.console import alert_links, locale, plot
from models.tables.order import BUY, COMPLETED, SELL
from runtime.money import grouped
from services.console.statistics import Statistics, Sum, Sums

# By name in the address: the days of a range, and its label.
RANGES = {
    "today": (1, lazy_gettext("Today")),
    "7": (7, lazy_gettext("7 days")),
    "30": (30, lazy_gettext("30 days")),
    "90": (90, lazy_gettext("90 days")),
}
USUAL = "7"
LONG_NUMBER = 1_000_000  # from which a number is shown in compact form
MOST_CHANGE = 10  # times; a larger change is shown as "more than"


@dataclass(frozen=True)
class Volume:
    """Deposits and withdrawals of one hour, one day or a range, with the addresses of the matching lists.

    `is_open`: it is the present hour or day, whose sums still grow.
    """

    start: datetime
    inward: Sum
    outward: Sum
    urls: dict[str, str]
    is_open: bool = False

    @property
    def up(self) -> int:
        """Completed deposits in fen."""
        return self.inward.amount

    @property
    def down(self) -> int:
        """Completed withdrawals in fen."""
        return self.outward.amount

    @property
    def orders(self) -> int:
        """The number of orders created."""
        return self.inward.orders + self.outward.orders


def orders_url(base: str = "", **filters: Any) -> str:
    """Return the address of the list of orders with these filters; `base` is that of the list, if it is known."""
    query = urlencode({f"flt_{name}": value for name, value in filters.items()})
    return f"{base or url_for('orders.index')}?{query}"


def between(start: datetime, end: datetime) -> dict[str, str]:
    """Return the filters for orders created from `start` until before `end`."""
    return {"since": f"{start:%Y-%m-%dT%H:%M}", "until": f"{end - timedelta(minutes=1):%Y-%m-%dT%H:%M}"}


def span_of(shown: Statistics, length: int) -> dict[str, str]:
    """Return the filters for orders of a range."""
    midnight = datetime.combine(shown.today, datetime.min.time())
    return between(midnight - timedelta(length - 1), midnight + timedelta(1))


def _volume(base: str, sums: Sums, start: datetime, span: dict[str, str], is_open: bool = False) -> Volume:
    urls = {
        "in": orders_url(base, type=alert_links.TYPES[BUY], status=COMPLETED, **span),
        "out": orders_url(base, type=alert_links.TYPES[SELL], status=COMPLETED, **span),
        "orders": orders_url(base, **span),
    }
    return Volume(start, sums.get(BUY, Sum()), sums.get(SELL, Sum()), urls, is_open)


def volumes(shown: Statistics, length: int) -> list[Volume]:
    """Return the volumes of a range by day, or of a single day by hour."""
    apart, base = timedelta(hours=1) if length == 1 else timedelta(1), url_for("orders.index")
    return [
        _volume(base, slot.sums, slot.start, between(slot.start, slot.start + apart), slot.is_open)
        for slot in shown.series(length)
    ]


def compact(number: float) -> str:
    """Format a number of yuan or of orders in compact form: 1.2M, 120万."""
    return format_compact_decimal(number, locale=locale.language(), fraction_digits=2)


def short_yuan(fen: int) -> str:
    """Format fen as yuan, in compact form from a million yuan."""
    return compact(fen / 100) if abs(fen) >= LONG_NUMBER * 100 else grouped(fen)


def short_count(number: int) -> str:
    """Format a number of orders, in compact form from a million."""
    return compact(number) if number >= LONG_NUMBER else f"{number:,}"


def tick(fen: int, largest: int) -> str:
    """Format a number of an axis, whole yuan in fen, in the form of the largest one: 5,000 or 500K."""
    return compact(fen / 100) if largest >= LONG_NUMBER * 100 else f"{fen // 100:,}"


def day_label(day: date) -> str:
    """Format a day without its year in the reader's language."""
    return format_skeleton("MMMd", day, locale=locale.language())


def percent(part: float) -> str:
    """Format a share from 0 to 1 in percent."""
    return f"{part * 100:.1f} %"


@dataclass(frozen=True)
class Figure:
    """A key figure: its value in short and in full, its change against the range before, and its line with its ends.

    `points` are those of the line, `open_points` those of its last part, to the present hour or day.
    """

    name: str
    label: Any
    value: str
    exact: str
    change: str
    was: str
    note: str
    points: str
    open_points: str
    ends: tuple[str, str]
    url: str


def _sum(sums: Sums) -> Sum:
    """Return the sum of both types."""
    return sums.get(BUY, Sum()) + sums.get(SELL, Sum())


def rate(sums: Sum) -> float | None:
    """Return the share of completed orders among finished ones, None without any."""
    return sums.completed / sums.closed if sums.closed else None


def _share(part: float | None) -> str:
    return "–" if part is None else percent(part)


@dataclass(frozen=True)
class Measure:
    """The label of a key figure, its value for some sums, and the formats of a value in short and in full."""

    label: Any
    of: Callable[[Sums], Any]
    short: Callable[[Any], str]
    full: Callable[[Any], str]


MEASURES = {
    "deposits": Measure(
        lazy_gettext("Deposits (¥)"), lambda sums: sums.get(BUY, Sum()).amount, short_yuan, full=grouped
    ),
    "withdrawals": Measure(
        lazy_gettext("Withdrawals (¥)"), lambda sums: sums.get(SELL, Sum()).amount, short_yuan, full=grouped
    ),
    "rate": Measure(lazy_gettext("Success rate"), lambda sums: rate(_sum(sums)), _share, full=_share),
    "orders": Measure(
        lazy_gettext("New orders"), lambda sums: _sum(sums).orders, short_count, full=lambda number: f"{number:,}"
    ),
}


def _change(name: str, now: float | None, before: float | None) -> str:
    """Return the change in words; empty without a range to compare with."""
    if now is None or not before:
        return ""
    change = now - before if name == "rate" else now / before - 1
    if change > MOST_CHANGE:
        return f"> +{MOST_CHANGE * 100:,} %"
    text = f"{change * 100:+.1f}"
    if text[1:] == "0.0":
        return gettext("no change")
    return gettext("%(change)s points", change=text) if name == "rate" else f"{text} %"


def _is_most(name: str, part: Sums, whole: Sums) -> bool:
    """Return whether a part has at least half of what a figure counts. The change of less would contradict it."""
    counted: Callable[[Sums], int] = (lambda sums: _sum(sums).closed) if name == "rate" else MEASURES[name].of
    return 2 * counted(part) >= counted(whole)


def _note(name: str, length: int, sums: Sums, today: Sums) -> str:
    """Return the line below a value: what it consists of, or its part of today."""
    whole = _sum(sums)
    if name == "rate":
        if not whole.closed:
            return gettext("No finished orders")
        return gettext("%(part)s of %(whole)s", part=f"{whole.completed:,}", whole=f"{whole.closed:,}")
    if length > 1:
        measure = MEASURES[name]
        return gettext("Today: %(value)s", value=measure.short(measure.of(today)))
    kind = {"deposits": BUY, "withdrawals": SELL}.get(name)
    if kind:
        count = sums.get(kind, Sum()).completed
        return ngettext(
            "of %(count)s order created today", "of %(count)s orders created today", count, count=f"{count:,}"
        )
    return gettext("%(count)s in progress", count=f"{whole.open:,}") if name == "orders" else ""


def key_figures(shown: Statistics, length: int) -> list[Figure]:
    """Return the key figures of a range."""
    sums, today = shown.total(length), shown.total(1)
    slots = shown.series(length)
    slots = slots[: shown.hour + 1] if length == 1 else slots
    compared = shown.comparison(length)
    urls = _volume("", sums, datetime.min, span_of(shown, length)).urls
    links = {"deposits": urls["in"], "withdrawals": urls["out"], "orders": urls["orders"]}
    found = []
    for name, measure in MEASURES.items():
        value = measure.of(sums)
        before = measure.of(compared.before) if compared else None
        change = ""
        if compared and _is_most(name, compared.now, sums):
            change = _change(name, measure.of(compared.now), before)
        line = [measure.of(slot.sums) for slot in slots]
        known = [each for each in line if each is not None]
        points, open_points = plot.small_line(line)
        figure = Figure(
            name=name,
            label=measure.label,
            value=measure.short(value),
            exact=measure.full(value),
            change=change,
            was=measure.full(before) if change else "",
            note=_note(name, length, sums, today),
            points=points,
            open_points=open_points,
            ends=(measure.short(min(known)), measure.short(max(known))) if known else ("", ""),
            url=links.get(name, ""),
        )
        found.append(figure)
    found.insert(2, _income(shown, length))
    return found


def _income(shown: Statistics, length: int) -> Figure:
    """Return the key figure of what was earned, by the day of booking in China. It compares whole days: not today."""
    days, before = shown.earned_in(length), shown.earned_in(2 * length)
    value = exact = "–"
    change = was = points = open_points = ""
    ends = ("", "")
    if days is None or before is None:
        note = gettext("being prepared")
    else:
        line = [day.net for day in days]
        value, exact = short_yuan(sum(line)), grouped(sum(line))
        costs = sum(day.costs for day in days)
        if costs:
            fees = short_yuan(sum(day.fees for day in days))
            note = gettext("Fees %(fees)s, channel cost %(costs)s", fees=fees, costs=short_yuan(costs))
        else:
            note = gettext("Today: %(value)s", value=short_yuan(line[-1])) if length > 1 else ""
        if length > 1:
            now, then = sum(line[:-1]), sum(day.net for day in before[: length - 1])
            if then > 0 and 2 * now >= sum(line):
                change, was = _change("income", now, then), grouped(then)
            points, open_points = plot.small_line([max(fen, 0) for fen in line])
            ends = (short_yuan(min(line)), short_yuan(max(line)))
    return Figure(
        name="income",
        label=lazy_gettext("Net income (¥)"),
        value=value,
        exact=exact,
        change=change,
        was=was,
        note=note,
        points=points,
        open_points=open_points,
        ends=ends,
        url=url_for("earnings.index", since=shown.booked_on - timedelta(length - 1), until=shown.booked_on),
    )


def yesterday(shown: Statistics, costs: int, bills: str) -> str:
    """Return what yesterday brought in one sentence; empty while the earnings are being prepared.

    Args:
        costs: the fen by which yesterday's bills correct the costs. They are posted after the day. Those posted on
            it belong to earlier days.
        bills: what the comparison with yesterday's bills found, in a few words; it is left out if it is empty.
    """
    days = shown.earned_in(2)
    if days is None:
        return ""
    sums = days[0]
    payments = ngettext("%(count)s payment", "%(count)s payments", sums.deposits, count=f"{sums.deposits:,}")
    payouts = ngettext("%(count)s payout", "%(count)s payouts", sums.withdrawals, count=f"{sums.withdrawals:,}")
    refunds = ngettext("%(count)s refund", "%(count)s refunds", sums.refunds, count=f"{sums.refunds:,}")
    fen = sums.net + sums.corrections - costs
    net = gettext("¥%(amount)s lost", amount=grouped(-fen)) if fen < 0 else ""
    net = net or gettext("¥%(amount)s earned", amount=grouped(fen))
    parts = [payments, *([payouts] if sums.withdrawals else []), refunds, *([bills] if bills else []), net]
    return gettext("Yesterday: %(parts)s", parts=gettext(", ").join(parts))


def compared_with(shown: Statistics, length: int) -> str:
    """Return a sentence about the range before: from when until when."""
    compared = shown.comparison(length)
    if compared is None:
        return gettext("The comparison with yesterday begins after the first full hour.")
    return gettext(
        "Changes compare full hours with %(first)s 00:00 to %(last)s %(hour)s.",
        first=day_label(compared.first),
        last=day_label(compared.last),
        hour=f"{compared.hour:02}:00",
    )
