"""The bills that the service fetches from channels every morning, and their results."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from markupsafe import Markup
from wtforms import SelectChoice, SelectField
from wtforms.validators import DataRequired

from blueprints.console import access, labels
from blueprints.console.access import current_user
from blueprints.console.columns import Column, channel_link
from blueprints.console.filters import CHANNEL, Filter, choices
from blueprints.console.forms import SchemaField, message_of
from blueprints.console.list_page import ListPage
from blueprints.console.pages.reconciliations import Day, outcome
from models.tables.bill import COMPARED, LATE, NONE, WAITING, Bill
from runtime import clock
from runtime.clock import in_china
from services.channels import channel_setup
from services.channels.calls import driver_of
from services.console import record_lists
from services.errors import OperatorError
from services.statements import bills
from services.statements.differences import MOST_DIFFERENCES

STATES = {
    WAITING: lazy_gettext("Waiting for the bill"),
    LATE: lazy_gettext("Late"),
    COMPARED: lazy_gettext("Compared with the orders"),
    NONE: lazy_gettext("None needed: nothing was booked"),
}
COLOURS = {WAITING: "under-way", LATE: "bad", NONE: "good"}


class FetchForm(FlaskForm):
    """The channel and the day of a bill."""

    channel = SelectField(lazy_gettext("Channel"), [DataRequired()], coerce=int)
    day = SchemaField(lazy_gettext("Day (China)"), Day())

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.channel.choices = [
            SelectChoice(row.id, f"{row.id} · {row.name}")
            for row in channel_setup.every()
            if driver_of(row).fetches_statements
        ]


def _state(row: Bill) -> tuple[str, str]:
    """Return the state of a bill, which selects its colour, and its label."""
    result = row.reconciliation
    if row.state != COMPARED or result is None:
        return COLOURS.get(row.state, "pending"), str(STATES[row.state])
    if not result.differences or row.unsettled or result.differences > MOST_DIFFERENCES:  # more than can be settled
        return outcome(result)
    return "good", gettext("Differences settled: %(count)s", count=f"{result.differences:,}")


def _result_url(row: Bill) -> str:
    return url_for("reconciliation.show", row_id=row.reconciliation_id) if row.reconciliation_id else ""


def _of_result(row: Bill, name: str) -> str:
    return f"{getattr(row.reconciliation, name):,}" if row.reconciliation else ""


def _again(row: Bill) -> Markup:
    """Return the form that fetches a bill now."""
    if not current_user.may_act or not driver_of(row.channel).fetches_statements:
        return Markup("")
    return Markup(
        '<form method="post" action="{}">{}<input type="hidden" name="channel" value="{}">'
        '<input type="hidden" name="day" value="{}"><button>{}</button></form>'
    ).format(url_for("bills.fetch"), FlaskForm().csrf_token, row.channel_id, row.day, gettext("Fetch again"))


def _facts(rows: list[Any]) -> dict[str, Any]:
    today = in_china(clock.now()).date()
    return {"form": FetchForm(formdata=None, data={"day": str(today.fromordinal(today.toordinal() - 1))})}


BILLS = ListPage(
    "bills",
    lazy_gettext("Bills"),
    browse=record_lists.Bills,
    empty=lazy_gettext("No bills fetched yet."),
    hint=lazy_gettext("From 10:15 in China, the service fetches yesterday's bills of channels that offer them."),
    filters=(CHANNEL, Filter("state", lazy_gettext("Status"), choices=choices(STATES))),
    template="console/reconciliations/bills.html",
    facts=_facts,
    columns=(
        Column("day", lazy_gettext("Day"), lambda row: row.day, link=_result_url),
        Column(
            "channel",
            lazy_gettext("Channel"),
            lambda row: row.channel.name,
            link=lambda row: channel_link(row.channel),
        ),
        Column("state", lazy_gettext("Status"), _state, "state", link=_result_url),
        Column("lines", lazy_gettext("Lines"), lambda row: _of_result(row, "lines")),
        Column("matched", lazy_gettext("Matched"), lambda row: _of_result(row, "matched")),
        Column("costs", lazy_gettext("Costs posted (¥)"), lambda row: row.costs, "money"),
        Column("problem", lazy_gettext("Last problem"), lambda row: labels.known(row.problem)),
        Column("due_at", lazy_gettext("Next attempt"), lambda row: row.due_at, "time"),
        Column("updatetime", lazy_gettext("Updated"), lambda row: row.updatetime, "time", on="export"),
        Column("again", lazy_gettext("Actions"), _again, "html", on="page"),
    ),
)

pages = BILLS.blueprint()


@pages.post("/fetch")
def fetch() -> Any:
    """Make a bill due now: the job fetches and compares it within seconds."""
    form = FetchForm()
    if not form.validate() or form.day.value is None:
        flash(gettext("Choose a channel that offers bills, and a day."), "bad")
        return redirect(url_for(".index"), 303)
    channel, day = channel_setup.find_channel(form.channel.data), form.day.value
    try:
        access.act("fetch bill", "channel", str(channel.id), lambda: bills.request(channel, day), f"day: {day}")
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
    else:
        flash(gettext("The bill of %(day)s is being fetched. Reload the page in a moment.", day=day), "good")
    return redirect(url_for(".index"), 303)
