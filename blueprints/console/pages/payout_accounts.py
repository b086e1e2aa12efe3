"""The list of payout accounts, and the form that adds one to a merchant."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import flash, redirect, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from wtforms import HiddenField, StringField
from wtforms.validators import DataRequired, Length

from blueprints.console import access
from blueprints.console.columns import Column, merchant_columns
from blueprints.console.filters import MERCHANT
from blueprints.console.forms import accepted, find_or_404, form_page, row_id
from blueprints.console.list_page import ListPage
from blueprints.console.pages.merchants import pages as merchant_pages
from models.tables.merchant import Merchant
from models.tables.payout_account import PayoutAccount
from runtime.texts import N_
from services.console import setup_lists
from services.merchants import merchant_setup
from services.security import masking

PAYOUT_ACCOUNTS = ListPage(
    "accounts",
    lazy_gettext("Payout accounts"),
    browse=setup_lists.Accounts,
    empty=lazy_gettext("No payout accounts yet."),
    hint=lazy_gettext("Add the first account on a merchant's page."),
    filters=(MERCHANT,),
    columns=(
        Column("id", lazy_gettext("ID"), lambda row: row.id, "number"),
        *merchant_columns(),
        Column("bank", lazy_gettext("Bank"), lambda row: row.masked["bank"]),
        Column("sub_bank", lazy_gettext("Branch"), lambda row: row.masked["sub_bank"]),
        Column("card_number", lazy_gettext("Account number"), lambda row: row.masked["card_number"]),
        Column("real_name", lazy_gettext("Account holder"), lambda row: row.masked["real_name"]),
        Column("createtime", lazy_gettext("Added"), lambda row: row.createtime, "time"),
        Column(
            "present",
            lazy_gettext("Status"),
            lambda row: ("good", gettext("In use")) if row.present else ("off", gettext("Replaced")),
            "state",
        ),
    ),
)


class AccountForm(FlaskForm):
    """A payout account. `after` is the id of the newest one when the page was shown, 0 for none."""

    after = HiddenField(filters=[row_id])
    real_name = StringField(lazy_gettext("Account holder"), [DataRequired(), Length(max=100)])
    card_number = StringField(lazy_gettext("Card or account number"), [DataRequired(), Length(max=40)])
    bank = StringField(lazy_gettext("Bank"), [Length(max=100)])
    sub_bank = StringField(lazy_gettext("Branch"), [Length(max=100)])


@merchant_pages.route("/<key>/account", methods=["GET", "POST"])
def account(key: str) -> Any:
    """Show the form for a payout account, or add the account, which replaces the present one."""
    access.must_act()
    row = find_or_404(merchant_setup.find_merchant, key)
    newest = PayoutAccount.of(row)
    form = AccountForm(data={"after": newest.id if newest else 0})
    return accepted(form, lambda: _added(row, form)) or form_page(
        "console/merchants/payout_account.html", form, merchant=row
    )


def _added(row: Merchant, form: AccountForm) -> Any:
    names = ("bank", "sub_bank", "card_number", "real_name")
    details: dict[str, Any] = {name: (form[name].data or "").strip() for name in names}
    ending = masking.ending(details["card_number"]).lstrip("*")
    add = partial(merchant_setup.add_account, row, after=form.after.data, **details)
    access.act("add payout account", "merchant", row.key, add, N_("ending in %(ending)s") % {"ending": ending})
    flash(
        gettext("Payout account changed. Withdrawals now go to the account ending in %(ending)s.", ending=ending),
        "good",
    )
    return redirect(url_for("merchant.show", key=row.key), 303)
