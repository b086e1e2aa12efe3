"""The quick time ranges of lists: whole days in the reader's time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from flask_babel import lazy_gettext

import business_clock
from blueprints.console.locale import zone


@dataclass(frozen=True)
class TimeRange:
    """A quick range; `since` and `until` are texts of the filters, such as `2026-01-31T23:59`."""

    label: Any
    since: str
    until: str


def quick_ranges() -> list[TimeRange]:
    """Return today, yesterday, the last 7 days, this month and last month."""
    today = datetime.fromtimestamp(business_clock.now(), zone()).date()
    yesterday, first = today - timedelta(1), today.replace(day=1)
    last_month = first - timedelta(1)
    spans: list[tuple[Any, date, date]] = [
        (lazy_gettext("Today"), today, today),
        (lazy_gettext("Yesterday"), yesterday, yesterday),
        (lazy_gettext("Last 7 days"), today - timedelta(6), today),
        (lazy_gettext("This month"), first, today),
        (lazy_gettext("Last month"), last_month.replace(day=1), last_month),
    ]
    return [TimeRange(label, f"{since}T00:00", f"{until}T23:59") for label, since, until in spans]
