"""How a value looks in a list: in a cell of the page, and in one of a CSV file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from blueprints.console.locale import local_time, time_tag, yuan
from schemas.views import hundredths

LONG = 40  # characters, above which a text is cut short on the page and whole when pointed at
# What a spreadsheet takes for a formula at the beginning of a cell, also in full width; and where another program,
# or one of another country, would begin a new cell.
_FORMULA = re.compile(r"(^|[;,|\t])(\s*)(?=[=+\-@＝＋－＠﹢﹣﹦﹫−])")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


def printable(text: Any) -> str:
    """A text of a stranger without what would move, hide or turn round what stands beside it."""
    whole = str(text)
    if whole.isprintable():
        return whole
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}" for char in whole
    )


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
        on: "page" or "export" where it is only there.
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
