"""Parse a channel's downloaded statement into lines, or report in one sentence why it can't be read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from decimal import ROUND_HALF_UP, Decimal
from itertools import chain, islice
from typing import Any

from gateways.statement import Layout
from services.channels import payment_numbers
from services.errors import N_, OperatorError
from services.statements import layouts, tables, values
from services.statements.values import Unreadable

PAID, FAILED, REFUNDED, FROZEN = STATES = ("paid", "failed", "refunded", "frozen")
COLUMNS = (
    *("number", "reference", "amount", "refund", "refunded_of", "payer_paid", "fee", "status", "time", "created"),
    *("currency", "text"),
)
SUMMARY = ("总", "合计", "汇总", "小计")
_FEE = re.compile(r"[+-]?([0-9]{1,13}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(\.[0-9]{1,8})?", re.ASCII)


# By what a column looks like that the comparison would ignore.
UNREAD = {
    layouts.A_DIRECTION: N_(
        "Column %(name)s looks like a direction, which the comparison does not read. Use a file of one direction "
        "without this column."
    ),
    layouts.A_CURRENCY: N_(
        "Column %(name)s looks like a currency but is not read. Specify it with --column currency=%(name)s."
    ),
}


class NoStatus(OperatorError):
    """The file has no status column, so each of its lines would count as a completed payment."""


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


def read(
    raw: bytes, layout: Layout, needed: Collection[str] = (), *, all_paid: bool = False, official: bool = False
) -> list[Line]:
    """Return the lines of a statement (docs/reconciling.md).

    Args:
        needed: required columns, in addition to `number` and `amount`.
        all_paid: each line of a file without a status column is a completed payment.
        official: the layout is that of the upstream's own export, whose other columns are known to have no directions.

    Raises:
        NoStatus: it has no status column, and `all_paid` is not set.
        OperatorError: it can't be read; the text names the line and the column.
    """
    rows = tables.rows(raw)
    head = list(islice(rows, layouts.HEADER_WITHIN))
    below = _header(head, layout)
    header = head[below - 1][1]
    names = {name: next((each for each in getattr(layout, name) if each in header), None) for name in COLUMNS}
    for name in needed:
        if name in names and names[name] is None:
            column = " or ".join(getattr(layout, name)) or name
            raise OperatorError(N_("the statement has no column %(column)s"), column=column)
    if names["status"] is None and not all_paid:
        raise NoStatus(
            N_(
                "The file has no status column, so each line would count as a completed payment. If that is right, "
                "confirm it (--all-paid)."
            )
        )
    _refuse_unread(
        header, {column for column in names.values() if column is not None}, [] if official else head[below:]
    )
    reader = _Reader(layout, header, {name: column for name, column in names.items() if column is not None})
    data = _data(chain(head[below:], rows), header, header.index(str(names["number"])))
    return [line for row in data for line in reader.lines(*row)]


def _header(head: list[tables.Row], layout: Layout) -> int:
    """Return the index of the first row below the header."""
    for index, (_, cells) in enumerate(head):
        if set(layout.number) & set(cells) and set(layout.amount) & set(cells):
            return index + 1
    number, amount = " or ".join(layout.number), " or ".join(layout.amount)
    raise OperatorError(
        N_(
            "the statement has no line with the columns %(number)s and %(amount)s: "
            "specify them with --column number=... --column amount=..."
        ),
        number=number,
        amount=amount,
    )


def _refuse_unread(header: list[str], read: set[str], sample: list[tables.Row]) -> None:
    """Raise OperatorError if a column that is not read seems to have directions or currencies."""
    for place, name in enumerate(header):
        cells = (cells[place] for _, cells in sample if place < len(cells))
        why = "" if name in read else layouts.looks_like(layouts.bare(name), cells)
        if why in UNREAD:
            raise OperatorError(UNREAD[why], name=name[:40] or str(place + 1))


def _data(rows: Iterable[tables.Row], header: list[str], number: int) -> Iterator[tables.Row]:
    """Yield the rows between the header and the totals. Raises OperatorError for further rows below the totals."""
    is_over = False
    for at, cells in rows:
        begins = cells[0].startswith("#") or (cells[0].startswith(SUMMARY) and _sums_up(cells, header, number))
        is_over |= begins
        if not is_over:
            yield at, cells
        elif not begins and not _sums_up(cells, header, number):
            raise OperatorError(N_("line %(line)s is below the totals. Compare one statement at a time."), line=str(at))


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
            "reference": payment_numbers.transaction_id,
            "amount": _fen,
            "refund": _fen,
            "refunded_of": _fen_if_any,
            "payer_paid": _fen_if_any,
            "fee": _fee,
            "status": self._state,
            "currency": values.is_yuan,
            "time": _time,
            "created": _time,
        }

    def lines(self, at: int, cells: list[str]) -> Iterator[Line]:
        """Yield a row's lines: a payment, a refund, or both. Raises OperatorError, naming the line and the column."""
        more = len(cells) - self._width
        if "text" in self._places and more > 0:
            text = self._places["text"]
            cells = [*cells[:text], ",".join(cells[text : text + more + 1]), *cells[text + more + 1 :]]
        elif any(cells[self._width :]):
            raise OperatorError(N_("line %(line)s has more values than the file has columns"), line=str(at))
        if self._value("currency", at, cells) is False:
            foreign = N_("line %(line)s, column %(column)s: another currency than the yuan")
            raise OperatorError(foreign, line=str(at), column=self._names["currency"])
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
            wrong = Unreadable(N_("line %(line)s, column %(column)s: the line ends before it"))
        except Unreadable as error:
            wrong = error
        raise OperatorError(wrong.text, line=str(at), column=self._names[name], **wrong.values)

    def _state(self, text: str) -> str:
        if text.casefold() not in self._states:
            known = ", ".join(sorted(self._states))
            raise Unreadable(
                N_(
                    "line %(line)s, column %(column)s: %(value)s is none of %(known)s: "
                    "say what it is by --column paid=..."
                ),
                value=repr(text[:40]),
                known=known,
            )
        return self._states[text.casefold()]


def _number(text: str) -> str:
    if values.is_damaged(text):
        raise Unreadable(N_("line %(line)s, column %(column)s: damaged characters: %(value)s"), value=text[:40])
    if payment_numbers.is_shortened(text):
        raise Unreadable(
            N_(
                "line %(line)s, column %(column)s: a spreadsheet shortened it to %(value)s: "
                "use the file as you downloaded it"
            ),
            value=text,
        )
    return text


def _fen(text: str) -> int:
    with suppress(Unreadable):
        return values.amount(text)
    raise Unreadable(N_("line %(line)s, column %(column)s: not an amount in yuan: %(value)s"), value=repr(text[:40]))


def _fen_if_any(text: str) -> int:
    return _fen(text or "0")


def _fee(text: str) -> int:
    """Parse a fee without its sign, which differs between upstreams. Empty is 0; fractions of a fen round half up."""
    found = _FEE.fullmatch(text or "0")
    if not found:
        return abs(_fen(text))
    return int((Decimal(found[1].replace(",", "") + (found[2] or "")) * 100).quantize(Decimal(1), ROUND_HALF_UP))


def _time(text: str) -> int | None:
    if not text:
        return None
    with suppress(Unreadable):
        return values.moment(text)[0]
    wrong = N_("line %(line)s, column %(column)s: no time such as 2026-05-01 12:00:00: %(value)s")
    raise Unreadable(wrong, value=repr(text[:40]))
