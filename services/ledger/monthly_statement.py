"""A merchant's statement of a month: opening balance, movements by the day of completion, closing balance.

Everything is read from the ledger entries of the merchant's two accounts. Months and days are those in China, as in the
statements of channels, so that every reader gets the same figures.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby
from typing import Any

from peewee import fn

from models.db.base import database
from models.tables.ledger import AVAILABLE, HELD, Entry, LedgerAccount, LedgerDay, Posting
from models.tables.merchant import Merchant
from models.tables.order import Order
from runtime import clock
from runtime.clock import in_china
from services.errors import N_, ApiError, Code, OperatorError
from services.ledger import day_sums
from services.ledger.day_sums import DaySum, Fee, Sibling, begin_of, fees_in, kind_of

GROUPS = ("deposits", "withdrawals", "refunds", "exceptions", "adjustments")
DEPOSITS, WITHDRAWALS, REFUNDS, EXCEPTIONS, ADJUSTMENTS = GROUPS
COMPLETED, CAME_BACK = "refund", "refund_return"  # kinds of postings of refunds that move the balance
GROUP_OF = {
    "credit": DEPOSITS,
    "hold": WITHDRAWALS,
    "release": WITHDRAWALS,
    "spend": WITHDRAWALS,
    "hold_again": WITHDRAWALS,
    "release_again": WITHDRAWALS,
    "spend_again": WITHDRAWALS,
    "refund_hold": REFUNDS,
    "refund_release": REFUNDS,
    COMPLETED: REFUNDS,
    CAME_BACK: REFUNDS,
    "exception": EXCEPTIONS,
    "return": EXCEPTIONS,
}
# Kinds of postings that move nothing: they only reserve, or end a reserve.
RESERVES = ("hold", "release", "hold_again", "release_again", "refund_hold", "refund_release")
EPOCH = date(1970, 1, 1).toordinal()
AT_ONCE = 500  # entries that one query of the lines reads


@dataclass(frozen=True)
class Sums:
    """Changes of the balance in fen by group, before fees; `fees` are negative if the merchant paid them."""

    deposits: int = 0
    withdrawals: int = 0
    refunds: int = 0
    exceptions: int = 0
    adjustments: int = 0
    fees: int = 0

    @property
    def change(self) -> int:
        """The change of the balance."""
        return sum(getattr(self, name) for name in GROUPS) + self.fees


@dataclass(frozen=True)
class Counts:
    """Numbers of lines by group: each posting that moved the balance counts once."""

    deposits: int = 0
    withdrawals: int = 0
    refunds: int = 0
    exceptions: int = 0
    adjustments: int = 0

    @property
    def total(self) -> int:
        """The number of all lines."""
        return sum(vars(self).values())


def _counted(sums: Iterable[DaySum], held: set[int]) -> Counts:
    """Return the numbers of postings in these sums; `held` are the accounts with reserved amounts."""
    found = dict.fromkeys(GROUPS, 0)
    for each in sums:
        group = GROUP_OF.get(each.kind, ADJUSTMENTS)
        if each.kind in RESERVES:
            continue
        # A refund has one entry, on either account. A payout always has one on the account with reserved amounts, and
        # with a security deposit another on the available one, where all other postings have theirs.
        if group == REFUNDS or (each.account in held) == (group == WITHDRAWALS):
            found[group] += each.entries
    return Counts(**found)


def _summed(sums: Iterable[DaySum]) -> Sums:
    found = dict.fromkeys((*GROUPS, "fees"), 0)
    for each in sums:
        found[GROUP_OF.get(each.kind, ADJUSTMENTS)] += each.amount - each.fees
        found["fees"] += each.fees
    return Sums(**found)


@dataclass(frozen=True)
class Refunds:
    """The refunds that the merchant paid for, less those that came back; amounts in fen.

    `amount` is what payers got, `fees` what the merchant got back, `deducted` their difference.
    """

    count: int = 0
    amount: int = 0
    fees: int = 0

    @property
    def deducted(self) -> int:
        """The amount that was taken from the balance."""
        return self.amount - self.fees


def _refunds(sums: Iterable[DaySum]) -> Refunds:
    found = [each for each in sums if each.kind in (COMPLETED, CAME_BACK)]
    fees = sum(each.fees for each in found)
    # Each such posting has one entry on an account of the merchant.
    count = sum(each.entries if each.kind == COMPLETED else -each.entries for each in found)
    return Refunds(count, fees - sum(each.amount for each in found), fees)


@dataclass(frozen=True)
class Day:
    """The movements of one day, and the balance at its end."""

    day: date
    sums: Sums
    counts: Counts
    balance: int


@dataclass(frozen=True)
class Statement:
    """The statement of one month. Balances in fen are available and reserved amounts together.

    `held` is the reserved part of the balance at the end. `refunds` are the parts of `sums.refunds`. `ranges` are the
    numbers of the first and last entry of each account. `is_over` is false for the current month.
    """

    merchant: Merchant
    month: date
    opening: int
    sums: Sums
    counts: Counts
    refunds: Refunds
    held: int
    days: list[Day]
    is_over: bool
    ranges: list[tuple[LedgerAccount, int, int]] = field(repr=False)

    @property
    def closing(self) -> int:
        """The balance at the end of the month, or now."""
        return self.opening + self.sums.change

    @property
    def number(self) -> str:
        """The statement's number: the merchant's key and the month."""
        return f"{self.merchant.key}-{self.month:%Y%m}"

    @property
    def last_day(self) -> date:
        """The last day of the period: that of the month, or today in the current one."""
        end = next_month(self.month) - timedelta(days=1)
        return end if self.is_over else max(self.month, min(end, in_china(clock.now()).date()))

    @property
    def is_blank(self) -> bool:
        """True if nothing moved and the balance is zero."""
        return not (self.counts.total or self.opening or self.held)


@dataclass(frozen=True)
class Line:
    """One posting that moved the balance; amounts in fen, `fees` negative if the merchant paid them.

    `number` is the account's first letter and the entry's number on it: unique for the merchant, and never changed.
    """

    number: str
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

    @property
    def kind(self) -> str:
        """The kind of the posting: its purpose without a number."""
        return kind_of(self.purpose)


def month_of(text: str) -> date:
    """Return the first day of a month such as 2026-05. Raises OperatorError if it is none, or in the future."""
    try:
        if not re.fullmatch(r"[12][0-9]{3}-[0-9]{2}", text, re.ASCII):
            raise ValueError(text)
        month = date(int(text[:4]), int(text[5:]), 1)
    except ValueError:
        raise OperatorError(N_("Enter a month, such as 2026-05."), "month") from None
    if month > this_month():
        raise OperatorError(N_("The month is in the future."), "month")
    return month


def next_month(month: date) -> date:
    """Return the first day of the next month."""
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def last_month() -> date:
    """Return the first day of the last month that is over in China."""
    this = this_month()
    return date(this.year - (this.month == 1), (this.month - 2) % 12 + 1, 1)


def this_month() -> date:
    """Return the first day of the current month in China."""
    return in_china(clock.now()).date().replace(day=1)


def _number(day: date) -> int:
    return day.toordinal() - EPOCH


def months_of(merchant: Merchant) -> list[date]:
    """Return the months from the merchant's creation or first entry until now, newest first."""
    oldest = LedgerDay.select(fn.MIN(LedgerDay.day)).join(LedgerAccount)
    first = oldest.where(LedgerAccount.kind == AVAILABLE, LedgerAccount.owner == merchant.id).scalar()
    created = in_china(merchant.createtime).date()
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
    with database.snapshot():
        accounts = _accounts(merchant)
        earlier, sums = _sums(accounts, month, next_month(month))
    opening, held = sum(earlier.values()), {account.id for account in accounts if account.kind == HELD}
    days, balance = [], opening
    for number, of_day in groupby(sums, key=lambda each: each.day):
        sums_of_day = list(of_day)
        moved, counts = _summed(sums_of_day), _counted(sums_of_day, held)
        balance += moved.change
        if counts.total:
            days.append(Day(date.fromordinal(EPOCH + number), moved, counts, balance))
    return Statement(
        merchant,
        month,
        opening,
        sums=_summed(sums),
        counts=_counted(sums, held),
        refunds=_refunds(sums),
        held=sum(earlier[account] for account in held) + sum(each.amount for each in sums if each.account in held),
        days=days,
        is_over=next_month(month) <= this_month(),
        ranges=_ranges(accounts, sums),
    )


def _sums(accounts: list[LedgerAccount], first: date, end: date) -> tuple[dict[int, int], list[DaySum]]:
    """Return the sum of each account's entries before the first day, and the sums from then until before `end`.

    Call it in a snapshot with the accounts.
    """
    since, until = _number(first), _number(end)
    earlier: dict[int, int] = {}
    sums: list[DaySum] = []
    for account in accounts:
        own = LedgerDay.account == account.id
        before = LedgerDay.select(fn.COALESCE(fn.SUM(LedgerDay.amount), 0)).where(own, LedgerDay.day < since)
        within = LedgerDay.select().where(own, LedgerDay.day >= since, LedgerDay.day < until)
        rest = day_sums.rest(account)
        earlier[account.id] = int(before.scalar()) + sum(each.amount for each in rest if each.day < since)
        sums += [DaySum(*row) for row in within.tuples()]
        sums += [each for each in rest if since <= each.day < until]
    return earlier, day_sums.merged(sums)


def _ranges(accounts: list[LedgerAccount], sums: list[DaySum]) -> list[tuple[LedgerAccount, int, int]]:
    """Return the numbers of the first and last entry in these sums of each account that has any."""
    found = []
    for account in accounts:
        mine = [each for each in sums if each.account == account.id]
        if mine:
            found.append((account, min(each.first for each in mine), max(each.last for each in mine)))
    return found


def of_all(month: date) -> list[Statement]:
    """Return the statements of all merchants with a balance or movements in this month, by key.

    Raises:
        OperatorError: as `of` does.
    """
    statements = (of(merchant, month) for merchant in Merchant.select().order_by(Merchant.key))
    return [statement for statement in statements if not statement.is_blank]


def lines(statement: Statement, day: date | None = None, *, since: date | None = None) -> Iterator[Line]:
    """Yield the lines of a statement in the order of the ledger; no query stays open between them.

    Args:
        day: only the lines of this day.
        since: only the lines from this day on.
    """
    first, end = statement.month, next_month(statement.month)
    balance, ranges = statement.opening, statement.ranges
    if day or since:
        first = day or since or first
        end = day + timedelta(days=1) if day else end
        balance = next((each.balance for each in reversed(statement.days) if each.day < first), balance)
        with database.snapshot():
            accounts = [account for account, _, _ in ranges]
            ranges = _ranges(accounts, _sums(accounts, first, end)[1])
    begin, until = begin_of(_number(first)), begin_of(_number(end))
    for row in heapq.merge(*(_entries(*each, begin, until) for each in ranges), key=lambda row: int(row[0])):
        _, number, at, purpose, memo, order_type, order_no, merchant_order_no, passage, own, posted, sibling, kind = row
        amount = own + (sibling or 0)
        balance += amount
        if amount:
            fees = fees_in(kind_of(purpose), order_type, posted or 0, passage or 0)
            name = f"{kind[0]}{number}"
            yield Line(name, at, purpose, memo, order_no or "", merchant_order_no or "", amount, fees, balance)


def lines_after(statement: Statement, number: str) -> Iterator[Line]:
    """Return the lines that follow the one with this number.

    Raises:
        ApiError: Code.LINE_NOT_FOUND, it is not a line of the statement.
    """
    named = re.fullmatch(r"([ah])([1-9][0-9]{0,17})", number, re.ASCII)
    accounts = [account for account, _, _ in statement.ranges if named and account.kind[0] == named[1]]
    entry = Entry.select(Entry, Posting).join(Posting).where(Entry.account.in_(accounts))
    found = entry.where(Entry.number == int(named[2])).first() if named and accounts else None
    day = in_china(found.posting.createtime).date() if found else None
    if day and day.replace(day=1) == statement.month:
        rest = lines(statement, since=day)
        for line in rest:
            if line.number == number:
                return rest
            if in_china(line.at).date() != day:
                break
    raise ApiError(Code.LINE_NOT_FOUND)


def _entries(account: LedgerAccount, first: int, last: int, since: int, until: int) -> Iterator[Any]:
    """Yield the main entries of postings in a range of numbers and time, by number."""
    posting = (Posting.createtime, Posting.purpose, Posting.memo)
    order = (Order.order_type, Order.order_no, Order.merchant_order_no, Order.passage_amount)
    amounts = (Entry.amount, Fee.amount, Sibling.amount)
    found = day_sums.entries_of(account, Entry.id, Entry.number, *posting, *order, *amounts)
    found = found.where(Posting.createtime >= since, Posting.createtime < until)
    if account.kind != AVAILABLE:
        found = found.where(Sibling.id.is_null())
    for start in range(first, last + 1, AT_ONCE):
        within = (Entry.number >= start, Entry.number <= min(start + AT_ONCE - 1, last))
        yield from [(*row, account.kind) for row in found.where(*within).order_by(Entry.number).tuples()]
