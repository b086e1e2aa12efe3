"""The page that adds a merchant: fees, channels, callbacks, epay gateway and payment page in one form."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from flask import render_template
from flask_babel import gettext, lazy_gettext
from flask_wtf.file import FileField
from wtforms import BooleanField, Field, StringField
from wtforms.validators import Length

from blueprints.console import access, uploads
from blueprints.console.forms import SchemaField, accepted, form_page, texts
from blueprints.console.pages.merchants import FIELDS, RECORDED, MerchantForm
from blueprints.console.pages.merchants import pages as merchant_pages
from blueprints.console.pages.payment_page import SPECS
from models.tables.merchant import Merchant
from net.urls import http_parts
from runtime.money import hundredths
from runtime.state import current
from services.channels import channel_setup
from services.merchants import epay_accounts, merchant_setup, new_merchant, payment_page
from services.security import audit, vault

FEW = 5  # enabled channels, all of which are preselected
BRAND = ("contact", "color")

pages = merchant_pages


class NewMerchantForm(MerchantForm):
    """A merchant's settings, its key, its account at the epay gateway, and the brand of its payment page."""

    key = StringField(lazy_gettext("Key"), [Length(max=64)])
    epay = BooleanField(lazy_gettext("Enable the epay gateway"))
    hosts = StringField(lazy_gettext("Hosts of the shop"), [Length(max=2000)])
    contact = SchemaField(lazy_gettext("Contact for payers"), SPECS["contact"])
    color = SchemaField(lazy_gettext("Color"), SPECS["color"])
    logo = FileField(lazy_gettext("Logo"))

    def validate_key(self, field: Field) -> None:
        """Refuse a key that is invalid or taken."""
        self.check(field, lambda: merchant_setup.check_new_key(self.merchant_key()))

    def validate_hosts(self, field: Field) -> None:
        """Refuse hosts that are invalid, or missing; those of a wrong callback URL follow once it is right."""
        if self.epay.data and (field.data or not self.callback_url.errors):
            self.check(field, lambda: epay_accounts.checked(Merchant(), {"hosts": self.shop_hosts()}))

    def merchant_key(self) -> str:
        """Return the key as entered, otherwise the one that follows from the name."""
        return (self.key.data or "").strip() or new_merchant.key_of((self.name.data or "").strip())

    def shop_hosts(self) -> list[str]:
        """Return the shop's hosts as entered, otherwise the host of the callback URL; empty without the gateway."""
        if not self.epay.data:
            return []
        entered = re.split(r"[\s,，、]+", (self.hosts.data or "").strip())
        callbacks = http_parts((self.callback_url.data or "").strip())
        of_callbacks = callbacks.hostname if callbacks else None
        return [each for each in entered if each] or [of_callbacks or ""]


@pages.route("/new", methods=["GET", "POST"])
def new() -> Any:
    """Show the form for a new merchant, or add the merchant and show its secrets once."""
    access.must_act()
    form, last = NewMerchantForm(), new_merchant.newest()
    if not form.is_submitted():
        enabled = [channel.id for channel in channel_setup.every() if channel.enabled]
        form.channels.data = enabled if len(enabled) <= FEW else []
        if last:
            form.buy_rate.data, form.sell_rate.data = hundredths(last.buy_rate), hundredths(last.sell_rate)
    page = accepted(form, lambda: _added(form))
    form.record_refusal("add merchant", form.merchant_key())
    if page is None and form.logo.data and not form.logo.errors:
        form.logo.errors = [gettext("Select the file again.")]  # browsers do not keep it
    if page:
        return page
    # After a second press, a reload, or Back, the merchant exists.
    present = new_merchant.present(form.merchant_key()) if form.key.errors else None
    facts = {"last": last, "present": present, "most_kb": payment_page.LARGEST_LOGO // 1024}
    return form_page("console/merchants/new.html", form, **facts)


def _added(form: NewMerchantForm) -> str:
    facts, hosts = form.facts(), form.shop_hosts()
    brand = {name: value for name, value in texts(form, BRAND).items() if value}
    logo = uploads.sent_file("logo", payment_page.LARGEST_LOGO)[1] if form.logo.data else b""
    recorded = texts(form, FIELDS) | brand | ({"logo": "set"} if logo else {})
    if form.epay.data:
        recorded["hosts"] = epay_accounts.checked(Merchant(), {"hosts": hosts})["hosts"]
    add = partial(new_merchant.add, form.merchant_key(), hosts=hosts, page=brand, logo=logo, **facts)
    made = access.act("add merchant", "merchant", form.merchant_key(), add, audit.changes({}, recorded, RECORDED))
    return render_template(
        "console/merchants/added.html",
        merchant=made.merchant,
        api_url=current().settings.public_url + current().settings.api_prefix,
        secret=made.secret,
        callback_secret=vault.decrypt(made.merchant.callback_secret),
        linked=bool(facts["channels"]),
        values=epay_accounts.settings_of(made.epay) if made.epay else None,
        epay_key=made.epay_key,
    )
