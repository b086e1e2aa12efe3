"""Bank files of payouts for a bank: a payout is in one open batch at most, so that no file pays it a second time."""

from __future__ import annotations

from typing import Any

from peewee import JOIN

from models.db.base import database
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.maintenance import paused_since
from models.tables.order import CONFIRMED, SELL, Order, PaymentException
from models.tables.payout_account import PayoutAccount
from models.tables.payout_batch import DISCARDED, FAILED, PayoutBatch, PayoutBatchLine
from runtime import clock
from runtime.clock import in_china
from runtime.money import grouped, hundredths
from services.channels.calls import driver_of
from services.errors import N_, OperatorError
from services.security import audit, second_operator
from services.security.audit import Actor
from services.withdrawals.bank_templates import GBK, TEMPLATES, FileLine, Sums
from services.withdrawals.place import payee_of

IN_QUESTION = N_("It has an open exception. Resolve it first: the payout may have been sent.")
PAUSED = N_(
    "Bank files are paused since a restore, because the bank may have payouts that the backup does not show. Compare "
    "the files that you gave to the bank, then run `tillbook db resume`."
)
# A line without a result whose payout still has to be sent, or may have been sent by its file.
IS_OPEN = PayoutBatchLine.result.is_null() & ((Order.status == CONFIRMED) | PayoutBatchLine.filetime.is_null(False))


def newest_lines(order_ids: list[int]) -> dict[int, PayoutBatchLine]:
    """Return the newest line of each order that was in a batch, by the order's id. Only the newest can be open."""
    lines = PayoutBatchLine.select().where(PayoutBatchLine.order.in_(order_ids)).order_by(PayoutBatchLine.id)
    return {line.order_id: line for line in lines}


def refused(order: Order) -> PayoutBatchLine | None:
    """Return the line with the bank's reason of a payout that the bank refused and that still has to be sent."""
    line = newest_lines([order.id]).get(order.id) if order.status == CONFIRMED else None
    return line if line is not None and line.result == FAILED else None


def last_template(channel: Channel) -> str:
    """Return the template of the channel's newest batch, or "" before the first one."""
    batch = PayoutBatch.select().where(PayoutBatch.channel == channel).order_by(PayoutBatch.id.desc()).first()
    return str(batch.template) if batch else ""


def why_not(orders: list[Order]) -> dict[int, OperatorError]:
    """Return the reason not to export an order, by its id; without those that can be exported."""
    found, lines = _why_not_send(orders), newest_lines([order.id for order in orders])
    for order in orders:
        line = lines.get(order.id)
        if line is not None and line.result is None and order.status == CONFIRMED:
            found[order.id] = OperatorError(N_("It is already in batch %(batch)s."), batch=str(line.batch_id))
    return found


def _why_not_send(orders: list[Order]) -> dict[int, OperatorError]:
    """Return the reason not to let the bank pay an order, by its id; without those that it may pay."""
    ids, found = [order.id for order in orders], {}
    requested = second_operator.requested(orders)
    exceptions = PaymentException.select(PaymentException.order)
    in_question = set(exceptions.where(PaymentException.order.in_(ids), PaymentException.resolution.is_null()).tuples())
    for order in orders:
        if order.status != CONFIRMED or not driver_of(order.channel).by_hand:
            found[order.id] = OperatorError(N_("Only approved payouts of manual channels can be in a bank file."))
        elif order.id in requested:
            found[order.id] = OperatorError(N_("It was reported as paid out and awaits a second operator."))
        elif (order.id,) in in_question:
            found[order.id] = OperatorError(IN_QUESTION)
    return found


@transaction
def create(template: str, numbers: list[str], actor: Actor) -> PayoutBatch:
    """Make a batch of these payouts, with an audit entry.

    Raises:
        OperatorError: a payout cannot be exported, they are of several channels, or payouts are paused since a restore;
            no batch is made.
    """
    _unless_paused()
    wanted = Order.select(Order.id).where(Order.order_no.in_(numbers)).order_by(Order.id)
    list(database.for_update(wanted))
    orders = Order.numbered(SELL, numbers)
    refused = why_not(orders)
    for order in orders:
        if order.id in refused:
            raise refused[order.id]
    if not orders or template not in TEMPLATES:
        raise OperatorError(N_("Select at least one payout."))
    if len({order.channel_id for order in orders}) > 1:
        raise OperatorError(N_("A bank file pays from one account. Select payouts of one channel."))
    facts: dict[str, Any] = {"channel": orders[0].channel_id, "template": template, "who": actor.name}
    total = sum(order.amount for order in orders)
    number = PayoutBatch.add(**facts, count=len(orders), total=total, createtime=clock.now())
    PayoutBatchLine.add_all(
        [
            {"batch": number, "line": at, "order": order.id, "reason": "", "account": order.account_id}
            for at, order in enumerate(orders, start=1)
        ]
    )
    text = N_("%(count)s payouts, %(total)s, template %(template)s")
    detail = text % {"count": len(orders), "total": grouped(total), "template": template}
    audit.record(actor, "create batch", "batch", str(number), detail)
    return find(number)


def _unless_paused() -> None:
    if paused_since() is not None:
        raise OperatorError(PAUSED)


def find(number: int) -> PayoutBatch:
    """Return the batch with this number. Raises OperatorError."""
    batch = PayoutBatch.get_or_none(PayoutBatch.id == number)
    if batch is None:
        raise OperatorError(N_("no batch %(batch)s"), batch=str(number))
    return batch


def lines_of(batch: PayoutBatch) -> list[PayoutBatchLine]:
    """Return the lines with their orders and their own payout accounts, in order."""
    rows = PayoutBatchLine.select(PayoutBatchLine, Order, Channel, PayoutAccount)
    joined = rows.join(Order).join(Channel).join_from(PayoutBatchLine, PayoutAccount, JOIN.LEFT_OUTER)
    return list(joined.where(PayoutBatchLine.batch == batch).order_by(PayoutBatchLine.line))


def _lock(batch: PayoutBatch) -> None:
    """Lock the batch's orders until the transaction ends: operators decide before or after its file is made."""
    listed = PayoutBatchLine.select(PayoutBatchLine.order).where(PayoutBatchLine.batch == batch)
    list(database.for_update(Order.select(Order.id).where(Order.id.in_(listed)).order_by(Order.id)))


def to_send(batch: PayoutBatch) -> list[PayoutBatchLine]:
    """Return the lines whose payouts would be in the file if it was downloaded now."""
    lines = [line for line in lines_of(batch) if line.result is None]
    refusals = _why_not_send([line.order for line in lines])
    return [line for line in lines if line.order_id not in refusals]


@transaction
def contents(batch: PayoutBatch, actor: Actor) -> list[list[Any]]:
    """Return the rows of the file, and record that the bank may pay its payouts and that the payees were exported.

    Left out are payouts that have ended, that another operator must confirm as paid, or that have an open exception.

    Raises:
        OperatorError: no payout is left, payouts are paused since a restore, or the personal data was erased.
    """
    _unless_paused()
    _lock(batch)
    lines = to_send(batch)
    if not lines:
        raise OperatorError(N_("No payout of this batch can be sent by its file."))
    audit.record(actor, "download batch", "batch", str(batch.id))
    for line in lines:
        audit.record(actor, "reveal", "order", line.order.order_no)
    first = PayoutBatchLine.id.in_([line.id for line in lines]) & PayoutBatchLine.filetime.is_null()
    PayoutBatchLine.update(filetime=clock.now()).where(first).execute()
    total = sum(line.order.amount for line in lines)
    day = in_china(batch.createtime)
    return TEMPLATES[batch.template].rows(Sums(batch.id, len(lines), total, day), [_line(line) for line in lines])


def _line(line: PayoutBatchLine) -> FileLine:
    payee = payee_of(line.account)
    return FileLine(
        code=line.code,
        order_no=line.order.order_no,
        name=payee.get("real_name", ""),
        account=payee.get("card_number", ""),
        bank=payee.get("bank", ""),
        branch=payee.get("sub_bank", ""),
        amount=hundredths(line.order.amount),
    )


def is_open(line: PayoutBatchLine) -> bool:
    """Return whether the payout of this line still has to be sent by the bank, or the bank's result is missing."""
    return line.result is None and (line.order.status == CONFIRMED or line.filetime is not None)


def unreadable(batch: PayoutBatch) -> dict[str, str]:
    """Return the characters that the bank's encoding lacks, by order number; such names reach the bank damaged."""
    if TEMPLATES[batch.template].encoding != GBK:
        return {}
    found = {}
    for line in to_send(batch):
        payee = payee_of(line.account)
        text = "".join(payee.get(name, "") for name in ("real_name", "card_number", "bank", "sub_bank"))
        if lacking := {each: "" for each in text if not each.encode("gbk", "ignore")}:
            found[line.order.order_no] = " ".join(lacking)
    return found


def discard(batch: PayoutBatch, actor: Actor, not_given: bool = False) -> int:
    """Take the open payouts out of a batch whose file was not used; return their number.

    Args:
        not_given: the operator confirms that the bank did not get the file.

    Raises:
        OperatorError: the file was downloaded, and this is not confirmed.
    """
    return audit.act(actor, "discard batch", "batch", str(batch.id), lambda: _discard(batch, not_given))


@transaction
def _discard(batch: PayoutBatch, not_given: bool) -> int:
    _lock(batch)
    lines = [line for line in lines_of(batch) if is_open(line)]
    if not not_given and any(line.filetime is not None for line in lines):
        raise OperatorError(
            N_("The file was downloaded. Confirm that the bank did not get it. Otherwise payouts may be paid twice.")
        )
    return sum(line.end(DISCARDED) for line in lines)
