"""Damage to a correct statement: cells, rows, headers, bytes and workbooks, each with the rows that may still match.

A damaged file is either refused (or its columns are asked for), or the rows that the damage touched are to decide or
not money in. Never does a touched row confirm an order, and no row confirms another order than its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

from tests.bank_files.layouts import LAYOUTS, SHEET, Number, Row, as_csv, as_workbook, parts_of, table, zipped
from tests.bank_files.lives import Movement

NOTHING: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Corrupted:
    """A damaged file. `may` are the movements (their indices) that may still be matched; none if it is refused."""

    name: str
    content: bytes
    may: frozenset[int]


@dataclass
class Statement:
    """A correct statement of a plain life, to be damaged: its rows, and where each movement is."""

    movements: list[Movement]
    layout_name: str
    rng: Random
    rows: list[Row] = field(init=False)
    at: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.layout = LAYOUTS[self.layout_name]
        self.rows, self.at = table(self.movements, self.layout, self.rng)
        self.head = self.at[0] - 1  # the row of the header
        self.all = frozenset(range(len(self.movements)))
        self.named = [index for index, each in enumerate(self.movements) if each.note]

    def row(self, index: int) -> Row:
        return self.rows[self.at[index]]

    def get(self, index: int, column: str) -> Any:
        return self.row(index)[self.layout.column(column)]

    def put(self, index: int, column: str, value: Any) -> None:
        self.row(index)[self.layout.column(column)] = value

    def cut(self, index: int, column: str) -> None:
        """End a row before this column."""
        del self.row(index)[self.layout.column(column) :]

    def again(self, index: int, column: str, value: str) -> None:
        """Add a row again, with another value."""
        copy = [*self.row(index)]
        copy[self.layout.column(column)] = value
        self.rows.insert(self.at[index] + 1, copy)

    def swap(self, row: Row, one: str, two: str) -> Row:
        a, b = self.layout.column(one), self.layout.column(two)
        row[a], row[b] = row[b], row[a]
        return row

    def fill(self, column: str, value: str) -> None:
        """Give each row this value."""
        for index in self.all:
            self.put(index, column, value)

    def remove(self, column: str) -> None:
        for row in (self.rows[self.head], *(self.row(index) for index in self.all)):
            del row[self.layout.column(column)]

    def rename(self, column: str, name: str) -> None:
        self.rows[self.head][self.layout.column(column)] = name

    def but(self, *touched: int) -> frozenset[int]:
        return self.all - set(touched)

    def any(self) -> int:
        return self.rng.randrange(len(self.movements))

    def csv(self, encoding: str = "") -> bytes:
        return as_csv(self.rows, encoding or self.layout.encoding, ",", Random(3))

    def workbook(self, change: Callable[[Any], None] = lambda sheet: None) -> bytes:
        return as_workbook(self.rows, Random(0), change)


PERSON, COMPANY, BOOK = "alipay-person", "cmb-company", "ccb-company"
TYPE, AMOUNT, STATUS, ID, TIME, NOTE = "收/支", "金额", "交易状态", "交易订单号", "交易时间", "商品说明"

# One cell of one row: the layout, the column, what is wrong, and the new value from the old. What a reader makes of
# each spelling is in tests/services/statements/test_values.py.
CELLS: tuple[tuple[str, str, str, Callable[[str], str]], ...] = (
    (PERSON, AMOUNT, "decimal point one to the right", lambda v: f"{v.replace('.', '')[:-1]}.{v[-1]}0"),
    (PERSON, AMOUNT, "no decimal point", lambda v: v.replace(".", "")),
    (PERSON, AMOUNT, "minus", lambda v: f"-{v}"),
    (PERSON, AMOUNT, "brackets", lambda v: f"({v})"),
    (PERSON, AMOUNT, "empty", lambda v: ""),
    (PERSON, AMOUNT, "two amounts with a refund", lambda v: f"{v}(已退款{v})"),
    (PERSON, AMOUNT, "a letter", lambda v: f"{v[:-1]}O"),
    (PERSON, AMOUNT, "US dollars", lambda v: f"USD{v}"),
    (PERSON, AMOUNT, "separator in a wrong place", lambda v: f"{v[0]},{v[1:]}" if len(v) < 7 else f"{v[:2]},{v[2:]}"),
    (PERSON, TYPE, "out", lambda v: "支出"),
    (PERSON, TYPE, "neither", lambda v: "不计收支"),
    (PERSON, TYPE, "empty", lambda v: ""),
    (PERSON, TYPE, "unknown", lambda v: "其他"),
    (PERSON, STATUS, "returned", lambda v: "退款成功"),
    (PERSON, STATUS, "paid, then returned", lambda v: "支付成功，已退回"),
    (PERSON, STATUS, "closed", lambda v: "交易关闭"),
    (PERSON, STATUS, "submitted", lambda v: "提交成功"),
    (PERSON, STATUS, "unknown", lambda v: "已核销"),
    (PERSON, STATUS, "empty", lambda v: ""),
    (PERSON, ID, "empty", lambda v: ""),
    (PERSON, ID, "shortened by a spreadsheet", lambda v: "2.02611E+27"),
    (PERSON, TIME, "a word", lambda v: "昨天"),
    (PERSON, TIME, "a month before the order", lambda v: v.replace("2026-11", "2026-10")),
    (PERSON, TIME, "decades ahead", lambda v: v.replace("2026", "2062")),
    (COMPANY, "币种", "US dollars", lambda v: "美元"),
    (COMPANY, "币种", "empty", lambda v: ""),
    (COMPANY, "币种", "unknown", lambda v: "其他币种"),
    (COMPANY, "借方金额", "both amounts", lambda v: "60.00"),
    (COMPANY, "贷方金额", "red", lambda v: f"-{v}"),
    (COMPANY, "贷方金额", "empty", lambda v: ""),
    (COMPANY, "交易日", "no date", lambda v: "本日"),
)


def _cells(movements: list[Movement], rng: Random) -> Iterator[Corrupted]:
    for layout, column, wrong, change in CELLS:
        s = Statement(movements, layout, rng)
        index = s.any()
        s.put(index, column, change(str(s.get(index, column)).strip()))
        yield Corrupted(f"{column}: {wrong}", s.csv(), s.but(index))


# One row: no other row may be affected.
ROWS: tuple[tuple[str, str, Callable[[Statement, int], Any]], ...] = (
    ("a row ends before its amount", PERSON, lambda s, index: s.cut(index, AMOUNT)),
    ("a row ends before its status", PERSON, lambda s, index: s.cut(index, STATUS)),
    ("one cell too many", PERSON, lambda s, index: s.row(index).insert(s.layout.column(NOTE), "逗号")),
    ("one cell too few", PERSON, lambda s, index: s.row(index).pop(s.layout.column("对方账号"))),
    ("amount and balance swapped", COMPANY, lambda s, index: s.swap(s.row(index), "贷方金额", "余额")),
    ("the amount in the other column", COMPANY, lambda s, index: s.swap(s.row(index), "贷方金额", "借方金额")),
    ("a row twice, with another amount", PERSON, lambda s, index: s.again(index, AMOUNT, "1.00")),
)
# The whole table: no row may be matched.
TABLES: tuple[tuple[str, str, Callable[[Statement], Any]], ...] = (
    ("no amounts", PERSON, lambda s: s.fill(AMOUNT, "")),
    ("no IDs", PERSON, lambda s: s.fill(ID, "")),
    ("no directions", PERSON, lambda s: s.fill(TYPE, "")),
    ("no statuses", PERSON, lambda s: s.fill(STATUS, "")),
    ("no times", PERSON, lambda s: s.fill(TIME, "")),
    ("no currencies", COMPANY, lambda s: s.fill("币种", "")),
    ("all times the same word", PERSON, lambda s: s.fill(TIME, "见附件")),
    ("no column of amounts", PERSON, lambda s: s.remove(AMOUNT)),
    ("no column of IDs", PERSON, lambda s: s.remove(ID)),
    ("no column of directions", PERSON, lambda s: s.remove(TYPE)),
    ("no column of statuses", PERSON, lambda s: s.remove(STATUS)),
    ("no column of times", PERSON, lambda s: s.remove(TIME)),
    ("no column of currencies", COMPANY, lambda s: s.remove("币种")),
    ("no column of expenses", COMPANY, lambda s: s.remove("借方金额")),
    ("the amount is named balance", PERSON, lambda s: s.rename(AMOUNT, "余额")),
    ("the direction is named otherwise", PERSON, lambda s: s.rename(TYPE, "资金类型")),
    ("the status has no name", PERSON, lambda s: s.rename(STATUS, "")),
    ("the income is named expense", COMPANY, lambda s: s.rename("贷方金额", "借方金额")),
    ("the currency is named otherwise", COMPANY, lambda s: s.rename("币种", "货币代码")),
    ("names of income and expense swapped", COMPANY, lambda s: s.swap(s.rows[s.head], "贷方金额", "借方金额")),
    ("names of income and balance swapped", COMPANY, lambda s: s.swap(s.rows[s.head], "贷方金额", "余额")),
    ("no header", COMPANY, lambda s: s.rows.pop(s.head)),
)


# The others return what may still be matched.
def names_two_orders(s: Statement) -> frozenset[int]:
    one, two = s.rng.sample(s.named, 2)
    s.put(one, NOTE, f"{s.get(one, NOTE)} {s.get(two, NOTE)}")
    return s.but(one)


def names_another_order(s: Statement) -> frozenset[int]:
    one, two = s.rng.sample(s.named, 2)
    s.put(one, NOTE, s.get(two, NOTE))
    return s.but(one)


def a_digit_of_the_number_is_missing(s: Statement) -> frozenset[int]:
    one = s.rng.choice(s.named)
    s.put(one, NOTE, re.sub(r"\d(?=\D|$)", "", s.get(one, NOTE), count=1))
    return s.all  # the only claim of its amount, with a note that names no order: the amount may identify it


def rest_of_the_row_in_the_note(s: Statement) -> frozenset[int]:
    """The payer's note has the separators, the direction, an amount, a status and an ID, and the file has no quotes."""
    one, two = s.rng.sample(s.named, 2)
    amount = s.get(two, AMOUNT)
    s.row(one)[s.layout.column(NOTE) + 1 : s.layout.column(NOTE) + 1] = ["收入", amount, "余额", "交易成功", "123456"]
    s.put(one, NOTE, s.get(two, NOTE))
    return s.but(one)


def row_twice(s: Statement) -> frozenset[int]:
    s.rows.insert(s.at[s.any()], [*s.row(s.any())])
    return s.all


def row_twice_with_another_id(s: Statement) -> frozenset[int]:
    s.again(s.any(), ID, "99887766554433")
    return s.all


def one_id_for_two_orders(s: Statement) -> frozenset[int]:
    one, two = s.rng.sample(sorted(s.all), 2)
    s.put(two, ID, s.get(one, ID))
    return s.but(one, two)


def header_below_the_first_rows(s: Statement) -> frozenset[int]:
    s.rows.insert(s.at[2], s.rows.pop(s.head))
    return s.but(0, 1)


def second_header(s: Statement) -> frozenset[int]:
    s.rows.insert(s.at[3], [*s.layout.header])
    return s.all


def second_header_in_another_order(s: Statement) -> frozenset[int]:
    s.rows.insert(s.at[3], s.swap([*s.layout.header], "贷方金额", "余额"))
    return frozenset(range(3))


def second_table_of_another_bank(s: Statement) -> frozenset[int]:
    s.rows.append([*LAYOUTS["abc-person"].header])
    s.rows.append(["20261102", "002500", "转存", "+60.00", "1.00", "张伟", "123456", "超级网银", s.movements[0].note])
    return s.all


def totals_in_the_middle(s: Statement) -> frozenset[int]:
    s.rows.insert(s.at[3], ["合计", "", "", "", "", "收入", "60.00"])
    return s.all


OTHERS: dict[str, tuple[Callable[[Statement], frozenset[int]], ...]] = {
    PERSON: (
        *(names_two_orders, names_another_order, a_digit_of_the_number_is_missing, rest_of_the_row_in_the_note),
        *(row_twice, row_twice_with_another_id, one_id_for_two_orders, totals_in_the_middle),
    ),
    COMPANY: (
        *(header_below_the_first_rows, second_header, second_header_in_another_order),
        second_table_of_another_bank,
    ),
}


def _rows(movements: list[Movement], rng: Random) -> Iterator[Corrupted]:
    for name, layout, damage in ROWS:
        s = Statement(movements, layout, rng)
        index = s.any()
        damage(s, index)
        yield Corrupted(name, s.csv(), s.but(index))
    for name, layout, damage_all in TABLES:
        s = Statement(movements, layout, rng)
        damage_all(s)
        yield Corrupted(name, s.csv(), NOTHING)
    for layout, damages in OTHERS.items():
        for change in damages:
            s = Statement(movements, layout, rng)
            may = change(s)
            yield Corrupted(change.__name__.replace("_", " "), s.csv(), may)


# Files that are no table, and those that are too large, are refused: tests/services/statements/test_tables.py.
def _bytes(movements: list[Movement], rng: Random) -> Iterator[Corrupted]:
    s = Statement(movements, COMPANY, rng)
    good, index, last = s.csv(), rng.choice(s.named), len(movements) - 1
    header = next(each for each in good.split(b"\n") if "贷方金额".encode("gb18030") in each)
    note, mine = movements[index].note.encode("gb18030"), movements[index].reference.encode()
    line = next(each for each in good.split(b"\n") if note in each)
    amount, last_amount = (str(s.get(each, "贷方金额")).encode() for each in (index, last))
    credit = "贷方金额".encode("gb18030")
    cut = good.rindex(last_amount)
    utf16 = s.csv("utf-16")
    cells, lines = b"</td><td>", b"</td></tr><tr><td>"
    one, rest = s.but(index), s.but(last)
    next_row = [at for at in s.all if s.at[at] == s.at[index] + 1]  # unless a page ends between them

    def changed(old: bytes, new: bytes) -> bytes:
        assert old in good
        return good.replace(old, new)

    for name, content, may in (
        ("an amount with a damaged byte", changed(amount, b"\xff" + amount[1:]), one),
        ("an amount with a NUL", changed(amount, amount[:1] + b"\0" + amount[1:]), one),
        ("a note with damaged bytes before the number", changed(note, b"\xff\xff" + note[2:]), s.all),
        ("an order number with a damaged byte", changed(note, note[:-3] + b"\xff" + note[-2:]), one),
        ("an ID with a damaged byte", changed(mine, mine[:-1] + b"\xff"), one),
        ("a header with damaged bytes", changed(credit, b"\xff\xff" + credit[2:]), NOTHING),
        ("one row in another encoding", changed(line, line.decode("gb18030").encode()), one),
        ("the mark of UTF-8 before another encoding", b"\xef\xbb\xbf" + good, s.all),
        ("UTF-16 that lost its last byte", utf16[:-1], s.all),
        ("UTF-16 that lost a byte in the middle", utf16[: len(utf16) // 2] + utf16[len(utf16) // 2 + 1 :], s.all),
        ("cut before the last amount", good[:cut], rest),
        ("cut within the last amount", good[: cut + len(last_amount) - 1], rest),
        ("cut after the last amount", good[: cut + len(last_amount)], rest),
        ("filled with NULs", good + b"\0" * 4096, s.all),
        ("a quote that is never closed", changed(note, b'"' + note), one),
        ("another separator in one row", changed(line, line.replace(b",", b";")), one),
        ("another separator in the header", changed(header, header.replace(b",", b"\t")), NOTHING),
        ("without line ends", good.replace(b"\r", b"").replace(b"\n", b" "), NOTHING),
        ("two rows on one line", changed(line + b"\n", line.rstrip(b"\r") + b","), s.but(index, *next_row)),
        ("only the header", good[: good.index(header) + len(header)], NOTHING),
        ("a page named csv", b"<table><tr><td>" + good.replace(b",", cells).replace(b"\n", lines), NOTHING),
    ):
        yield Corrupted(name, content, may)


# A cell of a workbook: the column, what is wrong, and the new value from the movement.
IN, BOOK_ID, BOOK_TIME = "贷方发生额（收入）", "账户明细编号-交易流水号", "交易时间"
BOOK_CELLS: tuple[tuple[str, str, Callable[[Movement], Any]], ...] = (
    (IN, "a formula without a value", lambda m: f"={m.amount}/100"),
    (IN, "an error", lambda m: "#N/A"),
    (IN, "a truth value", lambda m: True),
    (IN, "nothing", lambda m: None),
    (IN, "a date", lambda m: datetime(2026, 6, 1)),
    (IN, "a fraction of a fen", lambda m: m.amount / 100 + 0.001),
    (IN, "a format with dollars", lambda m: Number(m.amount / 100, "[$$-409]#,##0.00")),
    (IN, "an exponent", lambda m: 1e300),
    (BOOK_ID, "a rounded number", lambda m: float(int(m.reference) * 10**12 + 7)),
    (BOOK_ID, "a formula without a value", lambda m: f"=TEXT({m.reference},0)"),
    (BOOK_TIME, "a number that is no date", lambda m: -3),
    (BOOK_TIME, "a time of 1900", lambda m: Number(12.5, "yyyy-mm-dd")),
    (BOOK_TIME, "a formula without a value", lambda m: "=NOW()"),
)


def _workbooks(movements: list[Movement], rng: Random) -> Iterator[Corrupted]:
    for column, wrong, change in BOOK_CELLS:
        s = Statement(movements, BOOK, rng)
        index = s.any()
        s.put(index, column, change(movements[index]))
        yield Corrupted(f"workbook, {column}: {wrong}", s.workbook(), s.but(index))
    s = Statement(movements, BOOK, rng)
    amount, index = s.layout.column(IN) + 1, s.any()
    row = s.at[index] + 1
    good = s.workbook()

    def hidden(sheet: Any) -> None:
        sheet.row_dimensions[row].hidden = True

    def hidden_column(sheet: Any) -> None:
        sheet.column_dimensions["E"].hidden = True

    def merged(sheet: Any) -> None:
        sheet.merge_cells(start_row=s.at[1] + 1, end_row=s.at[3] + 1, start_column=amount, end_column=amount)

    def wide(sheet: Any) -> None:
        sheet.merge_cells(start_row=row, end_row=row, start_column=amount - 1, end_column=amount)

    parts = parts_of(good)
    sheet = parts[SHEET]
    flipped = bytearray(good)
    flipped[len(good) // 3] ^= 0xFF
    for name, content, may in (
        ("a hidden row", s.workbook(hidden), s.all),
        ("a hidden column", s.workbook(hidden_column), s.all),
        ("amounts merged over three rows", s.workbook(merged), s.but(2, 3)),
        ("two amounts merged", s.workbook(wide), s.but(index)),
        ("a workbook without its end", good[:-30], NOTHING),
        ("a workbook with a damaged byte", bytes(flipped), s.all),
        ("a workbook without sheets", zipped({n: part for n, part in parts.items() if "sheet" not in n}), NOTHING),
        ("a workbook whose XML is broken", zipped(parts | {SHEET: sheet.replace(b"</sheetData>", b"")}), NOTHING),
    ):
        yield Corrupted(name, content, may)


def corruptions(movements: list[Movement], rng: Random) -> dict[str, list[Corrupted]]:
    """Return the damaged statements of a plain life, by what is damaged."""
    return {
        "cells": list(_cells(movements, rng)),
        "rows": list(_rows(movements, rng)),
        "bytes": list(_bytes(movements, rng)),
        "workbooks": list(_workbooks(movements, rng)),
    }
