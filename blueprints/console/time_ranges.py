"""The named time ranges of lists: whole days in the reader's time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from flask_babel import lazy_gettext

from blueprints.console.locale import zone
from runtime import clock


@dataclass(frozen=True)
class TimeRange:
    """A range; `since` and `until` are its present ends as texts of the filters, such as `2026-01-31T23:59`.

    In an address, `name` stands for both ends, so that a saved view moves with the date.
    """

    name: str
    label: Any
    since: str
    until: str


def named_ranges() -> list[TimeRange]:
    """Return today, yesterday, the last 7 days, this month and last month."""
    today = datetime.fromtimestamp(clock.now(), zone()).date()
    yesterday, first = today - timedelta(1), today.replace(day=1)
    last_month = first - timedelta(1)
    spans: list[tuple[str, Any, date, date]] = [
        ("today", lazy_gettext("Today"), today, today),
        ("yesterday", lazy_gettext("Yesterday"), yesterday, yesterday),
        ("7days", lazy_gettext("Last 7 days"), today - timedelta(6), today),
        ("month", lazy_gettext("This month"), first, today),
        ("last_month", lazy_gettext("Last month"), last_month.replace(day=1), last_month),
    ]
    return [TimeRange(name, label, f"{since}T00:00", f"{until}T23:59") for name, label, since, until in spans]


def dated(kind: str, text: str) -> str:
    """Return the text of a `since` or `until` filter; for a range's name, the present date of that end."""
    return next((getattr(each, kind) for each in named_ranges() if each.name == text), text)
