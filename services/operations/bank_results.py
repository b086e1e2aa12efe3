"""The bank's result of a batch file: read it, find the payout of each row, and apply it like a channel's report."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import dropwhile, islice

from gateways.base import Report, State
from models.db.writer import transaction
from models.tables.order import COMPLETED, CONFIRMED, PAYOUT_CONFLICT, REVERSED, Order
from models.tables.payout_batch import DISCARDED, FAILED, SENT, PayoutBatch, PayoutBatchLine
from services.channels import payment_numbers
from services.channels.order_numbers import order_numbers_in
from services.errors import N_, OperatorError
from services.operations import bulk, perform
from services.operations.actions import Act, Given
from services.operations.bulk import Outcome
from services.operations.payouts import OWN_REQUEST
from services.orders import lifecycle, verdict
from services.orders.lifecycle import close_exception, exceptions_of
from services.orders.reasons import Why, because
from services.orders.verdict import NONE
from services.security import audit, masking, second_operator
from services.security.audit import Actor
from services.statements import layouts, tables, values
from services.statements.layouts import Layout, Role, UnknownLayout
from services.statements.values import Meaning
from services.withdrawals import bank_files, change_account, money, settle
from services.withdrawals.bank_templates import TEMPLATES
from services.withdrawals.money import WithdrawalMoney
from services.withdrawals.place import payee_of

MOST_LINES = 5_000
HEADER_WITHIN = 50  # rows of a file that are searched for the names of the columns
LONGEST = 60  # characters of a reason, and of the name of a column


Names = Mapping[Role, tuple[str, ...]]  # the names of columns by role, as layouts.bare returns them
NEEDED = (Role.CODE, Role.STATUS, Role.AMOUNT)
# Of these roles one column counts, that with the first known name. Of the columns with a reason the first known one
# that has a reason counts, in each row. Columns of the others must agree.
ONE_COUNTS = (Role.CODE, Role.REFERENCE)
ROLES = (*NEEDED, Role.ACCOUNT, Role.CURRENCY, Role.REFERENCE, Role.REASON, Role.IGNORED)
COMMON = {
    Role.STATUS: (
        "状态 处理状态 交易状态 付款状态 转账状态 汇款状态 代发状态 处理结果 交易结果 付款结果 转账结果 汇款结果 "
        "代发结果 处理情况 交易情况 付款情况 结果 status result"
    ),
    Role.AMOUNT: "付款金额 交易金额 转账金额 汇款金额 代发金额 实付金额 金额 交易额 付款额 转账额 amount",
    Role.ACCOUNT: (
        "收款账号 收款账户 收款人账号 收款方账号 收款卡号 收款人账户 收款人email 收款人支付宝账号 收款支付宝账号 "
        "对方账号 account"
    ),
    Role.CURRENCY: "币种 货币 币别 currency",
    Role.REFERENCE: (
        "支付宝流水号 支付宝内部流水号 银行流水号 交易流水号 业务流水号 核心流水号 交易号 交易单号 回单编号 流水号 "
        "银行回单号 回单号 电子回单号 reference transactionid"
    ),
    Role.REASON: (
        "失败原因 原因 失败说明 失败描述 失败信息 错误信息 处理信息 返回信息 银行返回信息 结果描述 处理结果描述 "
        "状态描述 结果说明 状态说明 reason 备注"
    ),
}
BOUNCED = {"退票", "已退票", "退汇", "已退汇", "退汇成功"}  # a transfer that did not reach the payee's account
# A column with such a name may contradict the result, the amount or the account number.
_TELLING = re.compile(
    "结果|退票|退汇|退回|冲正|流水号|return|金额|amount|^(?!付款|付方|本方|我方|转出).*(账号|帐号|账户|卡号|号码)$"
)
# Likely names of columns, for an operator to confirm.
_LIKELY = {
    Role.AMOUNT: re.compile("^(?!.*(余额|费|税|退|限额|fee|tax|balance)).*(额$|amount)"),
    Role.ACCOUNT: re.compile("^收款.*(账号|帐号|卡号)$"),
    Role.REFERENCE: re.compile("^(?!企业|客户|商户|批次|指令).*(流水|回单|凭证|交易).{0,2}号$|transaction"),
    Role.REASON: re.compile("(原因|说明|描述|信息|附言)$|reason"),
    Role.STATUS: re.compile("(状态|结果|情况)$|status|result"),
}
_TOTAL = re.compile(r"(本页|本批)?(合计|总计|小计|共计|total|subtotal)(金额|笔数)?([:(\d].*)?")
_CODE = re.compile(r"(?<![0-9A-Z])P([0-9]{1,10})-([0-9]{1,5})(?![0-9])")


def names_of(batch: PayoutBatch) -> Names:
    """Return the names of the columns that the bank's result of this batch can have."""
    common = {role: tuple(names.split()) for role, names in COMMON.items()}
    return {**common, Role.CODE: TEMPLATES[batch.template].code}


def suggested(names: Names, header: list[str]) -> list[Role]:
    """Return the roles that the names of a header suggest."""
    roles = [Role.IGNORED] * len(header)
    for role, known in names.items():
        at = [place for name in known for place, each in enumerate(header) if each == name]
        for place in at[:1] if role in ONE_COUNTS else at:
            roles[place] = role
    return roles


def _is_result(text: str) -> bool:
    return values.status(text) is not Meaning.UNCLEAR


def guessed(names: Names, rows: Sequence[tables.Row], header: list[str]) -> list[Role]:
    """Return the roles that the names and values of the columns suggest. An operator must confirm them.

    Args:
        rows: the first rows of the file, with the header.
    """
    below = list(dropwhile(lambda row: layouts.header_of(row[1]) != header, rows))[1:]
    told = [[row[at] for _, row in below if row[at:] and row[at] and not _is_total(row)] for at in range(len(header))]
    roles = suggested(names, header)

    def suggest(role: Role, is_likely: list[bool]) -> None:
        likely = [at for at, each in enumerate(is_likely) if each and roles[at] is Role.IGNORED]
        for at in likely if role is Role.STATUS else likely[:1]:
            roles[at] = role

    def have_only(is_one: Callable[[str], object]) -> list[bool]:
        columns = zip(header, told, strict=True)
        return [bool(cells) and not is_one(name) and all(map(is_one, cells)) for name, cells in columns]

    suggest(Role.STATUS, have_only(_is_result))
    if Role.CODE not in roles:
        suggest(Role.CODE, have_only(_codes))
    for role, likely in _LIKELY.items():
        if role not in roles:
            suggest(role, [bool(likely.search(name)) for name in header])
    return roles


def check(layout: Layout) -> None:
    """Raise OperatorError unless the columns say which payout a row is about, its result and its amount."""
    layouts.refuse_other_units(layout)
    roles = [role for _, role in layout.columns]
    if not set(roles) <= set(ROLES) or any(roles.count(role) > 1 for role in ONE_COUNTS):
        raise OperatorError(N_("Choose one column at most for the number and the transaction ID."))
    if not set(NEEDED) <= set(roles):
        raise OperatorError(N_("Choose the columns of the payout's number, of the result and of the amount."))


@dataclass(frozen=True)
class Reported:
    """A row of the bank's file: its line there, the texts of its columns by role, and those of all others."""

    at: int
    said: Mapping[Role, tuple[str, ...]]
    others: tuple[str, ...]

    def text(self, role: Role) -> str:
        """The text of the first column with this role, or ""."""
        return next(iter(self.said.get(role, ())), "")

    @property
    def free(self) -> tuple[str, ...]:
        """The texts in which the bank may have written anything."""
        return (*self.said.get(Role.REASON, ()), *self.others)

    @property
    def amount(self) -> int:
        """The amount in fen, with its sign; 0 if it can't be read."""
        try:
            return values.amount(self.text(Role.AMOUNT))
        except values.Unreadable:
            return 0


class Effect(StrEnum):
    """What confirming a row would do; the first five change something."""

    PAID = "paid"  # the payout is recorded as paid out
    REQUESTED = "requested"  # a second operator must confirm that it is paid out
    FAILED = "failed"  # the payout stays to be sent, and can be in another file
    CONTRADICTS = "contradicts"  # an exception is opened, changed or closed
    NOTED = "noted"  # it agrees with the ledger: only the line of the batch gets its result
    RECORDED = "recorded"
    UNCLEAR = "unclear"
    FOREIGN = "foreign"


CHANGES = (Effect.PAID, Effect.REQUESTED, Effect.FAILED, Effect.CONTRADICTS, Effect.NOTED)


@dataclass(frozen=True)
class Row:
    """What the bank says about one line of the batch: paid or not, its transaction ID, and its reason, or ""."""

    line: int
    is_paid: bool
    reference: str
    reason: str


@dataclass(frozen=True)
class Judgement:
    """What a row would do to its payout now: `kind` is the exception about it, `why` says more.

    `reference` is the number of the transfer, and `seal` changes if anything else would be done. `earlier` are the last
    digits of the account that the bank paid if the order has another one now.
    """

    effect: Effect
    why: OperatorError | None = None
    kind: str = ""
    reference: str = ""
    earlier: str = ""
    seal: str = ""


@dataclass(frozen=True)
class Match:
    """A row of the bank's file with its effect: `row` and `line` are None if it is about no payout of the batch."""

    reported: Reported
    judgement: Judgement
    line: PayoutBatchLine | None = None
    row: Row | None = None

    @property
    def effect(self) -> Effect:
        """The effect of the row."""
        return self.judgement.effect

    @property
    def is_change(self) -> bool:
        """Whether confirming the row changes anything."""
        return self.effect in CHANGES


# --- the file


def head_of(content: bytes) -> list[tables.Row]:
    """Return the first rows of a file. Raises OperatorError if it is no table."""
    return list(islice(tables.rows(content), HEADER_WITHIN))


def is_our_file(batch: PayoutBatch, head: Sequence[tables.Row]) -> bool:
    """Return whether these first rows are those of the file that the bank got."""
    columns = [name for name, _ in TEMPLATES[batch.template].columns]
    return any([cell for cell in cells if cell] == columns for _, cells in head)


def read(content: bytes, names: Names, kept: Sequence[Layout] = ()) -> list[Reported]:
    """Return the rows of a bank's file below the names of its columns.

    Args:
        kept: layouts that an operator confirmed; they come before the known names.

    Raises:
        OperatorError: it is no table, or too long.
        UnknownLayout: a needed column is missing, or a column without a role may contradict the others.
    """
    rows = list(islice(tables.rows(content), MOST_LINES + 1))
    head, missing = rows[:HEADER_WITHIN], list(NEEDED)
    if len(rows) > MOST_LINES:
        raise OperatorError(N_("The file has more than %(most)s rows."), most=str(MOST_LINES))
    for index, (_, cells) in enumerate(head):
        header, body = layouts.header_of(cells), rows[index + 1 :]
        for layout in kept:
            if (confirmed := layout.roles_of(header)) is not None:
                layouts.refuse_other_table(header, body)
                return _reported(body, header, confirmed)
        roles = suggested(names, header)
        lacking = [role for role in NEEDED if role not in roles]
        if not lacking:
            _refuse_unread(header, roles, head, body)
            layouts.refuse_other_table(header, body)
            return _reported(body, header, _with_codes(names, header, roles, body))
        missing = min(missing, lacking, key=len)
    text = N_("The file has no known column for: %(missing)s. Choose the content of each column.")
    raise UnknownLayout(head, text, missing="; ".join(" / ".join(names[role][:3]) for role in missing))


def _refuse_unread(header: list[str], roles: list[Role], head: list[tables.Row], body: list[tables.Row]) -> None:
    for place, name in enumerate(header):
        told = (cells[place] for _, cells in body if place < len(cells))
        if roles[place] is Role.IGNORED and (_TELLING.search(name) or layouts.looks_like(name, told)):
            text = N_("Column %(column)s is not known, and may contradict the result. Choose its content.")
            raise UnknownLayout(head, text, column=name[:LONGEST] or str(place + 1))


def _with_codes(names: Names, header: list[str], roles: list[Role], body: list[tables.Row]) -> list[Role]:
    """Return the roles with the first column of a known name that has numbers of payouts; a bank may number the rows
    in a column of the same name."""
    known = [place for name in names[Role.CODE] for place, each in enumerate(header) if each == name]
    has = (place for place in known if any(place < len(cells) and _codes(cells[place]) for _, cells in body))
    code = next(has, known[0])
    others = suggested({role: each for role, each in names.items() if role is not Role.CODE}, header)
    return [Role.CODE if place == code else others[place] for place in range(len(roles))]


def _reported(rows: list[tables.Row], header: list[str], roles: list[Role]) -> list[Reported]:
    known = COMMON[Role.REASON].split()
    places = sorted(range(len(roles)), key=lambda place: [*known, header[place]].index(header[place]))
    found = []
    for line, cells in rows:
        if _is_total(cells):
            continue
        padded = [*cells, *[""] * (len(roles) - len(cells))]
        said = {role: tuple(padded[place] for place in places if roles[place] is role) for role in ROLES}
        found.append(Reported(line, said, (*said[Role.IGNORED], *padded[len(roles) :])))
    return found


def _is_total(cells: list[str]) -> bool:
    """Return whether a row has a total, such as 合计, and none of our numbers."""
    first = values.plain(next(filter(None, cells), ""))
    return bool(_TOTAL.fullmatch(first)) and not any(_codes(cell) or order_numbers_in(cell) for cell in cells)


# --- what each row is about


def compare(batch: PayoutBatch, reported: list[Reported], actor: Actor) -> list[Match]:
    """Return what each row of the bank's file would do if this operator confirmed it."""
    lines = {line.line: line for line in bank_files.lines_of(batch)}
    named = [_codes(each.text(Role.CODE)) for each in reported]
    times = Counter(code for codes in named for code in codes)
    uses = Counter(
        reference for each in reported if (reference := payment_numbers.transaction_id(each.text(Role.REFERENCE)))
    )
    numbers = {number for each in reported for text in each.free for number in order_numbers_in(text)}
    orders = {row for (row,) in Order.select(Order.order_no).where(Order.order_no.in_(numbers)).tuples()}
    found = []
    for each, codes in zip(reported, named, strict=True):
        if (foreign := _foreign(codes, batch, lines)) is not None:
            found.append(Match(each, Judgement(Effect.FOREIGN, foreign)))
            continue
        line = next(lines[at] for number, at in codes if number == batch.id and at in lines)
        shown = _masked(each, line)
        row, why = _row(shown, line), None
        if times[codes[0]] > 1:
            why = OperatorError(N_("Several rows of the file are about this payout."))
        elif row.reference and uses[row.reference] > 1:
            why = OperatorError(N_("Several rows of the file have this transaction ID."))
        else:
            why = _unclear(each, codes, line, orders)
        judged = Judgement(Effect.UNCLEAR, why) if why else judge(row, line, line.order, actor)
        found.append(Match(shown, judged, line, row))
    return found


def _codes(text: str) -> list[tuple[int, int]]:
    """Return the numbers of batch and line of each payout that a text names."""
    return list(dict.fromkeys((int(batch), int(line)) for batch, line in _CODE.findall(_plain(text))))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).upper()


def _foreign(
    codes: list[tuple[int, int]], batch: PayoutBatch, lines: Mapping[int, PayoutBatchLine]
) -> OperatorError | None:
    """Return why a row is about no payout of the batch, or None."""
    if not codes:
        return OperatorError(N_("It has no number of a payout."))
    if any(number == batch.id and line in lines for number, line in codes):
        return None
    number, line = codes[0]
    if number != batch.id:
        return OperatorError(N_("It is about batch %(batch)s."), batch=str(number))
    return OperatorError(N_("The batch has no line %(line)s."), line=str(line))


def _masked(reported: Reported, line: PayoutBatchLine) -> Reported:
    """Return the row with the columns that have a reason, without details of the accounts of the line and order."""
    told = [masking.without(text, payee_of(line.account)) for text in reported.said[Role.REASON]]
    if line.account_id != line.order.account_id:
        told = [masking.without(text, payee_of(line.order.account)) for text in told]
    return replace(reported, said={**reported.said, Role.REASON: tuple(filter(_reason, told))})


def _row(reported: Reported, line: PayoutBatchLine) -> Row:
    is_paid = _meaning(reported) is Meaning.PAID
    reference = payment_numbers.transaction_id(reported.text(Role.REFERENCE))
    return Row(line.line, is_paid, reference, "" if is_paid else _reason(reported.text(Role.REASON)))


def _reason(told: str) -> str:
    """Return the bank's reason; "" for a text that says nothing, or only repeats the numbers of our file."""
    rest = _CODE.sub("", _plain(told))
    for number in order_numbers_in(rest):
        rest = rest.replace(number, "")
    rest = rest.strip()
    return "" if payment_numbers.is_placeholder(rest) or payment_numbers.is_shortened(rest) else told[:LONGEST]


def _meaning(reported: Reported) -> Meaning:
    """Return what all columns with a status agree on."""
    found = {values.status(text) for text in reported.said[Role.STATUS]}
    return found.pop() if len(found) == 1 else Meaning.UNCLEAR


def _unclear(
    reported: Reported, codes: list[tuple[int, int]], line: PayoutBatchLine, orders: set[str]
) -> OperatorError | None:
    """Return why a row about this line can't be applied, or None; `orders` are the orders that the file names."""
    order = line.order
    texts = (*reported.said[Role.ACCOUNT], *reported.said[Role.REFERENCE], *reported.free)
    elsewhere = {code for text in texts for code in _codes(text)} - {(line.batch_id, line.line)}
    named = {number for text in reported.free for number in order_numbers_in(text)}
    more = _CODE.sub("", _plain(reported.text(Role.CODE)))  # P1-1,2 and P1-1P1-2 may be about line 2 too
    if len(codes) > 1 or any(each.isdecimal() for each in more) or elsewhere or (named & orders) - {order.order_no}:
        return OperatorError(N_("It names several payouts."))
    reference = reported.text(Role.REFERENCE)
    if payment_numbers.is_shortened(reference) or values.is_damaged(reference):
        return OperatorError(N_("Its transaction ID is shortened or damaged. Use the file as you downloaded it."))
    for text in reported.said[Role.AMOUNT]:
        try:
            amount = values.amount(text)
        except values.Unreadable:
            return OperatorError(N_("Its amount can't be read."))
        if amount != order.amount:
            return OperatorError(N_("It has a different amount."))
    if not all(values.is_yuan(text) for text in reported.said[Role.CURRENCY]):
        return OperatorError(N_("Its currency is not CNY."))
    account = payee_of(line.account).get("card_number", "")
    if not all(_is_account(text, account) for text in reported.said[Role.ACCOUNT]):
        return OperatorError(N_("It has a different account number."))
    meaning = _meaning(reported)
    is_bounce = all(values.plain(text) in BOUNCED for text in reported.said[Role.STATUS])
    if meaning is Meaning.PAID and any(_contradicts(text) for text in reported.free):
        return OperatorError(N_("Another column says that it failed or was returned."))
    if meaning is Meaning.RETURNED and line.result != SENT and order.status == CONFIRMED and not is_bounce:
        return OperatorError(N_("The bank returned it, but it is not recorded as sent."))
    return {
        Meaning.IN_PROGRESS: OperatorError(N_("The bank has it in progress.")),
        Meaning.UNCLEAR: OperatorError(N_("Its result is not a known word.")),
    }.get(meaning)


def _contradicts(text: str) -> bool:
    """Return whether a text next to a success speaks of a failure or return."""
    return values.speaks_of_return(text) or values.status(text) in (Meaning.RETURNED, Meaning.FAILED)


def _is_account(text: str, account: str) -> bool:
    """Return whether a text is this account number, of which a bank may mask digits: 6222****0017."""
    shown, full = values.plain(text), values.plain(account)
    first, last = shown.split("*")[0], shown.split("*")[-1]
    is_masked = "*" in shown and len(first) + len(last) >= 4 and len(shown.replace("*", "")) < len(full)
    return bool(full) and (shown == full or (is_masked and full.startswith(first) and full.endswith(last)))


# --- what it does


def judge(row: Row, line: PayoutBatchLine, order: Order, actor: Actor) -> Judgement:
    """Return what a row does to its payout as it is now: a bank's result is a report on a transfer.

    A transfer without the bank's transaction ID has the number of its line, unless it is the order's first one.
    """
    request = second_operator.waiting(order)
    judged = (_paid if row.is_paid else _failed)(row, line, order)
    if request is not None and judged.effect is Effect.FAILED:
        why = OperatorError(N_("It was reported as paid out and awaits a second operator. Decide on that first."))
        judged = replace(judged, effect=Effect.UNCLEAR, why=why)
    elif request is not None and judged.effect is Effect.PAID:
        asked = Given(**request.asked)
        if request.who == actor.name:
            judged = replace(judged, effect=Effect.UNCLEAR, why=OperatorError(OWN_REQUEST))
        elif asked.fen() not in (None, order.amount) or asked.reference not in ("", judged.reference):
            why = OperatorError(N_("Another operator requested it with another amount or transaction ID."))
            judged = replace(judged, effect=Effect.UNCLEAR, why=why)
    elif judged.effect is Effect.PAID and second_operator.is_needed(order):
        judged = replace(judged, effect=Effect.REQUESTED)
    if row.is_paid and line.account_id != order.account_id:
        judged = replace(judged, earlier=change_account.ending(line.account))
    exceptions = [(each.id, each.amount, each.resolution) for each in exceptions_of(order)]
    state = (order.status, order.account_id, line.result, exceptions, request and request.id)
    facts = (judged.effect, judged.kind, judged.reference, state)
    return replace(judged, seal=hashlib.sha256(repr(facts).encode()).hexdigest()[:16])


def _paid(row: Row, line: PayoutBatchLine, order: Order) -> Judgement:
    reference = row.reference or line.reference
    if line.result == SENT and line.reference == "":  # the file that it was recorded from had no transaction IDs
        reference = ""
    if reference is None:
        reference = "" if order.status == CONFIRMED else line.code
    if line.result == FAILED and line.reference is not None and payment_numbers.is_on_record(order, reference):
        return Judgement(
            Effect.UNCLEAR,
            OperatorError(
                N_("It was recorded as paid out and later as failed. If the bank sent it again, mark it as paid out.")
            ),
        )
    effect = money.judge(order, _report(State.PAID, reference, order), exceptions_of(order)).verdict
    if effect.status == COMPLETED:
        listed = PayoutBatchLine.in_file(order)
        why = None
        if listed is not None and listed.id != line.id:
            text = N_("It is also in batch %(batch)s: make sure that the bank does not send it again.")
            why = OperatorError(text, batch=str(listed.batch_id))
        return Judgement(Effect.PAID, why, reference=reference)
    if effect == NONE:
        return Judgement(Effect.RECORDED if line.result == SENT else Effect.NOTED, reference=reference)
    return Judgement(Effect.CONTRADICTS, kind=PAYOUT_CONFLICT, reference=reference)


def _failed(row: Row, line: PayoutBatchLine, order: Order) -> Judgement:
    """Return the effect of a failure or return: about the transfer that it names, or that of its line."""
    known = Judgement(Effect.NOTED if line.result in (None, SENT) else Effect.RECORDED)
    if row.reference and payment_numbers.is_on_record(order, row.reference):
        reference = row.reference
    elif line.result == FAILED:
        return known
    elif line.result == SENT:
        reference = line.reference or ""
    elif order.status == CONFIRMED:
        return known if line.result == DISCARDED else Judgement(Effect.FAILED)
    elif money.state_of(order) is not WithdrawalMoney.SPENT or _is_sent_by_a_file(order):
        return known
    else:  # an operator marked it as paid out, perhaps because of this transfer
        reference = order.channel_reference
    effect = money.judge(order, _report(State.FAILED, reference, order), exceptions_of(order)).verdict
    kind = REVERSED if effect.exception == REVERSED else PAYOUT_CONFLICT
    about = [each for each in exceptions_of(order) if each.reference == reference and each.kind == kind]
    is_open = any(each.is_open for each in about)
    if order.status == CONFIRMED and not is_open:
        return Judgement(Effect.FAILED) if line.result is None else known
    if effect == NONE or is_open is (kind == REVERSED):
        return replace(known, reference=reference)
    return Judgement(Effect.CONTRADICTS, kind=kind, reference=reference)


def _is_sent_by_a_file(order: Order) -> bool:
    mine = PayoutBatchLine.order == order
    return bool(PayoutBatchLine.select().where(mine, PayoutBatchLine.result == SENT).exists())


def _report(state: State, reference: str, order: Order) -> Report:
    return Report(state, order.amount if state is State.PAID else 0, reference)


def record(batch: PayoutBatch, rows: list[tuple[Row, str]], actor: Actor) -> list[Outcome]:
    """Apply confirmed rows, each in a transaction of its own.

    Args:
        rows: each row with its seal as the operator saw it; one that would now do anything else is refused.
    """
    paid = sum(row.is_paid for row, _ in rows)
    detail = N_("%(paid)s paid, %(failed)s failed") % {"paid": paid, "failed": len(rows) - paid}
    audit.record(actor, "import batch result", "batch", str(batch.id), detail)
    lines = {line.line: line for line in bank_files.lines_of(batch)}
    outcomes = []
    for row, seal in rows:
        order = lines[row.line].order
        try:
            outcomes.append(_apply(row, seal, lines[row.line].id, order.id, actor))
        except OperatorError as refusal:
            audit.record_failure(actor, "mark paid", "order", order.order_no, refusal)
            outcomes.append(Outcome(order, bulk.REFUSED, refusal))
    return outcomes


@transaction
def _apply(row: Row, seal: str, line_id: int, order_id: int, actor: Actor) -> Outcome:
    order, line = Order.for_update(order_id), PayoutBatchLine.get_by_id(line_id)
    judged = judge(row, line, order, actor)
    if judged.seal != seal or judged.effect not in CHANGES:
        raise OperatorError(perform.CHANGED)
    why, end = because(Why.BANK_RESULT, payout=line.code), SENT if row.is_paid else FAILED
    facts = {"reference": judged.reference} if row.is_paid else {"reason": row.reason}
    report = _report(State.PAID if row.is_paid else State.FAILED, judged.reference, order)

    def apply() -> bool:
        return settle.apply_report(order, report, actor.who, why)

    request = second_operator.waiting(order)
    if judged.effect is Effect.REQUESTED:
        given = Given(reference=judged.reference, in_file="1")
        audit.record(actor, "request payout", "order", order.order_no, judged.reference)
        second_operator.request(order, Act.MARK_PAID, asdict(given), actor.name)
        PayoutBatchLine.update(reference=judged.reference).where(PayoutBatchLine.id == line.id).execute()
        return Outcome(order, bulk.REQUESTED)
    if not line.end(end, **facts):  # first, because the line tells which account was paid
        raise OperatorError(perform.CHANGED)
    if judged.effect is Effect.PAID:
        verb = "mark paid" if request is None else "approve payout"
        audit.record(actor, verb, "order", order.order_no, f"{line.code} {judged.reference}")
        if request is None:
            apply()
        else:
            second_operator.approve(order, request.id, actor.name, lambda *_: apply())
    elif judged.effect is Effect.CONTRADICTS and order.status == CONFIRMED and not row.is_paid:
        for each in exceptions_of(order):
            if each.is_open and each.kind == PAYOUT_CONFLICT and each.reference == judged.reference:
                close_exception(each, verdict.FAILED, actor.who)
    elif judged.effect is Effect.CONTRADICTS:
        apply()
    if end == FAILED and order.status == CONFIRMED:
        bare = because(Why.BANK_REFUSED_BARE, payout=line.code)
        why = because(Why.BANK_REFUSED, payout=line.code, text=row.reason) if row.reason else bare
        lifecycle.note(order, actor.who, why)
    return Outcome(order, bulk.DONE)
