"""Read an account statement of a bank, Alipay or WeChat: what each row says about received money."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, islice

from services.channels.payment_numbers import transaction_id
from services.errors import N_, OperatorError
from services.statements import layouts, tables, values
from services.statements.layouts import HEADER_WITHIN, Columns, Layout, Role
from services.statements.tables import Row
from services.statements.values import Direction, Meaning, Unreadable

MOST_ROWS = 20_000  # of one file
LONGEST_NOTE = 300  # characters of a note that are read
TAKEN_BACK = N_("Line %(line)s takes this payment back.")
MAYBE_TAKEN_BACK = N_("Line %(line)s may take this payment back.")
TAKES_BACK = N_("The row takes back the payment of line %(line)s.")
SENT = N_("Money was sent.")
FEE = N_("A fee was charged.")
NO_ID = N_("The row has no usable transaction ID.")
RETURNED = N_("The payment was returned: %(status)s.")
SUMMARY = ("总", "合计", "汇总", "小计", "共", "total")
NOTHING = ("", "/", "-", "--", "---")  # what banks write into an empty cell


class Kind(Enum):
    """What a row says: money was received, money was taken back, no money came in, or it is unclear."""

    RECEIVED, TAKEN_BACK, NOT_MONEY_IN, UNCLEAR = "received", "taken back", "not money in", "unclear"


@dataclass(frozen=True, slots=True)
class Movement:
    """One row of a statement.

    `amount` is in fen, negative if money left the account, None if unreadable or not stated. `reference` is the bank's
    transaction ID or "", `original` that of the payment which the row takes back. `since` and `until` are the first and
    last second of its time or day (Unix). `why` is the reason why it is no received payment, with its values.
    """

    at: int
    kind: Kind
    amount: int | None = None
    reference: str = ""
    note: str = ""
    since: int | None = None
    until: int | None = None
    payer: str = ""
    account: str = ""
    original: str = ""
    why: OperatorError | None = None


@dataclass(frozen=True)
class Statement:
    """A statement: the layout by which it was read, and all rows below its header."""

    layout: Layout
    rows: list[Movement]


def read(raw: bytes, kept: Iterable[Layout] = ()) -> Statement:
    """Return the rows of a statement; those that take money back cancel the payments that they reverse.

    Args and errors as for `movements`.
    """
    statement = movements(raw, kept)
    return replace(statement, rows=_cancelled(statement.rows))


def movements(raw: bytes, kept: Iterable[Layout] = ()) -> Statement:
    """Return the rows of a statement, each as what it says on its own.

    Args:
        kept: the layouts that operators confirmed for the channel.

    Raises:
        UnknownLayout: neither these nor the shipped layouts have its columns.
        OperatorError: it can't be read, or has too many rows.
    """
    rows = tables.rows(raw)
    head = _head(rows)
    header, columns = layouts.find(head, [*kept, *layouts.SHIPPED])
    layouts.refuse_other_currencies(head[:header])
    body = list(islice(chain(head[header + 1 :], rows), MOST_ROWS + 1))
    if len(body) > MOST_ROWS:
        text = N_("The file has more than %(most)s rows. Upload fewer days at a time.")
        raise OperatorError(text, most=str(MOST_ROWS))
    layouts.refuse_unread(columns, head, body)
    layouts.refuse_other_table(columns.header, body)
    return Statement(columns.layout, [_movement(row, columns) for row in body])


def head_of(raw: bytes) -> list[Row]:
    """Return the first rows of a file. Raises OperatorError if it can't be read."""
    return _head(tables.rows(raw))


def _head(rows: Iterator[Row]) -> list[Row]:
    head = list(islice(rows, HEADER_WITHIN))
    if not head:
        raise OperatorError(N_("The file has no rows. Choose another file."))
    return head


class _Not(Exception):
    """The row is no received payment."""

    def __init__(self, kind: Kind, text: str, /, **of_text: str):
        super().__init__(text)
        self.kind, self.why = kind, OperatorError(text, **of_text)


def _movement(row: Row, columns: Columns) -> Movement:
    """Return what a row says: it was received only if nothing in the row is unclear or speaks against it."""
    at, cells = row
    read = _Cells(columns, cells)
    facts = Movement(
        at,
        Kind.RECEIVED,
        reference=transaction_id(read.one(Role.REFERENCE)),
        original=transaction_id(read.one(Role.ORIGINAL)),
        note=" ".join(text for text in read.all(Role.NOTE) if text not in NOTHING)[:LONGEST_NOTE],
        payer=" ".join(read.all(Role.PAYER))[:LONGEST_NOTE],
        account=" ".join(read.all(Role.ACCOUNT))[:LONGEST_NOTE],
    )
    try:
        read.refuse_other_rows()
        read.refuse_other_currencies()
        amount, is_in = read.amount()
        facts = replace(facts, amount=amount if is_in else -abs(amount))
        takes_back = bool(facts.original) or read.speaks_of_return()
        is_in = read.is_in(is_in, takes_back)
        facts = replace(facts, amount=amount if is_in else -abs(amount))
        if amount < 0 if is_in else takes_back:
            raise _Not(Kind.TAKEN_BACK, N_("The row takes money back."))
        if not is_in:
            is_fee = any(map(values.speaks_of_fee, read.texts()))
            raise _Not(Kind.NOT_MONEY_IN, FEE if is_fee else SENT)
        read.refuse_other_statuses()
        if takes_back:
            raise _Not(Kind.UNCLEAR, N_("The row mentions a refund or reversal."))
        if columns.places.get(Role.TIME):
            since, until = values.moment(read.time())
            facts = replace(facts, since=since, until=until)
        if not facts.reference:
            raise _Not(Kind.UNCLEAR, NO_ID)
    except _Not as refusal:
        return replace(facts, kind=refusal.kind, why=refusal.why)
    except Unreadable as error:
        return replace(facts, kind=Kind.UNCLEAR, why=OperatorError(error.text, **error.values))
    return facts


class _Cells:
    """The cells of one row."""

    def __init__(self, columns: Columns, cells: list[str]):
        self._columns, self._cells = columns, cells

    def all(self, role: Role) -> list[str]:
        """Return the cells in the columns of a role; "" for a row that ends before."""
        cells = self._cells
        return [cells[place] if place < len(cells) else "" for place in self._columns.places.get(role, ())]

    def one(self, role: Role) -> str:
        """Return the cell in the column of a role; "" if there is none."""
        return next(iter(self.all(role)), "")

    def texts(self) -> list[str]:
        """Return the type and the notes of the row."""
        return [*self.all(Role.KIND), *self.all(Role.NOTE)]

    def time(self) -> str:
        """Return the time, which some files divide into a day and the time of the day."""
        day, clock = self.one(Role.TIME), self.one(Role.CLOCK)
        return f"{day.removesuffix(' 00:00:00')} {clock}" if clock not in NOTHING else day

    def refuse_other_rows(self) -> None:
        """Refuse remarks, totals, further headers, and rows whose values are not below their columns."""
        cells, header = self._cells, self._columns.header
        if layouts.header_of(cells) == header:
            raise _Not(Kind.NOT_MONEY_IN, N_("The row is a header."))
        without_amount = all(self.one(role) in NOTHING for role in layouts.AMOUNTS)
        if (
            (without_amount or cells[0].startswith(SUMMARY))
            and self.one(Role.REFERENCE) in NOTHING
            and not values.is_moment(self.time())
        ):
            raise _Not(Kind.NOT_MONEY_IN, N_("The row is a remark or a total."))
        if any(cells[len(header) :]):
            raise _Not(Kind.UNCLEAR, N_("The row has more values than the file has columns."))
        damaged = {name for name, cell in zip(header, cells, strict=False) if values.is_damaged(cell)}
        used: set[str] = set()
        for role, places in self._columns.places.items():
            if role not in (Role.IGNORED, Role.NOTE, Role.PAYER, Role.ACCOUNT):
                used.update(header[place] for place in places)
        if damaged & used:
            raise _Not(Kind.UNCLEAR, N_("Damaged characters in column %(name)s."), name=min(damaged & used))

    def refuse_other_currencies(self) -> None:
        for currency in self.all(Role.CURRENCY):
            if currency in NOTHING:
                raise _Not(Kind.UNCLEAR, N_("The row has no currency."))
            if not values.is_yuan(currency):
                raise _Not(Kind.NOT_MONEY_IN, N_("Another currency: %(currency)s."), currency=currency[:20])

    def amount(self) -> tuple[int, bool]:
        """Return the amount in fen with its sign, and whether its column is not one of sent money."""
        stated = [
            (values.amount(text), role is not Role.EXPENSE)
            for role in (Role.SIGNED, Role.AMOUNT, Role.INCOME, Role.EXPENSE)
            if (text := self.one(role)) not in NOTHING
        ]
        moved = [(fen, is_in) for fen, is_in in stated if fen]
        if stated and not moved:
            raise _Not(Kind.NOT_MONEY_IN, N_("The amount is 0."))
        if len(moved) != 1:
            raise _Not(Kind.UNCLEAR, N_("The row has no single amount."))
        [(fen, is_in)] = moved
        return (-fen, False) if Role.SIGNED in self._columns.places and fen < 0 else (fen, is_in)

    def speaks_of_return(self) -> bool:
        """Return whether the row's type, notes, status or marks say that money was returned."""
        told = any(map(values.speaks_of_return, self.texts()))
        returned = any(values.status(text) is Meaning.RETURNED for text in self.all(Role.STATUS))
        return told or returned or not all(map(_is_no_mark, self.all(Role.REVERSED)))

    def is_in(self, by_column: bool, takes_back: bool) -> bool:
        """Return whether money was received, by the column of the amount and the columns of the direction.

        Wallets list a refund as neither income nor expense.
        """
        directions = {values.direction(text) for text in self.all(Role.DIRECTION)}
        if Direction.UNKNOWN in directions or len(directions) > 1:
            shown = ", ".join(self.all(Role.DIRECTION))[:40]
            raise _Not(Kind.UNCLEAR, N_("Unknown direction: %(direction)s."), direction=shown)
        if directions == {Direction.NEUTRAL}:
            if takes_back:
                return False
            raise _Not(Kind.NOT_MONEY_IN, N_("The row is neither income nor expense."))
        if not directions:
            return by_column
        is_in = directions == {Direction.IN}
        if is_in != by_column and Role.AMOUNT not in self._columns.places:
            raise _Not(Kind.UNCLEAR, N_("The direction does not match the column of the amount."))
        return is_in

    def refuse_other_statuses(self) -> None:
        for text in self.all(Role.STATUS):
            meaning = values.status(text)
            if meaning is Meaning.RETURNED:
                raise _Not(Kind.TAKEN_BACK, RETURNED, status=text[:40])
            if meaning is Meaning.UNCLEAR:
                raise _Not(Kind.UNCLEAR, N_("Unknown status: %(status)s."), status=text[:40])
            if meaning is not Meaning.PAID:
                raise _Not(Kind.NOT_MONEY_IN, N_("The money was not received: %(status)s."), status=text[:40])


def _is_no_mark(text: str) -> bool:
    """Return whether a cell in a column of marks says that nothing was reversed: it is empty, no or an amount of 0."""
    try:
        return text.casefold() in (*NOTHING, "n", "no", "否") or values.amount(text) == 0
    except Unreadable:
        return False


def _cancelled(rows: list[Movement]) -> list[Movement]:
    """Return the rows, of which those that take money back cancel the payments that they reverse.

    A payment is identified by its transaction ID. Without one, every payment of the amount may be the reversed one.
    """
    by_id: dict[str, list[int]] = defaultdict(list)
    by_amount: dict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.kind is Kind.RECEIVED:
            by_id[row.reference].append(place)
            by_amount[row.amount or 0].append(place)
    done: dict[tuple[str, str, int | None], int | None] = {}  # by what a row says: the line that it takes back
    for place, row in enumerate(rows):
        says = row.original, row.reference, row.amount
        if row.kind is Kind.TAKEN_BACK and says in done:  # the payments are marked
            if (line := done[says]) is not None:
                rows[place] = replace(row, kind=Kind.NOT_MONEY_IN, why=OperatorError(TAKES_BACK, line=str(line)))
            continue
        named = [each for number in (row.original, row.reference) if number for each in by_id[number]]
        whole = [each for each in named if row.amount == -(rows[each].amount or 0)]
        # Money that was sent under the ID of a payment, and is no fee, may be a part of it that was taken back.
        is_sent = row.why is not None and row.why.text == SENT
        if row.kind is Kind.TAKEN_BACK or (row.kind is Kind.NOT_MONEY_IN and (whole or (named and is_sent))):
            is_of_itself = row.why is not None and row.why.text == RETURNED
            done[says] = rows[whole[0]].at if whole else None
            for each in named or ([] if is_of_itself else by_amount.pop(abs(row.amount or 0), [])):
                kind = Kind.NOT_MONEY_IN if each in whole else Kind.UNCLEAR
                text = TAKEN_BACK if each in whole else MAYBE_TAKEN_BACK
                rows[each] = replace(rows[each], kind=kind, why=OperatorError(text, line=str(row.at)))
            if whole:
                why = OperatorError(TAKES_BACK, line=str(rows[whole[0]].at))
                rows[place] = replace(row, kind=Kind.NOT_MONEY_IN, why=why)
    return rows
