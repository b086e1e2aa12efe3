"""`tillbook bill` and `tillbook difference`: fetched bills, and the differences between statements and orders."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from cli.output import (
    ROW_ID,
    Commands,
    facts,
    given_of,
    json_option,
    limit_option,
    picked,
    said,
    show,
    table,
    words,
)
from models.tables.bill import BILL_STATES, DIFFERENCE_STATES, OPEN, Bill, StatementDifference
from runtime.money import hundredths
from runtime.texts import N_
from services.channels import channel_setup
from services.console import lists, record_lists
from services.errors import OperatorError
from services.security import audit
from services.statements import bills, differences, subjects

DAY = click.DateTime(["%Y-%m-%d"])

bill = Commands("bill", help="Bills of channels: list them, fetch one.")
difference = Commands("difference", help="Differences between statements and orders: list, check, explain.")


def _bill(row: Bill) -> dict[str, Any]:
    result = row.reconciliation
    return {
        "day": row.day,
        "channel": row.channel_id,
        "state": row.state,
        "lines": result and result.lines,
        "matched": result and result.matched,
        "differences": result and result.differences,
        "costs": hundredths(row.costs),
        "problem": row.problem,
        "due_at": row.due_at,
    }


@bill.command("list")
@click.option("--channel", type=ROW_ID, metavar="ID", help="Only bills of this channel.")
@click.option("--state", type=click.Choice(BILL_STATES), help="Only bills in this state.")
@limit_option
@json_option
def every_bill(channel: int | None, state: str | None, limit: int, as_json: bool) -> None:
    """List bills, newest day first."""
    browse = record_lists.Bills(given_of({"channel": channel, "state": state}))
    rows = [_bill(row) for row in lists.find(browse, limit=limit).rows]
    show(rows, as_json, lambda rows: table([row | {"problem": words().known(row["problem"])} for row in rows]))


@bill.command("fetch")
@click.argument("channel_id", metavar="CHANNEL", type=ROW_ID)
@click.argument("day", metavar="DAY", type=DAY)
@json_option
def fetch(channel_id: int, day: datetime, as_json: bool) -> None:
    """Fetch the bill of DAY from channel CHANNEL, for the first time or again.

    CHANNEL is the channel's id, DAY a day in China such as 2026-05-01. The running service fetches it within seconds.
    """
    channel = channel_setup.find_channel(channel_id)
    wanted = day.date()
    row = audit.act(
        audit.HERE, "fetch bill", "channel", str(channel_id), lambda: bills.request(channel, wanted), f"day: {wanted}"
    )
    show(picked(row, "id", "day", "state", "due_at") | {"channel": channel_id}, as_json, facts)


def _difference(row: Any) -> dict[str, Any]:
    told = row.difference
    return {
        "id": row.id,
        "state": row.state,
        "since": row.since,
        "until": row.until,
        "channel": row.channel_id,
        "about": subjects.subject_of(told, row.of_order),
        "kind": row.kind,
        "order_no": told.order_no,
        "reference": told.reference,
        "here": told.here,
        "there": told.there,
        "amount": hundredths(row.fen),
        "detail": told.detail,
        "note": row.note,
        "who": row.who,
        "createtime": row.createtime,
        "updatetime": row.updatetime,
    }


@difference.command("list")
@click.option(
    "--state",
    type=click.Choice((*DIFFERENCE_STATES, "all")),
    default=OPEN,
    show_default=True,
    help="Only differences in this state.",
)
@click.option("--channel", type=ROW_ID, metavar="ID", help="Only differences of this channel.")
@limit_option
@json_option
def every_difference(state: str, channel: int | None, limit: int, as_json: bool) -> None:
    """List differences, newest first: those that await an operator, or those in another state."""
    wanted = given_of({"state": None if state == "all" else state, "channel": channel})
    rows = [_difference(row) for row in lists.find(record_lists.Differences(wanted), limit=limit).rows]
    show(rows, as_json, _tell)


def _tell(rows: list[dict[str, Any]]) -> None:
    names = ("id", "state", "since", "channel", "about", "kind")
    shown = [
        {name: row[name] for name in names}
        | {"order_no": row["order_no"] or row["reference"]}
        | {side: " ".join(row[side].values()) for side in ("here", "there")}
        | {name: row[name] for name in ("amount", "detail", "note")}
        for row in rows
    ]
    table(shown)


@difference.command("explain")
@click.argument("row_id", metavar="ID", type=ROW_ID)
@click.option("--note", required=True, help="Why the difference is right as it is, or what you did.")
def explain(row_id: int, note: str) -> None:
    """Mark difference ID as explained. The orders and the books do not change."""
    row = differences.find(row_id)

    def explained() -> None:
        if not differences.explain([row], note, "operator"):
            raise OperatorError(differences.SETTLED)

    detail = f"note: {note.strip()[: differences.LONGEST_NOTE]}"
    audit.act(audit.HERE, "explain difference", "difference", str(row_id), explained, detail)
    _say(row_id)


@difference.command("check")
@click.argument("row_id", metavar="ID", type=ROW_ID)
def check(row_id: int) -> None:
    """Check difference ID again: its order at the channel, then the comparison.

    The running service does that within seconds.
    """
    row = differences.find(row_id)
    audit.act(audit.HERE, "check difference", "difference", str(row_id), lambda: differences.check_now(row))
    _say(row_id)


def _say(row_id: int) -> None:
    state = StatementDifference.get_by_id(row_id).state
    click.echo(said(N_("difference %(id)s: %(state)s"), id=row_id, state=state))
