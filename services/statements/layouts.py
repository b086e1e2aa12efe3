"""The layouts of statements: which column has which role. The columns of an unknown file are never guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from services.errors import N_, OperatorError
from services.statements import values
from services.statements.tables import Row
from services.statements.values import Direction, Meaning

HEADER_WITHIN = 200  # rows of a file that are searched for the names of the columns


class Role(StrEnum):
    """What a column has.

    A negative SIGNED amount is money that was sent. The direction of an AMOUNT is in a column of role DIRECTION. A mark
    in a column of role REVERSED tells that the row reverses another one, or was reversed. CODE is a payout's number and
    REASON the cause of its failure, in the bank's result of a file of payouts.
    """

    TIME = "time"
    CLOCK = "clock"
    REFERENCE = "reference"
    ORIGINAL = "original"
    SIGNED = "signed"
    INCOME = "income"
    EXPENSE = "expense"
    AMOUNT = "amount"
    DIRECTION = "direction"
    STATUS = "status"
    CURRENCY = "currency"
    KIND = "kind"
    REVERSED = "reversed"
    NOTE = "note"
    PAYER = "payer"
    ACCOUNT = "account"
    CODE = "code"
    REASON = "reason"
    IGNORED = "ignored"


OPTIONAL = {Role.PAYER, Role.ACCOUNT, Role.IGNORED}  # a file may lack these columns of its layout
AMOUNTS = {Role.SIGNED, Role.INCOME, Role.EXPENSE, Role.AMOUNT}
ONCE = AMOUNTS | {Role.TIME, Role.CLOCK, Role.REFERENCE, Role.ORIGINAL}


@dataclass(frozen=True)
class Layout:
    """A layout: the columns with their roles.

    `header` is None for a layout that ships with the service: a file with these columns may have others. An operator
    confirmed a layout for the files with exactly this header, a name for each column.
    """

    title: str
    columns: tuple[tuple[str, Role], ...]
    header: tuple[str, ...] | None = None

    @property
    def is_result(self) -> bool:
        """Whether it is for the bank's result of a file of payouts."""
        return any(role is Role.CODE for _, role in self.columns)

    def roles_of(self, names: list[str]) -> list[Role] | None:
        """Return the role of each column of a header; None if the layout is not its."""
        if self.header is not None:
            return [role for _, role in self.columns] if self.header == tuple(names) else None
        roles = {bare(name): role for name, role in self.columns}
        needed = {name for name, role in roles.items() if role not in OPTIONAL}
        if needed <= set(names) and all(names.count(name) == 1 for name in needed):
            return [roles.get(name, Role.IGNORED) for name in names]
        return None


def confirmed(header: list[str], roles: list[Role]) -> Layout:
    """Return the layout that an operator confirmed for a header."""
    return Layout(N_("as you confirmed them"), tuple(zip(header, roles, strict=True)), tuple(header))


class UnknownLayout(OperatorError):
    """An operator must state what the columns of a file have. `rows` are its first rows."""

    def __init__(self, rows: list[Row], text: str = "", /, **of_text: str):
        super().__init__(
            text or N_("Check the columns of this file. Those with known headings are filled in."), **of_text
        )
        self.rows = rows


@dataclass(frozen=True)
class Columns:
    """The columns of one file: its header, and the places of each role."""

    layout: Layout
    header: list[str]
    places: Mapping[Role, list[int]]


_UNIT = re.compile(r"\([+-]?(元|人民币|人民币元|cny|rmb|¥)?\)|[*:]")
_OTHER_UNIT = re.compile(r"[(\[](分|角|[百千万亿]元?|[美港日欧英].{0,2}|[a-z]{3})[)\]]")  # of names without (元)


def bare(name: str) -> str:
    """Return a column's name in lower case and half width, without blanks and units such as (元)."""
    return _UNIT.sub("", values.plain(name))


def header_of(cells: list[str]) -> list[str]:
    """Return the bare names of a header, without empty ones at its end."""
    names = [bare(cell) for cell in cells]
    while names and not names[-1]:
        names.pop()
    return names


def find(head: list[Row], known: Sequence[Layout]) -> tuple[int, Columns]:
    """Return the index of the header among the first rows of a file, and its columns.

    Raises:
        UnknownLayout: no row names the columns of a layout.
    """
    for index, (_, cells) in enumerate(head):
        names = header_of(cells)
        for layout in known:
            if names and (roles := layout.roles_of(names)) is not None:
                places = {role: [place for place, each in enumerate(roles) if each is role] for role in roles}
                return index, Columns(layout, names, places)
    raise UnknownLayout(head)


def refuse_other_units(layout: Layout) -> None:
    """Raise OperatorError if the name of a column of amounts has another unit than the yuan."""
    for name, role in layout.columns:
        if role in AMOUNTS and _OTHER_UNIT.search(name):
            raise OperatorError(N_("The amounts in column %(name)s are not in yuan."), name=name[:40])


def check(layout: Layout) -> None:
    """Raise OperatorError unless the roles say how much money each row has, and in which direction."""
    refuse_other_units(layout)
    roles = [role for _, role in layout.columns]
    for role in ONCE:
        if roles.count(role) > 1:
            raise OperatorError(N_("Two columns have the same content. Choose one of them."))
    has = set(roles)
    ways = [Role.SIGNED in has, Role.INCOME in has, Role.AMOUNT in has]
    if sum(ways) != 1 or (Role.EXPENSE in has and Role.INCOME not in has):
        raise OperatorError(
            N_("Choose one column of amounts: with a sign, of income (and one of expenses), or with a direction.")
        )
    if Role.AMOUNT in has and Role.DIRECTION not in has:
        raise OperatorError(N_("Choose the column that states whether money was received or sent."))
    if Role.REFERENCE not in has:
        raise OperatorError(N_("No column has the transaction ID. A statement needs one."))
    if Role.TIME not in has:
        raise OperatorError(N_("No column has the time of the payment. A statement needs one."))


# --- columns without a role that would change what a row means

A_DIRECTION = N_("Column %(name)s looks like a direction but is not used. Choose its content.")
A_CURRENCY = N_("Column %(name)s looks like a currency but is not used. Choose its content.")
A_STATUS = N_("Column %(name)s looks like a status but is not used. Choose its content.")
_LOOKS = (
    (
        re.compile("收/?支|^收/?付(标志|类型)?$|借/?贷|方向|[来往]账标志|往来标志|dr/cr|debit/credit|direction"),
        A_DIRECTION,
    ),
    (re.compile("币种|币别|货币|currency"), A_CURRENCY),
    (
        re.compile(
            "状态|处理结果|交易结果|status|result|退款|退回|退汇|退票|冲正|冲销|冲[账帐]|撤销|红字|refund|revers"
        ),
        A_STATUS,
    ),
)
_TEXTS = re.compile("名称|商品|说明|备注|摘要|附言|用途|note|remark|name")  # people write anything there
_CODES = {"840", "344"}  # of USD and HKD
_CURRENCIES = {"usd", "hkd", "eur", "jpy", "gbp", "美元", "美金", "港币", "港元", "欧元", "日元", "英镑"} | _CODES
_CURRENCY = re.compile(r"(?:币种|币别|货币|currency) ?: ?([^\s:,;()]+)", re.IGNORECASE)  # of the account: 币种:美元


def refuse_unread(columns: Columns, head: list[Row], body: list[Row]) -> None:
    """Raise UnknownLayout if a column without a role looks like a direction, a currency or a status.

    A file with further columns than its shipped layout must not have notes or amounts in them either.
    """
    is_shipped = columns.layout.header is None
    of_layout = {bare(name) for name, _ in columns.layout.columns} if is_shipped else set()
    for place in columns.places.get(Role.IGNORED, ()):
        name = columns.header[place]
        if name not in of_layout:
            why = looks_like(name, (cells[place] for _, cells in body if place < len(cells)))
            if is_shipped and suggested([name])[0] not in OPTIONAL:
                why = why or N_("Column %(name)s is not part of the known layout. Choose the content of each column.")
            if why:
                raise UnknownLayout(head, why, name=name[:40] or str(place + 1))


def refuse_other_table(header: list[str], body: list[Row]) -> None:
    """Raise OperatorError if a row below the header names other columns: the values below it would be misread."""
    known = {*header, *(name for names in _SUGGESTED.values() for name in names.split())} - {""}
    for at, cells in body:
        names = header_of(cells)
        if len(set(names) & known) > 2 and names != header:
            raise OperatorError(N_("Line %(line)s names other columns. Upload one table at a time."), line=str(at))


def refuse_other_currencies(above: list[Row]) -> None:
    """Raise OperatorError if a row above the header says that the account has another currency than the yuan."""
    for cell in (values.half_width(cell) for _, cells in above for cell in cells):
        stated = [each for each in _CURRENCY.findall(cell) if not values.is_yuan(each)]
        if stated or values.plain(cell) in _CURRENCIES - _CODES:
            text = N_("The account of this file has another currency than CNY: %(currency)s.")
            raise OperatorError(text, currency=[*stated, cell][0][:20])


def looks_like(name: str, cells: Iterable[str]) -> str:
    """Return the reason not to ignore a column, by its name or by one of its values; or "".

    The other values can be words that are not known. A number is a currency's code only if all values are.
    """
    for pattern, what in _LOOKS:
        if pattern.search(name):
            return what
    if _TEXTS.search(name):
        return ""
    found = {values.plain(cell) for cell in cells} - {"", "/", "-", "--"}
    if any(values.direction(cell) is not Direction.UNKNOWN for cell in found):
        return A_DIRECTION
    currencies = {cell for cell in found if cell in _CURRENCIES or values.is_yuan(cell)}
    if currencies and (currencies == found or not all(map(str.isdecimal, currencies))):
        return A_CURRENCY
    if any(values.status(cell) is not Meaning.UNCLEAR for cell in found):
        return A_STATUS
    return ""


# --- what a column's name suggests; an operator confirms it

_SUGGESTED = {
    Role.REFERENCE: (
        "交易流水号 银行流水号 业务流水号 账务流水号 核心流水号 流水号 交易单号 支付宝交易号 交易订单号 交易号 "
        "回单编号 transactionid transaction_id reference trade_no"
    ),
    Role.ORIGINAL: "原交易流水号 原流水号 原交易单号 originaltransactionid",
    Role.INCOME: (
        "收入金额 收入 贷方发生额 贷方金额 贷方 存入金额 转入金额 交易金额(收入) creditamount credit moneyin paidin"
    ),
    Role.EXPENSE: (
        "支出金额 支出 借方发生额 借方金额 借方 支取金额 转出金额 交易金额(支出) debitamount debit moneyout paidout"
    ),
    Role.AMOUNT: "交易金额 金额 发生额 amount",
    Role.DIRECTION: "收/支 收支 收支类型 借贷标志 借贷方向 借贷 借/贷 资金方向 方向 来往账标志 direction",
    Role.STATUS: "当前状态 交易状态 状态 status",
    Role.CURRENCY: "币种 币别 货币 交易币种 currency",
    Role.TIME: "交易日期 记账日期 日期 date 交易时间 入账时间 付款时间 记账时间 time",
    Role.KIND: "交易类型 业务类型 交易分类 类型 type",
    Role.REVERSED: "冲账标志 冲帐标志 冲正标志 红字标志",
    Role.PAYER: "交易对方 对方户名 对方名称 付款人 付款方 对方单位名称 payer counterparty",
    Role.ACCOUNT: "对方账号 对方账户 付款账号 counteraccount",
    Role.NOTE: (
        "摘要 备注 附言 用途 商品说明 商品 商品名称 交易说明 交易附言 客户附言 对方附言 商户单号 商家订单号 "
        "商户订单号 remark remarks note memo description purpose"
    ),
}


def suggested(header: list[str]) -> list[Role]:
    """Return the roles that the names of a header suggest, for an operator to confirm."""
    roles = [Role.IGNORED] * len(header)
    for role, names in _SUGGESTED.items():
        at = [header.index(name) for name in names.split() if name in header]
        for place in at[:1] if role in ONCE else at:
            roles[place] = role
    if Role.TIME in roles and "交易时间" in header and roles[header.index("交易时间")] is Role.IGNORED:
        roles[header.index("交易时间")] = Role.CLOCK
    if Role.AMOUNT in roles and Role.INCOME in roles:
        roles[roles.index(Role.AMOUNT)] = Role.IGNORED
    if Role.AMOUNT in roles and Role.DIRECTION not in roles:
        roles[roles.index(Role.AMOUNT)] = Role.SIGNED
    return roles


# --- layouts that ship with the service: the account statements of banks and wallets
# Sources: files of Alipay and WeChat Pay as downloaded, and public converters of bank statements
# (mayswind/ezbookkeeping, deb-sig/double-entry-generator, jiegec/china_bean_importers). Banks change theirs.


def _layout(title: str, /, **columns: str) -> Layout:
    """Return a layout from the names of columns by role, several separated by a blank."""
    return Layout(title, tuple((name, Role(role)) for role, names in columns.items() for name in names.split()))


SHIPPED = (
    _layout(N_("Plain table"), time="time", reference="transaction_id", income="income", note="note", payer="payer"),
    _layout(N_("Plain table"), time="交易时间", reference="流水号", income="收入金额", note="附言", payer="对方户名"),
    _layout(
        N_("Alipay, transaction details (app)"),
        time="交易时间",
        kind="交易分类",
        payer="交易对方",
        account="对方账号",
        direction="收/支",
        amount="金额",
        ignored="收/付款方式",
        status="交易状态",
        reference="交易订单号",
        note="商品说明 商家订单号 备注",
    ),
    _layout(
        N_("Alipay, transactions (web)"),
        reference="交易号",
        time="付款时间",
        ignored="交易创建时间 最近修改时间 交易来源地 服务费（元） 资金状态",
        reversed="成功退款（元）",
        kind="类型",
        payer="交易对方",
        amount="金额（元）",
        direction="收/支",
        status="交易状态",
        note="商家订单号 商品名称 备注",
    ),
    _layout(
        N_("Alipay, account statement (business)"),
        ignored="账务流水号 账户余额（元） 交易渠道",
        reference="业务流水号",
        time="发生时间",
        account="对方账号",
        income="收入金额（+元）",
        expense="支出金额（-元）",
        kind="业务类型",
        note="商户订单号 商品名称 备注",
    ),
    _layout(
        N_("WeChat Pay, bill"),
        time="交易时间",
        kind="交易类型",
        payer="交易对方",
        direction="收/支",
        amount="金额(元)",
        ignored="支付方式",
        status="当前状态",
        reference="交易单号",
        note="商品 商户单号 备注",
    ),
    _layout(
        N_("CMB, business account"),
        ignored="账号 账号名称 起息日 余额 流程实例号 业务名称 业务参考号",
        currency="币种",
        time="交易日",
        clock="交易时间",
        kind="交易类型",
        expense="借方金额",
        income="贷方金额",
        reference="流水号",
        note="摘要 用途 业务摘要 其它摘要",
        payer="收/付方名称 收(付)方名称",
        account="收/付方帐号 收/付方账号 收(付)方账号",
        reversed="冲帐标志",
    ),
    _layout(
        N_("CMB, business account"),
        ignored="账号 账号名称 起息日 余额",
        currency="币种",
        time="交易日",
        clock="交易时间",
        kind="交易类型",
        expense="借方金额",
        income="贷方金额",
        reference="流水号",
        note="摘要",
        payer="收(付)方名称",
        account="收(付)方账号",
    ),
    _layout(
        N_("ICBC, business account"),
        ignored="本方账号 余额 对方行号",
        reference="凭证号",
        account="对方账号",
        time="交易时间",
        direction="借/贷",
        expense="借方发生额",
        income="贷方发生额",
        note="摘要 用途 个性化信息",
        payer="对方单位名称",
    ),
    _layout(
        N_("CCB, business account"),
        ignored="账号 账户名称 余额 对方开户机构 记账日期 企业流水号 凭证种类 凭证号",
        time="交易时间",
        expense="借方发生额（支取）",
        income="贷方发生额（收入）",
        currency="币种",
        payer="对方户名",
        account="对方账号",
        note="摘要 备注",
        reference="账户明细编号-交易流水号",
    ),
    _layout(
        N_("BOC, business account"),
        direction="交易类型[TransactionType]",
        kind="业务类型[Businesstype]",
        account="付款人账号[DebitAccountNo.]",
        payer="付款人名称[Payer'sName]",
        time="交易日期[TransactionDate]",
        clock="交易时间[Transactiontime]",
        currency="交易货币[TradeCurrency]",
        amount="交易金额[TradeAmount]",
        reference="交易流水号[Transactionreferencenumber]",
        note="摘要[Reference] 用途[Purpose] 交易附言[Remark] 备注[Remarks]",
    ),
    _layout(
        N_("ABC, personal account"),
        time="交易日期",
        clock="交易时间",
        kind="交易摘要",
        signed="交易金额",
        ignored="本次余额 交易渠道",
        payer="对手信息",
        reference="日志号",
        note="交易附言",
    ),
    _layout(
        N_("PSBC, business account"),
        ignored="序号 记账日期 余额 对方行名",
        time="交易日期",
        clock="交易时间",
        expense="支出金额",
        income="收入金额",
        account="对方账号",
        payer="对方户名",
        note="用途 附言 摘要",
        reference="交易流水号",
    ),
    _layout(
        N_("SPDB, business account"),
        reference="交易流水号",
        time="交易日期",
        clock="交易时间",
        expense="借方金额",
        income="贷方金额",
        ignored="余额",
        account="对方账号",
        payer="对方户名",
        note="摘要 备注",
    ),
    _layout(
        N_("WeChat Pay, statement of funds (business)"),
        time="记账时间",
        reference="微信支付业务单号",
        ignored="资金流水单号 账户结余(元) 资金变更提交申请人",
        kind="业务名称 业务类型",
        direction="收支类型",
        amount="收支金额(元)",
        note="备注 业务凭证号",
    ),
)
