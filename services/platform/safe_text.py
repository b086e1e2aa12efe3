"""Untrusted texts, made safe to show and to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

# Characters that start a formula in a spreadsheet, also in full width, at the beginning of a cell. Other programs
# and locales also split cells at semicolons, pipes and tabs, and remove quotes around a cell.
_FORMULA = re.compile(r'(^|[;,|\t])([\s"]*)(?=[=+\-@＝＋－＠﹢﹣﹦﹫−])')
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


def printable(text: Any) -> str:
    """Replace characters of an untrusted text that could move, hide or reverse the text around it."""
    whole = str(text)
    if whole.isprintable():
        return whole
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}" for char in whole
    )


def neutral(text: Any) -> str:
    """Return a text that no spreadsheet reads as a formula: an apostrophe precedes each possible start."""
    shown = printable(text)
    return shown if _NUMBER.fullmatch(shown) else _FORMULA.sub(r"\1\2'", shown)


def cells(rows: Iterable[Sequence[Any]], dialect: str = "excel") -> str:
    """Return rows as CSV, or as `excel-tab` for the clipboard. No cell is a formula."""
    text = io.StringIO()
    csv.writer(text, dialect).writerows([neutral(cell) for cell in row] for row in rows)
    return text.getvalue()
