"""The differences between channels' statements and the orders, until each is settled."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from markupsafe import Markup

from blueprints.console import access, labels
from blueprints.console import differences as rendering
from blueprints.console.access import current_user
from blueprints.console.alert_links import ago
from blueprints.console.columns import Column
from blueprints.console.filters import CHANNEL, Filter, choices
from blueprints.console.forms import find_or_404, message_of
from blueprints.console.list_page import ListPage, pages_of_one
from models.db.base import LARGEST_ID
from models.tables.bill import CHECKING, CLOSED, EXPECTED, EXPLAINED, OPEN, UNSETTLED, StatementDifference
from services.console import record_lists
from services.errors import OperatorError
from services.statements import differences, kept_results

ROW = f"/<int(max={LARGEST_ID}):row_id>"

pages = pages_of_one("difference", "differences")


def _url(row: StatementDifference) -> str:
    return url_for("difference.show", row_id=row.id)


def _shown(row: Any) -> rendering.Row:
    """Return a row of the list as texts, made once."""
    if not hasattr(row, "shown"):
        result = row.reconciliation_id
        row.shown = rendering.row_of(row.difference, row.channel_id, result, row.of_order, row.is_in_exception)
    shown: rendering.Row = row.shown
    return shown


def _days(row: StatementDifference) -> str:
    return row.since if row.since == row.until else f"{row.since} – {row.until}"


def _what(row: Any) -> Markup:
    """Return what differs, as a link to its page, and the remarks."""
    shown = _shown(row)
    link = Markup('<a href="{}">{}</a>').format(_url(row), shown.kind)
    return Markup("<br>").join([link, *(Markup('<span class="quiet">{}</span>').format(each) for each in shown.notes)])


def _status(row: Any) -> Markup:
    """Return the state, and how long ago the difference was found."""
    age = gettext("%(time)s ago", time=ago(row.createtime))
    return Markup('<span class="state {}">{}</span><br><span class="quiet">{}</span>').format(
        *rendering.state(row), age
    )


def _to_do(row: Any) -> Markup:
    """Return the next step and the actions of an unsettled difference."""
    if row.state not in UNSETTLED:
        return Markup("")
    step, parts = _shown(row).step, []
    if step.label:
        parts.append(Markup('<a href="{}">{}</a>').format(step.url, step.label))
    if current_user.may_act:
        parts.append(Markup('<a href="{}#explain">{}</a>').format(_url(row), gettext("Explain…")))
    if current_user.may_act and differences.may_check(row):
        parts.append(
            Markup('<form method="post" action="{}">{}<button class="plain">{}</button></form>').format(
                url_for("difference.check", row_id=row.id), FlaskForm().csrf_token, gettext("Check again")
            )
        )
    return Markup("<br>").join(parts)


MEANINGS = {
    CHECKING: lazy_gettext("The service checks the order at the channel, and compares again. Wait a moment."),
    EXPECTED: lazy_gettext("The statement of the next or previous day may have this line. Wait for it."),
    OPEN: lazy_gettext("It remains after the check. It closes when a statement, a notice or a decision settles it."),
    EXPLAINED: lazy_gettext("Explained. It is a difference again if its facts change."),
    CLOSED: lazy_gettext("Settled: the latest comparison does not find it any more."),
}

DIFFERENCES = ListPage(
    "differences",
    lazy_gettext("Differences"),
    browse=record_lists.Differences,
    empty=lazy_gettext("No differences."),
    hint=lazy_gettext("Differences between channels' statements and the orders appear here."),
    filters=(
        Filter(
            "state",
            lazy_gettext("Status"),
            "tab",
            choices=choices(rendering.STATES | {"all": lazy_gettext("All")}),
            default=OPEN,
        ),
        CHANNEL,
    ),
    columns=(
        Column("days", lazy_gettext("Day"), _days, link=_url, note=lambda row: row.channel.name),
        Column("channel", lazy_gettext("Channel"), lambda row: row.channel.name, on="export"),
        Column("detail", lazy_gettext("Kind of difference"), _what, "html", on="page"),
        Column("kind", lazy_gettext("Kind of difference"), lambda row: _shown(row).kind, on="export"),
        Column(
            "order_no", lazy_gettext("Order number"), lambda row: _shown(row).name, link=lambda row: _shown(row).url
        ),
        Column("here", lazy_gettext("Orders"), lambda row: _shown(row).here),
        Column("there", lazy_gettext("Channel statement"), lambda row: _shown(row).there),
        Column("differs", lazy_gettext("Difference (¥)"), lambda row: row.fen, "money"),
        Column("notes", lazy_gettext("Details"), lambda row: Markup("; ").join(_shown(row).notes), "html", on="export"),
        Column("status", lazy_gettext("Status"), _status, "html", on="page"),
        Column("state", lazy_gettext("Status"), rendering.state, "state", on="export"),
        Column("step", lazy_gettext("Next step"), _to_do, "html", on="page"),
        Column("createtime", lazy_gettext("Found"), lambda row: row.createtime, "time", on="export"),
        Column("note", lazy_gettext("Explanation"), lambda row: row.note, on="export"),
        Column("who", lazy_gettext("By"), lambda row: labels.who(row.who) if row.who else "", on="export"),
    ),
)


@pages.get(ROW)
def show(row_id: int) -> str:
    """Show one difference: its facts, its lines in the statement, its history, and what to do."""
    row = find_or_404(differences.find, row_id)
    told = differences.facts_of(row)
    order, is_open = kept_results.orders_of([told]).get(told.order_no, (None, False))
    shown = rendering.row_of(told, row.channel_id, row.reconciliation_id, order, is_open)
    return render_template(
        "console/reconciliations/difference.html",
        row=row,
        days=_days(row),
        shown=shown,
        state=rendering.state(row),
        meaning=MEANINGS[row.state],
        lines=differences.lines_of(row),
        there=rendering.THERE,
        is_unsettled=row.state in UNSETTLED,
        may_check=differences.may_check(row),
        longest_note=differences.LONGEST_NOTE,
    )


@pages.post(f"{ROW}/check")
def check(row_id: int) -> Any:
    """Check a difference again now."""
    row = find_or_404(differences.find, row_id)
    try:
        access.act("check difference", "difference", str(row_id), lambda: differences.check_now(row))
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
    else:
        flash(gettext("The difference is being checked. Reload the page in a moment."), "good")
    return redirect(_url(row), 303)


@pages.post(f"{ROW}/explain")
def explain(row_id: int) -> Any:
    """Mark a difference as explained, with a note."""
    row = find_or_404(differences.find, row_id)
    note, actor = request.form.get("note", ""), access.actor()

    def explained() -> None:
        if not differences.explain([row], note, actor.who):
            raise OperatorError(differences.SETTLED)

    try:
        detail = f"note: {note.strip()[: differences.LONGEST_NOTE]}"
        access.act("explain difference", "difference", str(row_id), explained, detail)
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
    else:
        flash(gettext("The difference is explained."), "good")
    return redirect(_url(row), 303)
