"""Batch files of payouts: which payouts were exported to which file, and the bank's result of each."""

from __future__ import annotations

from peewee import Check, ForeignKeyField, IntegerField, TextField

from models.db.base import Fen, Table, Timestamp
from models.tables.channel import Channel
from models.tables.order import Order


class PayoutBatch(Table):
    """One file for a bank, of payouts of one manual channel. Its content is made from the orders when it is read.

    `count` and `total` (fen) are those of its lines, `who` is the operator who made it.
    """

    channel = ForeignKeyField(Channel, index=False)
    template = TextField()
    count = IntegerField()
    total = Fen()
    who = TextField()
    createtime = Timestamp()


PayoutBatch.add_index(PayoutBatch.createtime, PayoutBatch.id, name="payout_batch_time")


class PayoutBatchLine(Table):
    """A payout in a batch: `line` counts from 1. `result` is null until the bank's result or a discard ends it.

    `reason` is the bank's reason for a failure, without the payee's details.
    """

    batch = ForeignKeyField(PayoutBatch, index=False)
    line = IntegerField()
    order = ForeignKeyField(Order, index=False)
    result = TextField(null=True, constraints=[Check("result IN ('sent', 'failed', 'discarded')")])
    reason = TextField(default="")


PayoutBatchLine.add_index(PayoutBatchLine.batch, PayoutBatchLine.line, name="payout_batch_line_number", unique=True)
# A payout is in one open batch at most.
PayoutBatchLine.add_index(
    PayoutBatchLine.index(
        PayoutBatchLine.order, unique=True, where=PayoutBatchLine.result.is_null(), name="payout_batch_line_open"
    )
)
