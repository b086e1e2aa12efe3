"""The list of payout accounts, to which withdrawals are sent, and the form that adds one to a merchant."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from wtforms import HiddenField, StringField
from wtforms.validators import DataRequired, Length

from blueprints.console import access
from blueprints.console.columns import Column, merchant_columns
from blueprints.console.filters import MERCHANT
from blueprints.console.forms import find_or_404, row_id, show_refusal
from blueprints.console.list_page import ListPage
from blueprints.console.pages.merchants import pages as merchant_pages
from models.tables.account import PayoutAccount
from models.tables.merchant import Merchant
from services.console import setup_lists
from services.errors import OperatorError
from services.merchants import merchant_setup
from services.security import masking

PAYOUT_ACCOUNTS = ListPage(
    "accounts",
    lazy_gettext("Receiving accounts"),
    browse=setup_lists.Accounts,
    empty=lazy_gettext("No receiving account is on file."),
    filters=(MERCHANT,),
    columns=(
        Column("id", lazy_gettext("Id"), lambda row: row.id, "number"),
        *merchant_columns(),
        Column("bank", lazy_gettext("Bank"), lambda row: row.masked["bank"]),
        Column("sub_bank", lazy_gettext("Branch"), lambda row: row.masked["sub_bank"]),
        Column("card_number", lazy_gettext("Account number"), lambda row: row.masked["card_number"]),
        Column("real_name", lazy_gettext("Holder"), lambda row: row.masked["real_name"]),
        Column("createtime", lazy_gettext("Put on file"), lambda row: row.createtime, "time"),
        Column(
            "present",
            lazy_gettext("State"),
            lambda row: ("good", gettext("Withdrawals go here")) if row.present else ("off", gettext("Replaced")),
            "state",
        ),
    ),
)


class AccountForm(FlaskForm):
    """A receiving account; `after` is the id of the newest one that the page knew, 0 for none."""

    after = HiddenField(filters=[row_id])
    real_name = StringField(lazy_gettext("Holder's name"), [DataRequired(), Length(max=100)])
    card_number = StringField(lazy_gettext("Card or account number"), [DataRequired(), Length(max=40)])
    bank = StringField(lazy_gettext("Bank"), [Length(max=100)])
    sub_bank = StringField(lazy_gettext("Branch"), [Length(max=100)])


@merchant_pages.route("/<key>/account", methods=["GET", "POST"])
def account(key: str) -> Any:
    """Add a payout account, which replaces the one before."""
    access.must_act()
    row = find_or_404(merchant_setup.find_merchant, key)
    newest = PayoutAccount.of(row)
    form = AccountForm(data={"after": newest.id if newest else 0})
    if form.validate_on_submit():
        details = {name: (form[name].data or "").strip() for name in ("bank", "sub_bank", "card_number", "real_name")}
        try:
            _add_account(row, details, form.after.data)
            return redirect(url_for("merchant.show", key=key), 303)
        except OperatorError as refusal:
            show_refusal(form, refusal)
    page = render_template("console/merchants/payout_account.html", form=form, merchant=row)
    return page, 422 if form.errors else 200


def _add_account(row: Merchant, details: dict[str, Any], after: int) -> None:
    ending = masking.ending(details["card_number"]).lstrip("*")
    access.act(
        "add receiving account",
        "merchant",
        row.key,
        lambda: merchant_setup.add_account(row, after=after, **details),
        f"ending in {ending}",
    )
    flash(gettext("Withdrawals now go to the account ending in %(ending)s.", ending=ending), "good")
