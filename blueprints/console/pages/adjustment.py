"""A balance that is corrected by hand: asked for, shown as it would be, confirmed, written."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, request, url_for
from flask_admin import expose
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from wtforms import HiddenField, SelectChoice, SelectField, StringField
from wtforms.validators import DataRequired, Length

from blueprints.console import access
from blueprints.console.forms import Read, number, refuse
from blueprints.console.layout import Page
from blueprints.console.locale import yuan
from models.tables.merchant import Merchant
from schemas.fields import Sum
from schemas.views import hundredths
from services.channels import channel_setup
from services.errors import OperatorError
from services.ledger import accounts
from services.security import audit


class AdjustForm(FlaskForm):
    """How much, why, and through which channel the money went; `newest` is the adjustment that is the last so far."""

    newest = HiddenField(filters=[number])
    amount = Read(lazy_gettext("Amount in yuan"), Sum(negative=True))
    reason = StringField(lazy_gettext("Reason"), [DataRequired(), Length(max=300)])
    channel = SelectField(lazy_gettext("Channel"))

    def __init__(self, **options: Any):
        super().__init__(**options)
        each = [SelectChoice(str(row.id), f"{row.id} · {row.name}") for row in channel_setup.every()]
        self.channel.choices = [SelectChoice("", gettext("none: it is your own money")), *each]


class Adjusting(Page):
    """The part of a merchant's page that does it."""

    def _found(self, key: str) -> Merchant:
        raise NotImplementedError

    @expose("/<key>/adjust", methods=("GET", "POST"))
    def adjust(self, key: str) -> Any:
        """The form; then what it would do; and with that confirmed, it is done."""
        access.must_act()
        row = self._found(key)
        form = AdjustForm(data={"newest": accounts.newest_adjustment(row)})
        sure = False
        if form.validate_on_submit():
            try:
                if request.form.get("sure"):
                    return self._adjusted(row, form)
                accounts.check_newest(row, form.newest.data)
                accounts.check_cover(row, form.amount.value)
                sure = True
            except OperatorError as refusal:
                refuse(form, refusal)
        present = accounts.balances_of(row)["available"]
        page = self.render("console/adjust.html", merchant=row, form=form, present=present, sure=sure)
        return page, 422 if form.errors else 200

    def _adjusted(self, row: Merchant, form: AdjustForm) -> Any:
        through = channel_setup.find_channel(int(form.channel.data)) if form.channel.data else None
        fen, reason, actor = form.amount.value, form.reason.data.strip(), access.actor()
        audit.act(
            actor,
            "adjust balance",
            "merchant",
            row.key,
            lambda: accounts.adjust(
                row, fen, reason, channel=through, who=actor.who, once=True, newest=form.newest.data
            ),
            f"{hundredths(fen)} yuan; channel: {through.id if through else '-'}; {reason}",
        )
        flash(gettext("The balance is adjusted by %(amount)s yuan.", amount=yuan(fen)), "good")
        return redirect(url_for("merchant.show", key=row.key), 303)
