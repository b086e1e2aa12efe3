"""The differences between channels' statements and the orders, until each is settled (docs/reconciling.md).

A difference is checked at the channel first, and compared again with the lines of its statement. What remains is for
an operator. Later statements, notices and operators' decisions settle it: it is compared again until it is gone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from peewee import Case

from models.db.base import database
from models.db.writer import transaction
from models.tables.bill import (
    CHECKING,
    CLOSED,
    COMPARED,
    EXPECTED,
    EXPLAINED,
    OPEN,
    UNSETTLED,
    Bill,
    StatementDifference,
)
from models.tables.channel import Channel
from models.tables.order import Order
from models.tables.reconciliation import Reconciliation
from models.tables.refund import Refund
from runtime import clock
from runtime.money import hundredths
from services import kinds
from services.channels.order_numbers import order_numbers_in
from services.errors import N_, OperatorError
from services.orders.reasons import Why, because
from services.refunds import send
from services.statements.compare_file import DAY, Result, Statement, begin_of
from services.statements.parse import PAID, REFUNDED, Line, Parsed
from services.statements.reconcile import (
    FEE,
    MISSING_HERE,
    MISSING_THERE,
    STATUS,
    Comparison,
    Difference,
    Remark,
    difference_from,
    note,
)

MOST_DIFFERENCES = 500  # that are kept of one result
EVENING = 18 * 3_600  # seconds of a day after which yesterday's statement is late
AGAIN, LATER = 600, DAY  # seconds between two comparisons of a difference: at first, and after YOUNG
YOUNG = 7 * DAY
LEASE = 120  # seconds that one check may take before another worker tries
SPECIAL = (Remark.OTHERS, Remark.MORE, Remark.RATE, Remark.REPEATED)
RATE = f"{FEE} {Remark.RATE.value}"  # the name of the difference between a channel's rates and its fees
SECONDS = 30  # for which one run begins checks
LONGEST_NOTE = 500
SIMILAR = 2  # times the explained sum of other uses, up to which another day's sum has the same explanation
SETTLED = N_("This difference is settled already.")
ASKED = because(Why.ASKED_FOR_STATEMENT)


def keep(channel: Channel, row: Reconciliation, result: Result) -> None:
    """Store the differences of a result, in its transaction.

    One that is known already is updated: an explained one is open again only if its facts have changed. All others of
    the channel are compared again now, because this statement may settle them.
    """
    table, now, comparison = StatementDifference, clock.now(), result.comparison
    of_channel = table.channel == channel
    found = _named(_summed_up(comparison.differences), result.since)
    known = {each.name: each for each in table.select().where(of_channel, table.name.in_(list(found)))}
    for name, difference in found.items():
        _store(channel, row, result.statement, comparison, known.get(name), name, difference)
    if result.statement.is_whole:  # a corrected file of the same days
        fixed = (of_channel, table.state == OPEN, table.due_at.is_null(), table.name.not_in(list(found)))
        of_days = (table.since >= str(result.since), table.until <= str(result.until))
        table.update(state=CLOSED, updatetime=now).where(*fixed, *of_days).execute()
    fees = comparison.costs is not None and result.statement.fee_rate is None
    if fees and not any(each.kind == FEE for each in comparison.differences):
        settled = (of_channel, table.name == RATE, table.state.in_(UNSETTLED), table.since <= str(result.since))
        table.update(state=CLOSED, updatetime=now).where(*settled).execute()
    more = (of_channel, table.name == _name_of_more(result.since), table.state.in_(UNSETTLED))
    if _name_of_more(result.since) not in found:
        table.update(state=CLOSED, updatetime=now).where(*more).execute()
    waiting = (of_channel, table.state.in_((EXPECTED, OPEN)), table.due_at > now)
    table.update(due_at=now).where(*waiting).execute()


def close_outdated(earlier: Reconciliation, row: Reconciliation) -> None:
    """Close what only an earlier version of the same bill had."""
    table = StatementDifference
    outdated = (table.reconciliation == earlier.id, table.reconciliation != row.id, table.state.in_(UNSETTLED))
    table.update(state=CLOSED, due_at=None, updatetime=clock.now()).where(*outdated).execute()


def _summed_up(found: list[Difference]) -> list[Difference]:
    """Return the differences to keep: at most MOST_DIFFERENCES, those of other channels last, and one for the rest.

    Lines without a number of this service become one: the account may have other uses, and the result lists them.
    """
    others = [
        each
        for each in found
        if each.kind == MISSING_HERE
        and not order_numbers_in(each.order_no)
        and Remark.OTHER_CHANNEL not in {told.code for told in each.notes}
    ]
    left_out = {id(each) for each in others}  # a comparison of contents would take long
    numbered = [each for each in found if id(each) not in left_out]
    numbered.sort(key=lambda each: Remark.OTHER_CHANNEL in {told.code for told in each.notes})
    numbered, rest = numbered[:MOST_DIFFERENCES], numbered[MOST_DIFFERENCES:]
    if rest:
        there = {"status": PAID, "amount": hundredths(sum(each.fen for each in rest))}
        numbered.append(Difference(STATUS, "", "", None, {}, there, (note(Remark.MORE, count=str(len(rest))),)))
    if not others:
        return numbered
    total = sum(-each.fen if each.there["status"] == REFUNDED else each.fen for each in others)
    there = {"status": PAID, "amount": hundredths(total)}
    notes = (note(Remark.OTHERS, count=str(len(others))),)
    return [*numbered, Difference(MISSING_HERE, "", "", None, {}, there, notes)]


def _name_of_more(since: date) -> str:
    return f"{STATUS} {Remark.MORE.value} {since}"


def _named(found: Iterable[Difference], since: date) -> dict[str, Difference]:
    """Return the differences by names that other comparisons of the same days give them, too."""
    named: dict[str, Difference] = {}
    for each in found:
        codes = {told.code: told.values for told in each.notes}
        refund = next((values["number"] for values in codes.values() if "number" in values), "")
        special = next((code.value for code in SPECIAL if code in codes), "")
        parts = [each.kind, special, each.order_no, each.reference, refund]
        if Remark.RATE not in codes and not (each.order_no or each.reference):
            parts.append(str(since))
        if Remark.REPEATED in codes:
            parts.append(str(each.line))
        name = " ".join(filter(None, parts))
        at = 1
        while (full := name if at == 1 else f"{name} #{at}") in named:
            at += 1
        named[full] = each
    return named


def _store(
    channel: Channel,
    row: Reconciliation,
    statement: Statement,
    comparison: Comparison,
    known: StatementDifference | None,
    name: str,
    difference: Difference,
) -> None:
    now, table = clock.now(), StatementDifference
    facts_text = json.dumps(vars(difference), ensure_ascii=False)
    order = Order.find(difference.order_no) if difference.order_no else None
    order_id = order.id if order is not None and order.channel_id == channel.id else None
    facts: dict[str, Any] = {
        "kind": difference.kind,
        "order": order_id,
        "since": str(statement.since),
        "until": str(statement.until),
        "fen": difference.fen,
        "facts": facts_text,
        "lines": _lines_of(statement, comparison, difference, order_id),
        "reconciliation": row.id,
        "updatetime": now,
    }
    same = known is not None and _says(difference_from(json.loads(known.facts))) == _says(difference)
    if known is not None and (known.state in UNSETTLED or (known.state == EXPLAINED and same)):
        table.update(facts).where(table.id == known.id).execute()
        return
    state, due_at = (CHECKING, now) if _changes_by_itself(difference) else (OPEN, None)
    if known is not None and known.state == CLOSED and due_at is not None:
        due_at += AGAIN  # two comparisons that disagree do not follow each other without a pause
    note_of = _explained_before(channel, difference)
    begun = facts | {"state": state, "due_at": due_at, "asked_at": None, "note": "", "who": ""}
    if note_of is not None:
        begun |= {"state": EXPLAINED, "due_at": None, "note": note_of.note, "who": note_of.who}
    if known is not None:  # it is back, or another one now
        table.update(begun).where(table.id == known.id).execute()
    else:
        table.add(channel=channel.id, name=name, createtime=now, **begun)


def _changes_by_itself(difference: Difference) -> bool:
    """Return whether a later comparison of the same lines can be another one: not for fees and unknown payments."""
    codes = {told.code for told in difference.notes}
    return difference.kind != FEE and not codes & set(SPECIAL)


def _explained_before(channel: Channel, difference: Difference) -> StatementDifference | None:
    """Return the last explained sum of lines that name no order, as the account still has the same other use."""
    if Remark.OTHERS not in {told.code for told in difference.notes}:
        return None
    table = StatementDifference
    named = table.name.startswith(f"{MISSING_HERE} {Remark.OTHERS.value}")
    found = table.select().where(table.channel == channel, table.kind == MISSING_HERE, named)
    last = found.order_by(table.since.desc()).first()
    is_alike = last is not None and last.state == EXPLAINED and difference.fen <= SIMILAR * last.fen
    return last if is_alike else None


def _says(difference: Difference) -> tuple[Any, ...]:
    """Return what an operator has explained: of a channel's rate, by how much the fees differ from it."""
    codes = {told.code for told in difference.notes}
    if Remark.RATE in codes:
        here, there = (Decimal(side["fee"]) for side in (difference.here, difference.there))
        return codes, round(there / here, 1)
    return difference.here, difference.there, codes


def _lines_of(statement: Statement, comparison: Comparison, difference: Difference, order_id: int | None) -> str:
    """Return the statement as JSON, with only the lines about the order, or the number, of the difference."""
    about = [
        each
        for each in statement.parsed.lines
        if each.at == difference.line
        or (order_id is not None and comparison.orders.get(each.at) == order_id)
        or (difference.order_no and each.number == difference.order_no)
        or (difference.reference and each.reference == difference.reference)
    ]
    told = {
        "lists_refunds": statement.parsed.lists_refunds,
        "by_creation": statement.by_creation,
        "types": statement.types,
        "fee_rate": statement.fee_rate,
        "lines": [asdict(each) for each in about],
    }
    return json.dumps(told, ensure_ascii=False)


def _statement_of(row: StatementDifference) -> Statement:
    told = json.loads(row.lines)
    parsed = Parsed([Line(**each) for each in told["lines"]], told["lists_refunds"])
    since, until = date.fromisoformat(row.since), date.fromisoformat(row.until)
    return Statement(parsed, since, until, told["by_creation"], tuple(told["types"]), told["fee_rate"])


# --- checks, until it is settled


def check_due() -> None:
    """Check differences that are due: their orders at the channel first, then the comparison again."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        table = StatementDifference
        row = table.select().where(table.due_at <= clock.now()).order_by(table.due_at, table.id).first()
        if row is None:
            return
        if _claim(row):
            check(row)


@transaction
def _claim(row: StatementDifference) -> bool:
    return row.claim(clock.now() + LEASE)


def check(row: StatementDifference) -> None:
    """Check a claimed difference, outside any transaction."""
    now = clock.now()
    asked_at: int | None = row.asked_at
    if row.order_id and (asked_at is None or (now - asked_at >= DAY and now - row.createtime < YOUNG)):
        ask(Order.get_by_id(row.order_id))
        for refund in _refunds_in(facts_of(row)):
            _ask_about(refund)
        asked_at = now
    statement = _statement_of(row)
    comparison = statement.compared(row.channel, [row.order_id] if row.order_id else [])
    _settle(row, statement, comparison, asked_at)


def ask(order: Order) -> None:
    """Check an order's status at its channel and apply the report, if the channel has status checks and responds."""
    if kinds.why_not_ask(order):
        return
    with suppress(OperatorError):  # without a response, the difference is for an operator
        kinds.ask_now(order, ASKED)


def _refunds_in(difference: Difference) -> list[Refund]:
    """Return the refunds of this service that a difference names."""
    numbers = [told.values["number"] for told in difference.notes if "number" in told.values]
    return [refund for number in numbers if (refund := Refund.find(number))]


def _ask_about(refund: Refund) -> None:
    if not send.why_not_ask(refund):
        with suppress(OperatorError):  # its own checks go on
            send.ask_now(refund, ASKED)


@transaction
def _settle(seen: StatementDifference, statement: Statement, comparison: Comparison, asked_at: int | None) -> None:
    """Store what a comparison found of a difference, unless it changed meanwhile."""
    table, now = StatementDifference, clock.now()
    database.advisory_lock("reconciliation", seen.channel_id)
    same = (table.id == seen.id, table.state == seen.state, table.due_at == seen.due_at)
    found = _named(comparison.differences, statement.since)
    difference = found.pop(seen.name, None)
    if difference is None:
        facts: dict[str, Any] = {"state": CLOSED, "due_at": None}
    else:
        facts = {"fen": difference.fen, "facts": json.dumps(vars(difference), ensure_ascii=False)}
        facts["due_at"] = now + (AGAIN if now - seen.createtime < YOUNG and seen.state != EXPLAINED else LATER)
        is_explained = seen.state == EXPLAINED and _says(difference) == _says(facts_of(seen))
        expected = EXPECTED if _is_expected(difference, now) else OPEN
        facts["state"] = EXPLAINED if is_explained else expected
    if not table.update(**facts, asked_at=asked_at, updatetime=now).where(*same).execute():
        return
    # Fees are compared with the whole statement.
    others = {name: each for name, each in found.items() if each.kind != FEE}
    has_changed = difference is None
    for name, other in others.items():
        known = table.get_or_none(table.channel == seen.channel_id, table.name == name)
        has_changed |= known is None or known.state == CLOSED  # it is another difference now
        _store(seen.channel, seen.reconciliation, statement, comparison, known, name, other)
    if has_changed:
        _fetch_again(seen)


def _fetch_again(row: StatementDifference) -> None:
    """Make the bill of a difference due, as the costs of its orders may have changed with it."""
    compared = (Bill.reconciliation == row.reconciliation_id, Bill.state == COMPARED, Bill.due_at.is_null())
    Bill.update(due_at=clock.now()).where(*compared).execute()


def _is_expected(difference: Difference, now: int) -> bool:
    """Return whether the statement of a neighbouring day may have the line, and may still come."""
    days = [told.values["day"] for told in difference.notes if told.code is Remark.AT_EDGE]
    if difference.kind != MISSING_THERE or not days:
        return False
    return now < begin_of(date.fromisoformat(days[0]) + timedelta(days=1)) + EVENING


# --- operators


def find(row_id: int) -> StatementDifference:
    """Return the difference with this id. Raises OperatorError."""
    row = StatementDifference.get_or_none(StatementDifference.id == row_id)
    if row is None:
        raise OperatorError(N_("There is no such difference."))
    return row


def facts_of(row: StatementDifference) -> Difference:
    """Return what differs, as the last comparison found it."""
    return difference_from(json.loads(row.facts))


def lines_of(row: StatementDifference) -> list[Line]:
    """Return the lines of the statement about the order, or the number, of a difference."""
    return _statement_of(row).parsed.lines


def rows_of(result: Reconciliation, found: list[Difference]) -> list[StatementDifference | None]:
    """Return how each of a result's differences is now; None for one that is not kept."""
    table, named = StatementDifference, _named(_summed_up(found), date.fromisoformat(result.since))
    names = {id(each): name for name, each in named.items()}
    summed = next((name for name, each in named.items() if Remark.OTHERS in {told.code for told in each.notes}), "")
    known = table.select().where(table.channel == result.channel_id, table.name.in_(list(named)))
    rows = {row.name: row for row in known}
    return [rows.get(names.get(id(each), summed)) for each in found]


def unsettled_of(result: Reconciliation) -> list[StatementDifference]:
    """Return the differences of a result that are not settled, oldest first."""
    table = StatementDifference
    wanted = (table.reconciliation == result.id, table.state.in_(UNSETTLED))
    return list(table.select().where(*wanted).order_by(table.id))


@transaction
def explain(rows: Iterable[StatementDifference], text: str, who: str) -> int:
    """Mark unsettled differences as explained; return their number.

    Raises:
        OperatorError: no text, or one that is too long.
    """
    if not (text := text.strip()):
        raise OperatorError(N_("Enter the explanation."), "note")
    if len(text) > LONGEST_NOTE:
        raise OperatorError(N_("Enter at most %(most)s characters."), "note", most=str(LONGEST_NOTE))
    table = StatementDifference
    wanted = (table.id.in_([each.id for each in rows]), table.state.in_(UNSETTLED))
    now = clock.now()
    again = Case(None, [(table.due_at.is_null(), None)], now + LATER)  # it may still be settled
    told = {"state": EXPLAINED, "due_at": again, "note": text, "who": who, "updatetime": now}
    return int(table.update(told).where(*wanted).execute())


def may_check(row: StatementDifference) -> bool:
    """Return whether another comparison can change a difference."""
    return row.state in (*UNSETTLED, EXPLAINED) and _changes_by_itself(facts_of(row))


@transaction
def check_now(row: StatementDifference) -> None:
    """Check a difference again at once: its order at the channel, and the comparison. Raises OperatorError."""
    table = StatementDifference
    again = {"due_at": clock.now(), "asked_at": None, "state": CHECKING, "updatetime": clock.now()}
    same = (table.id == row.id, table.state.in_((*UNSETTLED, EXPLAINED)))
    if not may_check(row) or not table.update(again).where(*same).execute():
        raise OperatorError(N_("Nothing is left to check."))
