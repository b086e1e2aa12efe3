"""Batches of payouts for a bank: a payout is in one open batch at most, so that no file pays it a second time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from peewee import fn

import business_clock
from models.db.base import database
from models.db.writer import transaction
from models.queries.keyset import Key, Line
from models.tables.order import CONFIRMED, Order
from models.tables.payout_account import PayoutAccount
from models.tables.payout_batch import PayoutBatch, PayoutBatchLine
from schemas.views import hundredths
from services.channels.calls import driver_of
from services.console import bulk, timeline
from services.console.lists import Browse, name_owners
from services.console.order_list import open_batches
from services.errors import N_, OperatorError
from services.payouts import decisions
from services.payouts.batch_templates import TEMPLATES, FileLine, Sums
from services.security import audit, sandbox_guard
from services.security.audit import Actor

SENT, FAILED, DISCARDED = "sent", "failed", "discarded"


class Batches(Browse):
    """Batches, by `since` and `until`."""

    table = PayoutBatch

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """The batches of the wanted time."""
        return [self.line([], *self.in_time(above, below))]

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with their channel, each with `open`: the number of its payouts without a result."""
        rows = name_owners(super().rows(ids))
        wanted = PayoutBatchLine.batch.in_(ids), PayoutBatchLine.result.is_null(), Order.status == CONFIRMED
        found = PayoutBatchLine.select(PayoutBatchLine.batch, fn.COUNT(PayoutBatchLine.id)).join(Order)
        counts = dict(found.where(*wanted).group_by(PayoutBatchLine.batch).tuples()) if ids else {}
        for row in rows:
            row.open = counts.get(row.id, 0)
        return rows


def why_not(orders: list[Order]) -> dict[int, OperatorError]:
    """Return the reason not to export an order, by its id; without those that can be exported."""
    listed, found = open_batches([order.id for order in orders]), {}
    for order in orders:
        if order.status != CONFIRMED or not driver_of(order.channel).by_hand:
            found[order.id] = OperatorError(N_("Only approved payouts of manual channels can be in a bank file."))
        elif order.id in listed:
            text = N_("It is already in batch %(batch)s.")
            found[order.id] = OperatorError(text, batch=str(listed[order.id]))
        elif sandbox_guard.withholds(order):
            found[order.id] = OperatorError(sandbox_guard.NOT_REAL, key=order.merchant.key)
    return found


@transaction
def create(template: str, numbers: list[str], actor: Actor) -> PayoutBatch:
    """Make a batch of these payouts, with an audit entry.

    Raises:
        OperatorError: a payout cannot be exported, or they are of several channels; no batch is made.
    """
    wanted = Order.select(Order.id).where(Order.order_no.in_(numbers)).order_by(Order.id)
    list(database.for_update(wanted))
    orders = decisions.find(numbers)
    refused = why_not(orders)
    for order in orders:
        if order.id in refused:
            raise refused[order.id]
    if not orders or template not in TEMPLATES:
        raise OperatorError(N_("Select at least one payout."))
    if len({order.channel_id for order in orders}) > 1:
        raise OperatorError(N_("A bank file pays from one account. Select payouts of one channel."))
    facts: dict[str, Any] = {"channel": orders[0].channel_id, "template": template, "who": actor.name}
    total = bulk.total(orders)
    number = PayoutBatch.add(**facts, count=len(orders), total=total, createtime=business_clock.now())
    PayoutBatchLine.add_all(
        [{"batch": number, "line": at, "order": order.id, "reason": ""} for at, order in enumerate(orders, start=1)]
    )
    detail = f"{len(orders)} payouts, {hundredths(total)}, {template}"
    audit.record(actor, "create batch", "batch", str(number), detail)
    return find(number)


def find(number: int) -> PayoutBatch:
    """Return the batch with this number. Raises OperatorError."""
    batch = PayoutBatch.get_or_none(PayoutBatch.id == number)
    if batch is None:
        raise OperatorError(f"no batch {number}")
    return batch


def lines_of(batch: PayoutBatch) -> list[PayoutBatchLine]:
    """Return the lines with their orders and payout accounts, in order."""
    rows = PayoutBatchLine.select(PayoutBatchLine, Order, PayoutAccount)
    joined = rows.join(Order).left_outer_join(PayoutAccount)
    return list(joined.where(PayoutBatchLine.batch == batch).order_by(PayoutBatchLine.line))


def code_of(line: PayoutBatchLine) -> str:
    """Return the text that identifies a batch and its line in the bank's files."""
    return f"P{line.batch_id}-{line.line}"


def contents(batch: PayoutBatch, actor: Actor) -> list[list[Any]]:
    """Return the rows of the file, after recording for each order that its payee was exported.

    Lines that have ended are not repeated.

    Raises:
        OperatorError: no line is open, or the personal data was erased.
    """
    lines = [line for line in lines_of(batch) if is_open(line)]
    if not lines:
        raise OperatorError(N_("All payouts of this batch have ended, so it has no file."))
    audit.record(actor, "download batch", "batch", str(batch.id))
    timeline.record_reveals([line.order for line in lines], actor)
    total = bulk.total(line.order for line in lines)
    day = datetime.fromtimestamp(batch.createtime).astimezone()
    return TEMPLATES[batch.template].rows(Sums(batch.id, len(lines), total, day), [_line(line) for line in lines])


def _line(line: PayoutBatchLine) -> FileLine:
    payee = timeline.personal_values(line.order)
    return FileLine(
        code=code_of(line),
        order_no=line.order.order_no,
        name=payee.get("real_name", ""),
        account=payee.get("card_number", ""),
        bank=payee.get("bank", ""),
        branch=payee.get("sub_bank", ""),
        amount=hundredths(line.order.amount),
    )


def is_open(line: PayoutBatchLine) -> bool:
    """Return whether the payout of this line still has to be sent by the bank."""
    return line.result is None and line.order.status == CONFIRMED


@transaction
def end(line: PayoutBatchLine, result: str, reason: str = "") -> bool:
    """Store the result of an open line, in one conditional UPDATE; False if it has one."""
    mine = (PayoutBatchLine.id == line.id) & PayoutBatchLine.result.is_null()
    return bool(PayoutBatchLine.update(result=result, reason=reason).where(mine).execute())


def discard(batch: PayoutBatch, actor: Actor) -> int:
    """Take the open payouts out of a batch whose file was not used; return their number."""
    return audit.act(actor, "discard batch", "batch", str(batch.id), lambda: _discard(batch))


@transaction
def _discard(batch: PayoutBatch) -> int:
    return sum(end(line, DISCARDED) for line in lines_of(batch) if is_open(line))
