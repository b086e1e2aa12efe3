"""Result files of a batch of payouts, as a bank returns them: its template with columns for the result, and traps.

The words for results are those of public manuals for batch payments: 成功 and 失败 alone, with 处理, 支付, 交易 or 付款
before them, 退票 and 退汇 for transfers that came back, 提交 and 受理 for those on their way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.bank_files.layouts import Row, as_csv, as_workbook, spelled, yuan

PAID, REFUSED, OPEN = "paid", "failed", "unclear"
EITHER, UNPAID = "paid or unclear", "failed or unclear"
WORDS = {
    PAID: ("成功", "处理成功", "支付成功", "交易成功", "付款成功"),
    REFUSED: ("失败", "处理失败", "交易失败", "付款失败", "退票", "拒绝"),
    "came back": ("退回成功", "退款成功", "冲正成功", "成功（已退票）", "支付成功，已退回", "退票成功"),
    "on its way": ("提交成功", "受理成功", "处理中", "待复核", "银行受理成功"),
    "unknown": ("", "不成功", "未成功", "成功?", "成功率100%", "部分成功", "-"),
}
PLACEHOLDERS = ("0", "-", "/", "00000000", "2.02611E+27")
STORIES = 15
SUMS = ("plain", "grouped", "sign of yuan", "unit")


@dataclass(frozen=True)
class Payout:
    """One line of a batch: what our file said about it. `amount` is in fen."""

    code: str
    order_no: str
    name: str
    account: str
    amount: int


@dataclass(frozen=True)
class Result:
    """What the bank's file says about one line, and what it must come to."""

    story: str
    payout: Payout
    outcome: str
    word: str
    reference: str = ""
    reason: str = ""
    code: str = ""  # in the code column; the line's own if empty
    amount: str = ""  # as written; `None` would be no amount
    name: str = ""
    account: str = ""
    no_amount: bool = False


# The columns of each template that the bank fills with our values, and those that it adds.
ADDED = {
    "generic": ("处理状态", "失败原因", "银行流水号"),
    "alipay": ("状态", "失败原因", "支付宝内部流水号", "完成时间"),
    "icbc": ("处理状态", "失败原因", "交易流水号"),
    "cmb": ("处理结果", "失败原因", "流水号"),
}


def columns(template: str) -> list[str]:
    """Return the header of the result file of a template."""
    ours = {
        "generic": ["编号", "订单号", "收款户名", "收款账号", "开户行", "支行", "金额", "备注"],
        "alipay": ["商户流水号", "收款人email", "收款人姓名", "付款金额（元）", "付款理由"],
        "icbc": [
            *("付款账号开户行", "付款账号", "付款账号名称", "收款账号开户行", "收款账号省份", "收款账号城市"),
            *("收款账号", "收款账号名称", "金额", "汇款用途", "备注"),
        ],
        "cmb": ["收款账号", "收款户名", "开户行", "金额", "用途"],
    }
    return [*ours[template], *ADDED[template]]


def _row(each: Result, template: str) -> Row:
    payout = each.payout
    code, name = each.code or payout.code, each.name or payout.name
    account, amount = each.account or payout.account, "" if each.no_amount else each.amount or yuan(payout.amount)
    values: dict[str, Any] = {
        **dict.fromkeys(("编号", "商户流水号", "汇款用途", "用途"), code),
        **dict.fromkeys(("订单号", "付款理由"), payout.order_no),
        **dict.fromkeys(("收款户名", "收款人姓名", "收款账号名称"), name),
        **dict.fromkeys(("收款账号", "收款人email"), f"{account}\t"),
        **dict.fromkeys(("金额", "付款金额（元）"), amount),
        **dict.fromkeys(("处理状态", "状态", "处理结果"), each.word),
        **dict.fromkeys(("银行流水号", "支付宝内部流水号", "交易流水号", "流水号"), each.reference),
        "备注": code if template == "generic" else payout.order_no,
        "失败原因": each.reason,
        "完成时间": "2026-11-02 00:40:11",
        "开户行": "Demo Bank Main Street",
    }
    return [values.get(name, "") for name in columns(template)]


def results(payouts: list[Payout], others: list[Payout], rng: Random) -> list[Result]:
    """Return a result for each line of a batch, each with another trap; `others` are the lines of another batch."""
    stories = []
    for place, payout in enumerate(payouts):
        reference = f"77{rng.randrange(10**16):016d}"
        paid = Result("paid", payout, PAID, rng.choice(WORDS[PAID]), reference)
        refused = Result("failed", payout, REFUSED, rng.choice(WORDS[REFUSED]), reason="户名不符")
        next_one = payouts[(place + 1) % len(payouts)]
        stories.append(
            (
                replace(paid, amount=spelled(payout.amount, rng.choice(SUMS))),
                refused,
                replace(paid, story="came back", outcome=UNPAID, word=rng.choice(WORDS["came back"])),
                replace(paid, story="on its way", outcome=OPEN, word=rng.choice(WORDS["on its way"])),
                replace(paid, story="an unknown word", outcome=OPEN, word=rng.choice(WORDS["unknown"])),
                replace(paid, story="without an amount", outcome=OPEN, no_amount=True),
                replace(paid, story="another amount", outcome=OPEN, amount=yuan(payout.amount + 1)),
                replace(refused, story="failed, another amount", outcome=OPEN, amount=yuan(payout.amount + 1)),
                replace(paid, story="another account", outcome=OPEN, account="6222029999999999999"),
                replace(paid, story="the code of the next line", outcome=OPEN, code=next_one.code),
                replace(paid, story="a name that is another line's code", outcome=OPEN, name=next_one.code),
                replace(paid, story="a name that is another order", outcome=OPEN, name=others[0].order_no),
                replace(paid, story="a line that the batch lacks", outcome=OPEN, code=f"{payout.code}9"),
                replace(paid, story="a line of another batch", outcome=OPEN, code=others[0].code),
                replace(paid, story="a placeholder for the ID", outcome=EITHER, reference=rng.choice(PLACEHOLDERS)),
            )[place % STORIES]
        )
    return rng.sample(stories, len(stories))


def write(rows: list[Result], template: str, rng: Random, *, workbook: bool = False) -> bytes:
    """Return the bank's result file: its own heading, the rows, and a line of totals."""
    times = f"导出时间：2026-11-02 00:40:12 共{len(rows)}笔"
    head: list[Row] = [["批量付款结果"], [times]] if rng.random() < 0.5 else []
    body = [_row(each, template) for each in rows]
    foot: list[Row] = [["合计", *[""] * 4, str(len(rows))]] if rng.random() < 0.5 else []
    table = [*head, columns(template), *body, *foot]
    if workbook:
        return as_workbook(table, rng)
    encoding, separator = rng.choice((("gb18030", ","), ("gb18030", ","), ("utf-8-sig", ","), ("utf-16", "\t")))
    return as_csv(table, encoding, separator, rng)


def _without(column: str) -> Any:
    def damage(table: list[Row]) -> None:
        where = table[0].index(column)
        for row in table:
            del row[where]

    return damage


def _renamed(column: str, name: str) -> Any:
    def damage(table: list[Row]) -> None:
        table[0][table[0].index(column)] = name

    return damage


def _codes_moved(table: list[Row]) -> None:
    where = table[0].index("编号")
    codes = [row[where] for row in table[1:]]
    for row, code in zip(table[1:], [*codes[1:], codes[0]], strict=True):
        row[where] = code


def _each_twice(table: list[Row]) -> None:
    where = table[0].index("处理状态")
    again = [[*row] for row in table[1:]]
    for row in again:
        row[where] = "失败"
    table += again


def _swapped(one: str, two: str) -> Any:
    def damage(table: list[Row]) -> None:
        a, b = table[0].index(one), table[0].index(two)
        for row in table[1:]:
            row[a], row[b] = row[b], row[a]

    return damage


def _cut(table: list[Row]) -> None:
    for row in table[1:]:
        del row[table[0].index("金额") :]


def _all(value: str, *columns: str) -> Any:
    def damage(table: list[Row]) -> None:
        for row in table[1:]:
            for column in columns:
                row[table[0].index(column)] = value

    return damage


# Damage to a correct result of the generic template as a whole, after which no line has a result.
DAMAGE = {
    "no column for the status": _without("处理状态"),
    "no column for the amount": _without("金额"),
    "no codes": _all("", "编号", "订单号", "备注"),
    "codes of the next line": _codes_moved,
    "each line paid and failed": _each_twice,
    "amount and account swapped": _swapped("金额", "收款账号"),
    "status and reason swapped": _swapped("处理状态", "失败原因"),
    "rows cut short": _cut,
    "two columns for the status": _renamed("失败原因", "处理状态"),
    "amounts in dollars": _all("USD60.00", "金额"),
    "a spreadsheet's errors": _all("#N/A", "金额"),
}


def correct(rows: list[Result], damage: str = "") -> bytes:
    """Return a result file of the generic template, as a bank writes it, or with one kind of damage."""
    table = [columns("generic"), *(_row(each, "generic") for each in rows)]
    if damage:
        DAMAGE[damage](table)
    return as_csv(table, "gb18030", ",", Random(1))
