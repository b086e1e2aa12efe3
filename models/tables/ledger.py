"""The double-entry ledger: accounts with balances, postings, and immutable entries."""

from functools import reduce
from operator import or_
from typing import Any

from peewee import BigIntegerField, Case, Check, CompositeKey, ForeignKeyField, IntegerField, TextField

from models.db.base import Fen, Table, Timestamp, database
from models.db.compiled import compiled
from models.db.hash_chain import Chain, Facts
from models.tables.order import Order

AVAILABLE, HELD, FEES, COMMISSION, CLEARING = ("available", "held", "fees", "commission", "clearing")
OF_MERCHANTS = (AVAILABLE, HELD)  # never below zero


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


@compiled
def _locked(kinds: tuple[str, ...], owners: tuple[int, ...]) -> Any:
    account = LedgerAccount
    wanted = [(account.kind == kind) & (account.owner == owner) for kind, owner in zip(kinds, owners, strict=True)]
    # All writers lock accounts in the same order, so that no two wait for each other; shared accounts come last.
    found = account.select(account.id, account.kind, account.owner, account.balance, account.entries, account.head)
    return database.for_update(
        found.where(reduce(or_, wanted)).order_by(account.kind.not_in(OF_MERCHANTS), account.kind, account.owner)
    )


@compiled
def _move(ids: tuple[int, ...], amounts: tuple[int, ...], heads: tuple[str, ...]) -> Any:
    account = LedgerAccount
    moved = {
        account.balance: account.balance + Case(account.id, tuple(zip(ids, amounts, strict=True))),
        account.entries: account.entries + 1,
        account.head: Case(account.id, tuple(zip(ids, heads, strict=True))),
    }
    return account.update(moved).where(account.id.in_(ids))


def add_entries(lines: dict[tuple[str, int], int], facts: Facts) -> bool:
    """Add `lines`, fen by kind and owner, to the balances and to the accounts' chains, in the caller's transaction.

    Returns False, and writes nothing, if that would overdraw a merchant's account, or one does not exist.
    """
    accounts = _locked(*map(tuple, zip(*lines, strict=True)))
    amounts = tuple(lines[account.kind, account.owner] for account in accounts)
    after = [(account.kind, account.balance + fen) for account, fen in zip(accounts, amounts, strict=True)]
    if len(accounts) < len(lines) or any(kind in OF_MERCHANTS and balance < 0 for kind, balance in after):
        return False
    chains = [Chain(account.kind, account.owner, account.entries, account.head) for account in accounts]
    links = [chain.append(fen, facts) for chain, fen in zip(chains, amounts, strict=True)]
    ids = tuple(account.id for account in accounts)
    Entry.add_all(
        [
            {"posting": facts.posting, "account": account, "amount": fen, **link}
            for account, fen, link in zip(ids, amounts, links, strict=True)
        ]
    )
    _move(ids, amounts, tuple(link["hash"] for link in links))
    return True
