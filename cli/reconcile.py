"""`tillbook reconcile`: compare a channel's statement with the orders."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any, BinaryIO

import click

from cli.orders import TYPES
from cli.output import ROW_ID, Command, facts, json_option, percent, picked, show, table
from runtime.money import hundredths
from services.channels import channel_setup
from services.statements import compare_file, tables
from services.statements.compare_file import Choices, Result

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
        rows = [
            {
                "kind": each["kind"],
                "line": each["line"],
                "order_no": each["order_no"] or each["reference"],
                "here": " ".join(each["here"].values()),
                "there": " ".join(each["there"].values()),
                "detail": each["detail"],
            }
            for each in view["differences"]
        ]
        table(rows)


def _view(channel_id: int, result: Result) -> dict[str, Any]:
    found = result.comparison
    return {
        "channel": channel_id,
        "since": str(result.since),
        "until": str(result.until),
        "lines": found.lines,
        "matched": found.matched,
        "sums": {side: {name: hundredths(fen) for name, fen in sums.items()} for side, sums in found.sums.items()},
        "differences": [
            picked(each, "kind", "order_no", "reference", "line", "here", "there", "detail")
            for each in found.differences
        ],
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
    type=percent(),
    help="Rate that the channel charges on deposits by contract, in percent. It is compared with the fees.",
)
@click.option(
    "--all-paid", is_flag=True, help="Confirm that each line of a file without a status column is a completed payment."
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
    all_paid: bool,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare a channel's statement with the orders.

    CHANNEL is the channel's id. STATEMENT is the downloaded CSV file, or - for standard input. Nothing is changed.
    Exits with status 0 if both agree, 3 if they differ.
    """
    channel = channel_setup.find_channel(channel_id)
    chosen = Choices(
        since=since and since.date(),
        until=until and until.date(),
        order_type=TYPES[kind] if kind else None,
        fee_rate=fee_rate,
        all_paid=all_paid,
        columns=_given(pairs),
    )
    result = compare_file.compare(channel, statement.read(tables.MOST_BYTES + 1), chosen)
    show(_view(channel_id, result), as_json, _tell)
    sys.exit(DIFFERENT if result.comparison.differences else 0)
