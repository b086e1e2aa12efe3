"""Findings that need an operator, most severe first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta, tzinfo
from math import exp, lgamma, log
from time import time
from typing import Any

from models.tables.bill import LATE, Bill
from models.tables.channel import Channel, ChannelMember
from models.tables.ledger import CLEARING, LedgerAccount
from models.tables.maintenance import FAILED, OFF, paused_since
from models.tables.notification import BalanceWarning, Destination
from runtime import clock
from runtime.clock import in_china
from runtime.state import current
from services.backups import scheduled
from services.channels import group_setup, groups, health, pictures, unknown_notices
from services.console import statistics
from services.console.statistics import Statistics, Sum, summed
from services.ledger import scheduled_checks
from services.merchants import links
from services.operations import finished_orders, to_do
from services.operations.to_do import Waiting
from services.platform import storage_health
from services.statements import bills

URGENT, SOON = SEVERITIES = ("urgent", "soon")
LONG = 86_400  # seconds after which a withdrawal or a refund has waited too long
USUAL_DAYS = 30  # days, with today, which is left out, whose success rate is the usual one
LEAST_USUAL = 50  # finished orders that make it meaningful
WORSE = 0.2  # the decrease of the success rate that is a finding,
UNLIKELY = 1 / 10_000  # unless chance causes it more often than this
ENOUGH = 10  # finished orders from which a rate is shown
LATE_BACKUPS = 2  # intervals after which a scheduled backup is missing
FAILURES = 3  # failed attempts in a row after which a destination of notifications is a finding


@dataclass(frozen=True)
class Finding:
    """One finding that needs attention: `kind` is its type, `facts` are its values.

    Kinds and their facts: restored (at), stuck (count, oldest, orders: some of their numbers), unknown_notices
    (count), storage (fault), ledger_off (checks, at), ledger_failed (why), ledger_overdue (at, may be None),
    exceptions (count, oldest, silent: their number), differences (count, oldest), stuck_refunds (as stuck, with
    refunds), refunds and refund_late (count, oldest), requests (count, oldest), payouts (count, oldest), claims
    (count, oldest, channels), dead (count, merchants, since), retried (count), silent (channel, count, oldest),
    failing (channel, order_type, recent and usual: rates from 0 to 1, count: the recent finished orders, since: the
    Unix time from which these were created), channel_off (channel, methods, since, failures, count: the last payments,
    reason: that of the last failure, in English, goes_on and stops: the names of its groups with another channel for
    these methods and without one, direct: whether merchants use it without a group), backup (at, may be None, failed:
    whether the last one did), low_balance (channel, balance and limit in fen), unusable (channel, methods),
    unreachable (destination: its id, name, count), bills (channel, count, day: the oldest, problem: why that one
    could not be fetched, in English).
    """

    severity: str
    kind: str
    facts: dict[str, Any] = field(default_factory=dict)


def rate(sums: Sum, least: int = ENOUGH) -> float | None:
    """Return the share of completed orders among finished ones; None if there are too few."""
    return sums.completed / sums.closed if sums.closed >= least else None


def _storage() -> Iterator[Finding]:
    fault = storage_health.write_fault()
    if fault is not None:
        yield Finding(URGENT, "storage", {"fault": fault})


def _restored() -> Iterator[Finding]:
    if (at := paused_since()) is not None:
        yield Finding(URGENT, "restored", {"at": at})
    if count := unknown_notices.recent():
        yield Finding(URGENT, "unknown_notices", {"count": count})


def _ledger(every: int) -> Iterator[Finding]:
    newest = scheduled_checks.last()
    if newest is not None and newest.outcome == OFF:
        yield Finding(URGENT, "ledger_off", {"checks": list(newest.off), "at": newest.started})
    elif scheduled_checks.overdue(every):
        yield Finding(SOON, "ledger_overdue", {"at": newest and newest.started})
    for run in scheduled_checks.recent(1):
        if run.outcome == FAILED:
            yield Finding(
                SOON, "ledger_failed", {"why": " ".join(line for lines in run.off.values() for line in lines)}
            )


def _waiting(waiting: Waiting) -> Iterator[Finding]:
    if waiting.stuck.count:
        yield Finding(URGENT, "stuck", {**vars(waiting.stuck), "orders": waiting.stuck_orders})
    if waiting.stuck_refunds.count:
        about = {**vars(waiting.stuck_refunds), "refunds": waiting.stuck_refund_numbers}
        yield Finding(URGENT, "stuck_refunds", about)
    if waiting.decisions.count:
        silent = waiting.exceptions.count - waiting.decisions.count
        yield Finding(URGENT, "exceptions", {**vars(waiting.exceptions), "silent": silent})
    if waiting.differences.count:
        yield Finding(SOON, "differences", vars(waiting.differences))
    if waiting.payouts.count:
        late = (waiting.payouts.oldest or 0) < clock.now() - LONG
        yield Finding(URGENT if late else SOON, "payouts", vars(waiting.payouts))
    for name, queue in (("refunds", waiting.refunds), ("refund_late", waiting.refund_late)):
        if queue.count:
            late = (queue.oldest or 0) < clock.now() - LONG
            yield Finding(URGENT if late else SOON, name, vars(queue))
    if waiting.requests.count:
        yield Finding(SOON, "requests", vars(waiting.requests))
    if waiting.dead:
        about = {"count": sum(waiting.dead.values()), "merchants": list(waiting.dead), "since": waiting.dead_since}
        yield Finding(URGENT, "dead", about)
    if waiting.claims.count:
        yield Finding(SOON, "claims", {**vars(waiting.claims), "channels": waiting.by_hand})
    if waiting.retried:
        yield Finding(SOON, "retried", {"count": waiting.retried})
    for channel, queue in waiting.silent.items():
        late = (queue.oldest or 0) < clock.now() - LONG
        yield Finding(URGENT if late else SOON, "silent", {"channel": channel, **vars(queue)})


def _failing(shown: Statistics) -> Iterator[Finding]:
    """Find channels whose newest orders succeed far less often than those of the last 30 days, today's apart.

    Payers who leave are part of both rates. Few orders, as those of a quiet night, are a finding only if chance hardly
    explains them: this is judged all day long.
    """
    cells = (cell for cell in shown.within(USUAL_DAYS) if cell.day < shown.today)
    usual = summed(cells, lambda cell: (cell.channel, cell.order_type))
    for (channel, order_type), orders in finished_orders.newest().items():
        before = rate(usual.get((channel, order_type), Sum()), LEAST_USUAL)
        if before is None or len(orders) < finished_orders.LEAST:
            continue
        completed = sum(order.completed for order in orders)
        now = completed / len(orders)
        if now < before - WORSE and _chance(completed, len(orders), before) < UNLIKELY:
            since = min(order.createtime for order in orders)
            about = {"channel": channel, "order_type": order_type, "recent": now, "usual": before}
            yield Finding(SOON, "failing", about | {"count": len(orders), "since": since})


def _chance(completed: int, orders: int, usual: float) -> float:
    """Return the probability that at most so many of these orders are completed, at the usual rate."""
    usual = min(max(usual, 0.01), 0.99)
    return sum(
        exp(
            lgamma(orders + 1)
            - lgamma(count + 1)
            - lgamma(orders - count + 1)
            + count * log(usual)
            + (orders - count) * log(1 - usual)
        )
        for count in range(completed + 1)
    )


def _channels_off() -> Iterator[Finding]:
    """Find channels that refuse or do not answer new payments, and where their orders go meanwhile."""
    found: dict[int, list[health.State]] = {}
    for state in health.states():
        if state.is_off:
            found.setdefault(state.channel, []).append(state)
    for channel, states in found.items():
        goes_on: list[str] = []
        stops: list[str] = []
        of_channel = ChannelMember.channel == channel
        every = Channel.select().join(ChannelMember, on=ChannelMember.group == Channel.id)
        for group in every.where(of_channel, Channel.enabled).order_by(Channel.id):
            others = [each for each in group_setup.states(group) if each.member.channel.id != channel]
            is_open = not groups.why_closed(group) and all(
                any(method in each.member.methods and method not in each.why_not for each in others)
                for method in (state.method for state in states)
            )
            (goes_on if is_open else stops).append(group.name)
        about = {
            "channel": channel,
            "methods": [state.method for state in states],
            "since": min(state.since or state.off_until or 0 for state in states),
            "failures": sum(state.failures for state in states),
            "count": sum(state.count for state in states),
            "reason": next((state.reason for state in states if state.reason), ""),
            "goes_on": goes_on,
            "stops": stops,
            "direct": bool(links.merchants_of(Channel.get_by_id(channel))),
        }
        yield Finding(URGENT, "channel_off", about)


def _backup() -> Iterator[Finding]:
    chosen, failed = current().settings, scheduled.has_failed()
    if not chosen.backup_every:
        return
    at = scheduled.newest(chosen)
    is_late = at is not None and at < time() - LATE_BACKUPS * chosen.backup_every * 3600
    if failed or is_late:
        yield Finding(SOON if at and not is_late else URGENT, "backup", {"at": at and int(at), "failed": failed})


def _low_balances() -> Iterator[Finding]:
    """Compare what the channels owe, by the ledger, with the limits that operators set."""
    clearing = (LedgerAccount.kind == CLEARING) & (LedgerAccount.owner == BalanceWarning.channel)
    rows = BalanceWarning.select(BalanceWarning.channel, BalanceWarning.amount, LedgerAccount.balance)
    for channel, limit, balance in rows.join(LedgerAccount, on=clearing).order_by(BalanceWarning.channel).tuples():
        if -balance < limit:
            yield Finding(URGENT, "low_balance", {"channel": channel, "balance": -balance, "limit": limit})


def _unusable() -> Iterator[Finding]:
    """Find enabled channels with a method by which no payer can pay, except bank: one for payouts needs no account.

    It is urgent if a merchant uses the channel and no other method is left. Orders by such a method are refused, so a
    channel with another one still works.
    """
    for row in Channel.select().where(Channel.enabled).order_by(Channel.id):
        unusable = pictures.unusable_methods(row)
        methods = [method for method in unusable if method != "bank"]
        if methods:
            is_urgent = len(unusable) == len(row.pay_methods) and bool(links.merchants_of(row))
            yield Finding(URGENT if is_urgent else SOON, "unusable", {"channel": row.id, "methods": methods})


def _bills() -> Iterator[Finding]:
    """Find channels whose bills are late, for as long as upstreams keep them."""
    since = in_china(clock.now()).date() - timedelta(bills.OLDEST)
    every = Bill.channel.in_(Channel.select(Channel.id)) & (Bill.day >= str(since))
    late: dict[int, list[Bill]] = {}
    for row in Bill.select().where(every, Bill.state == LATE).order_by(Bill.channel, Bill.day):
        late.setdefault(row.channel_id, []).append(row)
    for channel, (first, *others) in late.items():
        about = {"channel": channel, "count": 1 + len(others), "day": first.day, "problem": first.problem}
        yield Finding(SOON, "bills", about)


def _unreachable() -> Iterator[Finding]:
    for row in Destination.select().where(Destination.enabled, Destination.failures >= FAILURES):
        yield Finding(SOON, "unreachable", {"destination": row.id, "name": row.name, "count": row.failures})


def findings(shown: Statistics, waiting: Waiting, verify_every: int) -> list[Finding]:
    """Return all findings, the most severe first."""
    found = [
        *_storage(),
        *_restored(),
        *_ledger(verify_every),
        *_waiting(waiting),
        *_channels_off(),
        *_failing(shown),
        *_backup(),
        *_low_balances(),
        *_unusable(),
        *_bills(),
        *_unreachable(),
    ]
    return sorted(found, key=lambda each: SEVERITIES.index(each.severity))


def now(zone: tzinfo) -> list[Finding]:
    """Return all present findings, the most severe first. "Since yesterday" refers to days in this zone."""
    return findings(statistics.of(zone), to_do.waiting_counts(), current().settings.verify_every)
