"""What each channel's account holds by the channel itself, as its flow of funds or an operator says."""

from __future__ import annotations

from peewee import Check, ForeignKeyField, TextField

from models.db.base import Fen, Table, Timestamp
from models.tables.channel import Channel

BILL, BY_OPERATOR = SOURCES = ("bill", "operator")


class AccountBalance(Table):
    """The balance of a channel's account at the end of a day in China (such as 2026-05-01), in fen.

    `amount` is the channel's figure, `expected` what the account should have held by the books. Of a day that was not
    over, both are of `createtime`. `source` is the channel's flow of funds or an operator. `note` explains the
    difference: only later changes of it need an explanation. "" if there is no explanation.
    """

    channel = ForeignKeyField(Channel, index=False)
    day = TextField()
    amount = Fen()
    expected = Fen()
    source = TextField(constraints=[Check("source IN ('bill', 'operator')")])
    who = TextField()
    note = TextField(default="")
    createtime = Timestamp()

    class Meta:
        indexes = ((("channel", "day"), True),)

    @property
    def difference(self) -> int:
        """What the channel has more than it should have by the books, in fen."""
        return int(self.amount - self.expected)
