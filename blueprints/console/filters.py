"""The filters of lists: their form fields, their values for the services, and the named ranges of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from flask import request
from flask_babel import gettext, lazy_gettext
from marshmallow import ValidationError

from blueprints.console import labels
from blueprints.console.locale import zone
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from runtime import clock
from schemas.fields import LARGEST_TIME, Yuan
from services.platform.safe_text import printable

LONGEST, LONGEST_LABEL = 255, 60


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


@dataclass(frozen=True)
class Choice:
    """An option of a filter: its text in the address, its label, and its value for the service."""

    text: str
    label: Any
    value: Any


def choices(words: dict[Any, Any]) -> Callable[[], list[Choice]]:
    """Return a function for fixed choices, given as labels by name."""
    return lambda: [Choice(str(name), label, name) for name, label in words.items()]


def _label(text: str) -> str:
    return printable(text if len(text) <= LONGEST_LABEL else f"{text[:LONGEST_LABEL]}…")


def merchant_choices() -> list[Choice]:
    """Return all merchants as choices, in the order of their keys."""
    rows = Merchant.select(Merchant.id, Merchant.key, Merchant.name).order_by(Merchant.key).tuples()
    return [
        Choice(key, _label(gettext("%(name)s (%(note)s)", name=name, note=key) if name != key else key), row_id)
        for row_id, key, name in rows
    ]


def channel_choices() -> list[Choice]:
    """Return all channels as choices, in the order of their ids."""
    rows = Channel.select(Channel.id, Channel.name).order_by(Channel.id).tuples()
    return [Choice(str(row_id), _label(f"{row_id} {name}"), row_id) for row_id, name in rows]


@dataclass(frozen=True)
class Filter:
    """One filter of a list.

    Args:
        key: the service's name for it; the address has it with the prefix `flt_`.
        kind: choice, part (a choice beside the heading, of what the list is about), tab (a choice that the page shows
            as tabs), text, search, amount, since, until, or sort. The choices of `sort` are the orders of the rows: a
            name, or `-name` for the oldest first.
        default: the text that applies without an argument; `all` then means no filter.
    """

    key: str
    label: Any
    kind: str = "choice"
    choices: Callable[[], Sequence[Choice]] = lambda: ()
    default: str = ""

    @property
    def argument(self) -> str:
        """The parameter's name in the address."""
        return "search" if self.kind == "search" else f"flt_{self.key}"

    def given(self) -> str:
        """Return the parameter's text in the address or the default; empty for no filter."""
        text = request.args.get(self.argument, self.default).strip()
        return "" if text == "all" else text

    def field(self) -> str:
        """Return the value of the form field: as in the address, with the dates of a named range."""
        text = request.args.get(self.argument, self.default)
        return dated(self.kind, text) if self.kind in ("since", "until") else text


def _choice(each: Filter, text: str) -> tuple[Any, str]:
    for choice in each.choices():
        if choice.text == text:
            return choice.value, str(choice.label)
    raise ValueError(gettext("Choose one of the options."))


def _text(each: Filter, text: str) -> tuple[Any, str]:
    if len(text) > LONGEST or not text.isprintable():
        raise ValueError(gettext("This value cannot be searched. Enter letters or digits."))
    return text, text


def _amount(each: Filter, text: str) -> tuple[Any, str]:
    try:
        fen = Yuan().deserialize(text.replace(",", ""))
    except ValidationError:
        raise ValueError(gettext("Enter an amount, such as 12.50.")) from None
    return fen, text


def _moment(text: str, last: bool) -> int:
    """Return the Unix time of a day, minute or second in the reader's zone; with `last`, of its last second."""
    if len(text) == 10:
        at = datetime.combine(date.fromisoformat(text), time())
        length = timedelta(days=1)
    else:
        at = datetime.fromisoformat(text)
        length = timedelta(minutes=1) if len(text) == 16 else timedelta(seconds=1)
    # Local time plus one day is the next midnight, also on days of 23 or 25 hours.
    moment = (at + length if last else at).replace(tzinfo=at.tzinfo or zone())
    return int(moment.timestamp()) - (1 if last else 0)


def _time(each: Filter, text: str) -> tuple[Any, str]:
    text = dated(each.kind, text)
    try:
        moment = _moment(text, last=each.kind == "until")
        if not 0 <= moment <= LARGEST_TIME:
            raise ValueError(text)
    except (ValueError, OverflowError):
        raise ValueError(gettext("Enter a date and time, such as 2026-01-31T18:00.")) from None
    return moment, text.replace("T", " ")


# By kind: a function from text to the value for the service and a text for people. Raises ValueError with a message.
_CLEAN: dict[str, Callable[[Filter, str], tuple[Any, str]]] = {
    "choice": _choice,
    "part": _choice,
    "tab": _choice,
    "sort": _choice,
    "text": _text,
    "search": _text,
    "amount": _amount,
    "since": _time,
    "until": _time,
}
MERCHANT = Filter("merchant", lazy_gettext("Merchant"), choices=merchant_choices)
CHANNEL = Filter("channel", lazy_gettext("Channel"), choices=channel_choices)
TYPE = Filter(
    "type",
    lazy_gettext("Type"),
    choices=lambda: [Choice("buy", labels.TYPES[1], 1), Choice("sell", labels.TYPES[2], 2)],
)
ENABLED = Filter(
    "enabled",
    lazy_gettext("Status"),
    choices=lambda: [Choice("yes", gettext("Enabled"), True), Choice("no", gettext("Disabled"), False)],
)
SINCE = Filter("since", lazy_gettext("From"), "since")
UNTIL = Filter("until", lazy_gettext("To"), "until")


@dataclass
class Wanted:
    """The filters of a request: `values` for the service, `shown` as (filter, text), `wrong` as errors by key."""

    values: dict[str, Any]
    shown: list[tuple[Filter, str]]
    wrong: dict[str, str]


def read(filters: Sequence[Filter]) -> Wanted:
    """Read the filters from the address of the request."""
    wanted = Wanted({}, [], {})
    for each in filters:
        text = each.given()
        if not text:
            continue
        try:
            wanted.values[each.key], shown = _CLEAN[each.kind](each, text)
            if each.kind != "sort":
                wanted.shown.append((each, shown))
        except ValueError as wrong:
            wanted.wrong[each.key] = str(wrong)
    return wanted
