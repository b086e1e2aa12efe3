"""The page of a merchant's payment page: addresses of the shop, contact, color and logo."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response, abort, flash, redirect, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from wtforms import HiddenField

from blueprints.console import access, uploads
from blueprints.console.forms import SchemaField, accepted, find_or_404, form_page, message_of, texts
from blueprints.console.pages.merchants import pages as merchant_pages
from models.tables.merchant import Merchant, PaymentPage
from models.tables.order import COMPLETED, PENDING, Order
from schemas.payment_page import PaymentPageSettings
from services.channels.calls import pay_url
from services.errors import OperatorError
from services.merchants import merchant_setup, payment_page
from services.security import audit

SPECS = PaymentPageSettings().fields

pages = merchant_pages


class PaymentPageForm(FlaskForm):
    """The settings that are text. `mark` is the version that the page showed."""

    mark = HiddenField()
    return_url = SchemaField(lazy_gettext("Return address"), SPECS["return_url"])
    new_order_url = SchemaField(lazy_gettext("Address for a new order"), SPECS["new_order_url"])
    contact = SchemaField(lazy_gettext("Contact for payers"), SPECS["contact"])
    color = SchemaField(lazy_gettext("Color"), SPECS["color"])


def _present(settings: PaymentPage) -> dict[str, str]:
    """Return the settings as the form's data."""
    return {name: getattr(settings, name) for name in payment_page.TEXTS}


@pages.route("/<key>/page", methods=["GET", "POST"])
def page(key: str) -> Any:
    """Show the settings of a merchant's payment page with their form, or change them."""
    row = find_or_404(merchant_setup.find_merchant, key)
    settings = payment_page.of_merchant(row)
    form = PaymentPageForm(data=_present(settings) | {"mark": payment_page.version_of(settings)})
    newest = {status: Order.newest_deposit(row, status) for status in (PENDING, COMPLETED)}
    return accepted(form, lambda: _changed(row, settings, form)) or form_page(
        "console/merchants/page.html",
        form,
        merchant=row,
        digest=settings.logo_digest,
        most_kb=payment_page.LARGEST_LOGO // 1024,
        example=payment_page.filled(settings.return_url, Order(order_no="1" * 24, merchant_order_no="A-1001")),
        previews=[(status, f"{pay_url(order.order_no)}&stay=1") for status, order in newest.items() if order],
    )


def _changed(row: Merchant, settings: PaymentPage, form: PaymentPageForm) -> Any:
    facts: dict[str, Any] = texts(form, payment_page.TEXTS)
    detail = audit.changes(_present(settings), payment_page.checked(facts))
    if detail:
        do = partial(payment_page.change, row, mark=form.mark.data or "", **facts)
        access.act("set payment page", "merchant", row.key, do, detail)
    flash(gettext("Saved.") if detail else gettext("No changes."), "good")
    return redirect(url_for("merchant.page", key=row.key), 303)


@pages.get("/<key>/page/logo")
def logo(key: str) -> Response:
    """Return a merchant's logo."""
    found = payment_page.logo(find_or_404(merchant_setup.find_merchant, key))
    return Response(found.content, content_type=found.content_type) if found else abort(404)


@pages.post("/<key>/page/logo/upload")
def upload_logo(key: str) -> Any:
    """Store an uploaded logo."""
    row = find_or_404(merchant_setup.find_merchant, key)
    try:
        _, content = uploads.sent_file("logo", payment_page.LARGEST_LOGO)
        access.act("set logo", "merchant", key, partial(payment_page.change, row, logo=content))
        flash(gettext("Saved. The payment page shows the logo."), "good")
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
    return redirect(url_for("merchant.page", key=key, _anchor="logo"), 303)


@pages.post("/<key>/page/logo/remove")
def remove_logo(key: str) -> Any:
    """Delete a merchant's logo."""
    row = find_or_404(merchant_setup.find_merchant, key)
    access.act("remove logo", "merchant", key, partial(payment_page.change, row, logo=b""))
    flash(gettext("Logo removed."), "good")
    return redirect(url_for("merchant.page", key=key, _anchor="logo"), 303)
