"""Sums of the operator's own ledger entries: what each day brought, by merchant, channel and method."""

from peewee import BigIntegerField, CompositeKey, ForeignKeyField, IntegerField, TextField

from models.db.base import Fen, Table
from models.tables.ledger import LedgerAccount


class EarningsDay(Table):
    """Sums of the postings of one day in China (counted since 1970) and one merchant, channel, method and kind.

    `kind` is one of those of services/ledger/earnings.py. `merchant` and `channel` are ids, 0 without one. `count` and
    `volume` are those of deposits, withdrawals or refunds; `fees` and `costs` what the postings added to the account of
    fees and took from that of commission. Amounts in fen.
    """

    day = IntegerField()
    merchant = IntegerField()
    channel = IntegerField()
    method = TextField()
    kind = TextField()
    count = BigIntegerField()
    volume = Fen()
    fees = Fen()
    costs = Fen()

    class Meta:
        primary_key = CompositeKey("day", "merchant", "channel", "method", "kind")


class EarningsProgress(Table):
    """The number of the last entry of an account that the sums of EarningsDay have."""

    account = ForeignKeyField(LedgerAccount, primary_key=True)
    entries = BigIntegerField()
