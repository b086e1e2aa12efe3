"""Sums of merchants' ledger entries by day, kept in a table: a month's statement reads days instead of entries.

A job adds new entries in the order of their numbers. A reader of the sums adds the entries that the job has not
reached.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from peewee import EXCLUDED, JOIN, SQL, Case, fn

from models.db.base import database
from models.db.writer import transaction
from models.tables.ledger import AVAILABLE, FEES, HELD, Entry, LedgerAccount, LedgerDay, Posting
from models.tables.order import BUY, SELL, Order
from runtime.clock import CHINA
from services.errors import N_, OperatorError
from services.ledger.postings import OPERATOR

DAY = 86_400
AHEAD = int(CHINA.utcoffset(None).total_seconds())
AT_ONCE = 2_000  # entries that one step adds
MOST = 20_000  # entries that a reader adds itself
LONGEST = 0.9  # seconds that one run of the job takes at most
# Kinds of postings that contain fees, and the sign of the channel fee in them, which only the order shows.
WITH_FEES = {"credit": 0, "spend": 1, "spend_again": 1, "exception": 1, "return": -1}
WITH_FEES |= {"refund": 0, "refund_return": 0}  # the fee that the merchant gets back with a refund


@dataclass(frozen=True)
class DaySum:
    """Entries `first` to `last` of an account that belong to one day and one kind of posting; amounts in fen."""

    account: int
    day: int
    kind: str
    entries: int
    amount: int
    fees: int
    first: int
    last: int


def kind_of(purpose: str) -> str:
    """Return the kind of a posting: its purpose without the number of the exception or the repetition."""
    return purpose.partition(" ")[0]


def begin_of(day: int) -> int:
    """Return the Unix time at which a day begins in China."""
    return day * DAY - AHEAD


def fees_in(kind: str, order_type: int | None, posted: int, passage: int) -> int:
    """Return the fees in a merchant's posting, in fen, negative if the merchant paid them.

    Args:
        posted: the amount of the posting on the account of fees.
        passage: the order's channel fee.
    """
    if kind not in WITH_FEES or order_type not in (BUY, SELL):
        return 0
    return -posted - (passage * WITH_FEES[kind] if order_type == SELL else 0)


Fee, Sibling = Entry.alias("fee"), Entry.alias("sibling")


def entries_of(account: LedgerAccount, *columns: Any) -> Any:
    """Return the query for an account's entries with posting and order.

    `Fee` is the posting's entry of fees, `Sibling` its entry on the merchant's other account, if there is one.
    """
    other = HELD if account.kind == AVAILABLE else AVAILABLE
    ids = dict(
        LedgerAccount.select(LedgerAccount.kind, LedgerAccount.id)
        .where(
            ((LedgerAccount.kind == FEES) & (LedgerAccount.owner == OPERATOR))
            | ((LedgerAccount.kind == other) & (LedgerAccount.owner == account.owner))
        )
        .tuples()
    )
    return (
        Entry.select(*columns)
        .join(Posting)
        .join(Order, JOIN.LEFT_OUTER)
        .join(Fee, JOIN.LEFT_OUTER, on=(Fee.posting == Posting.id) & (Fee.account == ids[FEES]))
        .join(Sibling, JOIN.LEFT_OUTER, on=(Sibling.posting == Posting.id) & (Sibling.account == ids[other]))
        .where(Entry.account == account.id)
    )


def _summed(account: LedgerAccount, above: int, until: int) -> Iterator[DaySum]:
    """Yield the sums of an account's entries with numbers from `above` (excluded) to `until`."""
    # Of a posting with entries on both accounts of the merchant, the available one has the fees.
    is_main = 1 if account.kind == AVAILABLE else Case(None, [(Sibling.id.is_null(), 1)], 0)
    found = entries_of(
        account,
        (Posting.createtime + AHEAD) / DAY,
        Posting.purpose,
        Order.order_type,
        fn.COUNT(Entry.id),
        fn.SUM(Entry.amount),
        fn.SUM(fn.COALESCE(Fee.amount, 0) * is_main),
        fn.SUM(fn.COALESCE(Order.passage_amount, 0) * is_main),
        fn.MIN(Entry.number),
        fn.MAX(Entry.number),
    )
    found = found.where(Entry.number > above, Entry.number <= until)
    for row in found.group_by(*(SQL(place) for place in "123")).tuples():
        at, purpose, order_type, entries, amount, posted, passage, first, last = row
        kind = kind_of(purpose)
        fees = fees_in(kind, order_type, int(posted), int(passage))
        yield DaySum(account.id, int(at), kind, entries, int(amount), fees, first, last)


def merged(sums: Iterable[DaySum]) -> list[DaySum]:
    """Return the sums with those of the same account, day and kind added up, by day."""
    found: dict[tuple[int, int, str], DaySum] = {}
    for each in sums:
        key = each.day, each.account, each.kind
        have = found.get(key)
        found[key] = (
            each
            if have is None
            else replace(
                have,
                entries=have.entries + each.entries,
                amount=have.amount + each.amount,
                fees=have.fees + each.fees,
                first=min(have.first, each.first),
                last=max(have.last, each.last),
            )
        )
    return [found[key] for key in sorted(found)]


def reached(account: LedgerAccount) -> int:
    """Return the number of the last entry that the table of sums has."""
    sums = LedgerDay.select(fn.COALESCE(fn.SUM(LedgerDay.entries), 0))
    return int(sums.where(LedgerDay.account == account.id).scalar())


def rest(account: LedgerAccount) -> list[DaySum]:
    """Return the sums of the entries that the table lacks. Call it in a snapshot with the rows of the table.

    Raises:
        OperatorError: they are too many; the job adds them soon.
    """
    done = reached(account)
    if account.entries - done > MOST:
        raise OperatorError(N_("The statement is being prepared. Try again in a few minutes."))
    return merged(_summed(account, done, account.entries)) if done < account.entries else []


@transaction
def _add(account: LedgerAccount, done: int, sums: list[DaySum]) -> bool:
    """Add sums to the table; return False if another process has added entries meanwhile."""
    database.advisory_lock("ledger days", account.id)
    if reached(account) != done:
        return False
    added = {
        "entries": LedgerDay.entries + EXCLUDED.entries,
        "amount": LedgerDay.amount + EXCLUDED.amount,
        "fees": LedgerDay.fees + EXCLUDED.fees,
        "last": EXCLUDED.last,
    }
    rows = LedgerDay.insert_many([vars(each) for each in sums])
    rows.on_conflict(conflict_target=[LedgerDay.account, LedgerDay.day, LedgerDay.kind], update=added).execute()
    return True


def catch_up(longest: float = LONGEST, least: int = AT_ONCE) -> None:
    """Add merchants' new entries to the table, account by account, for at most `longest` seconds.

    Args:
        least: accounts with fewer new entries are left for later.
    """
    until = time.monotonic() + longest
    for account in LedgerAccount.select().where(LedgerAccount.kind.in_([AVAILABLE, HELD])):
        done = reached(account)
        while account.entries - done >= least and time.monotonic() < until:
            last = min(done + AT_ONCE, account.entries)
            if last == done or not _add(account, done, merged(_summed(account, done, last))):
                break
            done = last


def complete() -> None:
    """Add all entries to the table."""
    catch_up(longest=float("inf"), least=1)
