"""The files of payouts that banks and wallets read: encoding, heading and columns of each.

The columns of `alipay` follow Alipay's published template, those of `icbc` and `cmb` public examples. Banks change
theirs: docs/guides/withdrawals.md says what to check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runtime.money import hundredths
from services.errors import N_

# For GBK: its characters have the same bytes, and names with rare characters can be written too.
GBK = "gb18030"


@dataclass(frozen=True)
class FileLine:
    """One payout of a file. `code` identifies batch and line in at most 22 characters; `amount` is in yuan."""

    code: str
    order_no: str
    name: str
    account: str
    bank: str
    branch: str
    amount: str

    @property
    def full_bank(self) -> str:
        """The bank with its branch."""
        return " ".join(filter(None, (self.bank, self.branch)))


@dataclass(frozen=True)
class Sums:
    """The facts of a whole file; `total` is in fen."""

    number: int
    count: int
    total: int
    day: datetime


Columns = tuple[tuple[str, Callable[[FileLine], str]], ...]


@dataclass(frozen=True)
class Template:
    """One kind of file: its title, its columns, and the rows above them.

    `code` are the names of the column with `FileLine.code` in the bank's result; of several, the first one counts.
    """

    title: str
    encoding: str
    columns: Columns
    code: tuple[str, ...]
    heading: Callable[[Sums], list[list[Any]]] = lambda sums: []

    def rows(self, sums: Sums, lines: list[FileLine]) -> list[list[Any]]:
        """Return the rows of the file."""
        head = [[name for name, _ in self.columns]]
        return [*self.heading(sums), *head, *([value(line) for _, value in self.columns] for line in lines)]


def _alipay_heading(sums: Sums) -> list[list[Any]]:
    """Alipay's first two rows; the payer enters the account, which this service does not know."""
    day = f"{sums.day:%Y%m%d}"
    return [
        ["批次号", "付款日期", "付款人email", "账户名称", "总金额（元）", "总笔数"],
        [f"{day}{sums.number:08d}", day, "", "", hundredths(sums.total), str(sums.count)],
    ]


TEMPLATES = {
    "generic": Template(
        N_("Generic CSV (UTF-8)"),
        "utf-8-sig",
        (
            ("编号", lambda line: line.code),
            ("订单号", lambda line: line.order_no),
            ("收款户名", lambda line: line.name),
            ("收款账号", lambda line: line.account),
            ("开户行", lambda line: line.bank),
            ("支行", lambda line: line.branch),
            ("金额", lambda line: line.amount),
            ("备注", lambda line: line.code),
        ),
        ("编号", "备注", "用途", "汇款用途", "附言", "摘要", "商户流水号"),
    ),
    "alipay": Template(
        N_("Alipay batch transfer (GBK)"),
        GBK,
        (
            ("商户流水号", lambda line: line.code),
            ("收款人email", lambda line: line.account),
            ("收款人姓名", lambda line: line.name),
            ("付款金额（元）", lambda line: line.amount),
            ("付款理由", lambda line: line.order_no),
        ),
        ("商户流水号", "商家流水号"),
        _alipay_heading,
    ),
    "icbc": Template(
        N_("ICBC batch payment (GBK)"),
        GBK,
        (
            ("付款账号开户行", lambda line: ""),
            ("付款账号", lambda line: ""),
            ("付款账号名称", lambda line: ""),
            ("收款账号开户行", lambda line: line.full_bank),
            ("收款账号省份", lambda line: ""),
            ("收款账号城市", lambda line: ""),
            ("收款账号", lambda line: line.account),
            ("收款账号名称", lambda line: line.name),
            ("金额", lambda line: line.amount),
            ("汇款用途", lambda line: line.code),
            ("备注", lambda line: line.order_no),
        ),
        ("汇款用途", "用途"),
    ),
    "cmb": Template(
        N_("CMB batch transfer (GBK)"),
        GBK,
        (
            ("收款账号", lambda line: line.account),
            ("收款户名", lambda line: line.name),
            ("开户行", lambda line: line.full_bank),
            ("金额", lambda line: line.amount),
            ("用途", lambda line: line.code),
        ),
        ("用途", "汇款用途"),
    ),
}
