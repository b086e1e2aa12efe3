"""Parse a channel's downloaded statement into lines, or report in one sentence why it can't be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
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
SUMMARY = ("总", "合计", "汇总", "小计")
FIXED = ("types", "fee_sign")  # the fields of a layout that are no names
_FEE = re.compile(r"([+-]?)([0-9]{1,13}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(\.[0-9]{1,8})?", re.ASCII)
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
    """One line of a statement. Money in fen: the amount with its sign in the file, the fee without it.

    The fee of a payment is a cost, and that of a refund the part of a cost that the channel returned. It is negative if
    the file has the opposite sign: a returned cost, or a further one. It includes a discount at the merchant's own
    expense. `fee` is None if the file has no column for it, `time` and `created` (Unix seconds) if this line has none.
    A line that is a payment and its refund becomes two.
    `is_frozen`: the channel withholds the money; `is_unsized`: part of it was returned, and the line does not show how
    much; `is_unproven`: a refund that the channel had not completed when it made the statement, which it never
    corrects. `refund_number` is that of a refund's request, if the file has it.
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
    refund_number: str = ""
    is_unproven: bool = False


@dataclass(frozen=True)
class Parsed:
    """The lines of a statement, and whether it lists refunds: it has a line or a column for them."""

    lines: list[Line]
    lists_refunds: bool


def overridden(layout: Layout, given: dict[str, list[str]]) -> Layout:
    """Return the layout with some names replaced. Raises OperatorError for an unknown field."""
    kinds = {field.name: type(getattr(layout, field.name)) for field in fields(layout) if field.name not in FIXED}
    if unknown := set(given) - set(kinds):
        raise OperatorError(f"unknown column {', '.join(sorted(unknown))}: choose from {', '.join(kinds)}")
    return replace(layout, **{name: kinds[name](values) for name, values in given.items()})


def read(raw: bytes, layout: Layout, needed: Collection[str], *, all_paid: bool, official: bool) -> Parsed:
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
    numbers, amounts = set(layout.number), set(layout.amount)
    begin = next((at for at, (_, cells) in enumerate(head) if numbers & set(cells) and amounts & set(cells)), None)
    if begin is None:
        raise OperatorError(
            N_(
                "the statement has no line with the columns %(number)s and %(amount)s: "
                "specify them with --column number=... --column amount=..."
            ),
            number=" or ".join(layout.number),
            amount=" or ".join(layout.amount),
        )
    header, below = head[begin][1], head[begin + 1 :]
    reader = _Reader(layout, header)
    for name in needed:
        if name in COLUMNS and name not in reader.columns:
            column = " or ".join(getattr(layout, name)) or name
            raise OperatorError(N_("the statement has no column %(column)s"), column=column)
    if "status" not in reader.columns and not all_paid:
        raise NoStatus(
            N_(
                "The file has no status column, so each line would count as a completed payment. If that is right, "
                "confirm it (--all-paid)."
            )
        )
    for place, name in enumerate(header):
        if name not in reader.columns.values():
            sample = [] if official else [cells[place] for _, cells in below if place < len(cells)]
            why = layouts.looks_like(layouts.bare(name), sample)
            if why in UNREAD:
                raise OperatorError(UNREAD[why], name=name[:40] or str(place + 1))
    lines = [line for row in reader.above_totals(chain(below, rows)) for line in reader.lines(*row)]
    has_column = not reader.columns.keys().isdisjoint(("refund", "refund_number", "refunded_of"))
    return Parsed(lines, has_column or has_refund(lines))


def has_refund(lines: list[Line]) -> bool:
    """Return whether any line is a refund."""
    return any(line.state == REFUNDED or (line.state == PAID and line.amount < 0) for line in lines)


class _Reader:
    """Makes lines from the rows below a header. `columns` are the names of the file's columns, by field of `Layout`."""

    def __init__(self, layout: Layout, header: list[str]):
        known = {name: [each for each in getattr(layout, name) if each in header] for name in COLUMNS}
        self.columns = {name: columns[0] for name, columns in known.items() if columns}
        self._places = {name: header.index(column) for name, column in self.columns.items()}
        self._width = len(header)
        self._texts = [header.index(column) for column in layout.text if column in header]
        self._done, self._fee_sign = layout.refund_done, layout.fee_sign
        self._states = {text.casefold(): state for state in STATES for text in getattr(layout, state)}

    def above_totals(self, rows: Iterable[tables.Row]) -> Iterator[tables.Row]:
        """Yield the rows above the totals. Raises OperatorError for further rows below them."""
        is_over = False
        for at, cells in rows:
            # A line that is about an order has its number.
            number = cells[self._places["number"]] if len(cells) == self._width else ""
            sums_up = not number or not number.isascii()
            begins = cells[0].startswith("#") or (cells[0].startswith(SUMMARY) and sums_up)
            is_over |= begins
            if not is_over:
                yield at, cells
            elif not begins and not sums_up:
                below = N_("line %(line)s is below the totals. Compare one statement at a time.")
                raise OperatorError(below, line=str(at))

    def lines(self, at: int, cells: list[str]) -> list[Line]:
        """Return a row's lines: a payment, a refund, or both. Raises OperatorError, naming the line and the column."""
        more = len(cells) - self._width
        if more <= 0 or not (self._texts or any(cells[self._width :])):
            return list(self._lines(at, cells))
        found = []
        for text in self._texts:
            whole = [*cells[:text], ",".join(cells[text : text + more + 1]), *cells[text + more + 1 :]]
            if len(self._texts) == 1:
                return list(self._lines(at, whole))
            # Commas in another column move the values, so that a time is missing or an amount is none.
            with suppress(OperatorError):
                read = list(self._lines(at, whole))
                found += [read] if all(line.time is not None for line in read) else []
        if len(found) != 1:
            raise OperatorError(N_("line %(line)s has more values than the file has columns"), line=str(at))
        return found[0]

    def _lines(self, at: int, cells: list[str]) -> Iterator[Line]:
        if self._value("currency", at, cells) is False:
            foreign = N_("line %(line)s, column %(column)s: another currency than the yuan")
            raise OperatorError(foreign, line=str(at), column=self.columns["currency"])
        state = self._value("status", at, cells) or PAID
        both = state == REFUNDED and "refunded_of" in self._places
        is_refund = state == REFUNDED and not both
        has_own = is_refund and "refund" in self._places
        back = self._value("refunded_of", at, cells) if both else None
        amount = self._value("refund" if has_own else "amount", at, cells)
        settled = self._value("refund_settled" if has_own else "settled", at, cells)
        line = Line(
            at,
            number=self._value("number", at, cells),
            reference=self._value("reference", at, cells) or "",
            amount=amount,
            fee=self._fee(at, cells, is_refund, 0 if settled is None else max(abs(amount) - abs(settled), 0)),
            state=PAID if both or state == FROZEN else state,
            time=self._value("time", at, cells),
            created=self._value("created", at, cells),
            is_frozen=state == FROZEN,
            is_unsized=both and not back,
            refund_number=(self._value("refund_number", at, cells) or "") if is_refund else "",
            is_unproven=is_refund and self._value("refund_status", at, cells) not in (None, *self._done),
        )
        yield line
        if back:
            whole = min(line.amount, self._value("payer_paid", at, cells) or line.amount)
            yield replace(line, state=REFUNDED, amount=line.amount if back >= whole else back, fee=0)

    def _fee(self, at: int, cells: list[str], is_refund: bool, discount: int) -> int | None:
        """Return the fee with a discount at the merchant's expense; None if the file has neither.

        A fee whose sign is the opposite of the usual one is negative.
        """
        fee: int | None = self._value("fee", at, cells)
        if fee and self._fee_sign and (fee < 0) != ((self._fee_sign == "-") != is_refund):
            return discount - abs(fee)
        return fee and abs(fee) if not discount else abs(fee or 0) + discount

    def _value(self, name: str, at: int, cells: list[str]) -> Any:
        """Return the value in a column; None if the file does not have it."""
        if name not in self._places:
            return None
        try:
            text = cells[self._places[name]]
            return self._state(text) if name == "status" else COLUMNS[name](text)
        except IndexError:
            wrong = Unreadable(N_("line %(line)s, column %(column)s: the line ends before it"))
        except Unreadable as error:
            wrong = error
        raise OperatorError(wrong.text, line=str(at), column=self.columns[name], **wrong.values)

    def _state(self, text: str) -> str:
        if text.casefold() not in self._states:
            raise Unreadable(
                N_(
                    "line %(line)s, column %(column)s: %(value)s is none of %(known)s: "
                    "say what it is by --column paid=..."
                ),
                value=repr(text[:40]),
                known=", ".join(sorted(self._states)),
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


def _fen_or_none(text: str) -> int | None:
    return _fen(text) if text else None


def _fee(text: str) -> int:
    """Parse a fee with its sign, which differs between upstreams. Empty is 0; fractions of a fen round half up."""
    found = _FEE.fullmatch(text or "0")
    if not found:
        return _fen(text)
    exact = Decimal((found[1] + found[2]).replace(",", "") + (found[3] or ""))
    return int((exact * 100).quantize(Decimal(1), ROUND_HALF_UP))


def _time(text: str) -> int | None:
    if not text:
        return None
    with suppress(Unreadable):
        return values.moment(text)[0]
    wrong = N_("line %(line)s, column %(column)s: no time such as 2026-05-01 12:00:00: %(value)s")
    raise Unreadable(wrong, value=repr(text[:40]))


# How a value of each column is read.
COLUMNS: dict[str, Callable[[str], Any]] = {
    "number": _number,
    "reference": payment_numbers.transaction_id,
    "amount": _fen,
    "refund": _fen,
    "refund_number": _number,
    "refunded_of": _fen_if_any,
    "payer_paid": _fen_if_any,
    "refund_status": str,
    "settled": _fen_or_none,
    "refund_settled": _fen_or_none,
    "fee": _fee,
    "status": str,
    "time": _time,
    "created": _time,
    "currency": values.is_yuan,
    "text": str,
}
