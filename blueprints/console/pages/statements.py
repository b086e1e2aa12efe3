"""Monthly statements of merchants: a page to read and print, a CSV file with every line, and a ZIP with all files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, datetime
from itertools import islice
from typing import Any

from flask import Blueprint, Response, abort, flash, redirect, render_template, request, stream_with_context, url_for
from flask_babel import gettext, lazy_gettext

from blueprints.console import access, labels
from blueprints.console.filters import merchant_choices
from blueprints.console.forms import find_or_404, message_of
from blueprints.console.list_page import BYTE_ORDER_MARK, export_slot
from models.tables.merchant import Merchant
from runtime import clock
from runtime.clock import in_china
from runtime.money import hundredths
from runtime.state import current
from services.errors import OperatorError
from services.ledger import monthly_statement, statement_files
from services.ledger.monthly_statement import GROUPS, Line, Refunds, Statement
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
GROUP_LABELS = {
    "deposits": lazy_gettext("Deposits"),
    "withdrawals": lazy_gettext("Withdrawals"),
    "refunds": lazy_gettext("Refunds"),
    "exceptions": lazy_gettext("Exceptions"),
    "adjustments": lazy_gettext("Adjustments"),
}
SUMMARY_HEADINGS = (
    lazy_gettext("Merchant key"),
    lazy_gettext("Merchant"),
    lazy_gettext("Opening balance"),
    *(GROUP_LABELS[group] for group in GROUPS),
    lazy_gettext("Fees"),
    lazy_gettext("Closing balance"),
    lazy_gettext("of which reserved"),
    lazy_gettext("Number of deposits"),
    lazy_gettext("Number of withdrawals"),
    lazy_gettext("Number of refunds, with those that came back"),
    lazy_gettext("Number of exceptions"),
    lazy_gettext("Number of adjustments"),
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
        groups=GROUP_LABELS,
        issuer=issuer(),
        issued=in_china(clock.now()),
    )
    return page, 503 if problem else 200


def issuer() -> list[str]:
    """Return the lines of the letterhead: the issuer's name and details, as the settings have them."""
    chosen = current().settings
    return [line.strip() for line in (chosen.issuer_name, *chosen.issuer_details.split("|")) if line.strip()]


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
    return _download(_file(statement), slot, f"statement-{row.key}-{month:%Y-%m}.csv", "text/csv; charset=utf-8")


@pages.post("/export/all")
def export_all() -> Any:
    """Stream the files of all merchants of a month as a ZIP. Raises ApiError if too many exports are running."""
    month = _month()
    try:
        found = monthly_statement.of_all(month)
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return redirect(url_for(".index", month=f"{month:%Y-%m}"), 303)
    slot = access.act("export statements", "list", "statements", export_slot, f"{month:%Y-%m}")
    headings = cells([[str(each) for each in SUMMARY_HEADINGS]])
    summary = [BYTE_ORDER_MARK + headings + cells(map(statement_files.summary_row, found))]
    files = ((each, _file(each)) for each in found)
    name = f"statements-{month:%Y-%m}.zip"
    return _download(statement_files.zipped(files, summary), slot, name, "application/zip")


def _download(parts: Iterator[Any], slot: ExitStack, name: str, content_type: str) -> Response:
    def sent() -> Iterator[Any]:
        with slot:
            yield from parts

    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    response = Response(stream_with_context(sent()), content_type=content_type, headers=headers)
    response.call_on_close(slot.close)  # the generator does not start if the client leaves before the first byte
    return response


def _file(statement: Statement) -> Iterator[str]:
    begins, blank = statement.month.isoformat(), [""] * 3
    ends = monthly_statement.next_month(statement.month).isoformat()
    sums = statement.sums
    opening = [begins, gettext("Opening balance"), *blank, "", "", hundredths(statement.opening), ""]
    yield BYTE_ORDER_MARK + cells([[str(each) for each in HEADINGS], opening])
    lines = monthly_statement.lines(statement)
    while some := list(islice(lines, LINES_AT_ONCE)):
        yield cells([_cells(line) for line in some])
    amounts = [sums.change - sums.fees, sums.fees, sums.change, statement.closing]
    counts = "; ".join(f"{GROUP_LABELS[group]}: {count}" for group, count in vars(statement.counts).items() if count)
    closing = [
        ends if statement.is_over else "",
        gettext("Closing balance"),
        "",
        "",
        *map(hundredths, amounts),
        counts and gettext("Number of lines: %(counts)s", counts=counts),
    ]
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
