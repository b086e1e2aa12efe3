"""`tillbook merchant statement` and `statements`: one merchant's month on the screen or as CSV, or all in one ZIP."""

from __future__ import annotations

from itertools import chain
from typing import Any, BinaryIO, TextIO

import click

from cli.output import Command, facts, json_option, show
from runtime.money import hundredths
from services.ledger import day_sums, monthly_statement, statement_files
from services.ledger.monthly_statement import Statement
from services.ledger.statement_files import COLUMNS, SUMMARY_COLUMNS, lines_csv
from services.merchants import merchant_setup
from services.platform.safe_text import cells


def _view(found: Statement) -> dict[str, Any]:
    return {
        "merchant": found.merchant.key,
        "month": f"{found.month:%Y-%m}",
        "opening": hundredths(found.opening),
        **{name: hundredths(fen) for name, fen in vars(found.sums).items()},
        **{f"{name}_count": count for name, count in vars(found.counts).items()},
        "closing": hundredths(found.closing),
        "available": hundredths(found.closing - found.held),
        "held": hundredths(found.held),
        "refund_count": found.refunds.count,
        "refund_fees": hundredths(found.refunds.fees),
        "refund_deducted": hundredths(found.refunds.deducted),
    }


@click.command("statement", cls=Command)
@click.argument("key")
@click.argument("month", metavar="YYYY-MM")
@click.option(
    "--csv", "file", type=click.File("w", encoding="utf-8"), help="Write all lines to this file instead; - prints them."
)
@json_option
def statement(key: str, month: str, file: TextIO | None, as_json: bool) -> None:
    """Show the balances and movements of merchant KEY in a month.

    YYYY-MM is the month, such as 2026-05, in China. Deposits, withdrawals, refunds, exceptions and adjustments are
    before fees, and the count of each is its number of lines. `held` is the reserved part of the closing balance.
    `refund_count` leaves out refunds that came back. `refund_fees` are the fees returned with refunds, which `fees`
    include, and `refund_deducted` is what refunds took from the balance.
    """
    day_sums.catch_up(longest=float("inf"))
    found = monthly_statement.of(merchant_setup.find_merchant(key), monthly_statement.month_of(month))
    if file is None:
        show(_view(found), as_json, facts)
        return
    file.write(cells([COLUMNS]))
    file.writelines(lines_csv(monthly_statement.lines(found)))


@click.command("statements", cls=Command)
@click.argument("month", metavar="YYYY-MM")
@click.argument("file", type=click.File("wb"))
def statements(month: str, file: BinaryIO) -> None:
    """Write the statements of all merchants in a month as one ZIP to FILE; - prints it.

    YYYY-MM is the month, such as 2026-05, in China. The ZIP has a CSV file for each merchant with a balance or
    movements in this month, and summary.csv with the balances, sums and counts of all of them.
    """
    day_sums.catch_up(longest=float("inf"))
    found = monthly_statement.of_all(monthly_statement.month_of(month))
    files = ((each, chain([cells([COLUMNS])], lines_csv(monthly_statement.lines(each)))) for each in found)
    summary = [cells([SUMMARY_COLUMNS, *map(statement_files.summary_row, found)])]
    file.writelines(statement_files.zipped(files, summary))
