"""A merchant's statement of a month: opening balance, movements by the day of completion, closing balance.

Everything is read from the ledger entries of the merchant's two accounts. Months and days are those in China, as in the
statements of channels, so that every reader gets the same figures.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import accumulate
from typing import Any

from peewee import fn

from models.db.base import database
from models.tables.ledger import AVAILABLE, HELD, Entry, LedgerAccount, LedgerDay, Posting
from models.tables.merchant import Merchant
from models.tables.order import Order
from runtime import clock
from runtime.clock import CHINA
from services.errors import N_, OperatorError
from services.ledger import day_sums
from services.ledger.day_sums import DaySum, Fee, Sibling, begin_of, fees_in, kind_of

DEPOSITS, WITHDRAWALS, EXCEPTIONS, ADJUSTMENTS = GROUPS = ("deposits", "withdrawals", "exceptions", "adjustments")
GROUP_OF = {
    "credit": DEPOSITS,
    **dict.fromkeys(("hold", "release", "spend", "hold_again", "release_again", "spend_again"), WITHDRAWALS),
    **dict.fromkeys(("exception", "return"), EXCEPTIONS),
}
EPOCH = date(1970, 1, 1).toordinal()
AT_ONCE = 500  # entries that one query of the lines reads


@dataclass(frozen=True)
class Sums:
    """Changes of the balance in fen by group, before fees; `fees` are negative if the merchant paid them."""

    deposits: int = 0
    withdrawals: int = 0
    exceptions: int = 0
    adjustments: int = 0
    fees: int = 0

    @property
    def change(self) -> int:
        """The change of the balance."""
        return self.deposits + self.withdrawals + self.exceptions + self.adjustments + self.fees

    @property
    def is_empty(self) -> bool:
        """True if nothing moved the balance."""
        return not any(vars(self).values())


def _summed(sums: list[DaySum]) -> Sums:
    found = dict.fromkeys((*GROUPS, "fees"), 0)
    for each in sums:
        found[GROUP_OF.get(each.kind, ADJUSTMENTS)] += each.amount - each.fees
        found["fees"] += each.fees
    return Sums(**found)


@dataclass(frozen=True)
class Day:
    """The movements of one day, and the balance at its end."""

    day: date
    sums: Sums
    balance: int


@dataclass(frozen=True)
class Statement:
    """The statement of one month. Balances in fen are available and reserved amounts together.

    `opening_held` and `held` are the reserved parts of the balances at the beginning and at the end. `ranges` are the
    numbers of the first and last entry of each account. `is_over` is false for the current month.
    """

    merchant: Merchant
    month: date
    opening: int
    opening_held: int
    sums: Sums
    held: int
    days: list[Day]
    is_over: bool
    ranges: list[tuple[LedgerAccount, int, int]] = field(repr=False)

    @property
    def closing(self) -> int:
        """The balance at the end of the month, or now."""
        return self.opening + self.sums.change


@dataclass(frozen=True)
class Line:
    """One posting that moved the balance; amounts in fen, `fees` negative if the merchant paid them."""

    at: int
    purpose: str
    memo: str
    order_no: str
    merchant_order_no: str
    amount: int
    fees: int
    balance: int

    @property
    def gross(self) -> int:
        """The amount before fees."""
        return self.amount - self.fees


def month_of(text: str) -> date:
    """Return the first day of a month such as 2026-05. Raises OperatorError."""
    try:
        if not re.fullmatch(r"[12][0-9]{3}-[0-9]{2}", text, re.ASCII):
            raise ValueError(text)
        return date(int(text[:4]), int(text[5:]), 1)
    except ValueError:
        raise OperatorError(N_("Enter a month, such as 2026-05."), "month") from None


def next_month(month: date) -> date:
    """Return the first day of the next month."""
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def last_month() -> date:
    """Return the first day of the last month that is over in China."""
    this = this_month()
    return date(this.year - (this.month == 1), (this.month - 2) % 12 + 1, 1)


def this_month() -> date:
    """Return the first day of the current month in China."""
    return datetime.fromtimestamp(clock.now(), CHINA).date().replace(day=1)


def _number(day: date) -> int:
    return day.toordinal() - EPOCH


def months_of(merchant: Merchant) -> list[date]:
    """Return the months from the merchant's creation or first entry until now, newest first."""
    oldest = LedgerDay.select(fn.MIN(LedgerDay.day)).join(LedgerAccount)
    first = oldest.where(LedgerAccount.kind == AVAILABLE, LedgerAccount.owner == merchant.id).scalar()
    created = datetime.fromtimestamp(merchant.createtime, CHINA).date()
    day = min(created, date.fromordinal(EPOCH + first)) if first is not None else created
    found = [min(day.replace(day=1), last_month())]
    while found[-1] < this_month():
        found.append(next_month(found[-1]))
    return found[::-1]


def _accounts(merchant: Merchant) -> list[LedgerAccount]:
    own = (LedgerAccount.kind.in_([AVAILABLE, HELD]), LedgerAccount.owner == merchant.id)
    return list(LedgerAccount.select().where(*own).order_by(LedgerAccount.kind))


def of(merchant: Merchant, month: date) -> Statement:
    """Return the statement of a month.

    Raises:
        OperatorError: the sums by day are not complete yet; the text says when to try again.
    """
    since, until = _number(month), _number(next_month(month))
    with database.snapshot():
        accounts = _accounts(merchant)
        earlier = {account.id: _before(account, since) for account in accounts}
        sums = list(_within(accounts, since, until))
        for account in accounts:
            rest = day_sums.rest(account)
            earlier[account.id] += sum(each.amount for each in rest if each.day < since)
            sums += [each for each in rest if since <= each.day < until]
    sums = day_sums.merged(sums)
    held = next((account.id for account in accounts if account.kind == HELD), 0)
    opening, opening_held = sum(earlier.values()), earlier.get(held, 0)
    return Statement(
        merchant,
        month,
        opening,
        opening_held,
        _summed(sums),
        opening_held + sum(each.amount for each in sums if each.account == held),
        _by_day(sums, opening),
        next_month(month) <= this_month(),
        list(_ranges(accounts, sums)),
    )


def _before(account: LedgerAccount, day: int) -> int:
    """Return the stored sum of an account's entries before a day."""
    sums = LedgerDay.select(fn.COALESCE(fn.SUM(LedgerDay.amount), 0))
    return int(sums.where(LedgerDay.account == account.id, LedgerDay.day < day).scalar())


def _within(accounts: list[LedgerAccount], since: int, until: int) -> Iterator[DaySum]:
    for account in accounts:
        mine = (LedgerDay.account == account.id, LedgerDay.day >= since, LedgerDay.day < until)
        for row in LedgerDay.select().where(*mine).tuples():
            yield DaySum(*row)


def _by_day(sums: list[DaySum], opening: int) -> list[Day]:
    by_day: dict[int, list[DaySum]] = {}
    for each in sums:
        by_day.setdefault(each.day, []).append(each)
    found = [(day, _summed(by_day[day])) for day in sorted(by_day)]
    moved = [(day, summed) for day, summed in found if not summed.is_empty]
    balances = accumulate((summed.change for _, summed in moved), initial=opening)
    next(balances)
    return [
        Day(date.fromordinal(EPOCH + day), summed, balance)
        for (day, summed), balance in zip(moved, balances, strict=True)
    ]


def _ranges(accounts: list[LedgerAccount], sums: list[DaySum]) -> Iterator[tuple[LedgerAccount, int, int]]:
    for account in accounts:
        mine = [each for each in sums if each.account == account.id]
        if mine:
            yield account, min(each.first for each in mine), max(each.last for each in mine)


def lines(statement: Statement, day: date | None = None) -> Iterator[Line]:
    """Yield the lines of a statement, or of one day, in the order of the ledger; no query stays open between them."""
    first, last = day or statement.month, day or date.fromordinal(next_month(statement.month).toordinal() - 1)
    since, until = begin_of(_number(first)), begin_of(_number(last) + 1)
    balance = statement.opening if day is None else _opening_of(statement, day)
    ranges = statement.ranges if day is None else _narrowed(statement, day)
    for row in heapq.merge(*(_entries(*each, since, until) for each in ranges), key=lambda row: int(row[0])):
        _, _, at, purpose, memo, order_type, order_no, merchant_order_no, passage, own, posted, sibling = row
        amount = own + (sibling or 0)
        balance += amount
        if amount:
            fees = fees_in(kind_of(purpose), order_type, posted or 0, passage or 0)
            yield Line(at, purpose, memo, order_no or "", merchant_order_no or "", amount, fees, balance)


def _opening_of(statement: Statement, day: date) -> int:
    """Return the balance at the beginning of a day."""
    earlier = [each.balance for each in statement.days if each.day < day]
    return earlier[-1] if earlier else statement.opening


def _narrowed(statement: Statement, day: date) -> list[tuple[LedgerAccount, int, int]]:
    """Return the numbers of the entries of one day."""
    number = _number(day)
    with database.snapshot():
        accounts = [account for account, _, _ in statement.ranges]
        sums = list(_within(accounts, number, number + 1))
        for account in accounts:
            sums += [each for each in day_sums.rest(account) if each.day == number]
    return list(_ranges(accounts, sums))


def _entries(account: LedgerAccount, first: int, last: int, since: int, until: int) -> Iterator[Any]:
    """Yield the main entries of postings in a range of numbers and time, by number."""
    columns = (
        *(Entry.id, Entry.number, Posting.createtime, Posting.purpose, Posting.memo, Order.order_type),
        *(Order.order_no, Order.merchant_order_no, Order.passage_amount, Entry.amount, Fee.amount, Sibling.amount),
    )
    found = day_sums.entries_of(account, *columns).where(Posting.createtime >= since, Posting.createtime < until)
    if account.kind != AVAILABLE:
        found = found.where(Sibling.id.is_null())
    for start in range(first, last + 1, AT_ONCE):
        within = (Entry.number >= start, Entry.number <= min(start + AT_ONCE - 1, last))
        yield from list(found.where(*within).order_by(Entry.number).tuples())
