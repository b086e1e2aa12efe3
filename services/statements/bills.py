"""Fetch the bills of channels every morning and compare them with the orders (docs/reconciling.md).

A bill is due from 10:15 China time of the next day, every 30 minutes until 18:00, then every morning; the last seven
days are filled in. The host that fetches one claims it first, and the result is stored only with that claim.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from peewee import fn

from gateways.base import ChannelError, Driver, Report, State
from models.db.writer import transaction
from models.tables.bill import (
    CHECKING,
    COMPARED,
    EXPECTED,
    LATE,
    NONE,
    OPEN,
    UNSETTLED,
    WAITING,
    Bill,
    StatementDifference,
)
from models.tables.channel import Channel
from models.tables.order import Order
from runtime import clock
from runtime.clock import in_china
from services.channels.calls import call_driver, driver_of
from services.errors import N_, OperatorError
from services.platform import storage_health
from services.platform.worker_pool import claim
from services.refunds import settle as settle_refund
from services.statements import account_balances, compare_file, differences, kept_results, tables
from services.statements.compare_file import DAY, Choices, Result, Statement, begin_of
from services.statements.parse import Parsed

log = logging.getLogger(__name__)

MORNING, EVENING = (10 * 60 + 15) * 60, 18 * 3_600  # seconds of a day in China
EVERY = 1_800  # seconds between two fetches of a bill that is not ready
SOON = 60  # seconds after which a fetch is repeated that another file delayed
FILLED_IN = 7  # days for which missing bills are fetched
OLDEST = 90  # days for which upstreams keep bills
RUN_SECONDS = 10
LEASE = 900  # seconds that a fetch and its comparison may take before another host tries
WHO = "service"
FAULT = N_("An error of the service. See the log.")
NOT_READY = N_("There is no bill yet, although money was booked on that day.")


def run() -> None:
    """Plan the bills of the last days, fetch those that are due, and check the differences that are due."""
    plan()
    for bill in _due():
        if claim([bill], clock.now() + LEASE):
            _fetch_or_try_again(bill)
    differences.check_due()


def _fetch_or_try_again(bill: Bill) -> None:
    """Fetch a claimed bill. After an unexpected failure the other bills go on, and it is stored."""
    try:
        fetch(bill)
    except Overtaken:
        log.info("Channel %s: bill of %s: another host is quicker", bill.channel_id, bill.day)
    except Exception as error:
        if storage_health.report(error) is not None:
            raise
        log.exception("Channel %s: bill of %s", bill.channel_id, bill.day)
        _try_again(bill, FAULT, _next_try(date.fromisoformat(bill.day), clock.now()))


def plan() -> None:
    """Make the bills of the last days due that are not planned yet, newest first."""
    now = clock.now()
    today = in_china(now).date()
    if now < begin_of(today) + MORNING:
        return
    days = [today - timedelta(days=back) for back in range(1, FILLED_IN + 1)]
    known = {(bill.channel_id, bill.day) for bill in Bill.select().where(Bill.day >= str(days[-1]))}
    used = Channel.enabled | (Channel.updatetime >= begin_of(days[-1]))  # or was, until some day of these
    missing = [
        (channel, day)
        for channel in Channel.select().where(used).order_by(Channel.id)
        if driver_of(channel).fetches_statements
        for day in days
        if (channel.id, str(day)) not in known and day >= in_china(channel.createtime).date()
    ]
    if missing:
        _add(missing)


@transaction
def _add(missing: Iterable[tuple[Channel, date]]) -> None:
    now = clock.now()
    for channel, day in missing:
        new = {"channel": channel.id, "day": str(day), "state": WAITING, "due_at": now}
        Bill.insert(**new, createtime=now, updatetime=now).on_conflict_ignore().execute()


def _due() -> list[Bill]:
    return list(Bill.select().where(Bill.due_at <= clock.now()).order_by(Bill.day.desc(), Bill.channel))


def fetch(bill: Bill) -> None:
    """Fetch a claimed bill, compare it and keep the result, then the account's balance at the end of its day.

    If that is not possible, the problem is stored with the time of the next fetch.
    """
    channel, day = bill.channel, date.fromisoformat(bill.day)
    driver = driver_of(channel)
    try:
        raw = call_driver(driver.fetch_statement, day)
        is_final = _end_without(bill, driver, day) if raw is None else _compare(bill, day, raw)
        if driver.fetches_balances:
            account_balances.fetch(channel, day)
        _store(bill, due_at=_last_look(bill, day, is_final))
    except tables.Busy:
        _try_again(bill, bill.problem, clock.now() + SOON)
    except (ChannelError, OperatorError) as problem:
        log.info("Channel %s: bill of %s: %s", channel.id, bill.day, problem)
        _try_again(bill, str(problem), _next_try(day, clock.now()))


def _end_without(bill: Bill, driver: Driver, day: date) -> bool:
    """End a bill that the upstream does not have; False, as it may not be ready.

    Raises:
        OperatorError: it should have lines.
    """
    layout = driver.statement
    nothing = Statement(Parsed([], lists_refunds=True), day, day, bool(layout.created), layout.types, fee_rate=None)
    if nothing.compared(bill.channel).differences:
        raise OperatorError(NOT_READY)
    _finish(bill, state=NONE)
    return False


def _compare(bill: Bill, day: date, raw: bytes) -> bool:
    """Compare a bill with the orders and keep the result; False if refunds in it can still end either way."""
    compared = partial(tables.alone, compare_file.compare, bill.channel, raw, Choices(since=day, until=day))
    result = compared()
    if _take_refunds(result):
        result = compared()
    _keep(bill, raw, result)
    return not any(line.is_unproven for line in result.statement.parsed.lines)


def _take_refunds(result: Result) -> bool:
    """Record the completed refunds of a bill that this service did not request; return whether any may be new.

    Their orders are checked at the channel first: it may report the same without an amount, which then follows.
    """
    orders = {line.at: Order.get_by_id(result.comparison.orders[line.at]) for line, _ in result.comparison.refunds}
    new = [
        (line, payment)
        for line, payment in result.comparison.refunds
        if not (line.refund_number and settle_refund.is_told(orders[line.at], line.refund_number))
    ]
    for order in {orders[line.at].id: orders[line.at] for line, _ in new}.values():
        differences.ask(order)
    for line, payment in new:
        if line.refund_number and not line.is_unproven:
            report = Report(State.PAID, abs(line.amount))
            settle_refund.take_unknown(orders[line.at], line.refund_number, report, line.reference or payment)
    return bool(new)


@transaction
def _keep(bill: Bill, raw: bytes, result: Result) -> None:
    """Store the result and the costs of a bill."""
    channel, earlier = bill.channel, bill.reconciliation
    row = kept_results.keep(channel, f"{channel.driver} {bill.day}", raw, result, WHO)
    if earlier is not None:
        kept_results.replace(earlier, row)
    costs = kept_results.post_costs(bill, result)
    _finish(bill, state=COMPARED, costs=costs, reconciliation=row.id)


class Overtaken(Exception):
    """Another host has claimed the bill meanwhile: nothing of this fetch is stored."""


@transaction
def _finish(bill: Bill, **facts: object) -> None:
    """Store a result; the claim ends when the balance is stored, too."""
    if not _store(bill, **facts, problem=""):
        raise Overtaken


def _last_look(bill: Bill, day: date, is_final: bool) -> int | None:
    """Return when to fetch a bill again that is not final, None if never.

    One that the upstream does not have may not be ready until the evening. The returned fees of refunds that were in
    progress are known after a week.
    """
    now = clock.now()
    if is_final:
        return None
    if bill.state == NONE:
        later = _next_try(day, now)
        return later if later is not None and later <= begin_of(day) + DAY + EVENING else None
    known = begin_of(day) + (FILLED_IN + 1) * DAY + MORNING
    return known if now < known else None


@transaction
def _try_again(bill: Bill, problem: str, at: int | None) -> None:
    """Store why a fetch failed and when the next one follows; a bill that was compared before stays compared."""
    state = bill.state
    if state in (WAITING, LATE):
        today = in_china(clock.now()).date()
        is_late = at is None or in_china(at).date() > today
        state = LATE if is_late else WAITING
    _store(bill, state=state, problem=problem, due_at=at)


@transaction
def _store(bill: Bill, **facts: Any) -> bool:
    """Store facts of a bill and its next fetch; False if another host or an operator was quicker."""
    same = (Bill.id == bill.id, Bill.due_at == bill.due_at)
    stored: bool = Bill.update(**facts, updatetime=clock.now()).where(*same).execute() == 1
    if stored:
        bill.__data__.update(facts)
    return stored


def _next_try(day: date, now: int) -> int | None:
    """Return the time of the next fetch of a day's bill, None after the last one."""
    today = in_china(now).date()
    morning, evening = (begin_of(today) + at for at in (MORNING, EVENING))
    if morning <= now and now + EVERY <= evening:
        return now + EVERY
    if now >= morning:
        today, morning = today + timedelta(days=1), morning + DAY
    return morning if (today - day).days <= FILLED_IN else None


# --- operators


@dataclass(frozen=True)
class DayBill:
    """A channel's bill of a day: the channel's name, the bill's state, and the numbers of differences of this day.

    `differences` await an operator or are being checked, `expected` may be in the bill of a neighbouring day.
    """

    channel: str
    state: str
    differences: int
    expected: int


def of_day(day: date) -> list[DayBill]:
    """Return the bills of a day, by channel."""
    table = StatementDifference
    about = (table.state.in_(UNSETTLED), table.since <= str(day), table.until >= str(day))
    found = table.select(table.channel, table.state, fn.COUNT(table.id)).where(*about)
    counts = {(channel, state): count for channel, state, count in found.group_by(table.channel, table.state).tuples()}
    rows = Bill.select(Bill, Channel).join(Channel)
    every = rows.where(Bill.channel.in_(Channel.select(Channel.id)), Bill.day == str(day)).order_by(Bill.channel)

    def number(bill: Bill, *states: str) -> int:
        return sum(counts.get((bill.channel_id, state), 0) for state in states)

    return [
        DayBill(bill.channel.name, bill.state, number(bill, CHECKING, OPEN), number(bill, EXPECTED)) for bill in every
    ]


def find(row_id: int) -> Bill:
    """Return the bill with this id. Raises OperatorError."""
    bill = Bill.get_or_none(Bill.id == row_id)
    if bill is None:
        raise OperatorError(N_("There is no such bill."))
    return bill


@transaction
def request(channel: Channel, day: date) -> Bill:
    """Make the bill of a day due now, for the first time or again; return it.

    Raises:
        OperatorError: the channel offers no bills, or none of this day.
    """
    if not driver_of(channel).fetches_statements:
        raise OperatorError(N_("This channel offers no bills. Upload its statement instead."))
    now = clock.now()
    if not 1 <= (in_china(now).date() - day).days <= OLDEST:
        text = N_("Choose a day before today, at most %(most)s days ago.")
        raise OperatorError(text, "day", most=str(OLDEST))
    new = {"channel": channel.id, "day": str(day), "state": WAITING, "createtime": now, "updatetime": now}
    Bill.insert(**new).on_conflict_ignore().execute()
    same = (Bill.channel == channel, Bill.day == str(day))
    Bill.update(due_at=now, updatetime=now).where(*same).execute()
    Bill.update(state=WAITING).where(*same, Bill.state.in_((LATE, NONE))).execute()
    return Bill.get(*same)
