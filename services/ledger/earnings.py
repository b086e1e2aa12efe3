"""What the operator earned: fees less channel costs, by day of booking in China, merchant, channel and method.

Everything is read from the ledger: fees from the account of fees, costs from that of commission, and counts and volumes
from the clearing accounts of the channels. Each entry adds to one row of the table EarningsDay. A job adds new entries
in the order of their numbers, and a reader adds those that the job has not reached.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import reduce
from operator import add, or_
from typing import Any

from peewee import EXCLUDED, JOIN, SQL, fn

from models.db.base import database
from models.db.compiled import compiled
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.earnings import EarningsDay, EarningsProgress
from models.tables.ledger import CLEARING, COMMISSION, FEES, Entry, LedgerAccount, Posting
from models.tables.merchant import Merchant
from models.tables.order import BUY, SELL, Order
from runtime import clock
from runtime.clock import in_china
from runtime.money import hundredths
from services.errors import N_, OperatorError
from services.ledger import postings
from services.ledger.day_sums import AHEAD, DAY, LONGEST, WITH_FEES, kind_of
from services.ledger.monthly_statement import EPOCH, next_month, this_month

AT_ONCE = 2_000  # entries of an account that one step adds
LEAST = 500  # new entries of all accounts from which the job adds them
MOST = 20_000  # entries that a reader adds itself

# Kinds of rows. Corrections are postings by a channel's bill, without an order. All other postings are adjustments:
# manual ones, and removed sandbox money.
DEPOSIT, WITHDRAWAL, REFUND, CORRECTION, ADJUSTMENT = ("deposit", "withdrawal", "refund", "correction", "adjustment")
KINDS = {
    "credit": DEPOSIT,
    "spend": WITHDRAWAL,
    "spend_again": WITHDRAWAL,
    "return": WITHDRAWAL,
    "refund": REFUND,
    "refund_return": REFUND,
    postings.BILL_COSTS: CORRECTION,
}
TAKEN_BACK = ("return", "refund_return")  # purposes that reverse a withdrawal or a refund
GROUPS = ("day", "merchant", "channel", "method")

Key = tuple[int, int, int, str, str]  # day, merchant, channel, method and kind: the key of EarningsDay
Amounts = tuple[int, ...]  # count, volume, fees and costs
Span = tuple[LedgerAccount, int, int]  # entries of an account: above this number, until that one


@dataclass(frozen=True)
class Earned:
    """Sums of some postings, in fen.

    Deposits are credited ones, withdrawals paid out ones, less those that came back; both before fees. `fees` are those
    that merchants paid, less those returned with refunds and less refunds that the platform paid: `given_back`.
    `costs` are what channels kept, with the `corrections` by bills of earlier days.
    """

    deposits: int = 0
    deposited: int = 0
    withdrawals: int = 0
    withdrawn: int = 0
    refunds: int = 0
    refunded: int = 0
    fees: int = 0
    given_back: int = 0
    costs: int = 0
    corrections: int = 0

    def __add__(self, other: Earned) -> Earned:
        return Earned(*map(add, vars(self).values(), vars(other).values()))

    @property
    def net(self) -> int:
        """What the operator earned."""
        return self.fees - self.costs


@dataclass(frozen=True)
class Line:
    """The sums of one group. What the lines are not grouped by is None, and so are parts that the postings lack.

    `is_adjustment`: it has the manual adjustments only, and of the groups at most the day.
    """

    day: date | None
    merchant: int | None
    channel: int | None
    method: str | None
    is_adjustment: bool
    sums: Earned


# The sums of new entries


@compiled
def _summed(accounts: tuple[int, ...], above: tuple[int, ...], until: tuple[int, ...]) -> Any:
    """Entries of accounts, each with numbers from `above` (excluded) to `until`, by the facts that their rows need."""
    through, clearing = Entry.alias(), LedgerAccount.alias()
    channel = (
        through.select(fn.MIN(clearing.owner))
        .join(clearing, on=(through.account == clearing.id))
        .where(through.posting == Posting.id, clearing.kind == CLEARING)
    )
    keys = (
        Entry.account,
        (Posting.createtime + AHEAD) / DAY,
        fn.COALESCE(Order.merchant, 0),
        fn.COALESCE(Order.channel, channel, 0),
        fn.COALESCE(Order.payment_method, ""),
        Posting.purpose,
        Order.order_type,
    )
    found = Entry.select(*keys, fn.COUNT(Entry.id), fn.SUM(Entry.amount), fn.SUM(fn.COALESCE(Order.passage_amount, 0)))
    found = found.join(Posting).join(Order, JOIN.LEFT_OUTER)
    spans = [
        (Entry.account == account) & (Entry.number > first) & (Entry.number <= last)
        for account, first, last in zip(accounts, above, until, strict=True)
    ]
    found = found.where(reduce(or_, spans))
    return found.group_by(*(SQL(str(place)) for place in range(1, len(keys) + 1)))


def _rows(spans: Sequence[Span]) -> Iterator[tuple[Key, Amounts]]:
    """Yield what these entries add to rows of EarningsDay."""
    if not spans:
        return
    accounts = {account.id: account for account, _, _ in spans}
    found = _summed(tuple(accounts), tuple(above for _, above, _ in spans), tuple(until for _, _, until in spans))
    for number, day, merchant, channel, method, purpose, order_type, entries, amount, passage in found:
        account = accounts[number]
        name, fen = kind_of(purpose), int(amount)
        kind = KINDS.get(name, ADJUSTMENT)
        if name == "exception":
            kind = DEPOSIT if order_type == BUY else WITHDRAWAL
        fees, costs = fen if account.kind == FEES else 0, -fen if account.kind == COMMISSION else 0
        count = volume = 0
        # What a payer paid, or a payee received, went through clearing before the channel's cost. A channel fee, too,
        # but it is no part of the order.
        if account.kind != FEES and kind in (DEPOSIT, WITHDRAWAL, REFUND):
            volume = -fen if kind == DEPOSIT else fen
        if account.kind == CLEARING and kind in (DEPOSIT, WITHDRAWAL, REFUND):
            count = -entries if name in TAKEN_BACK else entries
            volume -= int(passage) * WITH_FEES.get(name, 0) if order_type == SELL else 0
        if any((count, volume, fees, costs)):
            whose = (0, 0, "") if kind == ADJUSTMENT else (merchant, channel, method)
            yield (int(day), *whose, kind), (count, volume, fees, costs)


def _merged(rows: Iterable[tuple[Key, Amounts]]) -> dict[Key, Amounts]:
    found: dict[Key, Amounts] = {}
    for key, amounts in rows:
        found[key] = tuple(map(add, found[key], amounts)) if key in found else amounts
    return found


def _accounts() -> list[tuple[LedgerAccount, int]]:
    """Return the accounts to sum, each with the number of its last entry that the table has."""
    rows = LedgerAccount.select().where(LedgerAccount.kind.in_([FEES, COMMISSION, CLEARING])).order_by(LedgerAccount.id)
    done = dict(EarningsProgress.select(EarningsProgress.account, EarningsProgress.entries).tuples())
    return [(row, done.get(row.id, 0)) for row in rows]


def _rest() -> dict[Key, Amounts]:
    """Return what the entries that the table lacks add to it. Call it in a snapshot with the rows of the table.

    Raises:
        OperatorError: they are too many; the job adds them soon.
    """
    accounts = _accounts()
    if sum(account.entries - done for account, done in accounts) > MOST:
        raise OperatorError(N_("The earnings are being prepared. Try again in a few minutes."))
    return _merged(_rows([(account, done, account.entries) for account, done in accounts if done < account.entries]))


@transaction
def _add(account: LedgerAccount, done: int, last: int, rows: dict[Key, Amounts]) -> bool:
    """Add the sums of entries `done` (excluded) to `last`; return False if another process has added entries."""
    database.advisory_lock("earnings")
    if dict(_accounts())[account] != done:
        return False
    table = EarningsDay
    if rows:
        key = (table.day, table.merchant, table.channel, table.method, table.kind)
        added = {each.name: each + getattr(EXCLUDED, each.name) for each in _SUMS}
        values = [(*each, *amounts) for each, amounts in rows.items()]
        table.insert_many(values, fields=[*key, *_SUMS]).on_conflict(conflict_target=key, update=added).execute()
    progress = EarningsProgress.insert(account=account.id, entries=last)
    progress.on_conflict(conflict_target=[EarningsProgress.account], update={"entries": EXCLUDED.entries}).execute()
    return True


_SUMS = (EarningsDay.count, EarningsDay.volume, EarningsDay.fees, EarningsDay.costs)


def catch_up(longest: float = LONGEST, least: int = LEAST) -> None:
    """Add new entries to the table for at most `longest` seconds, unless they are fewer than `least`."""
    until = time.monotonic() + longest
    accounts = _accounts()
    if sum(account.entries - done for account, done in accounts) < least:
        return
    for account, done in accounts:
        while done < account.entries and time.monotonic() < until:
            last = min(done + AT_ONCE, account.entries)
            if not _add(account, done, last, _merged(_rows([(account, done, last)]))):
                break
            done = last


def complete() -> None:
    """Add all entries to the table."""
    catch_up(longest=float("inf"), least=1)


# Readers


def _earned(kind: str, count: int, volume: int, fees: int, costs: int) -> Earned:
    """Return the sums of rows of one kind."""
    if kind == DEPOSIT:
        return Earned(count, volume, fees=fees, costs=costs)
    if kind == WITHDRAWAL:
        return Earned(withdrawals=count, withdrawn=volume, fees=fees, costs=costs)
    if kind == REFUND:
        return Earned(refunds=count, refunded=volume, fees=fees, given_back=-fees, costs=costs)
    return Earned(fees=fees, costs=costs, corrections=costs if kind == CORRECTION else 0)


def lines(since: date | None, until: date | None, by: Collection[str] = ()) -> list[Line]:
    """Return the sums of a range of days in China, both included, by some of GROUPS, in the order of the groups.

    Manual adjustments are lines of their own, after those of their day.

    Args:
        since, until: None for no bound.

    Raises:
        OperatorError: the first day is after the last one (`until`), or the sums are not complete yet; the text says
        when to try again.
    """
    if since and until and since > until:
        raise OperatorError(N_("The first day is after the last one."), "until")
    first = since.toordinal() - EPOCH if since else -EPOCH
    last = until.toordinal() - EPOCH if until else date.max.toordinal()
    table = EarningsDay
    # Parts that the lines are not grouped by have the value of rows without one.
    columns = [getattr(table, name) if name in by else SQL("''" if name == "method" else "0") for name in GROUPS]
    kept = table.select(*columns, table.kind, *(fn.SUM(each) for each in _SUMS))
    kept = kept.where(table.day >= first, table.day <= last)
    kept = kept.group_by(*(getattr(table, name) for name in GROUPS if name in by), table.kind)
    with database.snapshot():
        rows = list(kept.tuples())
        rest = _rest()
    for (day, merchant, channel, method, kind), amounts in rest.items():
        if first <= day <= last:
            whole = {"day": day, "merchant": merchant, "channel": channel, "method": method}
            parts = [whole[name] if name in by else "" if name == "method" else 0 for name in GROUPS]
            rows.append((*parts, kind, *amounts))
    sums: dict[tuple[Any, ...], Earned] = {}
    for day, merchant, channel, method, kind, *amounts in rows:
        place = (day, kind == ADJUSTMENT, merchant, channel, method)
        earned, have = _earned(kind, *map(int, amounts)), sums.get(place)
        sums[place] = earned if have is None else have + earned
    return [
        Line(
            date.fromordinal(EPOCH + day) if "day" in by else None,
            merchant or None,
            channel or None,
            method or None,
            is_adjustment,
            each,
        )
        for (day, is_adjustment, merchant, channel, method), each in sorted(sums.items())
        if each != Earned()
    ]


def total(found: Iterable[Line]) -> Earned:
    """Return the sums of all lines."""
    return sum((line.sums for line in found), Earned())


def by_day(since: date, until: date) -> dict[date, Earned]:
    """Return the sums of each day of a range that has any, adjustments included. Raises OperatorError as `lines`."""
    found: dict[date, Earned] = {}
    for line in lines(since, until, ["day"]):
        assert line.day is not None
        found[line.day] = found.get(line.day, Earned()) + line.sums
    return found


def today() -> date:
    """Return the current day in China."""
    return in_china(clock.now()).date()


def months() -> list[date]:
    """Return the months from the first day with sums until now, newest first."""
    first = EarningsDay.select(fn.MIN(EarningsDay.day)).scalar()
    found = [min(date.fromordinal(EPOCH + first).replace(day=1), this_month()) if first is not None else this_month()]
    while found[-1] < this_month():
        found.append(next_month(found[-1]))
    return found[::-1]


def last_day(month: date) -> date:
    """Return the last day of a month."""
    return next_month(month) - timedelta(1)


# The table as CSV

COLUMNS = (
    *("line", "day", "merchant", "merchant_name", "channel", "channel_name", "method"),
    *("deposits", "deposits_amount", "withdrawals", "withdrawals_amount", "refunds", "refunds_amount"),
    *("fees", "fees_given_back", "costs", "net"),
)


def table(found: Sequence[Line]) -> Iterator[tuple[Any, ...]]:
    """Yield the names of the columns, then a row for each line, in yuan.

    `line` is "adjustments" for manual adjustments and "orders" for all others. `fees_given_back` are part of `fees`.
    """
    yield COLUMNS
    merchants = {row.id: row for row in Merchant.select(Merchant.id, Merchant.key, Merchant.name)}
    channels = dict(Channel.select(Channel.id, Channel.name).tuples())
    for line in found:
        sums, merchant = line.sums, merchants.get(line.merchant)
        yield (
            "adjustments" if line.is_adjustment else "orders",
            line.day or "",
            *((merchant.key, merchant.name) if merchant else ("", "")),
            line.channel or "",
            channels.get(line.channel, ""),
            line.method or "",
            *(sums.deposits, hundredths(sums.deposited), sums.withdrawals, hundredths(sums.withdrawn)),
            *(sums.refunds, hundredths(sums.refunded)),
            *map(hundredths, (sums.fees, sums.given_back, sums.costs, sums.net)),
        )
