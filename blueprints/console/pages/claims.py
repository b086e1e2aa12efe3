"""The list of claims, the confirmation of many at once, and the upload of a statement that matches them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext
from markupsafe import Markup

from blueprints.console import access, column_roles, uploads
from blueprints.console.action_labels import money
from blueprints.console.columns import KINDS, Column, marked, merchant_columns, same_amount, status_of
from blueprints.console.filters import CHANNEL, MERCHANT, SINCE, UNTIL, Filter
from blueprints.console.forms import message_of
from blueprints.console.list_page import BulkAction, ListPage
from blueprints.console.locale import ngettext, time_tag
from blueprints.console.pages.orders import CHANNEL_COLUMNS, ORDER_COLUMNS
from models.tables.channel import Channel
from models.tables.order import BUY, PAID, Order
from runtime import clock
from runtime.clock import in_china
from services.console import order_list
from services.errors import N_, OperatorError
from services.operations import bulk
from services.operations import claims as decisions
from services.operations.actions import Act, Given
from services.operations.claims import NOT_RECEIVED, RECEIVED, FromStatement
from services.orders import next_step
from services.security import audit, vault
from services.statements import claims as matching
from services.statements import kept_layouts, layouts, received, tables
from services.statements.claims import Outcome
from services.statements.layouts import Layout, Role, UnknownLayout

MOST_SHOWN = 5  # refusals that a message names
MOST_LISTED = 100  # rows of a file with one result
MOST_CANDIDATES = 10  # deposits of one payment
A_HOUR = 3_600
ROLES = {
    Role.IGNORED: lazy_gettext("Not needed"),
    Role.TIME: lazy_gettext("Time, or day"),
    Role.CLOCK: lazy_gettext("Time of day, next to a column with the day"),
    Role.REFERENCE: lazy_gettext("Transaction ID"),
    Role.ORIGINAL: lazy_gettext("Transaction ID of the payment that the row takes back"),
    Role.INCOME: lazy_gettext("Income"),
    Role.EXPENSE: lazy_gettext("Expense"),
    Role.SIGNED: lazy_gettext("Amount, with a minus if it was sent"),
    Role.AMOUNT: lazy_gettext("Amount, with the direction in another column"),
    Role.DIRECTION: lazy_gettext("Direction: received or sent"),
    Role.STATUS: lazy_gettext("Status"),
    Role.CURRENCY: lazy_gettext("Currency"),
    Role.KIND: lazy_gettext("Type of transaction"),
    Role.REVERSED: lazy_gettext("Mark of a reversal"),
    Role.NOTE: lazy_gettext("Note, or order number"),
    Role.PAYER: lazy_gettext("Name of the payer"),
    Role.ACCOUNT: lazy_gettext("Account of the payer"),
}


def marks(order: Any) -> Markup:
    """Return the marks of a claim: an open exception, and other claims of its amount."""
    return Markup(" ").join([KINDS["states"].html(marked(order, status_of(order))[1:]), same_amount(order)])


CLAIMS = ListPage(
    "claims",
    lazy_gettext("Claims"),
    browse=order_list.Claims,
    empty=lazy_gettext("No claims to confirm."),
    hint=lazy_gettext("Deposits on manual channels appear here when the customer reports the payment."),
    new=("claims.upload", lazy_gettext("Upload statement")),
    filters=(
        Filter("text", lazy_gettext("Order number, or part of the merchant order number"), "search"),
        Filter("amount", lazy_gettext("Amount"), "amount"),
        MERCHANT,
        CHANNEL,
        SINCE,
        UNTIL,
    ),
    columns=(
        *(replace(each, on="export") if each.name == "createtime" else each for each in ORDER_COLUMNS),
        Column("claimed", lazy_gettext("Claimed at"), lambda order: order.updatetime, "time"),
        Column("payer", lazy_gettext("Payer"), lambda order: order.payer),
        *merchant_columns(),
        *(replace(each, note=None, on="" if each.name == "method" else each.on) for each in CHANNEL_COLUMNS),
        Column("amount", lazy_gettext("Amount (¥)"), lambda order: order.amount, "money"),
        Column("status", lazy_gettext("Status"), status_of, "state", on="export"),
        Column("status", lazy_gettext("Status"), marks, "html", on="page"),
    ),
    bulk=(
        BulkAction("claims.confirm", lazy_gettext("Confirm received"), "primary"),
        BulkAction("claims.not_received", lazy_gettext("Payment not received"), "danger"),
    ),
    oldest_first=True,
)
pages = CLAIMS.blueprint()


@pages.get("/confirm")
def confirm() -> Any:
    """Show the selected deposits with their total before they are confirmed."""
    return _confirmation(RECEIVED, "confirm_all")


@pages.post("/confirm")
def confirm_all() -> Any:
    """Confirm the deposits that the page showed."""
    return _decide(RECEIVED)


@pages.get("/not-received")
def not_received() -> Any:
    """Show the selected deposits with their total before they are reported as not received."""
    return _confirmation(NOT_RECEIVED, "dismiss_all")


@pages.post("/not-received")
def dismiss_all() -> Any:
    """Report the deposits that the page showed as not received."""
    return _decide(NOT_RECEIVED)


def _confirmation(kind: Act, endpoint: str) -> Any:
    access.must_act()
    numbers = list(dict.fromkeys(request.args.getlist("order_no")))
    if not 0 < len(numbers) <= bulk.MOST:
        flash(gettext("Select 1 to %(most)s deposits.", most=str(bulk.MOST)), "bad")
        return redirect(url_for(".index"))
    rows = decisions.preview(kind, Order.numbered(BUY, numbers))
    order_list.add_payers([row.order for row in rows])
    return render_template(
        "console/claims/confirm.html",
        same_amount=same_amount,
        kind=kind,
        send_to=url_for(f".{endpoint}"),
        rows=rows,
        sums=_sums(rows),
        message_of=message_of,
    )


def _sums(rows: list[bulk.Row]) -> dict[str, Any]:
    """Return the number of the deposits that can be decided on, their total, and the sum of their postings in fen."""
    actions = [row.action for row in rows if row.action]
    lines: dict[str, int] = {}
    for action in actions:
        for (account, _), fen in action.lines.items():
            lines[account] = lines.get(account, 0) + fen
    events = {each.event for action in actions for each in action.sends if each.is_wanted}
    total = bulk.total(row.order for row in rows if row.action)
    return {"count": len(actions), "total": total, "lines": lines, "events": sorted(events)}


def _decide(kind: Act) -> Any:
    """Decide on the deposits in the form: each row is a number and a seal, with a statement also a transaction ID.

    `row` are shown or matched, `row-LINE` is the one that was chosen for a payment of the file.
    """
    names = [name for name in request.form if name.startswith("row-") and "matched" not in request.form]
    values = [*request.form.getlist("row"), *(request.form[name] for name in names)]
    rows = [each.split(":", 2) for each in values if ":" in each]
    if not 0 < len(rows) <= bulk.MOST:
        flash(gettext("Select 1 to %(most)s deposits.", most=str(bulk.MOST)), "bad")
        return redirect(url_for(".index"), 303)
    counts = Counter(number for number, *_ in rows)
    for number in (number for number, count in counts.items() if count > 1):
        text = gettext("Not confirmed, because you chose it for several payments. Upload the file again.")
        flash(f"{number}: {text}", "bad")
    shown, given, reason = {}, {}, request.form.get("reason", "")
    sent = request.form.get("uploaded", 0, int)
    uploaded = sent if 0 < sent <= clock.now() else 0
    for number, seal, *reference in rows:
        if counts[number] == 1:
            shown[number] = seal
            typed = Given(reason, reference=request.form.get(f"reference-{number}", ""))
            given[number] = (
                FromStatement(reason, reference=reference[0], uploaded=uploaded, together=frozenset(counts))
                if reference
                else typed
            )
    if shown:
        _report(kind, decisions.decide(kind, shown, given, access.actor()))
    return redirect(url_for(".index"), 303)


def _report(kind: Act, outcomes: list[bulk.Outcome]) -> None:
    """Show the number and total of the deposits that were decided on, and why the others were not."""
    done = [each.order for each in outcomes if each.state == bulk.DONE]
    refused = [each for each in outcomes if each.refusal is not None]
    if done:
        flash(_done_text(kind, len(done), money(bulk.total(done))), "good")
    for each in refused[:MOST_SHOWN]:
        assert each.refusal is not None
        flash(f"{each.order.order_no}: {message_of(each.refusal)}", "bad")
    if len(refused) > MOST_SHOWN:
        hidden = len(refused) - MOST_SHOWN
        flash(ngettext("%(num)s more was not changed.", "%(num)s more were not changed.", hidden), "bad")
    if left := sum(each.state == bulk.LEFT for each in outcomes):
        text = ngettext("%(num)s was left unchanged. Repeat it.", "%(num)s were left unchanged. Repeat them.", left)
        flash(text, "bad")


def _done_text(kind: Act, count: int, total: str) -> str:
    if kind == RECEIVED:
        text = ngettext("%(num)s deposit confirmed", "%(num)s deposits confirmed", count)
    else:
        text = ngettext("%(num)s deposit cancelled", "%(num)s deposits cancelled", count)
    return f"{text}: {total}"


def _channels() -> list[Channel]:
    return list(Channel.select().where(Channel.id.in_(next_step.manual_channels())).order_by(Channel.id))


def _upload_page(problem: str = "") -> tuple[str, int]:
    facts = {"channels": _channels(), "chosen": request.values.get("channel", ""), "problem": problem}
    return render_template("console/claims/upload.html", **facts), 422 if problem else 200


@pages.get("/upload")
def upload() -> Any:
    """Show the form for a statement."""
    access.must_act()
    return _upload_page()


@pages.post("/upload")
def match() -> Any:
    """Match the payments of a statement with open deposits, and show the result. The file is not stored."""
    try:
        channel = _chosen_channel()
        _, content = uploads.sent_file("file")
        uploaded = clock.now()
        layout, found = tables.alone(_read_and_match, channel, content)
    except UnknownLayout as unknown:
        return _columns_page(channel, unknown)
    except OperatorError as refusal:
        return _upload_page(message_of(refusal))
    rows, matched = len(found.rows), len(found.of(Outcome.MATCHED))
    detail = N_("%(rows)s rows, %(matched)s matched") % {"rows": rows, "matched": matched}
    audit.record(access.actor(), "match statement", "channel", str(channel.id), detail)
    return _matches_page(channel, layout, found, uploaded)


def _read_and_match(channel: Channel, content: bytes) -> tuple[Layout, matching.Matches]:
    statement = _read(channel, content)
    return statement.layout, matching.match(channel, statement.rows)


def _read(channel: Channel, content: bytes) -> received.Statement:
    """Read the statement by a known layout, or by the roles that the form has for its columns, which are then kept.

    Raises:
        UnknownLayout: its columns are not known, or the form is about other columns.
    """
    kept = kept_layouts.of(channel)
    chosen = column_roles.confirmed(content, received.head_of, layouts.check)
    if chosen is None:
        return received.read(content, kept)
    statement = received.read(content, [chosen, *kept])
    kept_layouts.keep(channel, chosen, access.actor())
    return statement


def _columns_page(channel: Channel, unknown: UnknownLayout) -> tuple[str, int]:
    """Ask what each column of the statement has."""
    return column_roles.page(
        unknown,
        channel,
        ROLES,
        layouts.suggested,
        title=gettext("Columns of the statement"),
        back=(url_for(".upload", channel=channel.id), gettext("Upload statement")),
        send_to=url_for(".match"),
        button=gettext("Keep columns and match payments"),
    )


def _chosen_channel() -> Channel:
    """Return the manual channel that the form names. Raises OperatorError."""
    wanted = request.form.get("channel", "")
    found = next((channel for channel in _channels() if str(channel.id) == wanted), None)
    if found is None:
        raise OperatorError(N_("Choose the channel whose account the statement is for."))
    return found


OUTCOMES = {
    Outcome.MATCHED: lazy_gettext("Matched"),
    Outcome.TO_DECIDE: lazy_gettext("To decide"),
    Outcome.RECORDED: lazy_gettext("Recorded before"),
    Outcome.NOT_MONEY_IN: lazy_gettext("Not an incoming payment"),
}


@dataclass(frozen=True)
class Candidate:
    """A deposit that a payment of the file may be for.

    `choice` is its value in the form, "" if the operator can't choose it here. `line` is the one that it is matched
    with, or None. `same_payer`: the file has its payer's name, which is a hint only.
    """

    order: Order
    choice: str
    line: int | None
    same_payer: bool


def _candidates(
    channel: Channel, undecided: list[matching.Found], matched: dict[str, matching.Found]
) -> dict[int, list[Candidate]]:
    """Return the deposits that each payment may be for, by its line: claimed ones first, then the nearest in time."""
    numbers = {order.order_no for each in undecided for order in each.orders[:MOST_CANDIDATES]}
    rows = {row.order.order_no: row for row in decisions.preview(RECEIVED, Order.numbered(BUY, numbers))}
    order_list.add_payers([row.order for row in rows.values()])
    candidates = {}
    for each in undecided:
        known = [rows[order.order_no] for order in each.orders if order.order_no in rows]
        paid_at = each.line.since or 0
        known.sort(key=lambda row: (row.order.status != PAID, abs(row.order.updatetime - paid_at)))
        candidates[each.line.at] = [
            Candidate(
                row.order,
                f"{row.order.order_no}:{row.action.seal}:{each.line.reference}"
                if row.action and row.order.order_no not in matched and each.may_be_for(row.order, channel)
                else "",
                matched[row.order.order_no].line.at if row.order.order_no in matched else None,
                bool(row.order.customer_name) and vault.decrypt(row.order.customer_name) == each.line.payer,
            )
            for row in known
        ]
    return candidates


def paid_at(line: received.Movement) -> Any:
    """Return the time of a payment in the file, or its day in China if the file has no time; empty if unknown."""
    if line.since is None or line.until is None:
        return ""
    return time_tag(line.since) if line.until - line.since < A_HOUR else f"{in_china(line.since):%Y-%m-%d}"


def _matches_page(channel: Channel, layout: Layout, found: matching.Matches, uploaded: int) -> str:
    by_order = {match.orders[0].order_no: match for match in found.of(Outcome.MATCHED)}
    rows = decisions.preview(RECEIVED, Order.numbered(BUY, by_order))
    order_list.add_payers([row.order for row in rows])
    # One confirmation takes bulk.MOST deposits, and each of these payments may add one to those that are matched.
    undecided = found.of(Outcome.TO_DECIDE)[: min(MOST_LISTED, bulk.MOST - len(by_order))]
    candidates = _candidates(channel, undecided, by_order)
    counted = [(title, found.sums(each)) for each, title in OUTCOMES.items()]
    return render_template(
        "console/claims/matches.html",
        channel=channel,
        layout=layout,
        by_order=by_order,
        rows=rows,
        sums=_sums(rows),
        counted=[*counted, (gettext("File"), found.sums())],
        others=[(each.name, title, found.of(each)) for each, title in OUTCOMES.items() if each is not Outcome.MATCHED],
        candidates=candidates,
        may_choose=any(each.choice for some in candidates.values() for each in some),
        send_to=url_for(".confirm_all"),
        uploaded=uploaded,
        most=MOST_LISTED,
        paid_at=paid_at,
        same_amount=same_amount,
        message_of=message_of,
    )
