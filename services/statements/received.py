"""Read the received payments of a bank's, Alipay's or WeChat's statement, whatever its columns are called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from gateways import money
from gateways.base import CHINA
from services.errors import N_, OperatorError
from services.statements import parse

MOST_LINES = 5_000  # received payments of one file
LONGEST = 64  # characters of a transaction ID
LONGEST_NOTE = 300  # characters of a note that are read

# The names of columns, without blanks and units such as （元）, in lower case.
REFERENCE = (
    *("交易流水号", "银行流水号", "业务流水号", "账务流水号", "核心流水号", "流水号", "交易单号", "支付宝交易号"),
    *("交易订单号", "交易号", "回单编号", "凭证号", "transactionid", "transaction_id", "reference", "trade_no"),
)
INCOME = (
    *("收入金额", "收入", "贷方发生额", "贷方金额", "贷方", "存入金额", "转入金额"),
    *("creditamount", "credit", "moneyin", "paidin"),
)
AMOUNT = ("交易金额", "金额", "发生额", "amount")
DIRECTION = ("收/支", "收支", "收支类型", "借贷标志", "借贷方向", "借贷", "借/贷", "资金方向", "direction")
STATUS = ("当前状态", "交易状态", "状态", "status")
# Dates come first, because a bank may list the time of the day in a column of its own.
TIME = ("交易日期", "记账日期", "日期", "date", "交易时间", "入账时间", "付款时间", "记账时间", "time")
NOTES = {
    *("备注", "附言", "摘要", "用途", "商品说明", "商品", "商品名称", "交易说明", "交易附言", "客户附言", "对方附言"),
    *("商户单号", "商家订单号", "商户订单号", "remark", "remarks", "note", "memo", "description", "purpose"),
}
IS_INCOME = {"收入", "收", "贷", "贷方", "转入", "存入", "c", "cr", "credit", "in"}
IS_RECEIVED = {
    *(
        "交易成功",
        "支付成功",
        "收款成功",
        "转账成功",
        "已收钱",
        "已收款",
        "已存入零钱",
        "已入账",
        "成功",
        "已完成",
        "完成",
    ),
    *("success", "successful", "completed", "paid", "settled"),
}
NO_NOTE = ("", "/")  # WeChat writes a slash

_UNIT = re.compile(r"[（(][+-]?(元|人民币|cny|rmb|¥)?[)）]", re.IGNORECASE)
_AMOUNT = re.compile(r"([+-]?)[¥￥]?([0-9]{1,13}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(\.[0-9]{1,2})?元?", re.ASCII)
_TIME = re.compile(r"([12]\d{3})[-/年.]?(\d{2})[-/月.]?(\d{2})日?(?:[ T]*(\d{2}):?(\d{2}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Received:
    """A received payment: the file's line, the bank's transaction ID, fen, the payer's notes.

    `until` is the last second of its time or day (Unix), None if the file has no time. `problem` is a reason not to
    match it, or "".
    """

    at: int
    reference: str
    amount: int
    note: str
    until: int | None
    problem: str = ""


@dataclass(frozen=True)
class _Columns:
    """The places of the columns in a row."""

    reference: int
    amount: int
    direction: int | None
    status: int | None
    time: int | None
    notes: list[int]


def read(raw: bytes) -> list[Received]:
    """Return the received payments of a CSV file, in its order; payments that were sent are left out.

    Raises:
        OperatorError: the file can't be read, has none of the known columns, or has too many lines.
    """
    rows = parse.rows_of(parse.decoded(raw))
    columns = _header(rows)
    found: list[Received] = []
    for at, cells in rows:
        if len(cells) <= max(columns.reference, columns.amount):
            continue  # remarks after the table
        if cells[0].startswith(parse.SUMMARY) and not cells[columns.reference]:
            continue  # totals
        line = _line(at, cells, columns)
        if line is None:
            continue
        if len(found) == MOST_LINES:
            raise OperatorError(
                N_("The file has more than %(most)s received payments. Upload fewer days at a time."),
                most=str(MOST_LINES),
            )
        found.append(line)
    return found


def _bare(name: str) -> str:
    return _UNIT.sub("", name.replace(" ", "").replace("\u3000", "")).casefold()


def _header(rows: Iterator[parse.Row]) -> _Columns:
    for _, cells in islice(rows, parse.HEADER_WITHIN):
        names = [_bare(cell) for cell in cells]

        def place(wanted: tuple[str, ...], names: list[str] = names) -> int | None:
            return next((names.index(name) for name in wanted if name in names), None)

        reference, income, amount = place(REFERENCE), place(INCOME), place(AMOUNT)
        if reference is not None and (income is not None or amount is not None):
            return _Columns(
                reference,
                income if income is not None else amount or 0,
                place(DIRECTION) if income is None else None,
                place(STATUS),
                place(TIME),
                [index for index, name in enumerate(names) if name in NOTES],
            )
    raise OperatorError(
        N_(
            "No line of the file names columns for the transaction ID and the amount. "
            "Upload the CSV file as you downloaded it from the bank, Alipay or WeChat."
        )
    )


def _line(at: int, cells: list[str], columns: _Columns) -> Received | None:
    """Return the received payment of a row; None if it is none. Raises OperatorError for a shortened number."""
    amount = _fen(cells[columns.amount])
    if amount is None or amount <= 0:
        return None
    if columns.direction is not None and _cell(cells, columns.direction).casefold() not in IS_INCOME:
        return None
    reference = cells[columns.reference]
    if parse.SHORTENED.fullmatch(reference):
        text = N_(
            "Line %(line)s: a spreadsheet shortened the transaction ID. Upload the file as you downloaded it, "
            "without opening it in a spreadsheet."
        )
        raise OperatorError(text, line=str(at))
    note = " ".join(text for text in (_cell(cells, place) for place in columns.notes) if text not in NO_NOTE)
    note = note[:LONGEST_NOTE]
    problem = _problem(reference, _cell(cells, columns.status) if columns.status is not None else "")
    until = _until(_cell(cells, columns.time)) if columns.time is not None else None
    return Received(at, reference, amount, note, until, problem)


def _problem(reference: str, status: str) -> str:
    if status and status.casefold() not in IS_RECEIVED:
        return N_("The status in the file does not mean that the money was received.")
    if not reference or len(reference) > LONGEST or not (reference.isascii() and reference.isprintable()):
        return N_("The line has no usable transaction ID.")
    return ""


def _cell(cells: list[str], place: int) -> str:
    return cells[place] if place < len(cells) else ""


def _fen(text: str) -> int | None:
    found = _AMOUNT.fullmatch(text.replace(" ", ""))
    if not found:
        return None
    fen = money.fen(found[2].replace(",", "") + (found[3] or ""))
    return -fen if found[1] == "-" else fen


def _until(text: str) -> int | None:
    """Return the last second of a time in China; None if it is not a time."""
    found = _TIME.match(text)
    if not found:
        return None
    try:
        start = datetime(*(int(part or 0) for part in found.groups()), tzinfo=CHINA)  # type: ignore[misc,arg-type]
    except ValueError:
        return None
    length = timedelta(minutes=1) if found[4] else timedelta(days=1)
    return int((start + length).timestamp()) - 1
