"""Notifications: destinations with their form and test, limits of channel balances, and the messages sent."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from marshmallow import ValidationError
from wtforms import BooleanField, SelectChoice, SelectField, StringField
from wtforms.validators import DataRequired, Length

from blueprints.api.envelope import translated
from blueprints.console import access, driver_form
from blueprints.console.forms import find_or_404, form_page, show_refusal, texts, translate
from blueprints.console.locale import NAMES, language
from models.db.base import LARGEST_ID
from models.tables.notification import KINDS, Destination
from runtime.money import grouped, hundredths
from schemas.fields import Sum
from services.channels import channel_setup
from services.errors import OperatorError
from services.ledger import accounts
from services.notifications import destinations
from services.notifications.destination_kinds import SCHEMAS
from services.notifications.messages import FORMS
from services.operations.alerts import FAILURES, SOON, URGENT
from services.security import audit

DESTINATION = f"/<int(max={LARGEST_ID}):destination_id>"
FIELDS = ("name", "severity", "language", "digest", "enabled")
SHOWN = 30  # messages on a page
# What each kind is for, on the page that offers them.
ABOUT = {
    "email": lazy_gettext("Your own mailbox sends to one or more addresses."),
    "wecom": lazy_gettext("A robot in a WeCom group."),
    "dingtalk": lazy_gettext("A robot in a DingTalk group, with or without signature."),
    "feishu": lazy_gettext("A robot in a Feishu group, with or without signature."),
    "telegram": lazy_gettext("A bot in a Telegram chat, group or channel."),
    "webhook": lazy_gettext("An endpoint of your own receives signed JSON."),
}

pages = Blueprint("notifications", __name__, url_prefix="/notifications")


class DestinationForm(FlaskForm):
    """The settings that all kinds share."""

    name = StringField(lazy_gettext("Name"), [DataRequired(), Length(max=64)])
    severity = SelectField(
        lazy_gettext("Send"),
        choices=[
            SelectChoice(URGENT, lazy_gettext("Urgent findings only")),
            SelectChoice(SOON, lazy_gettext("All findings")),
        ],
    )
    language = SelectField(lazy_gettext("Language"), choices=[SelectChoice(*each) for each in NAMES.items()])
    digest = SelectField(
        lazy_gettext("Daily digest (China time)"),
        choices=[
            SelectChoice("", lazy_gettext("None")),
            *(SelectChoice(str(hour), f"{hour:02}:00") for hour in range(24)),
        ],
    )
    enabled = BooleanField(lazy_gettext("Enabled"), default=True)

    def facts(self) -> dict[str, Any]:
        """Return the arguments for `destinations.add` and `destinations.change`."""
        hour = int(self.digest.data) if self.digest.data else None
        chosen = {"severity": self.severity.data, "language": self.language.data, "enabled": bool(self.enabled.data)}
        return {"name": (self.name.data or "").strip(), "digest_hour": hour} | chosen


def _present(row: Destination) -> dict[str, Any]:
    """Return the destination's settings as the form's data."""
    hour = "" if row.digest_hour is None else str(row.digest_hour)
    shared = {"name": row.name, "severity": row.severity, "language": row.language}
    return shared | {"digest": hour, "enabled": bool(row.enabled)}


def _state(row: Destination) -> tuple[str, str]:
    """Return a destination's state and its label."""
    if not row.enabled:
        return "off", gettext("Disabled")
    return ("bad", gettext("Failing")) if row.failures >= FAILURES else ("good", gettext("Enabled"))


@pages.get("/")
def index() -> str:
    """Show the destinations, the limits of channel balances, and the newest messages."""
    return _index({}, {})


def _index(typed: dict[str, str], wrong: dict[int, str]) -> str:
    balances, limits = accounts.operator_balances(), destinations.balance_limits()
    channels = [
        (
            row,
            -balances.get(f"clearing {row.id}", 0),
            typed.get(f"limit_{row.id}", hundredths(limits[row.id]) if row.id in limits else ""),
        )
        for row in channel_setup.with_accounts()
    ]
    return render_template(
        "console/notifications/notifications.html",
        rows=destinations.every(),
        newest=destinations.newest(),
        target=destinations.target,
        state=_state,
        channels=channels,
        limits=limits,
        wrong=wrong,
        message_rows=destinations.recent(SHOWN),
        forms=FORMS,
    )


@pages.route("/new", methods=["GET", "POST"])
def new() -> Any:
    """Show the kinds of destination; with `?kind=`, show the form for a new one or add it."""
    access.must_act()
    kind = request.args.get("kind", "")
    if kind not in KINDS:
        return render_template("console/notifications/kinds.html", kinds=ABOUT)
    schema = SCHEMAS[kind]
    form = driver_form.form_class(DestinationForm, schema, {})(data={"language": language().language})
    check = partial(destinations.wrong_config, kind)
    if form.is_submitted() and driver_form.is_valid(form, schema, {}, check):
        try:
            return _added(form, kind)
        except OperatorError as refusal:
            show_refusal(form, refusal)
    rows = driver_form.rows(form, schema, {})
    return form_page("console/notifications/new.html", form, kind=kind, rows=rows)


def _added(form: DestinationForm, kind: str) -> Any:
    given, facts = driver_form.changed(form, SCHEMAS[kind], {}), form.facts()
    _, config = driver_form.changes(given, {})
    detail = audit.changes({}, {"kind": kind, **texts(form, FIELDS), **config})
    add = partial(destinations.add, kind, given, **facts)
    made = access.act("add destination", "destination", facts["name"], add, detail)
    flash(gettext("Destination added. Send a test notification."), "good")
    return redirect(url_for(".show", destination_id=made.id), 303)


@pages.route(DESTINATION, methods=["GET", "POST"])
def show(destination_id: int) -> Any:
    """Show a destination with its form, or change it."""
    row = find_or_404(destinations.find, destination_id)
    present, schema = destinations.config_of(row), SCHEMAS[row.kind]
    form = driver_form.form_class(DestinationForm, schema, present)(data=_present(row))
    check = partial(destinations.wrong_config, row.kind)
    if form.is_submitted() and driver_form.is_valid(form, schema, present, check):
        try:
            return _changed(row, form, present)
        except OperatorError as refusal:
            show_refusal(form, refusal)
    return form_page(
        "console/notifications/destination.html",
        form,
        destination=row,
        rows=driver_form.rows(form, schema, present),
        target=destinations.target(row),
        state=_state(row),
        message_rows=destinations.recent(SHOWN, row),
        forms=FORMS,
    )


def _changed(row: Destination, form: DestinationForm, present: dict[str, Any]) -> Any:
    given, facts = driver_form.changed(form, SCHEMAS[row.kind], present), form.facts()
    before = DestinationForm(formdata=None, data=_present(row))
    old, new = driver_form.changes(given, present)
    detail = audit.changes(texts(before, FIELDS) | old, texts(form, FIELDS) | new)
    if detail:
        change = partial(destinations.change, row, given, **facts)
        access.act("set destination", "destination", row.name, change, detail)
    flash(gettext("Saved.") if detail else gettext("No changes."), "good")
    return redirect(url_for(".show", destination_id=row.id), 303)


@pages.post(f"{DESTINATION}/test")
def attempt(destination_id: int) -> Any:
    """Send a test message and show the result."""
    row = find_or_404(destinations.find, destination_id)
    outcome = access.act("test destination", "destination", row.name, lambda: destinations.test(row))
    if outcome.problem:
        why = [translate(outcome.problem), f"({outcome.detail})" if outcome.detail else ""]
        flash(gettext("Test failed. %(why)s", why=" ".join(filter(None, why))), "bad")
    else:
        flash(gettext("Test notification accepted. Check that it arrived."), "good")
    return redirect(url_for(".show", destination_id=destination_id), 303)


@pages.post(f"{DESTINATION}/delete")
def delete(destination_id: int) -> Any:
    """Delete a destination and its messages."""
    row = find_or_404(destinations.find, destination_id)
    access.act("delete destination", "destination", row.name, lambda: destinations.delete(row))
    flash(gettext("Destination %(name)s deleted.", name=row.name), "good")
    return redirect(url_for(".index"), 303)


@pages.post("/balances")
def balances() -> Any:
    """Set the balances below which channels are findings; an empty field means none."""
    present, limits, wrong = destinations.balance_limits(), {}, {}
    for row in channel_setup.with_accounts():
        text = request.form.get(f"limit_{row.id}", "").strip()
        try:
            limits[row.id] = Sum().deserialize(text) if text else 0
        except ValidationError as error:
            wrong[row.id] = " ".join(map(translated, error.messages))
    if wrong:
        return _index(dict(request.form), wrong), 422
    detail = audit.changes(
        {f"channel {number}": grouped(limit) for number, limit in present.items()},
        {f"channel {number}": grouped(limit) if limit else "" for number, limit in limits.items()},
    )
    if detail:
        change = partial(destinations.set_balance_limits, limits)
        access.act("set balance limits", "channel", "", change, detail)
    flash(gettext("Saved.") if detail else gettext("No changes."), "good")
    return redirect(url_for(".index"), 303)
