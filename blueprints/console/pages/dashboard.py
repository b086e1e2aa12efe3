"""The overview: alerts, volumes by day, success rates, balances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import count
from typing import Any

from babel.dates import format_skeleton
from babel.numbers import format_compact_decimal
from flask import Blueprint, render_template, url_for
from flask_babel import gettext

from blueprints.console import alert_texts, locale
from blueprints.console.pages.ledger import owed
from models.tables.channel import Channel
from models.tables.order import BUY, COMPLETED, SELL
from runtime import current
from schemas.views import PAY_METHOD_TEXTS
from services.console import alerts, statistics, to_do
from services.console.statistics import Statistics, Sum
from services.ledger import accounts as books
from services.ledger import scheduled_checks

MOST_ROWS = 8  # success rates shown; the page folds the others
STEPS = (1, 2, 5)
LINES = 3  # maximum axis lines above zero
GAP = 0.2  # the share of a bar's slot that stays empty

pages = Blueprint("dashboard", __name__)


@dataclass(frozen=True)
class Volume:
    """Deposits and withdrawals of one day or of all days, with the addresses of the matching lists."""

    inward: Sum
    outward: Sum
    urls: dict[str, str]
    day: date | None = None

    @property
    def orders(self) -> int:
        """The number of orders created."""
        return self.inward.orders + self.outward.orders

    @property
    def fees(self) -> int:
        """The operator's fees in fen, before channel costs."""
        return self.inward.fees + self.outward.fees

    @property
    def commission(self) -> int:
        """The channel costs in fen."""
        return self.inward.commission + self.outward.commission


@dataclass(frozen=True)
class Rate:
    """The success rate of one channel and method; `part` is from 0 to 1, None if too few orders are finished."""

    name: str
    method: str
    sums: Sum
    part: float | None
    urls: dict[str, str]


@dataclass(frozen=True)
class Line:
    """A line of the axis: its value in fen and its distance from the top in percent."""

    value: int
    y: float


@dataclass(frozen=True)
class Bar:
    """The bar of one day: `up` above zero, `down` below it, each as top and height in percent."""

    item: Volume
    x: float
    width: float
    middle: float
    slot: tuple[float, float]
    up: tuple[float, float]
    down: tuple[float, float]


@dataclass(frozen=True)
class Plot:
    """A bar chart with bars above and below zero; `zero` is the zero line's distance from the top in percent."""

    bars: list[Bar]
    lines: list[Line]
    zero: float


def _round_step(largest: int) -> int:
    """Return the smallest step (1, 2 or 5 times ¥1, ¥10, ...) in fen with which LINES steps reach `largest`."""
    round_values = (step * 10**power for power in count(2) for step in STEPS)
    return next(value for value in round_values if value * LINES >= largest)


def _plot(days: list[Volume]) -> Plot:
    """Return the chart: for each day, deposits above zero and withdrawals below it, on one scale."""
    ups, downs = [day.inward.amount for day in days], [day.outward.amount for day in days]
    step = _round_step(max(*ups, *downs))
    above, below = max(1, -(-max(ups) // step)), -(-max(downs) // step)
    height = 100 / ((above + below) * step)
    zero = above * step * height
    place = 100 / len(days)
    bars = [
        Bar(
            item=day,
            x=(at + GAP / 2) * place,
            width=(1 - GAP) * place,
            middle=(at + 0.5) * place,
            slot=(at * place, place),
            up=(zero - up * height, up * height),
            down=(zero, down * height),
        )
        for at, (day, up, down) in enumerate(zip(days, ups, downs, strict=True))
    ]
    lines = [Line(abs(number) * step, zero - number * step * height) for number in range(above, -below - 1, -1)]
    return Plot(bars, lines, zero)


def _orders(**filters: Any) -> str:
    return url_for("orders.index", **{f"flt_{name}": value for name, value in filters.items()})


def _between(first: date, last: date) -> dict[str, str]:
    return {"since": f"{first}T00:00", "until": f"{last}T23:59"}


def _volume(sums: dict[int, Sum], first: date, last: date) -> Volume:
    span = _between(first, last)
    urls = {
        "in": _orders(type=alert_texts.TYPES[BUY], status=COMPLETED, **span),
        "out": _orders(type=alert_texts.TYPES[SELL], status=COMPLETED, **span),
        "orders": _orders(**span),
    }
    return Volume(sums.get(BUY, Sum()), sums.get(SELL, Sum()), urls, last if first == last else None)


def _by_day(shown: Statistics) -> list[Volume]:
    sums = shown.by(lambda cell: (cell.day, cell.order_type))
    return [_volume({kind: sums.get((day, kind), Sum()) for kind in (BUY, SELL)}, day, day) for day in shown.days]


def _rates(shown: Statistics, order_type: int, names: dict[int, str]) -> Iterator[Rate]:
    sums = shown.by(lambda cell: (cell.channel, cell.method), lambda cell: cell.order_type == order_type)
    span = _between(shown.days[0], shown.today)
    for (channel, method), each in sorted(sums.items(), key=lambda item: -item[1].orders):
        about = {"type": alert_texts.TYPES[order_type], "channel": channel, "method": method, **span}
        urls = {
            "all": _orders(**about),
            "completed": _orders(status=COMPLETED, **about),
            "cancelled": _orders(status="cancelled", **about),
        }
        text = gettext(PAY_METHOD_TEXTS.get(method, method))
        yield Rate(names.get(channel, str(channel)), text, each, alerts.rate(each), urls)


def _short(fen: int) -> str:
    """Format a round amount in compact form: 2M, 200万 yuan."""
    return format_compact_decimal(fen // 100, locale=locale.language(), fraction_digits=1)


def _label(day: date) -> str:
    """Format a day without its year in the reader's language."""
    return format_skeleton("MMMd", day, locale=locale.language())


@pages.get("/")
def index() -> str:
    """Show the overview, or the first steps until there is an order."""
    shown, waits = statistics.of(locale.zone()), to_do.waiting_counts()
    found = [alert_texts.alert(each) for each in alerts.findings(shown, waits, current().settings.verify_every)]
    steps = to_do.onboarding_steps()
    facts = _numbers(shown) if steps["order"] else {}
    return render_template(
        "console/dashboard/dashboard.html",
        found=found,
        steps=steps,
        begun=steps["order"],
        shown=shown,
        waits=waits,
        claims_url=alert_texts.claims_link(waits.by_hand),
        dead_url=alert_texts.dead_link(list(waits.dead), waits.dead_since),
        ago=alert_texts.ago,
        **facts,
    )


def _numbers(shown: Statistics) -> dict[str, Any]:
    days = _by_day(shown)
    names = dict(Channel.select(Channel.id, Channel.name).tuples())
    rates = {kind: list(_rates(shown, kind, names)) for kind in (BUY, SELL)}
    return {
        "today": days[-1],
        "month": _volume(shown.by(lambda cell: cell.order_type), shown.days[0], shown.today),
        "days": days,
        "plot": _plot(days),
        "short": _short,
        "label": _label,
        "owed": owed,
        "rates": [(gettext("Deposits"), rates[BUY]), (gettext("Withdrawals"), rates[SELL])],
        "most_rows": MOST_ROWS,
        "least": alerts.ENOUGH,
        "sheet": books.sheet(),
        "last": scheduled_checks.last(),
        "running": scheduled_checks.running(),
    }
