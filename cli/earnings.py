"""`tillbook earnings`: what the operator earned, on the screen or as CSV."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, TextIO

import click

from cli.output import Command, json_option, said, show
from cli.output import table as print_table
from runtime.texts import N_
from services.ledger import earnings as books
from services.ledger import monthly_statement
from services.ledger.earnings import GROUPS
from services.platform.safe_text import cells

DAY = click.DateTime(["%Y-%m-%d"])
ORDERS, TOTAL = N_("Orders"), N_("Total")
ADJUSTMENTS, CORRECTION = N_("Manual adjustments"), N_("Correction by bills")
AMOUNTS = (
    *("deposits", "deposits_amount", "withdrawals", "withdrawals_amount", "refunds", "refunds_amount"),
    *("fees", "costs", "net"),
)


def _groups(context: click.Context, option: click.Parameter, text: str) -> tuple[str, ...]:
    wanted = [name for name in text.split(",") if name]
    if wrong := [name for name in wanted if name not in GROUPS]:
        raise click.BadParameter(
            said(N_("choose from %(names)s, not %(wrong)s"), names=", ".join(GROUPS), wrong=wrong[0])
        )
    return tuple(name for name in GROUPS if name in wanted)


def _days(month: str | None, since: datetime | None, until: datetime | None) -> tuple[date | None, date | None]:
    if month and (since or until):
        raise click.UsageError(said(N_("Give a month, or the first and last day.")))
    if since or until:
        return since and since.date(), until and until.date()
    first = monthly_statement.month_of(month) if month else monthly_statement.this_month()
    return first, books.last_day(first)


@click.command("earnings", cls=Command)
@click.option("--month", metavar="YYYY-MM", help="Month in China. Default: this month.")
@click.option("--since", type=DAY, metavar="YYYY-MM-DD", help="First day in China, instead of a month.")
@click.option("--until", type=DAY, metavar="YYYY-MM-DD", help="Last day in China. Default: today.")
@click.option(
    "--by",
    default="channel",
    show_default=True,
    metavar="GROUPS",
    callback=_groups,
    help="One line for each day, merchant, channel or method, or for each combination, such as merchant,channel.",
)
@click.option(
    "--csv", "file", type=click.File("w", encoding="utf-8"), help="Write the lines to this file instead; - prints them."
)
@json_option
def earnings(
    month: str | None,
    since: datetime | None,
    until: datetime | None,
    by: tuple[str, ...],
    file: TextIO | None,
    as_json: bool,
) -> None:
    """Show what you earned: the fees of merchants less the costs of channels.

    Deposits count when they are credited, withdrawals when they are paid out, refunds when they are completed, by days
    in China. `fees_given_back` are part of `fees`. Manual adjustments are a line of their own.
    """
    first, last = _days(month, since, until)
    books.catch_up(longest=float("inf"))
    found = books.lines(first, last, by)
    names, *rows = books.table([*found, books.Line(None, None, None, None, False, books.total(found))])
    if file is not None:
        file.write(cells([names, *rows[:-1]]))
        return
    facts = [dict(zip(names, map(_plain, row), strict=True)) for row in rows]
    show({"lines": facts[:-1], "total": facts[-1]}, as_json, lambda _: _tell(facts, by))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, date) else value


def _tell(facts: list[dict[str, Any]], by: tuple[str, ...]) -> None:
    """Print the lines and their total for people."""
    shown = []
    for fact in facts:
        names = {name: fact.get(f"{name}_name", fact[name]) for name in by} or {"kind": said(ORDERS)}
        empty = next((name for name, text in names.items() if not text), None)
        if fact is facts[-1]:
            names = dict.fromkeys(names, "") | {next(iter(names)): said(TOTAL)}
        elif fact["line"] == "adjustments":
            names[empty or next(reversed(names))] = said(ADJUSTMENTS)
        elif empty:
            names[empty] = said(CORRECTION)
        shown.append(names | {name: fact[name] for name in AMOUNTS})
    print_table(shown)
