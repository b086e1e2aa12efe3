"""Batch files of payouts: which payouts were exported to which file, and the bank's result of each."""

from __future__ import annotations

from peewee import Check, ForeignKeyField, IntegerField, TextField

from models.db.base import Fen, Table, Timestamp
from models.tables.channel import Channel
from models.tables.order import Order
from models.tables.payout_account import PayoutAccount

SENT, FAILED, DISCARDED = RESULTS = ("sent", "failed", "discarded")


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

    `reason` is the bank's reason for a failure, without the payee's details. `reference` is the transaction ID under
    which its payout was recorded or requested, null before. `filetime` is when it was first downloaded in a file, null
    before: from then on the bank may pay it. `account` is the one in the file; the order can get another one later.
    """

    batch = ForeignKeyField(PayoutBatch, index=False)
    line = IntegerField()
    order = ForeignKeyField(Order, index=False)
    result = TextField(null=True, constraints=[Check("result IN ('sent', 'failed', 'discarded')")])
    reason = TextField(default="")
    reference = TextField(null=True)
    filetime = Timestamp(null=True)
    account = ForeignKeyField(PayoutAccount, null=True, index=False)

    @property
    def code(self) -> str:
        """The text that identifies the line in the bank's files, such as P12-3: batch 12, line 3."""
        return f"P{self.batch_id}-{self.line}"

    @classmethod
    def in_file(cls, order: Order) -> PayoutBatchLine | None:
        """Return the order's line without a result in a file that was downloaded, or None: the bank may pay it."""
        mine = (cls.order == order) & cls.result.is_null() & cls.filetime.is_null(False)
        return cls.select().where(mine).first()

    def end(self, result: str, **facts: str) -> bool:
        """Store a result in the caller's transaction, unless it has changed; False if it has."""
        same = PayoutBatchLine.result.is_null() if self.result is None else PayoutBatchLine.result == self.result
        mine = PayoutBatchLine.id == self.id
        return bool(PayoutBatchLine.update(result=result, **facts).where(mine, same).execute())


PayoutBatchLine.add_index(PayoutBatchLine.batch, PayoutBatchLine.line, name="payout_batch_line_number", unique=True)
PayoutBatchLine.add_index(PayoutBatchLine.order, name="payout_batch_line_order")
# A payout is in one open batch at most.
PayoutBatchLine.add_index(
    PayoutBatchLine.index(
        PayoutBatchLine.order, unique=True, where=PayoutBatchLine.result.is_null(), name="payout_batch_line_open"
    )
)
