"""The double-entry ledger: accounts with their balances, postings, and entries that nothing can change."""

from typing import Any

from peewee import Check, ForeignKeyField, IntegerField, TextField

from models.base import Fen, Statement, Table, Timestamp
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
    def move(cls, kind: str, owner: int, fen: int) -> int | None:
        """Add `fen` to a balance in one conditional UPDATE: its account's id, None where that would overdraw it."""
        changed = _move[kind in (AVAILABLE, HELD)].run(kind=kind, owner=owner, fen=fen).fetchone()
        return changed and changed[0]

    @classmethod
    def balance_of(cls, kind: str, owner: int) -> int:
        """The balance in fen."""
        return cls.get(cls.kind == kind, cls.owner == owner).balance


def _compiled_move(bounded: bool) -> Statement:
    def build(v: Any) -> Any:
        account = (LedgerAccount.kind == v.kind) & (LedgerAccount.owner == v.owner)
        condition = account & (LedgerAccount.balance + v.fen >= 0) if bounded else account
        changed = LedgerAccount.update(balance=LedgerAccount.balance + v.fen).where(condition)
        return changed.returning(LedgerAccount.id)

    return Statement(build)


# A merchant's accounts are bounded: they never go below zero.
_move = {bounded: _compiled_move(bounded) for bounded in (True, False)}


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
