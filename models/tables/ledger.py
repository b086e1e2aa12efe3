"""The double-entry ledger: accounts with balances, postings, and immutable entries."""

from typing import Any

from peewee import BigIntegerField, Check, CompositeKey, ForeignKeyField, IntegerField, TextField

from models.db.base import Fen, Statement, Table, Timestamp
from models.db.hash_chain import Chain, Facts
from models.tables.order import Order

AVAILABLE, HELD, FEES, COMMISSION, CLEARING = ("available", "held", "fees", "commission", "clearing")


class LedgerAccount(Table):
    """One account and its balance in fen.

    `owner` is the merchant's id for available and held, the channel's for clearing, 0 for the operator's fees and
    commission. A positive balance is what the operator owes the owner (or has earned).
    `entries` counts its entries, `head` is the hash of the newest ("" if it has none).
    """

    kind = TextField(constraints=[Check("kind IN ('available', 'held', 'fees', 'commission', 'clearing')")])
    owner = IntegerField()
    balance = Fen(default=0)
    entries = BigIntegerField(default=0)
    head = TextField(default="")

    class Meta:
        indexes = ((("kind", "owner"), True),)
        constraints = [Check("kind NOT IN ('available', 'held') OR balance >= 0")]

    @classmethod
    def balance_of(cls, kind: str, owner: int) -> int:
        """Return the balance in fen."""
        return cls.get(cls.kind == kind, cls.owner == owner).balance


class Posting(Table):
    """Entries that belong together and sum to zero; at most one posting for each order and purpose."""

    order = ForeignKeyField(Order, null=True, index=False)
    purpose = TextField()
    who = TextField()
    memo = TextField(default="")
    createtime = Timestamp()

    class Meta:
        indexes = ((("order", "purpose"), True),)


class Entry(Table):
    """One line of a posting, in fen: entry `number` of its account, chained to the previous one (hash_chain.py)."""

    posting = ForeignKeyField(Posting)
    account = ForeignKeyField(LedgerAccount, index=False)
    amount = Fen(constraints=[Check("amount <> 0")])
    number = BigIntegerField()
    hash = TextField()

    class Meta:
        indexes = ((("account", "number"), True),)


class LedgerDay(Table):
    """Sums of the entries `first` to `last` of an account that belong to one day and one kind of posting, in fen.

    `day` counts the days in China since 1970. `fees` are those contained in `amount`, negative if the merchant paid
    them. Entries are added in the order of their numbers, so `entries` of all rows of an account is the number of the
    last one that was added (services/ledger/day_sums.py).
    """

    account = ForeignKeyField(LedgerAccount, index=False)
    day = IntegerField()
    kind = TextField()
    entries = BigIntegerField()
    amount = Fen()
    fees = Fen()
    first = BigIntegerField()
    last = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("account", "day", "kind")


def _compiled_move(bounded: bool) -> Statement:
    def build(v: Any) -> Any:
        account = (LedgerAccount.kind == v.kind) & (LedgerAccount.owner == v.owner)
        condition = account & (LedgerAccount.balance + v.fen >= 0) if bounded else account
        moved = {"balance": LedgerAccount.balance + v.fen, "entries": LedgerAccount.entries + 1}
        changed = LedgerAccount.update(moved).where(condition)
        return changed.returning(LedgerAccount.id, LedgerAccount.entries, LedgerAccount.head)

    return Statement(build)


# A merchant's accounts are bounded: they never go below zero.
_move = {bounded: _compiled_move(bounded) for bounded in (True, False)}
_set_head = Statement(lambda v: LedgerAccount.update(head=v.head).where(LedgerAccount.id == v.account))


def add_entry(kind: str, owner: int, fen: int, facts: Facts) -> bool:
    """Add `fen` to a balance and append its entry to the account's chain, in the caller's transaction.

    Returns False, and writes nothing, if that would overdraw the account.
    """
    # The first update locks the account's row for this transaction, so no other one appends to its chain meanwhile.
    moved = _move[kind in (AVAILABLE, HELD)].run(kind=kind, owner=owner, fen=fen).fetchone()
    if moved is None:
        return False
    account, entries, head = moved
    link = Chain(kind, owner, entries - 1, head).append(fen, facts)
    Entry.add(posting=facts.posting, account=account, amount=fen, **link)
    _set_head.run(account=account, head=link["hash"])
    return True
