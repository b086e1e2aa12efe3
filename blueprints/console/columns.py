"""Columns of lists: the format of values on the page and in CSV, and the columns that several lists share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import url_for
from flask_babel import gettext, lazy_gettext
from markupsafe import Markup, escape

from blueprints.console import labels
from blueprints.console.locale import local_time, time_tag
from models.tables.channel import Channel
from runtime.money import grouped, hundredths
from services.channels import pictures
from services.platform.safe_text import printable

LONG = 40  # characters; the page shortens a longer text and shows all of it in a tooltip


def text_html(value: Any) -> Markup:
    """Return an escaped text whose direction does not affect the text after it. A long one is shortened by CSS."""
    shown = printable("" if value is None else value)
    if len(shown) <= LONG:
        return Markup("<bdi>{}</bdi>").format(shown) if shown else Markup("")
    return Markup('<bdi class="clip" title="{0}">{0}</bdi>').format(shown)


def _state_html(value: tuple[str, Any] | None) -> Markup:
    return Markup('<span class="state {}">{}</span>').format(*value) if value else Markup("")


def _states_html(values: list[tuple[str, Any]]) -> Markup:
    return Markup(" ").join(map(_state_html, values))


def _iso(value: int | None) -> str:
    at = local_time(value)
    return at.isoformat() if at else ""


@dataclass(frozen=True)
class Kind:
    """The format of a value on the page and in a CSV file."""

    html: Callable[[Any], Any]
    csv: Callable[[Any], str]


KINDS = {
    "text": Kind(text_html, lambda value: "" if value is None else str(value)),
    "number": Kind(lambda value: Markup('<span class="number">{}</span>').format(escape(value)), str),
    "count": Kind(lambda value: Markup('<span class="number">{:,}</span>').format(value), str),
    "money": Kind(grouped, lambda value: "" if value is None else hundredths(value)),
    "percent": Kind(hundredths, hundredths),
    "time": Kind(time_tag, _iso),
    "html": Kind(lambda value: value, lambda value: value.striptags()),
    # A state is a pair: its name, which selects the colour, and its label.
    "state": Kind(_state_html, lambda value: str(value[1]) if value else ""),
    # The first of several states is the row's own; the others are marks, on the page only.
    "states": Kind(_states_html, lambda value: str(value[0][1])),
}
RIGHT = {"count", "money", "percent"}  # kinds whose cells are aligned to the right


@dataclass(frozen=True)
class Column:
    """A column of a list.

    Args:
        value: returns the value of a row in the type of `kind`.
        link: returns the address that the cell of a row links to; empty for none.
        note: returns a second line for the cell, on the page only.
        on: "page" or "export" if the column is only there.
        sort: the choice of the list's `sort` filter that the column's heading selects.
    """

    name: str
    label: Any
    value: Callable[[Any], Any]
    kind: str = "text"
    link: Callable[[Any], str] | None = None
    note: Callable[[Any], Any] | None = None
    on: str = ""
    sort: str = ""

    @property
    def align(self) -> str:
        """The CSS class of the cells."""
        return "money" if self.kind in RIGHT else ""

    def url(self, row: Any) -> str:
        """Return the address that the cell of a row links to; empty for none."""
        return self.link(row) if self.link and self.value(row) else ""

    def html(self, row: Any) -> Any:
        """Return the cell of a row on the page."""
        cell, url = KINDS[self.kind].html(self.value(row)), self.url(row)
        if url:
            cell = Markup('<a href="{}">{}</a>').format(url, cell)
        note = text_html(self.note(row)) if self.note else ""
        return Markup('{} <small class="quiet">{}</small>').format(cell, note) if note else cell

    def csv(self, row: Any) -> str:
        """Return the cell of a row in a CSV file."""
        return KINDS[self.kind].csv(self.value(row))


def order_link(order: Any) -> str:
    """Return the address of an order's page."""
    return url_for("order.show", order_no=order.order_no)


def refund_link(refund: Any) -> str:
    """Return the address of a refund: its part of its order's page."""
    return url_for("order.show", order_no=refund.order.order_no, _anchor=f"refund-{refund.refund_no}")


def merchant_link(merchant: Any) -> str:
    """Return the address of a merchant's page."""
    return url_for("merchant.show", key=merchant.key)


def channel_link(channel: Any) -> str:
    """Return the address of a channel's page."""
    return url_for("channel.show", channel_id=channel.id)


def status_of(order: Any) -> tuple[str, Any]:
    """Return the order's status and its label."""
    return order.status, labels.status(order.order_type, order.status)


def marked(order: Any, state: tuple[str, Any]) -> list[tuple[str, Any]]:
    """Return the state, and the marks of an order with an open exception, or with a note."""
    review = [("bad", labels.needs_review())] if order.needs_review else []
    note = [("note", gettext("Note"))] if getattr(order, "has_note", False) else []  # a refund has none
    return [state, *review, *note]


def same_amount(order: Any) -> Markup:
    """Return the mark of a claim whose amount others have too, a link to all of them; empty if there are none."""
    if order.alike < 2:
        return Markup("")
    return Markup('<a class="tag warn" href="{}">{}</a>').format(
        url_for("claims.index", flt_amount=hundredths(order.amount)),
        gettext("%(count)s claims of ¥%(amount)s", count=f"{order.alike:,}", amount=grouped(order.amount)),
    )


def unusable_marks(channel: Channel) -> dict[str, Markup]:
    """Return the marks of a channel's payment methods by which payers cannot pay, by method."""
    mark = Markup('<span class="tag warn">{}</span>')
    return {
        method: mark.format(gettext("%(method)s (cannot be used)", method=labels.name_of(labels.METHODS, method)))
        for method in pictures.unusable_methods(channel)
    }


def merchant_columns(of: Any = lambda row: row) -> list[Column]:
    """Return the columns for a row's merchant: name, and in exports the key. `of(row)` has the merchant."""
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
