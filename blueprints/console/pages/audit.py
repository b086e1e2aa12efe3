"""The audit log as sentences, and the failed sign-ins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from flask import url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from markupsafe import Markup
from marshmallow import Schema
from wtforms import BooleanField

from blueprints.console import labels
from blueprints.console.columns import Column, text_html
from blueprints.console.filters import SINCE, UNTIL, Choice, Filter, choices
from blueprints.console.forms import SchemaField
from blueprints.console.list_page import ListPage
from blueprints.console.pages import batches, claims
from blueprints.console.pages.channels import NewChannelForm
from blueprints.console.pages.epay_gateway import NewEpayForm
from blueprints.console.pages.group_members import NewMemberForm
from blueprints.console.pages.new_merchant import NewMerchantForm
from blueprints.console.pages.notifications import DestinationForm
from blueprints.console.pages.payment_page import PaymentPageForm
from gateways import registry
from schemas.fields import Percent, Sum, Yuan
from services.console import setup_lists
from services.notifications.destination_kinds import SCHEMAS
from services.platform.safe_text import printable
from services.security.audit import NOT_DONE

# By subject: its page, and the argument that names it there.
PAGES = {
    "order": ("order.show", "order_no"),
    "callback": ("callback.show", "webhook_id"),
    "merchant": ("merchant.show", "key"),
    "channel": ("channel.show", "channel_id"),
    "batch": ("batch.show", "number"),
    "refund": ("refund.show", "refund_no"),
    "difference": ("difference.show", "row_id"),
    "reconciliation": ("reconciliation.show", "row_id"),
}
NUMBERED = ("channel", "batch", "difference", "reconciliation")  # their pages have integers in the address
UNITS = {Percent: " %", Yuan: " ¥", Sum: " ¥"}
# By subject: the forms of its settings, and the schemas of its config.
FORMS: dict[str, tuple[type[FlaskForm], ...]] = {
    "merchant": (PaymentPageForm, NewMerchantForm, NewEpayForm),
    "channel": (NewMemberForm, NewChannelForm),  # the later one has the labels of fields in both
    "destination": (DestinationForm,),
}
CONFIGS: dict[str, list[type[Schema]]] = {
    "channel": [driver.config_schema for driver in registry.DRIVERS.values()],
    "destination": list(SCHEMAS.values()),
}
# The labels of values, by field, unless they are the choices of the form.
YES_OR_NO = {"yes": lazy_gettext("yes"), "no": lazy_gettext("no")}
REDACTED = {"(set)": lazy_gettext("set"), "(another)": lazy_gettext("changed")}
VALUES: dict[str, dict[str, Any]] = {
    "category": labels.CATEGORIES,
    "driver": labels.DRIVERS,
    "logo": {"set": lazy_gettext("set")},
    "pay_method": labels.METHODS,
}


@dataclass(frozen=True)
class Recorded:
    """A field in audit entries: its label, the unit of its values, and their labels."""

    label: Any
    unit: str = ""
    words: dict[str, Any] = field(default_factory=dict)

    def text(self, value: str) -> str:
        """Return a value, or several with commas between them, as the form shows it."""
        if self.words:
            return gettext(", ").join(str(self.words.get(each, each)) for each in value.split(","))
        return value if value == "-" else value + self.unit


@cache
def _fields(about: str) -> dict[str, Recorded]:
    """Return the fields in entries about a merchant, a channel or a destination of notifications."""
    found = {"kind": Recorded(lazy_gettext("Type"), words=labels.DESTINATIONS)} if about == "destination" else {}
    for schema in CONFIGS.get(about, ()):
        for name, spec in schema().fields.items():
            label = spec.metadata["label"]
            found.setdefault(name, Recorded(lazy_gettext(label), words=REDACTED))
    for form in FORMS.get(about, ()):
        for name in dir(form):
            entry = getattr(form, name)
            if hasattr(entry, "field_class") and entry.args:
                specs = entry.args[1:2] if issubclass(entry.field_class, SchemaField) else ()
                unit = next((unit for spec in specs for kind, unit in UNITS.items() if type(spec) is kind), "")
                choices = {str(each.value): each.label for each in entry.kwargs.get("choices", ())}
                words = YES_OR_NO if entry.field_class is BooleanField else VALUES.get(name, choices)
                found[name] = Recorded(entry.args[0], unit, words)
    return found


def _field(about: str, name: str) -> Recorded:
    """Return a field in entries about this subject; without a label, its name."""
    return _fields(about).get(name) or Recorded(labels.recorded_name(name) or name, words=VALUES.get(name, {}))


def _subject(row: Any) -> Markup:
    name = labels.list_name(row.key) if row.about == "list" else row.subject
    has_page = row.about in PAGES and row.key and (row.about not in NUMBERED or row.key.isdecimal())
    if not has_page:
        return text_html(name)
    endpoint, argument = PAGES[row.about]
    return Markup('<a href="{}">{}</a>').format(url_for(endpoint, **{argument: row.key}), text_html(name))


def _changes(row: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the label, the old and the new value of each changed field."""
    for name, old, new in json.loads(row.changed or "[]"):
        shown = _field(row.about, name)
        yield str(shown.label), shown.text(old), shown.text(new)


def _told_change(row: Any, changes: list[tuple[str, str, str]]) -> tuple[str, str, str] | None:
    """Return the change that the entry's sentence tells: the only one of a merchant or channel."""
    is_told = len(changes) == 1 and row.action in ("set merchant", "set channel") and "(another)" not in row.detail
    return changes[0] if is_told else None


def _sentence(row: Any) -> Markup:
    """Return the entry as a sentence with a link to its subject."""
    who = Markup("<strong><bdi>{}</bdi></strong>").format(printable(labels.actor(row.who)))
    changes = list(_changes(row))
    if told := _told_change(row, changes):
        label, old, new = told
        about = {"who": who, "field": label[:1].lower() + label[1:], "subject": _subject(row)}
        text = Markup(gettext("%(who)s changed the %(field)s of %(subject)s from %(old)s to %(new)s"))
        sentence = text % {**about, "old": text_html(old), "new": text_html(new)}
    else:
        sentence = who + " " + Markup(labels.action_template(row.action)) % {"subject": _subject(row)}
    if row.detail.startswith(NOT_DONE):
        return Markup('<span class="state bad">{}</span> {}').format(gettext("Not done"), sentence)
    return Markup('<span class="quiet">{}</span>').format(sentence) if row.not_done else sentence


def _details(row: Any) -> str:
    """Return the changed fields, or what else the entry records."""
    if row.detail.startswith(NOT_DONE):
        return labels.not_done(row.detail)
    changes = list(_changes(row))
    if _told_change(row, changes):
        return ""
    texts = (
        gettext("%(field)s: %(old)s → %(new)s", field=label, old=old, new=new)
        if old != new
        else gettext("%(label)s: %(value)s", label=label, value=new)  # what the changes are about
        for label, old, new in changes
    )
    if row.action == "confirm columns":
        return _columns(row.detail)
    return gettext("; ").join(texts) or labels.recorded(row.detail)


def _columns(detail: str) -> str:
    """Return the columns that an operator confirmed, with the labels of their contents."""
    roles: dict[str, Any] = {str(role): label for role, label in (batches.ROLES | claims.ROLES).items()}
    pairs = [each.rpartition("=") for each in detail.split(", ")]
    return gettext("; ").join(
        gettext("%(label)s: %(value)s", label=name, value=roles.get(role, role)) for name, _, role in pairs
    )


AUDIT_LOG = ListPage(
    "audit",
    lazy_gettext("Audit log"),
    browse=setup_lists.Audit,
    empty=lazy_gettext("No actions yet."),
    filters=(
        Filter("who", lazy_gettext("User"), "text"),
        Filter(
            "action",
            lazy_gettext("Action"),
            choices=lambda: [Choice(name, labels.action(name), name) for name in labels.ACTIONS],
        ),
        Filter("about", lazy_gettext("Subject"), choices=choices(labels.ABOUT)),
        Filter("key", lazy_gettext("Subject number or name"), "text"),
        SINCE,
        UNTIL,
    ),
    columns=(
        Column("at", lazy_gettext("Time"), lambda row: row.at, "time"),
        Column("event", lazy_gettext("Event"), _sentence, "html"),
        Column("who", lazy_gettext("User"), lambda row: row.who, on="export"),
        Column("action", lazy_gettext("Action"), lambda row: labels.action(row.action), on="export"),
        Column(
            "about",
            lazy_gettext("Subject"),
            lambda row: f"{labels.name_of(labels.ABOUT, row.about)} {row.key}".strip(),
            on="export",
        ),
        Column("detail", lazy_gettext("Details"), _details),
        Column("address", lazy_gettext("IP address"), lambda row: row.address),
    ),
)

FAILED_SIGN_INS = ListPage(
    "failed_sign_ins",
    lazy_gettext("Failed sign-ins"),
    browse=setup_lists.FailedSignIns,
    empty=lazy_gettext("No failed sign-ins in the last 30 days."),
    filters=(Filter("address", lazy_gettext("IP address"), "text"), SINCE, UNTIL),
    columns=(
        Column("hour", lazy_gettext("Hour"), lambda row: row.hour, "time"),
        Column("address", lazy_gettext("IP address"), lambda row: row.address or gettext("other addresses")),
        Column("passwords", lazy_gettext("Incorrect passwords"), lambda row: row.passwords, "count"),
        Column("codes", lazy_gettext("Correct password, incorrect code"), lambda row: row.codes, "count"),
    ),
)
