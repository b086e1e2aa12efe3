"""The forms of a merchant's pages."""

from __future__ import annotations

from typing import Any

from flask_babel import lazy_gettext
from flask_wtf import FlaskForm
from wtforms import BooleanField, HiddenField, SelectChoice, StringField
from wtforms.validators import DataRequired, Length

from blueprints.console import labels
from blueprints.console.forms import Read, Several, number
from schemas.fields import Percent, Whole
from services.channels import channel_setup
from services.merchants import merchant_setup

LONGEST_KEEP = 720  # hours
MORE_EVENTS = [event for event in merchant_setup.EVENTS if event not in merchant_setup.RESULTS]


class MerchantForm(FlaskForm):
    """What can be changed of a merchant; `mark` is of what the page showed."""

    mark = HiddenField()

    name = StringField(lazy_gettext("Name"), [DataRequired(), Length(max=100)])
    callback_url = StringField(lazy_gettext("Callback URL"), [Length(max=2000)])
    events = Several(
        lazy_gettext("Callbacks besides the results"),
        choices=[SelectChoice(each, labels.EVENTS[f"order.{each}"]) for each in MORE_EVENTS],
    )
    buy_rate = Read(lazy_gettext("Fee on deposits"), Percent(), default="0.00")
    sell_rate = Read(lazy_gettext("Fee on withdrawals"), Percent(), default="0.00")
    allowed_addresses = StringField(lazy_gettext("Addresses that may call"), [Length(max=2000)])
    enabled = BooleanField(lazy_gettext("Enabled"), default=True)
    channels = Several(lazy_gettext("Channels that it may use"), coerce=int)

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.channels.choices = [SelectChoice(row.id, f"{row.id} · {row.name}") for row in channel_setup.every()]

    def facts(self) -> dict[str, Any]:
        """As `administration` takes them."""
        plain = {name: (self[name].data or "").strip() for name in ("name", "callback_url", "allowed_addresses")}
        rates = {name: self[name].value for name in ("buy_rate", "sell_rate")}
        lists = {"events": ",".join(self.events.data or ()), "channels": self.channels.data or ()}
        return plain | rates | lists | {"enabled": self.enabled.data}


class NewMerchantForm(MerchantForm):
    """And what stays as it is."""

    key = StringField(lazy_gettext("Key"), [DataRequired(), Length(max=64)])


class RotateForm(FlaskForm):
    """How long the old secret holds; `mark` names the one that is replaced."""

    keep_hours = Read(lazy_gettext("Hours for which the old one stays valid"), Whole(0, LONGEST_KEEP), default="24")
    mark = HiddenField()


class AccountForm(FlaskForm):
    """A receiving account; `after` is the id of the newest one that the page knew, 0 for none."""

    after = HiddenField(filters=[number])
    real_name = StringField(lazy_gettext("Holder's name"), [DataRequired(), Length(max=100)])
    card_number = StringField(lazy_gettext("Card or account number"), [DataRequired(), Length(max=40)])
    bank = StringField(lazy_gettext("Bank"), [Length(max=100)])
    sub_bank = StringField(lazy_gettext("Branch"), [Length(max=100)])
