"""The list of merchants, and the pages of one: settings, secrets, test callback."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from flask import flash, redirect, render_template, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from markupsafe import Markup
from wtforms import BooleanField, Field, HiddenField, SelectChoice, SelectField, StringField
from wtforms.validators import DataRequired, Length, StopValidation

from blueprints.console import access, labels
from blueprints.console.access import current_user
from blueprints.console.columns import ENABLED_COLUMN, Column, merchant_link, unusable_marks
from blueprints.console.filters import ENABLED, Filter
from blueprints.console.forms import (
    Checkboxes,
    SchemaField,
    accepted,
    find_or_404,
    form_page,
    message_of,
    texts,
    translate,
)
from blueprints.console.list_page import ListPage, pages_of_one
from models.tables.channel import Channel
from models.tables.merchant import KEEP, OFF, Merchant
from runtime.money import hundredths
from schemas.fields import Percent, Sum, Whole
from services.callbacks import test_callback
from services.channels import channel_setup
from services.console import setup_lists
from services.errors import N_, OperatorError
from services.ledger import accounts, monthly_statement
from services.merchants import edit_conflicts, epay_accounts, links, merchant_setup, onboarding, payment_page
from services.security import audit, masking, vault

LONGEST_KEEP = 720  # hours
MORE_EVENTS = [event for event in merchant_setup.EVENTS if event not in merchant_setup.RESULTS]
FIELDS = (
    *("name", "callback_url", "events", "buy_rate", "sell_rate", "allowed_addresses", "enabled", "channels"),
    *("refund_mode", "refund_auto_max", "refund_fees"),
)
MASKS = {"callback_url": masking.address}  # viewers see masked values
RECORDED = MASKS | {"allowed_addresses": masking.networks}

pages = pages_of_one("merchant", "merchants")

MERCHANTS = ListPage(
    "merchants",
    lazy_gettext("Merchants"),
    browse=setup_lists.Merchants,
    new=("merchant.new", lazy_gettext("New merchant")),
    empty=lazy_gettext("No merchants yet."),
    hint=lazy_gettext("A merchant has its own API key, fees, channels and balance."),
    filters=(Filter("text", lazy_gettext("Name or key"), "search"), ENABLED),
    columns=(
        Column("name", lazy_gettext("Merchant"), lambda row: row.name, link=merchant_link, note=lambda row: row.key),
        Column("key", lazy_gettext("Merchant key"), lambda row: row.key, on="export"),
        Column("available", lazy_gettext("Available (¥)"), lambda row: row.available, "money"),
        Column("held", lazy_gettext("Reserved (¥)"), lambda row: row.held, "money"),
        Column("buy_rate", lazy_gettext("Deposit fee (%)"), lambda row: row.buy_rate, "percent"),
        Column("sell_rate", lazy_gettext("Withdrawal fee (%)"), lambda row: row.sell_rate, "percent"),
        Column("linked", lazy_gettext("Channels"), lambda row: row.linked, "count"),
        Column("callback_url", lazy_gettext("Callback URL"), lambda row: masking.address(row.callback_url)),
        ENABLED_COLUMN,
        Column("createtime", lazy_gettext("Created"), lambda row: row.createtime, "time", on="export"),
    ),
)


def _choices(words: dict[str, Any]) -> list[SelectChoice]:
    return [SelectChoice(name, label) for name, label in words.items()]


def checked(form: MerchantForm, field: Field) -> None:
    """Check a field as `merchant_setup` does, so that a form shows all its errors at once."""
    form.check(field, lambda: merchant_setup.MERCHANT_FIELDS[field.name]((field.data or "").strip()))


def _marked(channel: Channel) -> Markup:
    """Return a channel's name with the marks of its list: that it is disabled, and methods that cannot be used."""
    state = [] if channel.enabled else [ENABLED_COLUMN.html(channel)]
    parts = [f"{channel.id} · {channel.name}", *state, *unusable_marks(channel).values()]
    return Markup("<span>{}</span>").format(Markup(" ").join(parts))


class MerchantForm(FlaskForm):
    """A merchant's settings; `mark` is the version that the page showed."""

    refusal: OperatorError | None = None  # of a service, the first one
    mark = HiddenField()
    name = StringField(lazy_gettext("Name"), [DataRequired(), Length(max=100)])
    callback_url = StringField(lazy_gettext("Callback URL"), [Length(max=2000), checked])
    events = Checkboxes(
        lazy_gettext("Additional callback events"),
        choices=[SelectChoice(each, merchant_setup.event_name(each)) for each in MORE_EVENTS],
    )
    buy_rate = SchemaField(lazy_gettext("Deposit fee"), Percent())
    sell_rate = SchemaField(lazy_gettext("Withdrawal fee"), Percent())
    allowed_addresses = StringField(lazy_gettext("Allowed IP addresses"), [Length(max=2000), checked])
    enabled = BooleanField(lazy_gettext("Enabled"), default=True)
    channels = Checkboxes(lazy_gettext("Available channels"), coerce=int)
    refund_mode = SelectField(
        lazy_gettext("Refunds by the merchant"), choices=_choices(labels.REFUND_MODES), default=OFF
    )
    refund_auto_max = SchemaField(lazy_gettext("Maximum of an automatic refund"), Sum(zero=True), default="0.00")
    refund_fees = SelectField(
        lazy_gettext("Fee of a refunded deposit"), choices=_choices(labels.REFUND_FEES), default=KEEP
    )

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.channels.choices = [SelectChoice(row.id, _marked(row)) for row in channel_setup.every()]

    def check(self, field: Field, check: Callable[[], object]) -> None:
        """Show a service's refusal as the error of the field that is validated, unless it has one."""
        if not field.errors:
            try:
                check()
            except OperatorError as refusal:
                self.refusal = self.refusal or refusal
                raise StopValidation(message_of(refusal)) from None

    def record_refusal(self, action: str, key: str) -> None:
        """Record in the audit log that the service refused a value."""
        if self.refusal:
            audit.record_failure(access.actor(), action, "merchant", key, self.refusal)

    def facts(self) -> dict[str, Any]:
        """Return the arguments for `merchant_setup`."""
        plain = {name: (self[name].data or "").strip() for name in ("name", "callback_url", "allowed_addresses")}
        rates = {name: self[name].value for name in ("buy_rate", "sell_rate")}
        lists = {"events": ",".join(self.events.data or ()), "channels": self.channels.data or ()}
        refunds = {
            "refund_mode": self.refund_mode.data,
            "refund_auto_max": self.refund_auto_max.value,
            "refund_fees": self.refund_fees.data,
        }
        return plain | rates | lists | refunds | {"enabled": self.enabled.data}


class RotateForm(FlaskForm):
    """The hours for which the old secret stays valid. `mark` is the version of the secret to replace."""

    keep_hours = SchemaField(lazy_gettext("Hours until the old secret expires"), Whole(0, LONGEST_KEEP), default="24")
    mark = HiddenField()


def _present(row: Merchant) -> dict[str, Any]:
    """Return the merchant's settings as the form's data."""
    return {
        "name": row.name,
        "callback_url": row.callback_url,
        "events": [event for event in row.events.split(",") if event in MORE_EVENTS],
        "buy_rate": hundredths(row.buy_rate),
        "sell_rate": hundredths(row.sell_rate),
        "allowed_addresses": row.allowed_addresses,
        "enabled": bool(row.enabled),
        "channels": links.channels_of(row),
        "refund_mode": row.refund_mode,
        "refund_auto_max": hundredths(row.refund_auto_max),
        "refund_fees": row.refund_fees,
    }


@pages.route("/<key>", methods=["GET", "POST"])
def show(key: str) -> Any:
    """Show a merchant and its form, or change the merchant."""
    row = find_or_404(merchant_setup.find_merchant, key)
    present, masks = _present(row), {} if current_user.may_act else MASKS
    visible = present | {name: mask(present[name]) for name, mask in masks.items()}
    form = MerchantForm(data=visible | {"mark": edit_conflicts.version_of(row)})
    done = accepted(form, lambda: _changed(row, form))
    form.record_refusal("set merchant", row.key)
    return done or form_page(
        "console/merchants/merchant.html",
        form,
        merchant=row,
        rotate=RotateForm(formdata=None),
        marks={
            "api": merchant_setup.version_of(row, callback=False),
            "callback": merchant_setup.version_of(row, callback=True),
        },
        steps=onboarding.steps(row),
        balances=accounts.balances_of(row),
        epay=epay_accounts.of_merchant(row),
        page=payment_page.of_merchant(row),
        last_month=f"{monthly_statement.last_month():%Y-%m}",
        accounts=[(account, masking.account(account)) for account in merchant_setup.accounts_on_file([row])],
    )


def _changed(row: Merchant, form: MerchantForm) -> Any:
    before = MerchantForm(formdata=None, data=_present(row))
    detail = audit.changes(texts(before, FIELDS), texts(form, FIELDS), RECORDED)
    if detail:
        change = partial(merchant_setup.set_merchant, row, mark=form.mark.data, **form.facts())
        access.act("set merchant", "merchant", row.key, change, detail)
    flash(gettext("Saved.") if detail else gettext("No changes."), "good")
    return redirect(url_for("merchant.show", key=row.key), 303)


@pages.post("/<key>/rotate/<any(api, callback):kind>")
def rotate(key: str, kind: str) -> Any:
    """Replace the API secret or the callback secret, and show the new one once."""
    row, form, callback = find_or_404(merchant_setup.find_merchant, key), RotateForm(), kind == "callback"
    try:
        if not form.validate():
            raise OperatorError(gettext("Enter a number of hours from 0 to %(most)s.", most=LONGEST_KEEP))
        hours, action = form.keep_hours.value, "rotate callback secret" if callback else "rotate API secret"
        renew = partial(merchant_setup.rotate, row, callback=callback, keep_hours=hours, mark=form.mark.data)
        detail = N_("the old one stays valid for %(hours)s hours") % {"hours": hours}
        new = access.act(action, "merchant", key, renew, detail)
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return redirect(url_for("merchant.show", key=key), 303)
    shown = {"callback_secret" if callback else "secret": new, "keep_hours": hours}
    return render_template("console/merchants/secrets.html", merchant=row, **shown)


@pages.post("/<key>/reveal")
def reveal(key: str) -> str:
    """Show the callback secret. The API secret is never shown again."""
    row = find_or_404(merchant_setup.find_merchant, key)
    audit.record(access.actor(), "reveal callback secret", "merchant", key)
    shown = {"callback_secret": vault.decrypt(row.callback_secret)}
    return render_template("console/merchants/secrets.html", merchant=row, **shown)


@pages.post("/<key>/test")
def test(key: str) -> Any:
    """Send a test callback and show its outcome."""
    row = find_or_404(merchant_setup.find_merchant, key)
    try:
        outcome = access.act("test callback", "merchant", key, lambda: test_callback.callback(row))
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return redirect(url_for("merchant.show", key=key), 303)
    return render_template(
        "console/merchants/test_callback.html", merchant=row, outcome=outcome, problem=translate(outcome.problem)
    )
