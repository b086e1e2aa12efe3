"""Ledger integrity check: recompute every balance from the entries and verify each account's hash chain."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import groupby, islice
from operator import itemgetter, or_
from typing import IO, Any

from peewee import JOIN, Case, fn

from models.db.base import LARGEST_ID, database
from models.db.compiled import Compiled, compiled, compiled_rows
from models.db.hash_chain import Chain, Facts
from models.tables.earnings import EarningsDay, EarningsProgress
from models.tables.ledger import (
    AVAILABLE,
    COMMISSION,
    FEES,
    HELD,
    OF_MERCHANTS,
    Entry,
    LedgerAccount,
    LedgerDay,
    Posting,
)
from models.tables.order import BUY, CANCELLED, COMPLETED, SELL, Order
from models.tables.refund import BALANCE, OPEN, Refund
from services.errors import N_, OperatorError
from services.ledger import postings
from services.ledger.postings import HOLD_AGAIN, OPERATOR, RELEASE_AGAIN, SPEND_AGAIN, Account

Heads = dict[Account, tuple[int, str]]  # by account: the number of entries and the hash of the newest
Found = Iterator[str]
Check = Callable[[], Found]

ENTRIES_AT_ONCE = 5_000
LINES = 100  # failures that a check lists; it counts the others

_COLUMNS = (Entry.id, Entry.account, Entry.number, Entry.hash, Entry.amount)
_FACTS = (Entry.posting, Order.order_no, Posting.purpose, Posting.who, Posting.memo, Posting.createtime)


@compiled
def _next_entries(last: int) -> Any:
    entries = Entry.select(*_COLUMNS, *_FACTS).join(Posting, JOIN.LEFT_OUTER).join(Order, JOIN.LEFT_OUTER)
    return entries.where(Entry.id > last).order_by(Entry.id).limit(ENTRIES_AT_ONCE)


def _entries() -> Iterator[tuple[Any, ...]]:
    """Yield all entries in the order in which they were written, with the facts of their postings."""
    last = -LARGEST_ID - 1
    while rows := _next_entries(last):
        yield from rows
        last = rows[-1][0]


@compiled_rows(LedgerAccount)
def _accounts() -> Any:
    return LedgerAccount.select()


def _broken_chains() -> Found:
    accounts = _accounts()
    chains = {account.id: Chain(account.kind, account.owner) for account in accounts}
    for _, account, number, written, amount, *facts in _entries():
        chain = chains.get(account)
        if chain is None:
            continue  # the check for entries without an account reports it
        if number != chain.number + 1:
            yield f"account {chain.kind} {chain.owner}: entry {number} comes after entry {chain.number}"
        elif chain.append(amount, Facts(*facts))["hash"] != written:
            yield f"account {chain.kind} {chain.owner}: entry {number} or its posting {facts[0]} was changed"
        # Continue from the stored value, so that one wrong entry is reported once; an edited value may be text, too.
        chain.number, chain.head = number if isinstance(number, int) else chain.number + 1, written
    for account in accounts:
        chain = chains[account.id]
        if account.entries != chain.number:
            yield f"account {chain.kind} {chain.owner} had {account.entries} entries, the last is entry {chain.number}"
        elif account.head != chain.head:
            yield f"account {chain.kind} {chain.owner} does not end with its newest entry, {chain.number}"


def head_rows() -> list[dict[str, Any]]:
    """Return the length and last hash of each account's chain, in the form that `read_heads` reads from JSON.

    Store them out of reach of the database's users.
    """
    rows = LedgerAccount.select().order_by(LedgerAccount.id)
    return [{"kind": row.kind, "owner": row.owner, "entries": row.entries, "head": row.head} for row in rows]


def read_heads(file: IO[str]) -> Heads:
    """Read heads that `tillbook ledger checkpoints --json` wrote. Raises OperatorError if the file contains none."""
    try:
        kept = {(str(row["kind"]), int(row["owner"])): (int(row["entries"]), row["head"]) for row in json.load(file)}
    except (ValueError, TypeError, KeyError):
        kept = {}
    if not kept:
        raise OperatorError("the file is not the output of `tillbook ledger checkpoints --json`")
    return kept


def _changed_since(kept: Heads) -> Found:
    for (kind, owner), (number, head) in kept.items():
        account = LedgerAccount.get_or_none(LedgerAccount.kind == kind, LedgerAccount.owner == owner)
        if account is None:
            yield f"account {kind} {owner} is missing"
        elif number:
            entry = Entry.get_or_none(Entry.account == account, Entry.number == number)
            if entry is None:
                yield f"account {kind} {owner}: entry {number} is missing"
            elif entry.hash != head:
                yield f"account {kind} {owner}: entry {number} was replaced"


def _rows(text: str, query: Callable[[], Any]) -> Check:
    """A check of which each row of the query is a failure; its values are filled into the text."""
    rows = Compiled(query)

    def check() -> Found:
        for row in rows():
            yield text.format(*row)

    return check


_orphans = _rows(
    "entry {} has no posting or no account",
    lambda: (
        Entry.select(Entry.id)
        .join(Posting, JOIN.LEFT_OUTER)
        .switch(Entry)
        .join(LedgerAccount, JOIN.LEFT_OUTER)
        .where(Posting.id.is_null() | LedgerAccount.id.is_null())
    ),
)
_moved = fn.SUM(Entry.amount)
_unbalanced_postings = _rows(
    "posting {} sums to {} fen, not 0",
    lambda: Entry.select(Entry.posting, _moved).group_by(Entry.posting).having(_moved != 0),
)
_total = fn.COALESCE(_moved, 0)
_off_balance = _rows(
    "account {} {} has {} fen, but its entries sum to {}",
    lambda: (
        LedgerAccount.select(LedgerAccount.kind, LedgerAccount.owner, LedgerAccount.balance, _total)
        .join(Entry, JOIN.LEFT_OUTER)
        .group_by(LedgerAccount.id)
        .having(LedgerAccount.balance != _total)
    ),
)
_overdrawn = _rows(
    "account {} {} is negative: {} fen",
    lambda: LedgerAccount.select(LedgerAccount.kind, LedgerAccount.owner, LedgerAccount.balance).where(
        LedgerAccount.kind.in_([AVAILABLE, HELD]), LedgerAccount.balance < 0
    ),
)


def _moved_otherwise(purpose: str, kind: str, expected: Any) -> Check:
    """A check that each posting with this purpose moves what is expected on its merchant's account of this kind, or on
    the operator's."""
    whose, owner = ("its merchant's", Order.merchant) if kind in OF_MERCHANTS else ("the operator's", OPERATOR)
    own = (LedgerAccount.kind == kind) & (LedgerAccount.owner == owner)
    return _rows(
        f"order {{}}: its {purpose} moved {{}} fen of {whose} {kind} balance",
        lambda: (
            Posting.select(Order.order_no, _total)
            .join(Order)
            .join(LedgerAccount, JOIN.LEFT_OUTER, on=own)
            .join(Entry, JOIN.LEFT_OUTER, on=((Entry.posting == Posting.id) & (Entry.account == LedgerAccount.id)))
            # Repeatable purposes, such as `hold_again 1`, move the same amounts.
            .where(Posting.purpose.startswith(purpose))
            .group_by(Posting.id, Order.id)
            .having(_total != expected)
        ),
    )


_everything = Order.merchant_actual_amount + Order.deposit_amount


def _orders_off(ending: str, order_type: int, purpose: str, status: str) -> Check:
    """A check for orders of which exactly one is true: they have this status, or they have this posting."""
    has = Posting.id.is_null(False)
    return _rows(
        f"order {{}} {{}} {ending}, against its status",
        lambda: (
            Order.select(Order.order_no, Case(None, [(has, "was")], "was not"))
            .join(Posting, JOIN.LEFT_OUTER, on=((Posting.order == Order.id) & (Posting.purpose == purpose)))
            .where(Order.order_type == order_type, ((Order.status == status) & ~has) | ((Order.status != status) & has))
        ),
    )


def _by_merchant(*conditions: Any) -> Compiled:
    """A query for the reserved amounts of withdrawals that match the conditions, by merchant."""
    withdrawals = Order.select(Order.merchant, fn.SUM(_everything)).where(Order.order_type == SELL, *conditions)
    return Compiled(lambda: withdrawals.group_by(Order.merchant))


def _posted(*purposes: str) -> Any:
    """A query for the number of an order's postings with one of these repeatable purposes."""
    alike = reduce(or_, (Posting.purpose.startswith(f"{purpose} ") for purpose in purposes))
    return Posting.select(fn.COUNT(Posting.id)).where(Posting.order == Order.id, alike)


def _by_refunds() -> Any:
    open_ones = Refund.select(Refund.merchant, fn.SUM(Refund.merchant_actual_amount))
    return open_ones.where(Refund.status.in_(OPEN), Refund.paid_from == BALANCE).group_by(Refund.merchant)


_holding = (
    _by_merchant(Order.status.not_in([COMPLETED, CANCELLED])),
    _by_merchant(Order.status.in_([COMPLETED, CANCELLED]), _posted(HOLD_AGAIN) > _posted(SPEND_AGAIN, RELEASE_AGAIN)),
    Compiled(_by_refunds),
)


@compiled
def _held() -> Any:
    return LedgerAccount.select(LedgerAccount.owner, LedgerAccount.balance).where(LedgerAccount.kind == HELD)


def _wrong_holds() -> Found:
    expected: Counter[int] = Counter()
    for reserved in _holding:
        expected.update(dict(reserved()))
    for owner, balance in _held():
        if balance != expected[owner]:
            there = f"account held {owner} has {balance} fen"
            yield f"{there}, but the open withdrawals and refunds sum to {expected[owner]}"


OF_REFUNDS = ("refund_hold", "refund", "refund_release", "refund_return")  # purposes of postings
Moved = Iterator[tuple[int, str, Account, int, int]]  # order and its number, account, fen expected and posted


def _expected_of_refunds() -> Moved:
    """Yield what the refunds of each order must have moved, by order."""
    refunds = Refund.select(Refund, Order).join(Order).where(Refund.status != CANCELLED)
    for refund in refunds.order_by(Refund.order).iterator():
        order = refund.order
        for account, fen in postings.refund(refund, order, "", refund.status).items():
            yield order.id, order.order_no, account, fen, 0


def _posted_for_refunds() -> Moved:
    """Yield what the postings of refunds moved, by order."""
    purposes = reduce(or_, (Posting.purpose.startswith(f"{purpose} ") for purpose in OF_REFUNDS))
    moved = Entry.select(Order.id, Order.order_no, LedgerAccount.kind, LedgerAccount.owner, fn.SUM(Entry.amount))
    moved = moved.join(Posting).join(Order).switch(Entry).join(LedgerAccount).where(purposes)
    moved = moved.group_by(Order.id, Order.order_no, LedgerAccount.id).order_by(Order.id)
    for order_id, order_no, kind, owner, fen in moved.tuples().iterator():
        yield order_id, order_no, (kind, owner), 0, int(fen)


def _wrong_refunds() -> Found:
    both = heapq.merge(_expected_of_refunds(), _posted_for_refunds(), key=itemgetter(0))
    for (_, order_no), of_order in groupby(both, key=itemgetter(0, 1)):
        expected: Counter[Account] = Counter()
        posted: Counter[Account] = Counter()
        for _, _, account, must, moved in of_order:
            expected[account] += must
            posted[account] += moved
        for account in sorted(expected.keys() | posted.keys()):
            if posted[account] != expected[account]:
                moved_here = f"{posted[account]} fen of account {account[0]} {account[1]}"
                yield f"order {order_no}: its refunds moved {moved_here}, not {expected[account]}"


def _sum_of(value: Any, *conditions: Any) -> Any:
    return fn.COALESCE(value.model.select(fn.SUM(value)).where(value.model.account == LedgerAccount.id, *conditions), 0)


_by_day, _days_entries = _sum_of(LedgerDay.amount), _sum_of(LedgerDay.entries)
_of_entries = _sum_of(Entry.amount, Entry.number <= _days_entries)
_wrong_day_sums = _rows(
    "account {} {}: its sums by day are {} fen, but its first {} entries sum to {}",
    lambda: (
        LedgerAccount.select(LedgerAccount.kind, LedgerAccount.owner, _by_day, _days_entries, _of_entries)
        .where(LedgerAccount.kind.in_([AVAILABLE, HELD]), _by_day != _of_entries)
        .order_by(LedgerAccount.id)
    ),
)

_earned = {FEES: EarningsDay.fees, COMMISSION: 0 - EarningsDay.costs}
_last_earned = EarningsProgress.select(EarningsProgress.entries).where(EarningsProgress.account == LedgerAccount.id)


def _wrong_earnings(kind: str) -> Check:
    """A check that the earnings by day have all entries of this account up to the last one that they should have."""
    last = fn.COALESCE(_last_earned, 0)
    by_day = fn.COALESCE(EarningsDay.select(fn.SUM(_earned[kind])), 0)
    of_entries = _sum_of(Entry.amount, Entry.number <= last)
    return _rows(
        "the earnings have {} fen of account {}, but its first {} entries sum to {}",
        lambda: LedgerAccount.select(by_day, LedgerAccount.kind, last, of_entries).where(
            LedgerAccount.kind == kind, by_day != of_entries
        ),
    )


CHECKS: dict[str, tuple[Check, ...]] = {
    N_("every entry has a posting and an account"): (_orphans,),
    N_("entries are chained without gaps up to the account's checkpoint"): (_broken_chains,),
    N_("postings sum to zero"): (_unbalanced_postings,),
    N_("balances equal their entries"): (_off_balance, _overdrawn),
    N_("postings match their orders"): (
        _moved_otherwise("credit", AVAILABLE, Order.merchant_actual_amount),
        _moved_otherwise("credit", COMMISSION, 0 - Order.cost_amount),
        _moved_otherwise("hold", AVAILABLE, 0 - _everything),
        _moved_otherwise("hold", HELD, _everything),
        _moved_otherwise("spend", HELD, 0 - _everything),
        _moved_otherwise("release", HELD, 0 - _everything),
        _moved_otherwise("release", AVAILABLE, _everything),
        _moved_otherwise("return", AVAILABLE, Order.merchant_actual_amount),
    ),
    N_("reserved balances equal the open withdrawals and refunds"): (_wrong_holds,),
    N_("refunds match their postings"): (_wrong_refunds,),
    N_("sums by day equal their entries"): (_wrong_day_sums, *map(_wrong_earnings, _earned)),
    N_("completed deposits are credited, no others"): (_orders_off("credited", BUY, "credit", COMPLETED),),
    N_("completed withdrawals are spent, no others"): (_orders_off("spent", SELL, "spend", COMPLETED),),
    N_("cancelled withdrawals are released, no others"): (_orders_off("released", SELL, "release", CANCELLED),),
}


def checks(kept: Heads | None = None) -> dict[str, tuple[Check, ...]]:
    """Return all checks by name, and one more if stored heads are given."""
    if not kept:
        return CHECKS
    return CHECKS | {"entries go back to the heads that were kept": (lambda: _changed_since(kept),)}


def verify(kept: Heads | None = None) -> Iterator[tuple[str, list[str]]]:
    """Recompute everything from the entries; yield each check's name and its failures."""
    with database.snapshot():
        for name, parts in checks(kept).items():
            found = (line for check in parts for line in check())
            lines = list(islice(found, LINES))
            more = sum(1 for _ in found)
            yield name, [*lines, f"and {more} more"] if more else lines
