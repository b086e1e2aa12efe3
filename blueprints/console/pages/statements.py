"""Monthly statements of merchants: a page to read and print, and a CSV file with every line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, datetime
from itertools import islice
from typing import Any

from flask import Blueprint, Response, abort, render_template, request, stream_with_context
from flask_babel import gettext, lazy_gettext

from blueprints.console import access, labels
from blueprints.console.filters import merchant_choices
from blueprints.console.forms import find_or_404, message_of
from blueprints.console.list_page import BYTE_ORDER_MARK, export_slot
from models.tables.merchant import Merchant
from runtime.clock import in_china
from runtime.money import hundredths
from services.errors import OperatorError
from services.ledger import monthly_statement
from services.ledger.monthly_statement import Line, Refunds, Statement
from services.merchants import merchant_setup
from services.platform.safe_text import cells

SHOWN = 100  # lines of a day on the page
LINES_AT_ONCE = 500
HEADINGS = (
    lazy_gettext("Time (China)"),
    lazy_gettext("Type"),
    lazy_gettext("Order number"),
    lazy_gettext("Merchant order number"),
    lazy_gettext("Amount before fees (¥)"),
    lazy_gettext("Fees (¥)"),
    lazy_gettext("Change (¥)"),
    lazy_gettext("Balance (¥)"),
    lazy_gettext("Memo"),
)

pages = Blueprint("statements", __name__, url_prefix="/statements")


def _month() -> date:
    """Return the month in the address or form; the last one without it. Raises NotFound if it is not a month."""
    given = request.values.get("month", "")
    return find_or_404(monthly_statement.month_of, given) if given else monthly_statement.last_month()


def _merchant(key: str) -> Merchant | None:
    """Return the merchant with this key, the first one without a key, or None if there are no merchants."""
    if key:
        return find_or_404(merchant_setup.find_merchant, key)
    return Merchant.select().order_by(Merchant.key).first()


@pages.get("/")
def index() -> Any:
    """Show the statement of a merchant and a month, and the lines of one day."""
    row, month = _merchant(request.args.get("merchant", "")), _month()
    day = request.args.get("day", type=date.fromisoformat)  # whose lines are shown
    if day and day.replace(day=1) != month:
        day = None
    statement, problem = None, ""
    try:
        statement = monthly_statement.of(row, month) if row else None
        lines = list(islice(monthly_statement.lines(statement, day), SHOWN + 1)) if statement and day else []
    except OperatorError as refusal:
        lines, problem = [], message_of(refusal)
    page = render_template(
        "console/statements/statement.html",
        merchants=merchant_choices(),
        months=monthly_statement.months_of(row) if row else [],
        merchant=row,
        month=month,
        statement=statement,
        day=day,
        problem=problem,
        lines=lines[:SHOWN],
        more=len(lines) > SHOWN,
        kind_of=kind_of,
        memo_of=memo_of,
        at=at,
    )
    return page, 503 if problem else 200


def at(line: Line) -> datetime:
    """Return the time of a line in China."""
    return in_china(line.at)


def kind_of(line: Line) -> str:
    """Return the label of a line."""
    return str(labels.purpose_of(line.purpose))


def memo_of(line: Line) -> str:
    """Return the reason of an adjustment, or the kind of an exception."""
    return labels.name_of(labels.EXCEPTIONS, line.memo)


@pages.post("/export")
def export() -> Response:
    """Stream the lines of a statement as CSV. Raises ApiError if too many exports are running."""
    row, month = _merchant(request.values.get("merchant", "")), _month()
    if row is None:
        abort(404)
    statement = monthly_statement.of(row, month)
    slot = access.act("export statement", "merchant", row.key, export_slot, f"{month:%Y-%m}")
    response = Response(
        stream_with_context(_file(statement, slot)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="statement-{row.key}-{month:%Y-%m}.csv"'},
    )
    response.call_on_close(slot.close)
    return response


def _file(statement: Statement, slot: ExitStack) -> Iterator[str]:
    begins, blank = statement.month.isoformat(), [""] * 3
    ends = monthly_statement.next_month(statement.month).isoformat()
    sums = statement.sums
    with slot:
        opening = [begins, gettext("Opening balance"), *blank, "", "", hundredths(statement.opening), ""]
        yield BYTE_ORDER_MARK + cells([[str(each) for each in HEADINGS], opening])
        lines = monthly_statement.lines(statement)
        while some := list(islice(lines, LINES_AT_ONCE)):
            yield cells([_cells(line) for line in some])
        amounts = [sums.change - sums.fees, sums.fees, sums.change, statement.closing]
        closing = [ends if statement.is_over else "", gettext("Closing balance"), "", "", *map(hundredths, amounts), ""]
        held = ["", gettext("of which reserved"), *blank, "", "", hundredths(statement.held), ""]
        yield cells([closing, held])
        refunds = statement.refunds
        if refunds != Refunds():
            number = gettext("Number of refunds: %(count)s", count=refunds.count)
            amounts = [-refunds.amount, refunds.fees, -refunds.deducted]
            yield cells([["", gettext("Refunds"), "", "", *map(hundredths, amounts), "", number]])


def _cells(line: Line) -> list[str]:
    return [
        at(line).isoformat(),
        kind_of(line),
        line.order_no,
        line.merchant_order_no,
        *map(hundredths, (line.gross, line.fees, line.amount, line.balance)),
        memo_of(line),
    ]
