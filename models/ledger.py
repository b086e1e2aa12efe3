"""The double-entry ledger: accounts with their balances, postings, and entries that nothing can change."""

from peewee import Check, ForeignKeyField, IntegerField, TextField

from models.base import Fen, Table, Timestamp
from models.order import Order

AVAILABLE, HELD, FEES, COMMISSION, CLEARING = ("available", "held", "fees", "commission", "clearing")


class LedgerAccount(Table):
    """One account and its balance in fen.

    `owner` is the merchant's id for available and held, the channel's for clearing, 0 for the
    operator's fees and commission. Positive is what the operator owes the owner (or has earned).
    """

    kind = TextField(constraints=[Check("kind IN ('available', 'held', 'fees', 'commission', 'clearing')")])
    owner = IntegerField()
    balance = Fen(default=0)

    class Meta:
        indexes = ((("kind", "owner"), True),)
        constraints = [Check("kind NOT IN ('available', 'held') OR balance >= 0")]

    @classmethod
    def add(cls, kind: str, owner: int, fen: int) -> "LedgerAccount | None":
        """Add `fen` to a balance in one conditional UPDATE; None where that would overdraw a merchant."""
        condition = (cls.kind == kind) & (cls.owner == owner)
        if kind in (AVAILABLE, HELD):
            condition &= cls.balance + fen >= 0
        changed = cls.update(balance=cls.balance + fen).where(condition).execute()
        return cls.get(cls.kind == kind, cls.owner == owner) if changed else None

    @classmethod
    def balance_of(cls, kind: str, owner: int) -> int:
        """The balance in fen."""
        return cls.get(cls.kind == kind, cls.owner == owner).balance


class Posting(Table):
    """Entries that belong together and sum to zero; at most one per order and purpose."""

    order = ForeignKeyField(Order, null=True, index=False)
    purpose = TextField()
    who = TextField()
    memo = TextField(default="")
    createtime = Timestamp()

    class Meta:
        indexes = ((("order", "purpose"), True),)


class Entry(Table):
    """One line of a posting, in fen."""

    posting = ForeignKeyField(Posting)
    account = ForeignKeyField(LedgerAccount, index=False)
    amount = Fen(constraints=[Check("amount <> 0")])
