"""The result of a batch file: read the bank's file, compare it with the batch, and record what was sent."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice

from marshmallow import ValidationError

from models.db.writer import transaction
from models.tables.order import CONFIRMED, Order
from models.tables.payout_batch import PayoutBatch, PayoutBatchLine
from schemas.fields import Yuan
from services.console import bulk, timeline
from services.console.bulk import Outcome
from services.console.perform import Given
from services.errors import N_, OperatorError
from services.payouts import batches, decisions
from services.security import audit, masking
from services.security.audit import Actor
from services.statements import tables

MOST_LINES = 5_000
LONGEST = 60  # characters of a reason, and of the name of a column
_ORDER_NO = re.compile(r"(?<!\d)\d{24}(?!\d)")
_CODE = re.compile(r"(?<![0-9A-Za-z])P(\d{1,10})-(\d{1,5})(?!\d)")
# Headers of banks' result files, without blanks and brackets.
STATUS = ("状态", "处理状态", "交易状态", "付款状态", "处理结果", "交易结果", "结果", "status", "result")
REFERENCE = ("支付宝流水号", "银行流水号", "交易流水号", "业务流水号", "交易号", "流水号", "reference", "transactionid")
AMOUNT = ("付款金额", "交易金额", "转账金额", "实付金额", "金额", "amount")
REASON = ("失败原因", "原因", "失败信息", "处理信息", "返回信息", "reason")
_SUCCESS = ("成功", "success")
_FAILED = ("失败", "退票", "退汇", "拒绝", "fail", "reject", "return")
_OPEN = ("未", "不", "部分", "待", "中", "not", "un", "partial", "pending")


@dataclass(frozen=True)
class Reported:
    """A row of the bank's file: the texts that may identify its payout, and what it says."""

    cells: tuple[str, ...]
    status: str
    reference: str = ""
    amount: str = ""
    reason: str = ""


PAID, REFUSED, UNKNOWN, OTHER_AMOUNT, ENDED, FOREIGN = VERDICTS = (
    "paid",
    "refused",
    "unknown",
    "other_amount",
    "ended",
    "foreign",
)


@dataclass(frozen=True)
class Match:
    """What a row of the bank's file means for the batch: one of VERDICTS; without `line` for FOREIGN."""

    reported: Reported
    verdict: str
    line: PayoutBatchLine | None = None


def _header(text: str) -> str:
    return re.sub(r"[\s:：]|[（(].*?[）)]", "", text[:LONGEST]).lower()


def read(content: bytes) -> list[Reported]:
    """Return the rows of a bank's file. Raises OperatorError if it is no table with a column for the result."""
    rows = [[cell.strip("'`") for cell in cells] for _, cells in islice(tables.rows(content), MOST_LINES)]
    for at, row in enumerate(rows):
        headers = [_header(cell) for cell in row]
        if set(headers) & set(STATUS):
            return [_reported(headers, each) for each in rows[at + 1 :] if any(each)]
    text = N_("The file has no column with the result of each payout, such as %(names)s.")
    raise OperatorError(text, names=", ".join(STATUS))


def _reported(headers: list[str], row: list[str]) -> Reported:
    def value(names: tuple[str, ...]) -> str:
        wanted = next((name for name in names if name in headers), None)
        at = headers.index(wanted) if wanted else len(row)
        return row[at] if at < len(row) else ""

    return Reported(tuple(row), value(STATUS), value(REFERENCE), value(AMOUNT), value(REASON))


def compare(batch: PayoutBatch, reported: list[Reported]) -> list[Match]:
    """Return what each row of the bank's file means for the batch; a payout in several rows is UNKNOWN."""
    lines = batches.lines_of(batch)
    by_key: dict[object, PayoutBatchLine] = {}
    for line in lines:
        by_key[line.order.order_no] = by_key[batch.id, line.line] = line
    found = [(each, _line_of(each, by_key)) for each in reported]
    times = Counter(line.id for _, line in found if line is not None)
    return [_match(each, line, repeated=line is not None and times[line.id] > 1) for each, line in found]


def _line_of(reported: Reported, by_key: dict[object, PayoutBatchLine]) -> PayoutBatchLine | None:
    for cell in reported.cells:
        keys: list[object] = list(_ORDER_NO.findall(cell))
        keys += [(int(batch), int(line)) for batch, line in _CODE.findall(cell)]
        for key in keys:
            if key in by_key:
                return by_key[key]
    return None


def _match(reported: Reported, line: PayoutBatchLine | None, repeated: bool) -> Match:
    if line is None:
        return Match(reported, FOREIGN)
    if not batches.is_open(line):
        return Match(reported, ENDED, line)
    status = reported.status.lower()
    if repeated:
        return Match(reported, UNKNOWN, line)
    if any(word in status for word in _FAILED):
        return Match(reported, REFUSED, line)
    if not any(word in status for word in _SUCCESS) or any(word in status for word in _OPEN):
        return Match(reported, UNKNOWN, line)
    return Match(reported, PAID if _amount(reported.amount) in (None, line.order.amount) else OTHER_AMOUNT, line)


def _amount(text: str) -> int | None:
    """Return an amount in fen; None if the file has none, -1 for a text that is no amount."""
    if not text:
        return None
    try:
        return int(Yuan().deserialize(text.replace(",", "").lstrip("¥￥-")))
    except ValidationError:
        return -1


@dataclass(frozen=True)
class Result:
    """The result of one line that an operator confirmed: paid with the bank's `reference`, or failed for a `reason`."""

    line: int
    paid: bool
    text: str


def record(batch: PayoutBatch, results: list[Result], actor: Actor) -> list[Outcome]:
    """Record confirmed results, each in a transaction of its own; a repeated result changes nothing."""
    detail = f"{sum(each.paid for each in results)} paid, {sum(not each.paid for each in results)} failed"
    audit.record(actor, "import batch result", "batch", str(batch.id), detail)
    lines = {line.line: line for line in batches.lines_of(batch)}
    outcomes = []
    for result in results:
        line = lines[result.line]
        try:
            outcomes.append((_paid if result.paid else _failed)(line, result.text, actor))
        except OperatorError as refusal:
            audit.record_failure(actor, "mark paid", "order", line.order.order_no, refusal)
            outcomes.append(Outcome(line.order, bulk.REFUSED, refusal))
    return outcomes


@transaction
def _paid(line: PayoutBatchLine, reference: str, actor: Actor) -> Outcome:
    order = Order.for_update(line.order_id)
    outcome = decisions.mark_now(order, Given(reference=reference), actor)
    if outcome.state == bulk.DONE and not batches.end(line, batches.SENT):
        raise OperatorError(N_("The result is already recorded."))
    return outcome


@transaction
def _failed(line: PayoutBatchLine, reason: str, actor: Actor) -> Outcome:
    order = Order.for_update(line.order_id)
    shown = masking.without(reason[:LONGEST], timeline.personal_values(order))
    if order.status != CONFIRMED or not batches.end(line, batches.FAILED, shown):
        raise OperatorError(N_("The result is already recorded."))
    return Outcome(order, bulk.DONE)
