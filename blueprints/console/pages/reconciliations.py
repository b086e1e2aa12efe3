"""Reconciliation: upload a channel's statement, and see the differences with the orders."""

from __future__ import annotations

from datetime import date
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from marshmallow import ValidationError
from marshmallow.fields import Field
from wtforms import BooleanField, SelectChoice, SelectField, TextAreaField
from wtforms.validators import DataRequired

from blueprints.console import access, labels, uploads
from blueprints.console import differences as rendering
from blueprints.console.columns import Column, channel_link
from blueprints.console.filters import CHANNEL
from blueprints.console.forms import SchemaField, find_or_404, form_page, message_of
from blueprints.console.list_page import ListPage, pages_of_one
from blueprints.console.locale import ngettext
from models.db.base import LARGEST_ID
from models.tables.order import BUY, SELL
from models.tables.reconciliation import Reconciliation
from schemas.fields import Percent
from services.channels import channel_setup
from services.console import record_lists
from services.errors import N_, OperatorError
from services.security import audit
from services.statements import differences, kept_results
from services.statements.compare_file import Choices
from services.statements.parse import NoStatus

SHOWN = 100  # differences of a page

pages = pages_of_one("reconciliation", "reconciliations")


def _url(row: Reconciliation) -> str:
    return url_for("reconciliation.show", row_id=row.id)


def outcome(row: Reconciliation) -> tuple[str, str]:
    """Return the state of a result, which is good only if nothing differs, and its label."""
    if not row.differences:
        return "good", gettext("No differences")
    return "pending", gettext("Differences found: %(count)s", count=f"{row.differences:,}")


RECONCILIATIONS = ListPage(
    "reconciliations",
    lazy_gettext("Reconciliation"),
    browse=record_lists.Reconciliations,
    new=("reconciliation.upload", lazy_gettext("Upload statement")),
    empty=lazy_gettext("No statements compared yet."),
    filters=(CHANNEL,),
    columns=(
        Column("file", lazy_gettext("File"), lambda row: row.file, link=_url),
        Column(
            "channel",
            lazy_gettext("Channel"),
            lambda row: row.channel.name,
            link=lambda row: channel_link(row.channel),
        ),
        Column("since", lazy_gettext("First day"), lambda row: row.since),
        Column("until", lazy_gettext("Last day"), lambda row: row.until),
        Column("lines", lazy_gettext("Lines"), lambda row: row.lines, "count"),
        Column("matched", lazy_gettext("Matched"), lambda row: row.matched, "count"),
        Column("differences", lazy_gettext("Result"), outcome, "state"),
        Column("updatetime", lazy_gettext("Compared"), lambda row: row.updatetime, "time"),
        Column("who", lazy_gettext("By"), lambda row: labels.who(row.who)),
    ),
)

SUMS = {
    "in": lazy_gettext("Received"),
    "out": lazy_gettext("Paid out"),
    "refunds": lazy_gettext("Refunds"),
    "fees": lazy_gettext("Fees"),
}


class Day(Field[Any]):
    """A day such as 2026-05-01; None if it is empty."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **named: Any) -> Any:
        try:
            return date.fromisoformat(value) if value else None
        except ValueError:
            raise ValidationError(N_("Enter a day, such as 2026-05-01.")) from None


class _Rate(Percent):
    """A rate in basis points; None if it is empty."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **named: Any) -> Any:
        return super()._deserialize(value, attr, data, **named) if value else None


class UploadForm(FlaskForm):
    """The channel and how to compare the file."""

    channel = SelectField(lazy_gettext("Channel"), [DataRequired()])
    kind = SelectField(lazy_gettext("Orders in the statement"), coerce=int)
    since = SchemaField(lazy_gettext("First day"), Day())
    until = SchemaField(lazy_gettext("Last day"), Day())
    fee_rate = SchemaField(lazy_gettext("Contractual fee on deposits"), _Rate())
    columns = TextAreaField(lazy_gettext("Column names in this file"))
    all_paid = BooleanField(lazy_gettext("Each line of this file is a completed payment"))

    def __init__(self, **options: Any):
        super().__init__(**options)
        each = [SelectChoice(str(row.id), f"{row.id} · {row.name}") for row in channel_setup.with_accounts()]
        self.channel.choices = [SelectChoice("", gettext("Choose…")), *each]
        self.kind.choices = [
            SelectChoice(0, gettext("as usual for this channel")),
            SelectChoice(BUY, gettext("only deposits")),
            SelectChoice(SELL, gettext("only withdrawals")),
        ]

    def choices(self) -> Choices:
        """Return how to compare the file. Raises OperatorError."""
        return Choices(
            since=self.since.value,
            until=self.until.value,
            order_type=self.kind.data or None,
            fee_rate=self.fee_rate.value,
            all_paid=self.all_paid.data,
            columns=_columns(self.columns.data or ""),
            longest=kept_results.MOST_DAYS,
        )


def _columns(text: str) -> dict[str, list[str]]:
    """Return the names of columns, one `name=value` a line. Raises OperatorError."""
    found: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not value:
            raise OperatorError(N_("Column names: write one name=value on each line, such as number=商户单号."))
        found.setdefault(name.strip(), []).append(value.strip())
    return found


@pages.route("/upload", methods=["GET", "POST"])
def upload() -> Any:
    """Show the form for a statement, or compare the file and show the result. The file is not stored."""
    access.must_act()
    form, problem, asks = UploadForm(data={"channel": request.args.get("channel")}), "", False
    if form.validate_on_submit():
        try:
            return _compared(form)
        except NoStatus:
            asks = True
            problem = gettext(
                "The file has no status column, so each line would count as a completed payment. If that is right, "
                "confirm it below."
            )
        except OperatorError as refusal:
            problem = message_of(refusal)
    file = uploads.hidden_fields("file")
    page, status = form_page("console/reconciliations/upload.html", form, problem=problem, asks=asks, file=file)
    return page, 422 if problem else status


def _compared(form: UploadForm) -> Any:
    channel = channel_setup.find_with_account(int(form.channel.data))
    name, raw = uploads.sent_file("file")
    chosen, actor = form.choices(), access.actor()
    row = kept_results.compare(channel, name, raw, chosen, actor.who)
    text = N_("%(since)s to %(until)s, differences: %(count)s")
    detail = text % {"since": row.since, "until": row.until, "count": f"{row.differences:,}"}
    audit.record(actor, "reconcile", "channel", str(channel.id), detail)
    flash(outcome(row)[1], "warn" if row.differences else "good")
    return redirect(_url(row), 303)


@pages.get(f"/<int(max={LARGEST_ID}):row_id>")
def show(row_id: int) -> str:
    """Show a result: what matched, and the differences by kind."""
    kept = kept_results.of(find_or_404(kept_results.find, row_id))
    kind = request.args.get("kind", "")
    places = [place for place, each in enumerate(kept.differences) if kind in ("", each.kind)]
    chosen = [kept.differences[place] for place in places]
    now = differences.rows_of(kept.row, kept.differences)
    first = min(max(request.args.get("from", 0, type=int), 0), len(chosen))
    shown = chosen[first : first + SHOWN]
    orders = kept_results.orders_of(shown)
    return render_template(
        "console/reconciliations/result.html",
        kept=kept,
        row=kept.row,
        channel=kept.row.channel,
        outcome=outcome(kept.row),
        kind=kind,
        kinds=rendering.KINDS,
        sums=SUMS,
        rows=[
            rendering.row_of(each, kept.row.channel_id, row_id, *orders.get(each.order_no, (None, False)))
            for each in shown
        ],
        states=[now[place] for place in places[first : first + SHOWN]],
        state=rendering.state,
        unsettled=len(differences.unsettled_of(kept.row)),
        longest_note=differences.LONGEST_NOTE,
        first=first,
        size=SHOWN,
        more=len(chosen) > first + SHOWN,
        left_out=kept.row.differences - len(kept.differences),
    )


@pages.post(f"/<int(max={LARGEST_ID}):row_id>/explain")
def explain(row_id: int) -> Any:
    """Mark the differences of a result that are not settled as explained."""
    result = find_or_404(kept_results.find, row_id)
    note, actor = request.form.get("note", ""), access.actor()
    rows = differences.unsettled_of(result)
    try:
        count = access.act(
            "explain differences",
            "reconciliation",
            str(row_id),
            lambda: differences.explain(rows, note, actor.who),
            f"note: {note.strip()[: differences.LONGEST_NOTE]}",
        )
        flash(ngettext("%(num)s difference explained.", "%(num)s differences explained.", count), "good")
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
    return redirect(_url(result), 303)
