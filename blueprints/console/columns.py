"""Columns of lists: how a value reads on the page and in a CSV file, and the columns that several lists share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import url_for
from flask_babel import gettext, lazy_gettext
from markupsafe import Markup, escape

from blueprints.console import labels
from blueprints.console.locale import local_time, printable, time_tag, yuan
from schemas.views import hundredths

LONG = 40  # characters, above which a text is cut short on the page and whole when pointed at
# What a spreadsheet takes for a formula at the beginning of a cell, also in full width; and where another program,
# or one of another country, would begin a new cell.
_FORMULA = re.compile(r"(^|[;,|\t])(\s*)(?=[=+\-@＝＋－＠﹢﹣﹦﹫−])")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


def neutral(text: Any) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe stands before what would begin one."""
    shown = printable(text)
    return shown if _NUMBER.fullmatch(shown) else _FORMULA.sub(r"\1\2'", shown)


def text_html(value: Any) -> Markup:
    """A text as it is, kept from turning round what follows it."""
    shown = printable("" if value is None else value)
    if len(shown) <= LONG:
        return Markup("<bdi>{}</bdi>").format(shown) if shown else Markup("")
    return Markup('<bdi class="clip" title="{0}">{0}</bdi>').format(shown)


def _state_html(value: tuple[str, Any] | None) -> Markup:
    return Markup('<span class="state {}">{}</span>').format(*value) if value else Markup("")


def _iso(value: int | None) -> str:
    at = local_time(value)
    return at.isoformat() if at else ""


@dataclass(frozen=True)
class Kind:
    """How a value is written on a page, and in a file."""

    html: Callable[[Any], Any]
    csv: Callable[[Any], str]


KINDS = {
    "text": Kind(text_html, lambda value: "" if value is None else neutral(value)),
    "number": Kind(lambda value: Markup('<span class="number">{}</span>').format(escape(value)), str),
    "money": Kind(yuan, lambda value: "" if value is None else hundredths(value)),
    "percent": Kind(hundredths, hundredths),
    "time": Kind(time_tag, _iso),
    # A state is its name, which colours it, and what it is called.
    "state": Kind(_state_html, lambda value: str(value[1]) if value else ""),
}
RIGHT = {"money", "percent"}  # kinds whose cells are aligned to the right


@dataclass(frozen=True)
class Column:
    """A column of a list.

    Args:
        value: of a row, as `kind` wants it.
        link: where a cell leads, of a row; empty for nowhere.
        note: a second line of the cell, on the page alone.
        on: "page" or "export" if it is only there.
    """

    name: str
    label: Any
    value: Callable[[Any], Any]
    kind: str = "text"
    link: Callable[[Any], str] | None = None
    note: Callable[[Any], Any] | None = None
    on: str = ""

    @property
    def align(self) -> str:
        """The class of its cells."""
        return "money" if self.kind in RIGHT else ""

    def html(self, row: Any) -> Any:
        """The cell of a row on the page."""
        cell = KINDS[self.kind].html(self.value(row))
        url = self.link(row) if self.link and cell else ""
        if url:
            cell = Markup('<a href="{}">{}</a>').format(url, cell)
        note = text_html(self.note(row)) if self.note else ""
        return Markup('{} <small class="quiet">{}</small>').format(cell, note) if note else cell

    def csv(self, row: Any) -> str:
        """The cell of a row in a file."""
        return KINDS[self.kind].csv(self.value(row))


def order_link(order: Any) -> str:
    """The page of an order."""
    return url_for("order.show", order_no=order.order_no)


def merchant_link(merchant: Any) -> str:
    """The page of a merchant."""
    return url_for("merchant.show", key=merchant.key)


def channel_link(channel: Any) -> str:
    """The page of a channel."""
    return url_for("channel.show", channel_id=channel.id)


def status_of(order: Any) -> tuple[str, Any]:
    """The state of an order, as a tag."""
    return order.status, labels.status(order.order_type, order.status)


def merchant_columns(of: Any = lambda row: row) -> list[Column]:
    """Whose a row is: its name, in a file also its key. `of(row)` has the merchant."""
    return [
        Column(
            "merchant",
            lazy_gettext("Merchant"),
            lambda row: of(row).merchant.name,
            link=lambda row: merchant_link(of(row).merchant),
        ),
        Column("merchant_key", lazy_gettext("Merchant key"), lambda row: of(row).merchant.key, on="export"),
    ]


def _enabled(row: Any) -> tuple[str, str]:
    return ("good", gettext("Enabled")) if row.enabled else ("off", gettext("Disabled"))


ENABLED_COLUMN = Column("enabled", lazy_gettext("Status"), _enabled, "state")
