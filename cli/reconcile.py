"""`orders reconcile`: compare a channel's statement with the orders."""

from __future__ import annotations

import sys
from datetime import date, datetime, timedelta
from typing import Any, BinaryIO

import click

from cli.orders import TYPES
from cli.output import PERCENT, ROW_ID, Command, facts, json_option, show, table
from gateways import registry
from gateways.base import CHINA
from gateways.statement import Layout
from schemas.views import hundredths
from services.channels import channel_setup
from services.errors import OperatorError
from services.statements import parse
from services.statements import reconcile as comparison
from services.statements.book_side import Days
from services.statements.parse import Line
from services.statements.reconcile import Comparison

DAY = click.DateTime(["%Y-%m-%d"])
DIFFERENT = 3  # exit status; 1 and 2 mean that nothing was compared


def _given(pairs: tuple[str, ...]) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not value:
            raise click.UsageError(f"--column {pair}: write NAME=VALUE, such as number=商户单号")
        given.setdefault(name, []).append(value)
    return given


def _lines(layout: Layout, file: BinaryIO, given: dict[str, list[str]], with_fees: bool) -> list[Line]:
    raw = file.read(parse.MOST_BYTES + 1)
    layout = parse.overridden(layout, given)
    return parse.read(raw, layout, {*given, *(["fee"] if with_fees else [])})


def _days(lines: list[Line], since: datetime | None, until: datetime | None) -> tuple[date, date]:
    """Return the first and last day of the statement, in China."""
    times = [time for line in lines if (time := line.created or line.time) is not None]
    if since is None and not times:
        raise OperatorError("the statement has no times: specify its days with --since and --until")
    first = since.date() if since else datetime.fromtimestamp(min(times), CHINA).date()
    last = until.date() if until else datetime.fromtimestamp(max(times), CHINA).date() if times else first
    if last < first:
        raise OperatorError(f"the last day ({last}) is before the first ({first})")
    return first, last


def _begins(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=CHINA).timestamp())


def _tell(view: dict[str, Any]) -> None:
    here, there = view["sums"]["here"], view["sums"]["there"]
    facts(
        {
            "days": f"{view['since']} to {view['until']}",
            "lines": f"{view['lines']}, {view['matched']} of them matched to orders",
            **{name: f"{there[name]} in the statement, {here[name]} in the orders" for name in here},
            "unknown": f"{there['unknown']} in the statement",
            "differences": len(view["differences"]),
        }
    )
    if view["differences"]:
        click.echo()
        table([_row(difference) for difference in view["differences"]])


def _row(difference: dict[str, Any]) -> dict[str, Any]:
    here, there = (" ".join(difference[side].values()) for side in ("here", "there"))
    return {
        "kind": difference["kind"],
        "line": difference["line"],
        "order_no": difference["order_no"] or difference["reference"],
        "here": here,
        "there": there,
        "detail": difference["detail"],
    }


def _view(channel_id: int, first: date, last: date, found: Comparison) -> dict[str, Any]:
    return {
        "channel": channel_id,
        "since": str(first),
        "until": str(last),
        "lines": found.lines,
        "matched": found.matched,
        "sums": {side: {name: hundredths(fen) for name, fen in sums.items()} for side, sums in found.sums.items()},
        "differences": [vars(difference) for difference in found.differences],
    }


@click.command("reconcile", cls=Command)
@click.argument("channel_id", metavar="CHANNEL", type=ROW_ID)
@click.argument("statement", metavar="STATEMENT", type=click.File("rb"))
@click.option(
    "--since",
    type=DAY,
    metavar="YYYY-MM-DD",
    help="First day of the statement, in China. Default: the day of its first line.",
)
@click.option(
    "--until", type=DAY, metavar="YYYY-MM-DD", help="Last day of the statement. Default: the day of its last line."
)
@click.option(
    "--type",
    "kind",
    type=click.Choice(list(TYPES)),
    help="The statement has only deposits (buy) or only withdrawals (sell).",
)
@click.option(
    "--fee-rate",
    type=PERCENT,
    help="Rate that the channel charges on deposits by contract, in percent. It is compared with the fees.",
)
@click.option(
    "--column",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Name of a column in this file, such as number=商户单号, or a word in it, such as paid=成功.",
)
@json_option
def reconcile(
    channel_id: int,
    statement: BinaryIO,
    since: datetime | None,
    until: datetime | None,
    kind: str | None,
    fee_rate: int | None,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare a channel's statement with the orders.

    CHANNEL is the channel's id. STATEMENT is the downloaded CSV file, or - for standard input. Nothing is changed.
    Exits with status 0 if both agree, 3 if they differ.
    """
    channel = channel_setup.find_channel(channel_id)
    layout = registry.DRIVERS[channel.driver].statement
    lines = _lines(layout, statement, _given(pairs), with_fees=fee_rate is not None)
    first, last = _days(lines, since, until)
    types = (TYPES[kind],) if kind else layout.types
    by_creation = any(line.created for line in lines) if lines else bool(layout.created)
    days = Days(_begins(first), _begins(last + timedelta(days=1)), by_creation)
    found = comparison.compare(channel, lines, days, types, fee_rate)
    show(_view(channel_id, first, last, found), as_json, _tell)
    sys.exit(DIFFERENT if found.differences else 0)
