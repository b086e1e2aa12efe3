"""What the operator earned in a range of days: fees less channel costs, by channel, merchant, method and day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any

from flask import Blueprint, Response, abort, render_template, request
from flask_babel import gettext, lazy_gettext

from blueprints.console import access
from blueprints.console.forms import find_or_404, message_of
from blueprints.console.list_page import BYTE_ORDER_MARK, export_slot
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from schemas.views import PAY_METHOD_TEXTS
from services.errors import OperatorError
from services.ledger import earnings, monthly_statement
from services.ledger.earnings import GROUPS, Line
from services.platform.safe_text import cells

MOST_ROWS = 500  # lines on the page; the file has all
USUAL = ("channel",)
LABELS = {
    "day": lazy_gettext("Day"),
    "merchant": lazy_gettext("Merchant"),
    "channel": lazy_gettext("Channel"),
    "method": lazy_gettext("Method"),
}

pages = Blueprint("earnings", __name__, url_prefix="/earnings")


@dataclass(frozen=True)
class Wanted:
    """The days and the groups of an address. `month` is None if they are not a month."""

    month: date | None
    since: date | None
    until: date | None
    by: tuple[str, ...]

    @property
    def days(self) -> str:
        """The range as text, such as 2026-05 or 2026-05-01 – 2026-05-07."""
        if self.month:
            return f"{self.month:%Y-%m}"
        return str(self.since) if self.since == self.until else f"{self.since or ''} – {self.until or ''}".strip()


def _day(name: str) -> date | None:
    text = request.values.get(name, "")
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        abort(404)


def _wanted() -> Wanted:
    """Return what the address or form asks for; this month by channel without it. Raises NotFound."""
    since, until, month = _day("since"), _day("until"), None
    given = request.values.get("month", "")
    if given or (not since and not until):
        month = find_or_404(monthly_statement.month_of, given) if given else monthly_statement.this_month()
        since, until = month, earnings.last_day(month)
    # The form sends an empty value too, so that an empty choice differs from a missing one.
    asked = request.values.getlist("by")
    return Wanted(month, since, until, tuple(name for name in GROUPS if name in asked) if asked else USUAL)


@pages.get("/")
def index() -> Any:
    """Show the earnings of a month or a range of days, in one table by the chosen groups."""
    wanted, problem, status = _wanted(), "", 200
    found: list[Line] = []
    try:
        found = earnings.lines(wanted.since, wanted.until, wanted.by)
    except OperatorError as refusal:
        problem, status = message_of(refusal), 422 if refusal.wrong else 503
    page = render_template(
        "console/earnings/earnings.html",
        wanted=wanted,
        months=earnings.months(),
        labels_of=LABELS,
        lines=found[:MOST_ROWS],
        more=len(found) > MOST_ROWS,
        total=earnings.total(found),
        named=_names(found),
        problem=problem,
    )
    return page, status


def _names(found: list[Line]) -> Any:
    """Return a function for the name of a line's part."""
    merchants = dict(Merchant.select(Merchant.id, Merchant.name).tuples())
    channels = dict(Channel.select(Channel.id, Channel.name).tuples())

    def named(line: Line, group: str) -> str:
        if group == "day":
            return str(line.day)
        if group == "merchant":
            return str(merchants.get(line.merchant, ""))
        if group == "channel":
            return str(channels.get(line.channel, ""))
        return gettext(PAY_METHOD_TEXTS.get(line.method or "", line.method or ""))

    return named


@pages.post("/export")
def export() -> Any:
    """Send the table as CSV, or the page with the reason. Raises ApiError if too many exports are running."""
    wanted = _wanted()
    try:
        found = earnings.lines(wanted.since, wanted.until, wanted.by)
    except OperatorError:
        return index()
    name = re.sub(" ?– ?", "-to-", wanted.days).strip("-")
    with access.act("export earnings", "earnings", "", export_slot, f"{wanted.days}; by: {', '.join(wanted.by)}"):
        return Response(
            BYTE_ORDER_MARK + cells(earnings.table(found)),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="earnings-{name}.csv"'},
        )
