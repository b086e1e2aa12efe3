"""Parse a channel's downloaded statement into lines, or report in one sentence why it can't be read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from itertools import islice
from typing import Any

from gateways import money
from gateways.base import CHINA
from gateways.statement import Layout
from services.errors import N_, OperatorError

MOST_BYTES = 64 * 2**20
HEADER_WITHIN = 200  # rows of a file, without empty lines, that are searched for the names of the columns
PAID, FAILED, REFUNDED, FROZEN = STATES = ("paid", "failed", "refunded", "frozen")
COLUMNS = (
    *("number", "reference", "amount", "refund", "refunded_of", "payer_paid", "fee", "status", "time", "created"),
    "text",
)
ENCODINGS = ("utf-8-sig", "gb18030")
# Characters that surround values so that spreadsheets do not shorten long numbers.
PADDING = " \t\u3000\xa0`'=\""
SUMMARY = ("总", "合计", "汇总", "小计")
NO_TEXT = {
    b"PK\x03\x04": N_(
        "the statement is not a text file: it is a ZIP archive or an Excel workbook: unpack it, or save it as CSV"
    ),
    b"\x1f\x8b": N_("the statement is not a text file: it is compressed: unpack it"),
    b"\xd0\xcf\x11\xe0": N_("the statement is not a text file: it is an Excel workbook: save it as CSV"),
}

_AMOUNT = re.compile(r"([+-]?)([0-9]{1,13}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(\.[0-9]{1,8})?", re.ASCII)
_TIME = re.compile(r"([12]\d{3})[-/](\d{1,2})[-/](\d{1,2})(?:[ T]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?", re.ASCII)
SHORTENED = re.compile(r"[0-9](\.[0-9]+)?E\+[0-9]+", re.ASCII | re.IGNORECASE)


class _Unreadable(ValueError):
    """A value that can't be read: the text of the refusal and its values, without the line and the column."""

    def __init__(self, text: str, /, **values: str):
        super().__init__(text)
        self.text, self.values = text, values


Row = tuple[int, list[str]]  # the file's line on which the row ends, and the row's values


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a statement. Money in fen: the amount with its sign in the file, the fee without a sign.

    `fee` is None if the file has no column for it, `time` and `created` (Unix seconds) if this line has none. A line
    that is a payment and its refund becomes two. `is_frozen`: the channel withholds the money; `is_unsized`: part of it
    was returned, and the line does not show how much.
    """

    at: int
    number: str
    reference: str
    amount: int
    fee: int | None
    state: str
    time: int | None
    created: int | None = None
    is_frozen: bool = False
    is_unsized: bool = False


def overridden(layout: Layout, given: dict[str, list[str]]) -> Layout:
    """Return the layout with some names replaced. Raises OperatorError for an unknown field."""
    kinds = {field.name: type(getattr(layout, field.name)) for field in fields(layout) if field.name != "types"}
    if unknown := set(given) - set(kinds):
        raise OperatorError(f"unknown column {', '.join(sorted(unknown))}: choose from {', '.join(kinds)}")
    return replace(layout, **{name: kinds[name](values) for name, values in given.items()})


def read(raw: bytes, layout: Layout, needed: Collection[str] = ()) -> list[Line]:
    """Return the lines of a statement (docs/reconciling.md).

    Args:
        needed: required columns, in addition to `number` and `amount`.

    Raises:
        OperatorError: it can't be read; the text names the line and the column.
    """
    if len(raw) > MOST_BYTES:
        raise OperatorError(N_("the statement is larger than 64 MiB: compare fewer days at a time"))
    rows = rows_of(decoded(raw))
    header = _header(rows, layout)
    names = {name: next((each for each in getattr(layout, name) if each in header), None) for name in COLUMNS}
    for name in needed:
        if name in names and names[name] is None:
            column = " or ".join(getattr(layout, name)) or name
            raise OperatorError(N_("the statement has no column %(column)s"), column=column)
    reader = _Reader(layout, header, {name: column for name, column in names.items() if column is not None})
    return [line for row in _data(rows, header, header.index(str(names["number"]))) for line in reader.lines(*row)]


def decoded(raw: bytes) -> str:
    """Return a file's text, from UTF-8 or GBK. Raises OperatorError for other files."""
    for beginning, meaning in NO_TEXT.items():
        if raw.startswith(beginning):
            raise OperatorError(meaning)
    text = text_of(raw)
    if text is not None:
        return text
    raise OperatorError(N_("the statement is neither UTF-8 nor GBK: save it as CSV in one of these encodings"))


def text_of(raw: bytes) -> str | None:
    """Return a text in UTF-8 or GBK; None for other bytes."""
    for encoding in ENCODINGS:
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None


def rows_of(text: str) -> Iterator[Row]:
    """Yield the rows of a CSV text, without blanks and quotes around values. Raises OperatorError."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in filter(None, reader):
            if all(cell.startswith("`") for cell in cells[:2]):  # a backtick before each value allows commas in it
                cells = re.split(r",\s*`", ",".join(cells))
            yield reader.line_num, [cell.strip(PADDING) for cell in cells]
    except csv.Error as error:
        raise OperatorError(N_("line %(line)s: %(why)s"), line=str(reader.line_num), why=str(error)) from None


def _header(rows: Iterator[Row], layout: Layout) -> list[str]:
    for _, cells in islice(rows, HEADER_WITHIN):
        if set(layout.number) & set(cells) and set(layout.amount) & set(cells):
            return cells
    number, amount = " or ".join(layout.number), " or ".join(layout.amount)
    raise OperatorError(
        N_(
            "the statement has no line with the columns %(number)s and %(amount)s: "
            "specify them with --column number=... --column amount=..."
        ),
        number=number,
        amount=amount,
    )


def _data(rows: Iterator[Row], header: list[str], number: int) -> Iterator[Row]:
    """Yield the rows between the header and the totals."""
    for at, cells in rows:
        first = cells[0] if cells else ""
        if first.startswith("#") or (first.startswith(SUMMARY) and _sums_up(cells, header, number)):
            return
        if any(cells):
            yield at, cells


def _sums_up(cells: list[str], header: list[str], number: int) -> bool:
    """Return whether the line is not about an order, which would have a number."""
    return len(cells) != len(header) or not cells[number] or not cells[number].isascii()


class _Reader:
    """Makes lines from rows whose columns are known."""

    def __init__(self, layout: Layout, header: list[str], names: dict[str, str]):
        self._names = names
        self._places = {name: header.index(column) for name, column in names.items()}
        self._width = len(header)
        self._states = {text.casefold(): state for state in STATES for text in getattr(layout, state)}
        self._reads: dict[str, Any] = {
            "number": _number,
            "reference": str,
            "amount": _fen,
            "refund": _fen,
            "refunded_of": _fen_if_any,
            "payer_paid": _fen_if_any,
            "fee": _fee,
            "status": self._state,
            "time": _time,
            "created": _time,
        }

    def lines(self, at: int, cells: list[str]) -> Iterator[Line]:
        """Yield a row's lines: a payment, a refund, or both. Raises OperatorError, naming the line and the column."""
        more = len(cells) - self._width
        if "text" in self._places and more > 0:
            text = self._places["text"]
            cells = [*cells[:text], ",".join(cells[text : text + more + 1]), *cells[text + more + 1 :]]
        state = self._value("status", at, cells) or PAID
        both = state == REFUNDED and "refunded_of" in self._places
        amount = "refund" if state == REFUNDED and "refund" in self._places else "amount"
        back = self._value("refunded_of", at, cells) if both else None
        line = Line(
            at,
            number=self._value("number", at, cells),
            reference=self._value("reference", at, cells) or "",
            amount=self._value(amount, at, cells),
            fee=self._value("fee", at, cells),
            state=PAID if both or state == FROZEN else state,
            time=self._value("time", at, cells),
            created=self._value("created", at, cells),
            is_frozen=state == FROZEN,
            is_unsized=both and not back,
        )
        yield line
        if back:
            whole = min(line.amount, self._value("payer_paid", at, cells) or line.amount)
            yield replace(line, state=REFUNDED, amount=line.amount if back >= whole else back, fee=0)

    def _value(self, name: str, at: int, cells: list[str]) -> Any:
        """Return the value in a column; None if the file does not have it."""
        if name not in self._places:
            return None
        try:
            return self._reads[name](cells[self._places[name]])
        except IndexError:
            text, values = N_("line %(line)s, column %(column)s: the line ends before it"), {}
        except _Unreadable as error:
            text, values = error.text, error.values
        except ValueError as error:
            text, values = "line %(line)s, column %(column)s: %(why)s", {"why": str(error)}
        raise OperatorError(text, line=str(at), column=self._names[name], **values)

    def _state(self, text: str) -> str:
        if text.casefold() not in self._states:
            known = ", ".join(sorted(self._states))
            raise _Unreadable(
                N_(
                    "line %(line)s, column %(column)s: %(value)s is none of %(known)s: "
                    "say what it is by --column paid=..."
                ),
                value=repr(text[:40]),
                known=known,
            )
        return self._states[text.casefold()]


def _number(text: str) -> str:
    if SHORTENED.fullmatch(text):
        raise _Unreadable(
            N_(
                "line %(line)s, column %(column)s: a spreadsheet shortened it to %(value)s: "
                "use the file as you downloaded it"
            ),
            value=text,
        )
    return text


def _split(text: str) -> tuple[bool, str]:
    """Return whether it is negative, and the text without sign and separators."""
    found = _AMOUNT.fullmatch(text)
    if not found:
        wrong = N_("line %(line)s, column %(column)s: not an amount in yuan: %(value)s")
        raise _Unreadable(wrong, value=repr(text[:40]))
    return found[1] == "-", found[2].replace(",", "") + (found[3] or "")


def _fen(text: str) -> int:
    negative, bare = _split(text)
    return -money.fen(bare) if negative else money.fen(bare)


def _fen_if_any(text: str) -> int:
    return _fen(text or "0")


def _fee(text: str) -> int:
    """Parse a fee without its sign, which differs between upstreams. Empty is 0; fractions of a fen round half up."""
    return int((Decimal(_split(text or "0")[1]) * 100).quantize(Decimal(1), ROUND_HALF_UP))


def _time(text: str) -> int | None:
    if not text:
        return None
    if found := _TIME.fullmatch(text):
        with suppress(ValueError):  # there is no such day, which each version of Python says in other words
            return int(datetime(*(int(part or 0) for part in found.groups()), tzinfo=CHINA).timestamp())  # type: ignore[misc,arg-type]
    wrong = N_("line %(line)s, column %(column)s: no time such as 2026-05-01 12:00:00: %(value)s")
    raise _Unreadable(wrong, value=repr(text[:40]))
