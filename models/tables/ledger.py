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
def _move(ids: tuple[int, ...], amounts: tuple[int, ...], counts: tuple[int, ...], heads: tuple[str, ...]) -> Any:
    account = LedgerAccount

    def each(values: tuple[Any, ...]) -> Case:
        return Case(account.id, tuple(zip(ids, values, strict=True)))

    moved = {
        account.balance: account.balance + each(amounts),
        account.entries: account.entries + each(counts),
        account.head: each(heads),
    }
    return account.update(moved).where(account.id.in_(ids))


def add_entries(postings: list[tuple[dict[tuple[str, int], int], Facts]]) -> bool:
    """Add the lines of postings, fen by kind and owner, to the balances and to the accounts' chains, in this order and
    in the caller's transaction.

    Returns False, and writes nothing, if that would overdraw a merchant's account, or one does not exist.
    """
    wanted = {account for lines, _ in postings for account in lines}
    found = {(row.kind, row.owner): row for row in _locked(*map(tuple, zip(*wanted, strict=True)))}
    if len(found) < len(wanted):
        return False
    balances = {account: row.balance for account, row in found.items()}
    chains = {account: Chain(row.kind, row.owner, row.entries, row.head) for account, row in found.items()}
    entries: list[dict[str, Any]] = []
    for lines, facts in postings:
        for account in filter(lines.get, found):
            balances[account] += lines[account]
            if account[0] in OF_MERCHANTS and balances[account] < 0:
                return False
            entry = {"posting": facts.posting, "account": found[account].id, "amount": lines[account]}
            entries.append(entry | chains[account].append(lines[account], facts))
    Entry.add_all(entries)
    moved = [
        (row.id, balances[account] - row.balance, chains[account].number - row.entries, chains[account].head)
        for account, row in found.items()
    ]
    _move(*zip(*moved, strict=True))
    return True
