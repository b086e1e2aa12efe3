"""New payment links; in demo mode, new test orders."""

from __future__ import annotations

import secrets
import time
from typing import Any

import segno
from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask_babel import LazyString, gettext, lazy_gettext, ngettext
from flask_wtf import FlaskForm
from marshmallow import ValidationError
from werkzeug.exceptions import NotFound
from wtforms import HiddenField, RadioField, SelectChoice, SelectField, StringField
from wtforms.validators import InputRequired, Length, StopValidation

from blueprints.api.envelope import translated
from blueprints.console import access, labels
from blueprints.console.forms import SchemaField, form_page
from blueprints.console.pages.order import find_order
from models.tables.channel import Channel
from models.tables.order import BUY, SELL
from runtime import clock
from runtime.money import grouped, hundredths
from runtime.state import current
from schemas.field_descriptions import meaning_of
from schemas.fields import Sum
from schemas.gateway_a import CardInfo, PersonalData
from schemas.messages import flat
from schemas.new_order import load_new_order
from services import kinds
from services.channels import groups
from services.channels.calls import driver_of, pay_url
from services.channels.order_numbers import new_order_no
from services.errors import ERRORS, ApiError, Code
from services.merchants import cache, merchant_setup
from services.merchants.cache import Known
from services.orders import new
from services.orders.new import Placed, Source
from services.security.replay import KEY_KEPT, Call

TEST_AMOUNT = "100.00"
DAY = 86_400
DEFAULT_EXPIRY = DAY
EXPIRIES = (900, 3_600, 7_200, DAY, 3 * DAY, 7 * DAY, 30 * DAY)  # seconds
FORM_VALID = KEY_KEPT // 2  # seconds: the key that makes repeats harmless is kept longer
# The form's field that shows an error of a field of createOrder.
SHOWN_AT = {"cny_amount": "amount", "merchant_order_no": "merchant_order_no"}

pages = Blueprint("new_order", __name__, url_prefix="/new-order")


def _title() -> str:
    return gettext("New test order") if current().settings.demo else gettext("New payment link")


NEW = ("new_order.index", LazyString(_title))  # the button on lists


def duration(seconds: int) -> str:
    """Return a number of seconds as minutes, hours or days."""
    if seconds > DAY and seconds % DAY == 0:
        return ngettext("%(num)s day", "%(num)s days", seconds // DAY)
    if seconds % 3600 == 0:
        return ngettext("%(num)s hour", "%(num)s hours", seconds // 3600)
    return ngettext("%(num)s minute", "%(num)s minutes", seconds // 60)


def _new_token() -> str:
    """Return a text that identifies one display of the form, beginning with its time."""
    return f"{int(time.time())}-{secrets.token_hex(16)}"


def _printable(form: FlaskForm, field: StringField) -> None:
    if not (field.data or "").isprintable():
        raise StopValidation(gettext("Enter plain text in one line."))


class NewOrderForm(FlaskForm):
    """A new order. `way` is a channel and a payment method; the same `token` creates one order only."""

    token = HiddenField()
    order_type = RadioField(
        lazy_gettext("Type"),
        choices=[SelectChoice(str(each), label) for each, label in labels.TYPES.items()],
        default=str(BUY),
    )
    amount = SchemaField(lazy_gettext("Amount"), Sum())
    way = SelectField(lazy_gettext("Channel"), [InputRequired()])
    expiry = SelectField(lazy_gettext("Expires after"), default=str(DEFAULT_EXPIRY))
    note = StringField(lazy_gettext("Note for the payer"), [_printable, Length(max=200)])
    merchant_order_no = StringField(lazy_gettext("Merchant order number"), [_printable, Length(max=255)])

    def __init__(self, known: Known, **options: Any):
        super().__init__(**options)
        self.way.choices = [
            SelectChoice(f"{channel.id}:{method}", _way(channel, method))
            for channel in known.channels.values()
            for method in channel.pay_methods
            if not groups.why_closed(channel)
        ]
        self.expiry.choices = [SelectChoice(str(each), duration(each)) for each in EXPIRIES]

    @property
    def channel_id(self) -> int:
        """The chosen channel."""
        return int(self.way.data.partition(":")[0])

    def payload(self, channel: Channel) -> dict[str, Any]:
        """Return the order as createOrder's fields. A withdrawal through gateway_a is to the API's example card."""
        fields = {
            "order_type": self.order_type.data,
            "cny_amount": hundredths(self.amount.value),
            "paychannel_id": str(channel.id),
            "paychannel_paymethod": self.way.data.partition(":")[2],
            "merchant_order_no": (self.merchant_order_no.data or "").strip(),
        }
        if self.order_type.data == str(SELL) and channel.category == "gateway_a":
            return fields | {
                "gatewaya_personal_data": _example(PersonalData),
                "gatewaya_card_info": _example(CardInfo),
            }
        return fields


def _example(schema: type[PersonalData | CardInfo]) -> dict[str, Any]:
    return {name: meaning_of(name, schema.__name__).example for name in schema().fields}


def _way(channel: Channel, method: str) -> str:
    ranges = groups.accepted(channel).get(method) or [(channel.min_amount, channel.max_amount)]
    limits = gettext(", ").join(f"¥{grouped(least)}–{grouped(most)}" for least, most in ranges)
    return f"{channel.name} · {labels.name_of(labels.METHODS, method)} · {limits}"


@pages.route("/", methods=["GET", "POST"])
def index() -> Any:
    """Show the choice of merchant, then the form of a new order; create the order."""
    access.must_act()
    every = [cache.by_id(row.id) for row in merchant_setup.merchants() if row.enabled]
    usable = [known for known in every if known.channels]
    key = request.args.get("merchant") or (usable[0].merchant.key if len(usable) == 1 else "")
    if not key:
        merchants = [known.merchant for known in usable]
        return render_template("console/new_order/merchant.html", title=_title(), merchants=merchants)
    known = next((known for known in usable if known.merchant.key == key), None)
    if known is None:
        raise NotFound
    form = NewOrderForm(known)
    if not form.is_submitted():
        form.token.data = _new_token()
        form.amount.data = TEST_AMOUNT if current().settings.demo else ""
    elif form.validate() and (answer := _created(form, known)):
        return answer
    possible = [each for channel in known.channels.values() for each in groups.channels_in(channel)]
    longest = {driver_of(channel).longest_expiry: channel for channel in possible}
    return form_page(
        "console/new_order/form.html",
        form,
        merchant=known.merchant,
        several=len(usable) > 1,
        limits=[
            (labels.name_of(labels.DRIVERS, channel.driver), duration(seconds))
            for seconds, channel in sorted(longest.items())
            if seconds < max(EXPIRIES)
        ],
        title=_title(),
    )


def _created(form: NewOrderForm, known: Known) -> Any:
    """Create the order, or find the one that this form created; return a redirect, or None with errors in the form."""
    token = form.token.data or ""
    begun = token.partition("-")[0]
    if not begun.isdecimal() or len(token) >= 64 or abs(time.time() - int(begun)) >= FORM_VALID:
        form.token.data = _new_token()
        form.form_errors.append(gettext("This form was open for too long. Check the values and send it again."))
        return None
    if not current().settings.demo:
        form.order_type.data = str(BUY)
    channel = known.channels[form.channel_id]
    payload = form.payload(channel)
    try:
        wanted = load_new_order(payload, channel, groups.accepted(channel), driver_of(channel).payout_methods)
    except ValidationError as error:
        for name, messages in flat(error.messages).items():
            field = form._fields[SHOWN_AT.get(name, "way")]
            field.errors = [*field.errors, *(translated(text) for text in messages)]
        return None
    chosen = {"note": (form.note.data or "").strip(), "expires_after": form.expiry.data}
    call = Call(known.merchant, secrets.token_hex(16), payload | chosen, f"console {token}")
    try:
        placed = new.placed_before(call) or _place(call, channel, wanted)
    except ApiError as refusal:
        return _refused(form, refusal)
    return redirect(url_for(".show", order_no=placed.order.order_no), 303)


def _refused(form: NewOrderForm, refusal: ApiError) -> Any:
    """Redirect to the order that the channel refused, or show the reason above the form."""
    if refusal.code == Code.CHANNEL_FAILED:
        flash(gettext("The channel rejected the order, so it is cancelled. The timeline has the reason."), "bad")
        return redirect(url_for("order.show", order_no=refusal.data["order_no"]), 303)
    texts = {
        Code.IDEMPOTENCY_KEY_REUSED: gettext(
            "This form already created an order with other values. To create another one, send the form again."
        ),
        Code.REQUEST_IN_PROGRESS: gettext("The order is being created. Wait a few seconds, then send the form again."),
    }
    if refusal.code == Code.IDEMPOTENCY_KEY_REUSED:
        form.token.data = _new_token()
    form.form_errors.append(texts.get(Code(refusal.code)) or refusal.detail or gettext(ERRORS[Code(refusal.code)]))
    return None


def _place(call: Call, channel: Channel, wanted: dict[str, Any]) -> Placed:
    """Create the order as the API does, with an entry in the audit log."""
    actor, is_buy = access.actor(), wanted["order_type"] == BUY
    longest = min(driver_of(each).longest_expiry for each in groups.channels_in(channel))
    expires_after = min(int(call.payload["expires_after"]), longest)
    source = Source(
        actor.who,
        new_order_no(),
        expires_at=clock.now() + expires_after if is_buy else 0,
        note=call.payload["note"] if is_buy else "",
    )
    facts = {"merchant": call.merchant.key, "amount": grouped(wanted["cny_amount"]), "channel": channel.name}
    place = kinds.KINDS[wanted["order_type"]].place
    placed = access.act(
        "create test order" if current().settings.demo else "create payment link",
        "order",
        source.order_no,
        lambda: place(call, channel, wanted, source),
        "; ".join(f"{name}: {value}" for name, value in facts.items()),
    )
    if is_buy and longest < int(call.payload["expires_after"]):
        text = gettext(
            "%(provider)s accepts payments for at most %(longest)s. The link expires then.",
            provider=labels.name_of(labels.DRIVERS, channel.driver),
            longest=duration(longest),
        )
        flash(text, "warn")
    return placed


@pages.get("/<order_no>")
def show(order_no: str) -> str:
    """Show a created order: its payment link with a QR code."""
    order = find_order(order_no)
    url = pay_url(order.order_no)
    code = segno.make(url, error="m")
    return render_template(
        "console/new_order/created.html",
        order=order,
        url=url,
        picture=code.svg_data_uri(scale=5, border=2, dark="#000", light="#fff", omitsize=True),
        note=new.note_of(order),
        method=labels.name_of(labels.METHODS, order.payment_method),
        simulator=f"{current().settings.public_url}/sandbox" if driver_of(order.channel).simulated else "",
        title=_title(),
    )
