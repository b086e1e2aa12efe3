"""`tillbook reconcile`: compare a channel's statement with the orders."""

from __future__ import annotations

import sys
from datetime import datetime
from decimal import Decimal
from typing import Any, BinaryIO

import click

from cli.orders import TYPES
from cli.output import ROW_ID, Command, facts, json_option, percent, picked, said, show, table
from runtime.money import hundredths
from runtime.texts import N_
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
            text = N_("--column %(pair)s: write NAME=VALUE, such as number=商户单号")
            raise click.UsageError(said(text, pair=pair))
        given.setdefault(name, []).append(value)
    return given


def _side(facts: dict[str, str]) -> str:
    """Return one side of a difference: status and amount, or the fee."""
    return " ".join(text if name == "status" else f"{Decimal(text):,}" for name, text in facts.items())


def _tell(view: dict[str, Any]) -> None:
    here, there = (
        {name: f"{Decimal(yuan):,}" for name, yuan in view["sums"][side].items()} for side in ("here", "there")
    )
    if view["differences"]:
        count = f"{len(view['differences']):,}"
        click.secho(said(N_("Differences found: %(count)s"), count=count), fg="yellow")
    else:
        click.secho(said(N_("No differences")), fg="green")
    both = N_("%(there)s in the statement, %(here)s in the orders")
    matched = N_("%(lines)s, %(matched)s of them matched to orders")
    facts(
        {
            "period": said(N_("%(since)s to %(until)s"), since=view["since"], until=view["until"]),
            "lines": said(matched, lines=f"{view['lines']:,}", matched=f"{view['matched']:,}"),
            **{name: said(both, there=there[name], here=here[name]) for name in here},
            "unknown": said(N_("%(yuan)s in the statement"), yuan=there["unknown"]),
        }
    )
    if view["differences"]:
        click.echo()
        rows = [
            {
                "kind": each["kind"],
                "line": each["line"],
                "order_no": each["order_no"] or each["reference"],
                "here": _side(each["here"]),
                "there": _side(each["there"]),
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
    channel = channel_setup.find_with_account(channel_id)
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
