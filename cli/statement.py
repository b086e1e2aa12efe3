"""`tillbook merchant statement`: a merchant's statement of a month, on the screen or as CSV."""

from __future__ import annotations

from typing import Any, TextIO

import click

from cli.output import Command, facts, json_option, show
from runtime.clock import in_china
from runtime.money import hundredths
from services.ledger import day_sums, monthly_statement
from services.ledger.monthly_statement import Statement
from services.merchants import merchant_setup
from services.platform.safe_text import cells

COLUMNS = ("time", "kind", "order_no", "merchant_order_no", "amount", "fees", "change", "balance", "memo")


def _view(found: Statement) -> dict[str, Any]:
    return {
        "merchant": found.merchant.key,
        "month": f"{found.month:%Y-%m}",
        "opening": hundredths(found.opening),
        **{name: hundredths(fen) for name, fen in vars(found.sums).items()},
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
    before fees; `held` is the reserved part of the closing balance. `refund_fees` are the fees returned with refunds,
    which `fees` include, and `refund_deducted` is what refunds took from the balance.
    """
    day_sums.catch_up(longest=float("inf"))
    found = monthly_statement.of(merchant_setup.find_merchant(key), monthly_statement.month_of(month))
    if file is None:
        show(_view(found), as_json, facts)
        return
    file.write(cells([COLUMNS]))
    for line in monthly_statement.lines(found):
        time = in_china(line.at).isoformat()
        amounts = map(hundredths, (line.gross, line.fees, line.amount, line.balance))
        file.write(cells([[time, line.purpose, line.order_no, line.merchant_order_no, *amounts, line.memo]]))
