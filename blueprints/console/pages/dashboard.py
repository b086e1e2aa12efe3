"""The overview: what to do, key figures, volumes, success rates, balances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from babel.lists import format_list
from flask import Blueprint, render_template, request
from flask_babel import gettext
from peewee import fn

from blueprints.console import alert_links, figures, locale, queues
from blueprints.console.figures import RANGES, Volume, orders_url
from blueprints.console.pages.ledger import owed
from blueprints.console.plot import plot
from models.tables.bill import COMPARED, LATE, WAITING, Bill
from models.tables.channel import Channel
from models.tables.order import BUY, CANCELLED, COMPLETED, SELL
from runtime.state import current
from schemas.views import PAY_METHOD_TEXTS
from services.console import statistics
from services.console.statistics import Statistics, Sum, summed
from services.ledger import accounts as books
from services.ledger import scheduled_checks
from services.operations import alerts, to_do
from services.statements import bills

MOST_ROWS = 6  # success rates shown; the page folds the others
EVERY = {1: 6, 7: 2, 30: 7, 90: 15}  # by days of a range: its labels are so many bars apart
GOOD_RATE, LOW_RATE = 0.8, 0.5  # success rates from which a bar is green, or amber
EDGE = 6.0  # percent of the chart: a day's name so near its left edge is left out, near its right one it ends there

pages = Blueprint("dashboard", __name__)


@dataclass(frozen=True)
class Rate:
    """The success rate of one channel and method; `part` is from 0 to 1, None if no order is finished."""

    name: str
    method: str
    sums: Sum
    part: float | None
    urls: dict[str, str]

    @property
    def state(self) -> str:
        """The color of its bar, empty without a rate."""
        if self.part is None:
            return ""
        return "good" if self.part >= GOOD_RATE else "warn" if self.part >= LOW_RATE else "bad"


def _rates(shown: Statistics, length: int, order_type: int, names: dict[int, str]) -> Iterator[Rate]:
    cells = (cell for cell in shown.within(length) if cell.order_type == order_type)
    sums = summed(cells, lambda cell: (cell.channel, cell.method))
    span = figures.span_of(shown, length)
    for (channel, method), each in sorted(sums.items(), key=lambda item: -item[1].orders):
        about = {"type": alert_links.TYPES[order_type], "channel": channel, "method": method, **span}
        urls = {
            "all": orders_url(**about),
            "completed": orders_url(status=COMPLETED, **about),
            "cancelled": orders_url(status=CANCELLED, **about),
        }
        text = gettext(PAY_METHOD_TEXTS.get(method, method))
        yield Rate(names.get(channel, str(channel)), text, each, figures.rate(each), urls)


@pages.get("/")
def index() -> str:
    """Show the overview, or the first steps until there is an order."""
    shown, waits = statistics.of(locale.zone()), to_do.waiting_counts()
    found = [alert_links.alert(each) for each in alerts.findings(shown, waits, current().settings.verify_every)]
    steps = to_do.onboarding_steps()
    chosen = request.args.get("range", "")
    facts = _numbers(shown, chosen if chosen in RANGES else figures.USUAL) if steps["order"] else {}
    cards = queues.cards(waits, found)
    return render_template(
        "console/dashboard/dashboard.html",
        found=[each for each in found if each.kind not in queues.KINDS],
        cards=[card for card in cards if not card.is_empty],
        quiet=[card.words.label for card in cards if card.is_empty],
        steps=steps,
        begun=steps["order"],
        shown=shown,
        ago=alert_links.ago,
        **facts,
    )


def _numbers(shown: Statistics, chosen: str) -> dict[str, Any]:
    length, _ = RANGES[chosen]
    slots, found = figures.volumes(shown, length), figures.key_figures(shown, length)
    chart, is_first_hour = plot(slots), shown.comparison(length) is None
    largest = max(line.value for line in chart.lines)
    names = dict(Channel.select(Channel.id, Channel.name).tuples())
    rates = {kind: list(_rates(shown, length, kind, names)) for kind in (BUY, SELL)}
    day_before = shown.booked_on - timedelta(1)
    return {
        "ranges": RANGES,
        "range": chosen,
        "length": length,
        "yesterday": figures.yesterday(shown, _costs(day_before), _bills(day_before)),
        "day_before": day_before,
        "figures": found,
        "sentences": locale.sentences,
        "compared": figures.compared_with(shown, length) if any(each.change for each in found) or is_first_hour else "",
        "slots": slots,
        "plot": chart,
        "label": _label,
        "ticks": _ticks(slots, EVERY[length]),
        "edge": EDGE,
        "tick": lambda fen: figures.tick(fen, largest),
        "owed": owed,
        "rates": [(gettext("Deposits"), rates[BUY]), (gettext("Withdrawals"), rates[SELL])],
        "most_rows": MOST_ROWS,
        "percent": figures.percent,
        "sheet": books.sheet(),
        "last": scheduled_checks.last(),
        "running": scheduled_checks.running(),
    }


def _costs(day: date) -> int:
    """Return the fen by which the bills of a day correct the costs."""
    return int(Bill.select(fn.COALESCE(fn.SUM(Bill.costs), 0)).where(Bill.day == str(day)).scalar())


def _bills(day: date) -> str:
    """Return what the bills of a day say, such as "WeChat Pay and Alipay agree"; empty without bills."""
    rows = bills.of_day(day)
    missing = [row.channel for row in rows if row.state in (WAITING, LATE)]
    agree = [row.channel for row in rows if row.state == COMPARED and not row.differences]
    differ, expected = sum(row.differences for row in rows), sum(row.expected for row in rows)
    names = partial(format_list, locale=locale.language())
    parts = [
        agree and locale.ngettext("%(names)s agrees", "%(names)s agree", len(agree), names=names(agree)),
        differ and locale.ngettext("%(num)s difference to the bills", "%(num)s differences to the bills", differ),
        expected
        and locale.ngettext(
            "%(num)s line expected in a neighbouring bill", "%(num)s lines expected in a neighbouring bill", expected
        ),
        missing and gettext("no bill yet from %(names)s", names=names(missing)),
    ]
    return gettext(", ").join(filter(None, parts))


def _label(slot: Volume, length: int) -> str:
    """Return a slot's name in the chart and its table: its day, or its hour."""
    return f"{slot.start:%H:%M}" if length == 1 else f"{slot.start:%Y-%m-%d}"


def _ticks(slots: list[Volume], every: int) -> list[tuple[float, str]]:
    """Return the labels below the chart, each with its place in percent: of hours from the first, of days from the
    last."""
    by_hour = len(slots) == 24
    numbers = range(0, len(slots), every) if by_hour else range(len(slots) - 1, -1, -every)
    texts = [f"{slots[at].start:%H:%M}" if by_hour else figures.day_label(slots[at].start) for at in numbers]
    places = [(at + 0.5) * 100 / len(slots) for at in numbers]
    # A day's name near the edge would run into the labels of the axis.
    return [(place, text) for place, text in zip(places, texts, strict=True) if by_hour or place > EDGE]
