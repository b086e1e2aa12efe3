"""What each channel's account should hold by the books, beside what the channel says."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from wtforms import StringField
from wtforms.validators import Length

from blueprints.console import access
from blueprints.console.forms import SchemaField, accepted, find_or_404, form_page
from models.db.base import LARGEST_ID
from models.tables.account_balance import BILL, BY_OPERATOR
from models.tables.channel import Channel
from runtime import clock
from runtime.clock import in_china
from runtime.money import grouped
from schemas.fields import Sum
from services.channels import channel_setup
from services.statements import account_balances
from services.statements.account_balances import Account

SHOWN = 60  # figures on the page of a channel
SOURCES = {BILL: lazy_gettext("statement of the channel"), BY_OPERATOR: lazy_gettext("operator")}

pages = Blueprint("account_balances", __name__, url_prefix="/account_balances")


class BalanceForm(FlaskForm):
    """A figure of the channel: amount, day, and the explanation of its difference."""

    amount = SchemaField(lazy_gettext("Balance at the channel"), Sum(zero=True, negative=True, plain=True))
    day = StringField(lazy_gettext("Day (China)"), [Length(max=10)])
    note = StringField(lazy_gettext("Explanation of the difference (optional)"), [Length(max=300)])


@pages.get("/")
def index() -> str:
    """Show the accounts of all channels."""
    return render_template(
        "console/account_balances/accounts.html", accounts=account_balances.accounts(), sources=SOURCES
    )


@pages.route(f"/<int(max={LARGEST_ID}):channel_id>", methods=["GET", "POST"])
def show(channel_id: int) -> Any:
    """Show how a channel's expected balance is made up, and its figures; record a figure."""
    channel = find_or_404(channel_setup.find_with_account, channel_id)
    today = in_china(clock.now()).date()
    form = BalanceForm(data={"day": request.args.get("day") or str(today), "amount": request.args.get("amount")})
    if accepted(form, lambda: _recorded(channel, form)):
        flash(gettext("Balance recorded."), "good")
        return redirect(url_for(".show", channel_id=channel.id), 303)
    account: Account = account_balances.account(channel)
    return form_page(
        "console/account_balances/account.html",
        form,
        account=account,
        sources=SOURCES,
        today=str(today),
        figures=account.figures[:SHOWN],
    )


def _recorded(channel: Channel, form: BalanceForm) -> bool:
    day, amount, note = account_balances.day_of(form.day.data or ""), form.amount.value, (form.note.data or "").strip()
    access.act(
        "record account balance",
        "channel",
        str(channel.id),
        lambda: account_balances.record(channel, day, amount, BY_OPERATOR, access.actor().who, note),
        f"day: {day}; amount: {grouped(amount)}; note: {note or '-'}",
    )
    return True
