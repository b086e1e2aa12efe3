"""Fifteen layouts of statements, as banks and wallets export them, and a writer that uses all their liberties.

The names and the order of the columns are facts from public examples of real exports:

- Alipay for merchants (账务明细): comments in settlement code of rongyifu, and import code of several shops' tools.
- Alipay for persons (电子客户回单), WeChat (微信支付账单, CSV and xlsx), ICBC for persons, Agricultural Bank, Bank of
  Communications: the example files of deb-sig/double-entry-generator and the readme of jiegec/china_bean_importers.
- CMB for companies: a test that compares an export with the bank's own columns, and tables of common_util (CMB01).
- ICBC for companies: scripts that read 历史明细 workbooks, with 凭证号 first and amounts in two columns.
- China Construction Bank for companies: reconciliation tests that build its workbook, times as `20260105 18:22:21`.
- Bank of China for companies (HISQRY): an example of a whole file, with 来账 and 往账 beside amounts with a sign.
- Postal Savings Bank: reconciliation tests that build its workbook, with headings above.
- SPDB for companies: the columns of common_util (SPDB01); their order is not certain.
- WeChat's statement of funds for merchants: WeChat's manual of the fund flow bill, with a backtick before each value.
- JD: the example file of deb-sig/double-entry-generator.

Numbers, balances and texts are made up. A layout without a column for a fact (a status, a currency) can't write
movements for which that fact matters: `writes` is false for them.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from openpyxl import Workbook
from openpyxl.cell.cell import Cell
from openpyxl.styles import Font

from tests.bank_files.lives import DECIDE, OK, Movement

EXCEL_BEGAN = datetime(1899, 12, 30)
SHEET = "xl/worksheets/sheet1.xml"
Row = list[Any]
Write = Callable[[Movement, Random], Any]
# A header with what the column contains, and what it is for, in the values of the form; the others are not needed.
Column = tuple[str, Write | str] | tuple[str, Write | str, str]


@dataclass(frozen=True)
class Number:
    """A cell of a workbook with a number and its format."""

    value: Any
    shown_as: str = "General"


@dataclass(frozen=True)
class Layout:
    """One kind of export. `head` and `foot` are the lines around the table, their cells divided by bars."""

    name: str
    columns: tuple[Column, ...]
    head: str = ""
    foot: str = ""
    encoding: str = "gb18030"
    workbook: bool = False
    bare: bool = False  # a CSV file whose values are never quoted, as its values begin with backticks
    has_id: bool = True
    has_status: bool = False
    has_currency: bool = False
    has_clock: bool = True  # whether its times are more than days
    page_ends: str = ""  # the text of a row between two pages, if it has any

    @property
    def header(self) -> list[str]:
        return [column[0] for column in self.columns]

    @property
    def means(self) -> dict[str, str]:
        """What the needed columns are for."""
        return {column[0]: column[2] for column in self.columns if len(column) == 3}

    def writes(self, movement: Movement) -> bool:
        """Return whether this layout can tell what matters about a movement."""
        known_status = movement.status == OK or self.has_status
        known_id = self.has_id or not movement.needs_id
        return known_status and known_id and (movement.currency == "CNY" or self.has_currency)

    def outcomes(self, movement: Movement) -> frozenset[str]:
        """Return what a careful reader of this layout may make of a movement.

        It may ask about each row without an ID, and where a note without quotes has the layout's own separator.
        """
        may_ask = not self.has_id or (self.bare and ",`" in movement.note)
        return movement.outcomes | {DECIDE} if may_ask else movement.outcomes

    def column(self, name: str) -> int:
        """Return the index of the column with this header."""
        return self.header.index(name)


def yuan(fen: int) -> str:
    """Return an amount of at least 0 fen in yuan, with two decimals."""
    return f"{fen // 100}.{fen % 100:02d}"


def spelled(fen: int, style: str) -> str:
    """Return an amount as a bank, a spreadsheet or a person spells it."""
    sign, text = ("-" if fen < 0 else ""), yuan(abs(fen))
    grouped = f"{abs(fen) // 100:,}.{abs(fen) % 100:02d}"
    spellings = {
        "grouped": sign + grouped,
        "sign of yuan": f"{sign}¥{text}",
        "plus": f"{sign or '+'}{text}",
        "no leading zero": sign + (text.removeprefix("0") if text.startswith("0.") else text),
        "full width": sign + text.translate({ord(each): 0xFEE0 + ord(each) for each in "0123456789."}),
        "third decimal": f"{sign}{text}0",
        "full-width comma": sign + grouped.replace(",", "，"),
        "CNY": f"{sign}CNY{text}",
        "unit": f"{sign}{text}元",
        "short": sign + (text.rstrip("0").rstrip(".") or "0"),
        "blanks": f"  {sign}{text}　",
        "sign at the end": text + sign,
    }
    return spellings.get(style, sign + text)


def _in_or_out(movement: Movement) -> bool:
    """Return whether a statement with two columns shows a movement in that of the income."""
    return movement.amount > 0 or movement.red


def income(zero: str = "") -> Write:
    """The amount that came in; a red entry is negative. `zero` is the text for none."""

    def cell(m: Movement, rng: Random) -> str:
        style = "sign at the end" if m.red and rng.random() < 0.5 else m.amount_as
        return spelled(m.amount, style) if _in_or_out(m) else zero

    return cell


def expense(zero: str = "", sign: int = 1) -> Write:
    """The amount that went out, usually without a sign."""
    return lambda m, rng: zero if _in_or_out(m) else spelled(-m.amount * sign, m.amount_as)


def signed(plus: bool = False) -> Write:
    """The amount with its sign."""

    def cell(m: Movement, rng: Random) -> str:
        if m.amount < 0 and rng.random() < 0.3:
            return spelled(m.amount, "sign at the end")
        text = spelled(m.amount, m.amount_as)
        return f"+{text}" if plus and m.amount > 0 and m.amount_as == "plain" else text

    return cell


def absolute(m: Movement, rng: Random) -> str:
    """The amount without a sign, beside a column with the direction."""
    return spelled(abs(m.amount), m.amount_as)


def number(write: Write, shown_as: str = "#,##0.00") -> Write:
    """The amount of another column as a number of a workbook; sometimes the text that it would be in a CSV file."""

    def cell(m: Movement, rng: Random) -> Any:
        text = write(replace(m, amount_as="plain"), Random(1))
        if not text or m.amount_as != "plain" or rng.random() < 0.3:
            return write(m, rng)
        clean = f"-{text[:-1]}" if text.endswith("-") else text
        return Number(float(Decimal(clean)), shown_as)

    return cell


def direction(into: str, out: str) -> Write:
    return lambda m, rng: into if m.amount > 0 else out


def time(*patterns: str) -> Write:
    """The time, in one of the ways that this bank, or a spreadsheet, writes it."""
    return lambda m, rng: _bare(m.at.strftime(rng.choice(patterns)), rng)


# As banks, wallets and spreadsheets write a time.
SPELLINGS = (
    *("%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y-%m-%d %H:%M", "%Y%m%d %H:%M:%S"),
    *("%Y年%m月%d日 %H:%M:%S", "%Y年%m月%d日%H:%M:%S", "%Y.%m.%d %H:%M:%S", "%Y%m%d%H%M%S", "%Y-%m-%dT%H:%M:%S"),
)


def _bare(text: str, rng: Random) -> str:
    """Return a time as Excel saves it: without zeros, in half of the cases in which it has slashes."""
    return re.sub(r"(?<=/)0(?=\d)|(?<= )0(?=\d:)", "", text) if "/" in text and rng.random() < 0.5 else text


def serial(m: Movement, rng: Random) -> Any:
    """A time in a workbook: a date, its serial number with or without the format of a date, or a text."""
    days = (m.at - EXCEL_BEGAN) / timedelta(days=1)
    return rng.choice((m.at, m.at, Number(days, "yyyy/m/d h:mm"), Number(days), f"{m.at:%Y-%m-%d %H:%M:%S}"))


def reference(m: Movement, rng: Random) -> str:
    """The transaction ID, protected from spreadsheets as exports do it."""
    shields = {"tab": "{}\t", "backtick": "`{}", "apostrophe": "'{}", "blanks": " {}  "}
    return shields.get(m.reference_as, "{}").format(m.reference)


def written(content: Write | str, m: Movement, rng: Random) -> Any:
    """What a column contains for a movement; some contain the same text for each."""
    return content if isinstance(content, str) else content(m, rng)


def padded(content: Write | str, width: int) -> Write:
    """A value filled with blanks and a tab."""
    return lambda m, rng: f"{written(content, m, rng):<{width}}\t"


def ticked(content: Write | str) -> Write:
    """A value behind a backtick, as WeChat protects each one from spreadsheets."""
    return lambda m, rng: f"`{written(content, m, rng)}"


def note(m: Movement, rng: Random) -> str:
    return m.note


def payer(m: Movement, rng: Random) -> str:
    return m.payer


def account(m: Movement, rng: Random) -> str:
    return m.account


def balance(m: Movement, rng: Random) -> str:
    return spelled(rng.randrange(10**6, 10**9), "grouped")


def currency(yuan_is: str) -> Write:
    return lambda m, rng: yuan_is if m.currency == "CNY" else {"USD": "美元", "HKD": "港币"}[m.currency]


def _status(**words: tuple[str, ...]) -> Write:
    def cell(m: Movement, rng: Random) -> str:
        return rng.choice(words[m.status.replace(" ", "_")]).format(yuan(abs(m.amount)))

    return cell


WECHAT_STATUS = _status(
    ok=("已收钱", "支付成功", "已存入零钱"),
    returned=("已全额退款", "对方已退还", "已退款(￥{})", "支付成功，已退回"),
    failed=("支付失败", "已关闭"),
    in_progress=("提交成功", "受理成功", "处理中"),
    no_known_word=("已核销", "成功率待定", "不成功", ""),
)
ALIPAY_STATUS = _status(
    ok=("交易成功", "支付成功"),
    returned=("退款成功", "冲正成功", "交易成功，已退款"),
    failed=("交易关闭", "支付失败"),
    in_progress=("等待付款", "提交成功", "受理成功"),
    no_known_word=("已核销", "未成功", "成功?", ""),
)
WORDS = {"fee": "收费", "interest": "结息", "refund": "退款", "internal": "内部转账", "foreign": "国际汇款"}


def summary(usual: str) -> Write:
    """The bank's own word for the kind of movement."""
    return lambda m, rng: WORDS.get(m.kind, usual)


def around(text: str, movements: list[Movement]) -> list[Row]:
    """Return the rows around a table, with the number of movements, and the counts and sums of those in and out."""
    ins, outs = ([abs(m.amount) for m in movements if m.amount * sign > 0] for sign in (1, -1))
    facts = {"all": len(movements), "ins": len(ins), "outs": len(outs)}
    sums = {"sum_in": spelled(sum(ins), "grouped"), "sum_out": spelled(sum(outs), "grouped")}
    return [line.split("|") if line else [] for line in text.format(**facts, **sums).splitlines()]


WECHAT_HEAD = """微信支付账单明细
微信昵称：[小店]
起始时间：[2026-10-01 00:00:00] 终止时间：[2026-11-02 23:59:59]
导出时间：[2026-11-02 00:31:07]

共{all}笔记录
收入：{ins}笔 {sum_in}元
支出：{outs}笔 {sum_out}元
注：
1. 充值/提现/理财通购买/零钱通存取/信用卡还款等交易，将计入中性交易
2. 本明细仅展示当前账单中的交易，不包括已删除的记录

----------------------微信支付账单明细列表--------------------"""
ALIPAY_HEAD = """#支付宝账务明细查询
#账号：[20880011223344550156]
#起始日期：[2026年11月01日 00:00:00]   终止日期：[2026年11月02日 23:59:59]
#-----------------------------------------账务明细列表----------------------------------------"""
ALIPAY_PERSON_HEAD = """------------------------------------------------------------------------------------
导出信息：
姓名：某某
支付宝账户：shop@example.com
起始时间：[2026-11-01 00:00:00]    终止时间：[2026-11-02 23:59:59]
共{all}笔记录
收入：{ins}笔 {sum_in}元

1.本回单内容可表明支付宝受理了相应支付交易申请，因系统原因等导致不符时，以实际交易情况为准；
------------------------支付宝（中国）网络技术有限公司  电子客户回单------------------------"""
JD_HEAD = """导出信息：
京东账号名：jd_55370d18
日期区间：2026-11-01 至 2026-11-02
共：{all}笔记录
1.本明细为每笔订单支付的明细，不包括已删除的记录；

"""


WECHAT = (
    ("交易时间", time("%Y-%m-%d %H:%M:%S")),
    ("交易类型", summary("二维码收款")),
    ("交易对方", payer),
    ("商品", lambda m, rng: f"转账备注:{m.note}" if m.note else "/"),
    ("收/支", direction("收入", "支出")),
    ("金额(元)", lambda m, rng: spelled(abs(m.amount), m.amount_as if m.amount_as != "plain" else "sign of yuan")),
    ("支付方式", "零钱"),
    ("当前状态", WECHAT_STATUS),
    ("交易单号", reference),
    ("商户单号", "/\t"),
    ("备注", "/"),
)
IN_WORKBOOK: dict[str, Write] = {"金额(元)": number(absolute, "\\¥#,##0.00"), "交易时间": serial}


ALIPAY_FOOT = """#----------------------------------------账务明细列表结束-------------------------------------
#支出合计：{outs}笔|共{sum_out}元
#收入合计：{ins}笔，共{sum_in}元
#导出时间：[2026年11月02日 00:31:01]"""
BOC_HEAD = """查询账号[ Inquirer account number ]|232500474807
总笔数[ Total number ]|{all}
借方发生总笔数[ Total Numbers of Debited Payments ]|{outs}
借方发生总额[ Total Debit Amount of Payments ]|{sum_out}
贷方发生总笔数[ Total Numbers of Credited Payments ]|{ins}
贷方发生总额[ Total Credit Amount of Payments ]|{sum_in}
查询时间范围[ Time Range ]|20261101-20261102"""
PSBC_HEAD = """中国邮政储蓄银行账户交易明细
账号|944150013000365212|||户名|深圳市小店有限公司
收入总金额|{sum_in}|||支出总金额|{sum_out}
收入总笔数|{ins}笔|||支出总笔数|{outs}笔
起止日期|2026年11月01日-2026年11月02日|||数据查询导出时间|2026年11月02日00:31:13"""
ICBC_HEAD = """明细查询文件下载

卡号: 1234****9876|卡别名: 小店

子账户序号: 00000|子账户类别: 活期|子账户别名:

"""
WECHAT_FUNDS_FOOT = """资金流水总笔数|收入笔数|收入金额|支出笔数|支出金额
`{all}.0|`{ins}.0|`{sum_in}|`{outs}.0|`{sum_out}"""
OURS = ("深圳市小店有限公司", "232500474807")


def _side(is_payer: bool, other: Write, ours: str) -> Write:
    """The name or account of the payer or payee: the other side's, or the account's own."""
    return lambda m, rng: other(m, rng) if (m.amount > 0) is is_payer else ours


BOC = (
    ("交易类型[ Transaction Type ]", direction("来账", "往账"), "direction"),
    ("业务类型[ Business type ]", summary("小额普通"), "kind"),
    ("付款人开户行号[ Account holding bank number of payer ]", ""),
    ("付款人开户行名[ Payer account bank ]", "中信银行股份有限公司东莞分行"),
    ("付款人账号[ Debit Account No. ]", _side(True, account, OURS[1]), "account"),
    ("付款人名称[ Payer's Name ]", _side(True, payer, OURS[0]), "payer"),
    ("收款人开户行行号[ Account holding bank number of beneficiary ]", "10658"),
    ("收款人开户行名[ Beneficiary account bank ]", "中国银行深圳分行"),
    ("收款人账号[ Payee's Account Number ]", _side(False, account, OURS[1])),
    ("收款人名称[ Payee's Name ]", _side(False, payer, OURS[0])),
    ("交易日期[ Transaction Date ]", time("%Y%m%d"), "time"),
    ("交易时间[ Transaction time ]", time("%H:%M:%S"), "clock"),
    ("交易货币[ Trade Currency ]", lambda m, rng: m.currency, "currency"),
    ("交易金额[ Trade Amount ]", signed(plus=True), "amount"),
    ("交易后余额[ After-transaction balance ]", lambda m, rng: f"+{balance(m, rng)}"),
    ("起息日期[ Value Date ]", time("%Y%m%d")),
    ("汇率[ Exchange rate ]", "1.000000"),
    ("交易流水号[ Transaction reference number ]", reference, "reference"),
    ("凭证类型[ Voucher type ]", ""),
    ("凭证号码[ Voucher number ]", "00000000"),
    ("记录标识号[ Record ID ]", ""),
    ("摘要[ Reference ]", ""),
    ("用途[ Purpose ]", note, "note"),
    ("交易附言[ Remark ]", "", "note"),
    ("备注[ Remarks ]", ""),
)


LAYOUTS = {
    each.name: each
    for each in (
        Layout(
            "alipay-account",
            (
                ("账务流水号", lambda m, rng: f"{rng.randrange(10**14, 10**15)}\t"),
                ("业务流水号", reference, "reference"),
                ("商户订单号", "\t"),
                ("商品名称", "收款\t"),
                ("发生时间", time(*SPELLINGS), "time"),
                ("对方账号", payer, "payer"),
                ("收入金额（+元）", income("0.00"), "income"),
                ("支出金额（-元）", expense("0.00", -1), "expense"),
                ("账户余额（元）", balance),
                ("交易渠道", "支付宝"),
                ("业务类型", summary("转账"), "kind"),
                ("备注", note, "note"),
            ),
            ALIPAY_HEAD,
            ALIPAY_FOOT,
        ),
        Layout(
            "alipay-person",
            (
                ("交易时间", time("%Y-%m-%d %H:%M:%S"), "time"),
                ("交易分类", summary("收入")),
                ("交易对方", payer, "payer"),
                ("对方账号", "/"),
                ("商品说明", note, "note"),
                ("收/支", direction("收入", "支出"), "direction"),
                ("金额", absolute, "amount"),
                ("收/付款方式", "余额"),
                ("交易状态", ALIPAY_STATUS, "status"),
                ("交易订单号", reference, "reference"),
                ("商家订单号", "\t"),
                ("备注", ""),
                ("", ""),
            ),
            ALIPAY_PERSON_HEAD,
            has_status=True,
        ),
        Layout("wechat-csv", WECHAT, WECHAT_HEAD, encoding="utf-8-sig", has_status=True),
        Layout(
            "wechat-xlsx",
            tuple((column[0], IN_WORKBOOK.get(column[0], column[1])) for column in WECHAT),
            WECHAT_HEAD,
            workbook=True,
            has_status=True,
        ),
        Layout(
            "cmb-company",
            (
                ("账号", "755900000010001"),
                ("账号名称", OURS[0]),
                ("币种", currency("人民币"), "currency"),
                ("交易日", time("%Y%m%d"), "time"),
                ("交易时间", time("%H:%M:%S", "%H%M%S"), "clock"),
                ("起息日", time("%Y%m%d")),
                ("交易类型", summary("转账收款"), "kind"),
                ("借方金额", expense(), "expense"),
                ("贷方金额", income(), "income"),
                ("余额", balance),
                ("摘要", note, "note"),
                ("流水号", reference, "reference"),
                ("收(付)方名称", payer, "payer"),
                ("收(付)方账号", account, "account"),
            ),
            "招商银行账务明细\n打印时间：2026年11月02日00:31:13",
            has_currency=True,
            page_ends="第1页，共2页",
        ),
        Layout(
            "icbc-person",
            (
                ("交易日期", padded(time("%Y-%m-%d"), 15), "time"),
                ("摘要", padded(summary("他行汇入"), 20), "kind"),
                ("交易详情", note, "note"),
                ("交易场所", padded("", 60)),
                ("交易国家或地区简称", "CHN                 \t"),
                ("钞/汇", "钞        \t"),
                ("交易金额(收入)", lambda m, rng: "-\t" if m.currency == "CNY" else income()(m, rng)),
                ("交易金额(支出)", "-                   \t"),
                ("交易币种", lambda m, rng: "-\t" if m.currency == "CNY" else currency("")(m, rng)),
                ("记账金额(收入)", padded(income(), 20), "income"),
                ("记账金额(支出)", padded(expense(), 20), "expense"),
                ("记账币种", padded(currency("人民币"), 15), "currency"),
                ("余额", padded(balance, 20)),
                ("对方户名", padded(payer, 60), "payer"),
                ("对方账户", padded(account, 30), "account"),
            ),
            ICBC_HEAD,
            " \n人民币合计|||||||||{sum_in}|{sum_out}|",
            has_id=False,
            has_clock=False,
            has_currency=True,
        ),
        Layout(
            "icbc-company",
            (
                ("凭证号", "00000000"),
                ("本方账号", "4000020009200123456"),
                ("对方账号", account, "account"),
                ("交易时间", serial, "time"),
                ("借/贷", direction("贷", "借"), "direction"),
                ("借方发生额", number(expense()), "expense"),
                ("贷方发生额", number(income()), "income"),
                ("对方行号", "102100099996"),
                ("摘要", summary("转账")),
                ("用途", note, "note"),
                ("对方单位名称", payer, "payer"),
                ("余额", balance),
                ("个性化信息", ""),
            ),
            "[HISTORYDETAIL]",
            workbook=True,
            has_id=False,
        ),
        Layout(
            "ccb-company",
            (
                ("账号", "44250100000000001234"),
                ("账户名称", OURS[0]),
                ("交易时间", time("%Y%m%d %H:%M:%S"), "time"),
                ("借方发生额（支取）", number(expense("0")), "expense"),
                ("贷方发生额（收入）", number(income("0")), "income"),
                ("余额", balance),
                ("币种", currency("人民币元"), "currency"),
                ("对方户名", payer, "payer"),
                ("对方账号", account, "account"),
                ("对方开户机构", "中国邮政储蓄银行股份有限公司汕尾市分行"),
                ("记账日期", time("%Y%m%d")),
                ("摘要", summary("电子转账"), "kind"),
                ("备注", note, "note"),
                ("账户明细编号-交易流水号", reference, "reference"),
            ),
            workbook=True,
            has_currency=True,
        ),
        Layout(
            "abc-person",
            (
                ("交易日期", time("%Y%m%d"), "time"),
                ("交易时间", time("%H%M%S"), "clock"),
                ("交易摘要", summary("转存"), "kind"),
                ("交易金额", signed(plus=True), "signed"),
                ("本次余额", balance),
                ("对手信息", payer, "payer"),
                ("日 志 号", reference, "reference"),
                ("交易渠道", "超级网银"),
                ("交易附言", note, "note"),
            ),
            encoding="utf-8",
        ),
        Layout("boc-company", BOC, BOC_HEAD, has_currency=True),
        Layout(
            "bocom-person",
            (
                ("序号", ""),
                ("交易日期", time("%Y-%m-%d", "%Y/%m/%d", "%Y年%m月%d日"), "time"),
                ("交易时间", time("%H:%M:%S"), "clock"),
                ("交易类型", summary("网银转账"), "kind"),
                ("借贷", direction("贷 Cr", "借 Dr"), "direction"),
                ("交易金额", absolute, "amount"),
                ("余额", balance),
                ("对方账号", account, "account"),
                ("对方户名", payer, "payer"),
                ("交易地点", "网络支付"),
                ("摘要", note, "note"),
            ),
            encoding="utf-8-sig",
            has_id=False,
        ),
        Layout(
            "spdb-company",
            (
                ("交易流水号", reference, "reference"),
                ("交易日期", time("%Y%m%d"), "time"),
                ("交易时间", time("%H:%M:%S"), "clock"),
                ("借方金额", expense(), "expense"),
                ("贷方金额", income(), "income"),
                ("余额", balance),
                ("对方账号", account, "account"),
                ("对方户名", payer, "payer"),
                ("摘要", summary("转账"), "kind"),
                ("备注", note, "note"),
            ),
            f"账号|97990078801000001234\n账户名称|{OURS[0]}",
            encoding="utf-16",
        ),
        Layout(
            "wechat-funds",
            tuple(
                (name, ticked(content), *means)
                for name, content, *means in (
                    ("记账时间", time("%Y-%m-%d %H:%M:%S"), "time"),
                    ("微信支付业务单号", lambda m, rng: m.reference, "reference"),
                    ("资金流水单号", lambda m, rng: f"19{rng.randrange(10**26):026d}"),
                    ("业务名称", summary("交易")),
                    ("业务类型", summary("交易"), "kind"),
                    ("收支类型", direction("收入", "支出"), "direction"),
                    ("收支金额(元)", absolute, "amount"),
                    ("账户结余(元)", balance),
                    ("资金变更提交申请人", "system"),
                    ("备注", note, "note"),
                    ("业务凭证号", ""),
                )
            ),
            bare=True,
            foot=WECHAT_FUNDS_FOOT,
            encoding="utf-8-sig",
        ),
        Layout(
            "jd-person",
            (
                ("交易时间", lambda m, rng: f"{m.at:%Y-%m-%d %H:%M:%S}\t", "time"),
                ("商户名称", payer, "payer"),
                ("交易说明", note, "note"),
                ("金额", absolute, "amount"),
                ("收/付款方式", "钱包余额", "kind"),
                ("交易状态", ALIPAY_STATUS, "status"),
                ("收/支", direction("收入", "支出"), "direction"),
                ("交易分类", summary("其他"), "kind"),
                ("交易订单号", reference, "reference"),
                ("商家订单号", "\t"),
                ("备注", " "),
                ("", ""),
            ),
            JD_HEAD,
            encoding="utf-8-sig",
            has_status=True,
        ),
        Layout(
            "psbc-company",
            (
                ("序号", ""),
                ("交易日期", time("%Y-%m-%d"), "time"),
                ("交易时间", time("%H:%M:%S"), "clock"),
                ("记账日期", time("%Y-%m-%d")),
                ("支出金额", number(expense("0.00")), "expense"),
                ("收入金额", number(income("0.00")), "income"),
                ("余额", balance),
                ("对方账号", account, "account"),
                ("对方户名", payer, "payer"),
                ("对方行名", "中国邮政储蓄银行股份有限公司汕尾市分行"),
                ("用途", note, "note"),
                ("附言", note, "note"),
                ("摘要", summary("行内转账"), "kind"),
                ("交易流水号", reference, "reference"),
            ),
            PSBC_HEAD,
            workbook=True,
            page_ends="本页合计",
        ),
    )
}
# How a spreadsheet saves a CSV file again: encoding and separator.
SAVED_AS = (("utf-8", ","), ("utf-8-sig", ";"), ("utf-16", "\t"), ("gb18030", ","), ("gb18030", "\t"), ("utf-8", "\t"))


def table(movements: list[Movement], layout: Layout, rng: Random) -> tuple[list[Row], list[int]]:
    """Return the rows of a statement, and for each movement that the layout can write the index of its row."""
    told = [each for each in movements if layout.writes(each)]
    rows: list[Row] = [*around(layout.head, told), [*layout.header]]
    at = []
    for count, each in enumerate(told, 1):
        at.append(len(rows))
        rows.append([written(column[1], each, rng) for column in layout.columns])
        if layout.header[0] == "序号":
            rows[-1][0] = str(count)
        if layout.page_ends and count == len(told) // 2:
            rows.append([layout.page_ends])
    return [*rows, *around(layout.foot, told)], at


def as_csv(rows: list[Row], encoding: str, separator: str, rng: Random) -> bytes:
    """Return the rows as a CSV file; some exports quote each value, some only those that need it."""
    text = io.StringIO(newline="")
    quoting: Any = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=rng.choice(("\r\n", "\n"))).writerows(rows)
    return text.getvalue().encode(encoding)


def as_workbook(rows: list[Row], rng: Random, change: Callable[[Any], None] = lambda sheet: None) -> bytes:
    """Return the rows as an xlsx file. `change` damages its sheet. A third declares a wrong size, as some banks do."""
    book = Workbook()
    sheet: Any = book.active
    for row in rows:
        sheet.append([_cell(sheet, value) for value in row])
    change(sheet)
    content = io.BytesIO()
    book.save(content)
    if rng.random() < 0.33:
        parts = parts_of(content.getvalue())
        parts[SHEET] = re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1:A1"', parts[SHEET], count=1)
        return zipped(parts)
    return content.getvalue()


def _cell(sheet: Any, value: Any) -> Any:
    if isinstance(value, Number):
        cell = Cell(sheet, value=value.value)
        cell.number_format, cell.font = value.shown_as, Font(name="宋体")
        return cell
    return value


def parts_of(content: bytes) -> dict[str, bytes]:
    """Return the files in a workbook by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        return {name: source.read(name) for name in source.namelist()}


def zipped(parts: dict[str, bytes]) -> bytes:
    """Return a ZIP archive, such as a workbook, with these files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in parts.items():
            target.writestr(name, content)
    return made.getvalue()


def write(movements: list[Movement], layout: Layout, rng: Random) -> bytes:
    """Return a statement with the movements that the layout can write, as the bank or a spreadsheet saves it."""
    rows, _ = table(movements, layout, rng)
    if layout.workbook:
        return as_workbook(rows, rng)
    encoding, separator = rng.choice(((layout.encoding, ","), (layout.encoding, ","), *SAVED_AS))
    if layout.bare and encoding == layout.encoding and separator == ",":
        lines = (",".join(str(cell).replace("\n", " ") for cell in row) for row in rows)
        return "".join(f"{line}\r\n" for line in lines).encode(encoding)
    return as_csv(rows, encoding, separator, rng)
