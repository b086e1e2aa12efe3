"""What each channel's account should hold by the books, beside what the channel says that it holds.

An account also has money that never passed this service, such as its opening balance. So every figure of the channel
keeps its difference to the books, and an operator explains a difference once: only its later changes are open.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from peewee import SQL, fn

from models.db.base import database
from models.db.writer import transaction
from models.queries import time_bisect
from models.tables.account_balance import BILL, BY_OPERATOR, AccountBalance
from models.tables.channel import GROUP, Channel
from models.tables.ledger import CLEARING, Entry, LedgerAccount, Posting
from models.tables.merchant import Merchant
from models.tables.order import (
    BUY,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAYOUT_CONFLICT,
    PAYOUT_IN_PROGRESS,
    REVERSED,
    SELL,
    History,
    Order,
    PaymentException,
)
from models.tables.payout_batch import DISCARDED, PayoutBatchLine
from models.tables.refund import BALANCE, UNCREDITED, Refund, RefundHistory
from runtime import clock
from runtime.clock import in_china
from runtime.money import grouped
from services.channels.calls import call_driver, driver_of
from services.errors import N_, OperatorError
from services.ledger.postings import BILL_COSTS
from services.orders.next_step import manual_channels
from services.statements.compare_file import DAY, begin_of

FLOW = "service"  # who recorded a figure of the channel's flow


@dataclass(frozen=True)
class Expected:
    """What a channel's account should hold, in fen: the sum of four lines, each of which may be negative.

    `booked` is the money of the ledger: credited deposits less refunds, payouts and costs. `uncredited` was received
    and is credited after the settlement delay. `questioned` is in open exceptions. `under_way` are payouts and refunds
    that were sent and have no final result. `unknown` counts open exceptions that may change the sum by an amount that
    the channel has not reported.
    """

    booked: int = 0
    uncredited: int = 0
    questioned: int = 0
    under_way: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        """The sum of the lines."""
        return self.booked + self.uncredited + self.questioned + self.under_way


@dataclass(frozen=True)
class Account:
    """A channel's account: what it should hold now, and all figures of the channel, newest first."""

    channel: Channel
    expected: Expected
    figures: list[AccountBalance]

    @property
    def last(self) -> AccountBalance | None:
        """The newest figure."""
        return self.figures[0] if self.figures else None

    @property
    def is_explained(self) -> bool:
        """True if an operator has ever explained a difference, so that the opening balance is known."""
        return any(figure.note for figure in self.figures)

    @cached_property
    def _unexplained(self) -> dict[str, int]:
        explained, found = 0, {}
        for figure in reversed(self.figures):
            if figure.note:
                explained = figure.difference
            found[figure.day] = figure.difference - explained
        return found

    def unexplained(self, figure: AccountBalance) -> int:
        """Return by how much the difference of a figure has changed since the last one that is explained, in fen."""
        return self._unexplained[figure.day]

    @property
    def since(self) -> str | None:
        """The day of the first of the newest figures with an unexplained difference; None if the newest has none."""
        first = None
        for figure in self.figures:
            if not self.unexplained(figure):
                break
            first = figure.day
        return first


# --- what the accounts should hold


def expected(channels: Collection[Channel], day: date | None = None) -> dict[int, Expected]:
    """Return what the accounts of these channels should hold, by channel id: at the end of a China day, or now.

    A day that is not over ends now. Exceptions that were open then count with their present amounts.
    """
    ids = [channel.id for channel in channels]
    until = begin_of(day) + DAY if day and day < in_china(clock.now()).date() else None
    with database.snapshot():
        booked = _booked(ids, until)
        uncredited = _uncredited(ids, until)
        questioned, unknown = _questioned(ids, until)
        payouts, refunds = _payouts(ids, until), _refunds(ids, until)
    return {
        row: Expected(booked[row], uncredited[row], questioned[row], -payouts[row] - refunds[row], unknown[row])
        for row in ids
    }


def _booked(ids: list[int], until: int | None) -> Counter[int]:
    accounts = list(LedgerAccount.select().where(LedgerAccount.kind == CLEARING, LedgerAccount.owner.in_(ids)))
    found = Counter({account.owner: -int(account.balance) for account in accounts})
    if until is None:
        return found
    above, _ = time_bisect.entries_between(until, None)
    day = str(in_china(until - 1).date())
    for account in accounts:
        first = time_bisect.number_from(account, above + 1) if above else 1
        later = (Entry.account == account.id) & (Entry.number >= first) & (Posting.createtime >= until)
        total = Entry.select(fn.COALESCE(fn.SUM(Entry.amount), 0)).join(Posting).where(later)
        found[account.owner] += int(total.scalar())
        # A day's bill corrects its costs on a later day, but the channel has kept them on that day.
        prefix = f"{BILL_COSTS} {account.owner} "
        costs = Entry.select(Posting.purpose, Entry.amount).join(Posting)
        for purpose, fen in costs.where(later, Posting.purpose.startswith(prefix)).tuples():
            if purpose.removeprefix(prefix)[: len(day)] <= day:
                found[account.owner] -= fen
    return found


def _status_at(until: int, history: Any, owner: Any, row: Any) -> Any:
    """Return the query for the status that an order or refund had before a Unix time, by its history."""
    steps = history.select(history.after).where(owner == row, history.before != history.after, history.at < until)
    return steps.order_by(history.id.desc()).limit(1)


def _confirmed(ids: list[int], order_type: int, until: int | None) -> list[Any]:
    """Return conditions that together match the orders that are confirmed, or were: each order matches one."""
    # By merchant, so that an index finds them.
    every = Order.merchant.in_(Merchant.select(Merchant.id)) & (Order.order_type == order_type)
    of_channels = Order.channel.in_(ids)
    if until is None:
        return [every & of_channels & (Order.status == CONFIRMED)]
    of_channels &= _status_at(until, History, History.order, Order.id) == CONFIRMED
    changed = (
        Order.status == CONFIRMED,
        (Order.status == COMPLETED) & (Order.completedtime >= until),
        (Order.status == CANCELLED) & (Order.updatetime >= until),
    )
    return [every & each & of_channels for each in changed]


def _sum(rows: Any) -> Counter[int]:
    """Return the sums of rows (channel id, fen), by channel id; open orders are too few for a GROUP BY."""
    found: Counter[int] = Counter()
    for channel, fen in rows.tuples().iterator():
        found[channel] += fen
    return found


def _uncredited(ids: list[int], until: int | None) -> Counter[int]:
    """Return what the channels received, less the costs of it and less its refunds, and what is not credited yet.

    A payment of which refunds take all has no costs: its channel returns the fee with the last of them.
    """
    found: Counter[int] = Counter()
    received = fn.COALESCE(Order.received_amount, Order.amount)
    status: Any = Refund.status
    if until is not None:
        status = _status_at(until, RefundHistory, RefundHistory.refund, Refund.id)
    # A refund before the credit is paid from the balance once the deposit is credited.
    own = (Refund.reference == Order.channel_reference) & Refund.paid_from.in_((UNCREDITED, BALANCE))
    back: Counter[int] = Counter()
    for each in _confirmed(ids, BUY, until):
        found.update(_sum(Order.select(Order.channel, received - Order.cost_amount).where(each)))
        refunds = Refund.select(Order.id, Order.channel, received, Order.cost_amount, Refund.amount, status)
        refunds = refunds.join(Order, on=(Refund.order == Order.id))
        for order, channel, came, cost, fen, step in refunds.where(each, own).tuples().iterator():
            if step in (CONFIRMED, COMPLETED):
                back[order] += fen
                found[channel] += (cost if back[order] == came else 0) - (fen if step == COMPLETED else 0)
    return found


def _are_open(until: int | None) -> Any:
    """Return the condition for exceptions that are open, or were."""
    row = PaymentException
    if until is None:
        return row.resolution.is_null()
    return (row.createtime < until) & (row.resolution.is_null() | (row.resolvedtime >= until))


def _questioned(ids: list[int], until: int | None) -> tuple[Counter[int], Counter[int]]:
    """Return what open exceptions add to the accounts, and the number of those whose amount is unknown."""
    found: Counter[int] = Counter()
    unknown: Counter[int] = Counter()
    row = PaymentException
    rows = row.select(row, Order).join(Order).where(_are_open(until), row.channel.in_(ids))
    for each in rows.iterator():
        order, fen = each.order, int(each.amount)
        if each.kind not in (*MONEY_IN, REVERSED, PAYOUT_CONFLICT, PAYOUT_IN_PROGRESS) or not fen:
            unknown[each.channel_id] += 1
            continue
        if not order.is_buy and fen == order.amount:
            fen += order.passage_amount + order.channel_amount  # as the ledger books the payout
        if each.kind in MONEY_IN or (each.kind == REVERSED and not order.is_buy):
            found[each.channel_id] += fen  # money that is not credited, or a payout that came back
            continue
        is_paid_out = order.completedtime is not None and (until is None or order.completedtime < until)
        if each.kind == PAYOUT_CONFLICT and is_paid_out and each.reference == order.channel_reference:
            fen -= order.amount  # booked with the amount of the order
        found[each.channel_id] -= fen
    return found, unknown


def _payouts(ids: list[int], until: int | None) -> Counter[int]:
    """Return what the payouts cost that were sent and have no result, those of manual channels in bank files."""
    found: Counter[int] = Counter()
    line = PayoutBatchLine
    is_filed = line.filetime.is_null(False) & line.result.is_null()
    is_sent = Order.asks > 0
    if until is not None:
        is_filed = (line.filetime < until) & (line.result.is_null() | (line.result != DISCARDED))
        is_sent |= Order.status != CONFIRMED  # it has ended since, and is sent when it is approved
    in_files = fn.EXISTS(line.select(SQL("1")).where(line.order == Order.id, is_filed))
    manual = Order.channel.in_(manual_channels())
    # The exception has what the channel paid instead.
    conflicts = PaymentException.select(SQL("1")).where(
        PaymentException.order == Order.id, PaymentException.kind == PAYOUT_CONFLICT, _are_open(until)
    )
    cost = Order.amount + Order.passage_amount + Order.channel_amount
    for each in _confirmed(ids, SELL, until):
        sent = (each, (manual & in_files) | (~manual & is_sent), ~fn.EXISTS(conflicts))
        found.update(_sum(Order.select(Order.channel, cost).where(*sent)))
    return found


def _refunds(ids: list[int], until: int | None) -> Counter[int]:
    """Return the sum of the refunds that were sent and have no result."""
    sent = Refund.channel.in_(ids) & Refund.senttime.is_null(False)
    if until is None:
        sent &= Refund.status == CONFIRMED
    else:
        sent &= (Refund.status == CONFIRMED) | (Refund.updatetime >= until)
        sent &= _status_at(until, RefundHistory, RefundHistory.refund, Refund.id) == CONFIRMED
    return _sum(Refund.select(Refund.channel, Refund.amount).where(sent))


# --- what the channels say


def day_of(text: str) -> date:
    """Return the day in a text such as 2026-05-01, from the year 2000; today in China for "". Raises OperatorError."""
    if not text.strip():
        return in_china(clock.now()).date()
    try:
        if not re.fullmatch("[2-9][0-9]{3}-[0-9]{2}-[0-9]{2}", text.strip()):
            raise ValueError(text)
        return date.fromisoformat(text.strip())
    except ValueError:
        raise OperatorError(N_("Enter a day, such as 2026-05-01."), "day") from None


def record(channel: Channel, day: date, amount: int, source: str, who: str, note: str = "") -> None:
    """Record a channel's figure for the end of a China day, or for now if the day is not over.

    A figure of the channel's flow replaces an earlier one of the day unless that is explained. An operator corrects
    figures of operators; of a figure of the flow, an operator with the same amount explains the difference. The same
    amount without a note leaves an explained figure as it is.

    Args:
        amount: fen; an account can be overdrawn.
        source: BILL or BY_OPERATOR.
        note: why the difference to the books is right; "" if that is open.

    Raises:
        OperatorError: the day is in the future, or the channel's flow has another figure for it.
    """
    if day > in_china(clock.now()).date():
        raise OperatorError(N_("The day is in the future."), "day")
    _store(channel, day, amount, expected([channel], day)[channel.id].total, source, who, note.strip())


@transaction
def _store(channel: Channel, day: date, amount: int, by_books: int, source: str, who: str, note: str) -> None:
    database.advisory_lock("account balances", channel.id)
    row = AccountBalance
    mine = (row.channel == channel.id, row.day == str(day))
    present = row.get_or_none(*mine)
    facts = {"amount": amount, "expected": by_books, "source": source, "who": who, "note": note}
    facts["createtime"] = clock.now()
    if present is None:
        row.add(channel=channel.id, day=str(day), **facts)
    elif present.note and present.amount == amount and not note:
        return  # a new comparison with the books would hide what moved since the explanation
    elif source == BILL:
        if not present.note:
            row.update(facts).where(*mine).execute()
    elif present.source == BY_OPERATOR:
        row.update(facts).where(*mine).execute()
    elif present.amount != amount:
        text = N_("The channel reports %(amount)s for this day. To explain its difference, enter this amount.")
        raise OperatorError(text, "amount", amount=grouped(present.amount))
    else:
        row.update(who=who, note=note).where(*mine).execute()


def fetch(channel: Channel, day: date) -> None:
    """Fetch and record the figure of a channel's flow for the end of a China day; outside any transaction.

    A flow without a line on that day leaves the account as it was, and is not recorded.

    Raises:
        ChannelUnknown: no usable response.
        StatementNotReady: the upstream is still making it.
    """
    amount = call_driver(driver_of(channel).fetch_balance, day)
    if amount is not None:
        record(channel, day, amount, BILL, FLOW)


def accounts() -> list[Account]:
    """Return the accounts of all channels, by channel id. A group has none."""
    return _accounts(list(Channel.select().where(Channel.driver != GROUP).order_by(Channel.id)))


def account(channel: Channel) -> Account:
    """Return the account of a channel."""
    return _accounts([channel])[0]


def _accounts(channels: list[Channel]) -> list[Account]:
    by_books = expected(channels)
    figures: dict[int, list[AccountBalance]] = {channel.id: [] for channel in channels}
    rows = AccountBalance.select().where(AccountBalance.channel.in_(list(figures)))
    for figure in rows.order_by(AccountBalance.channel, AccountBalance.day.desc()):
        figures[figure.channel_id].append(figure)
    return [Account(channel, by_books[channel.id], figures[channel.id]) for channel in channels]
