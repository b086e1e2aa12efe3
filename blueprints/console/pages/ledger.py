"""The ledger: balances and integrity checks, the list of entries, and adjustments of balances."""

from __future__ import annotations

import json
import time
from typing import Any

from flask import Blueprint, Response, flash, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from wtforms import HiddenField, SelectChoice, SelectField, StringField
from wtforms.validators import DataRequired, Length

from blueprints.console import access, labels
from blueprints.console.action_labels import money
from blueprints.console.alert_links import ago
from blueprints.console.columns import Column, channel_link, merchant_link, order_link
from blueprints.console.filters import CHANNEL, MERCHANT, SINCE, UNTIL, Filter, choices
from blueprints.console.forms import SchemaField, find_or_404, form_page, message_of, row_id, show_refusal
from blueprints.console.list_page import ListPage
from blueprints.console.locale import local_time
from blueprints.console.pages.merchants import pages as merchant_pages
from models.tables.merchant import Merchant
from models.tables.order import Order
from runtime.money import grouped
from runtime.state import current
from schemas.fields import Sum
from services.channels import channel_setup
from services.console import record_lists
from services.errors import N_, OperatorError
from services.ledger import accounts, integrity, scheduled_checks
from services.merchants import merchant_setup
from services.security import audit

pages = Blueprint("ledger", __name__, url_prefix="/ledger")


def owed(fen: int) -> str:
    """Return a channel's clearing balance in words, as a positive number."""
    if fen < 0:
        return gettext("Receivable from channel: ¥%(amount)s", amount=grouped(-fen))
    return gettext("Payable to channel: ¥%(amount)s", amount=grouped(fen)) if fen else gettext("Nothing owed")


@pages.get("/")
def index() -> str:
    """Show all balances and the latest integrity checks."""
    return render_template(
        "console/ledger.html",
        sheet=accounts.sheet(),
        runs=scheduled_checks.recent(),
        state=scheduled_checks.state,
        last=scheduled_checks.last(),
        running=scheduled_checks.running(),
        every=current().settings.verify_every,
        ago=ago,
    )


@pages.post("/verify")
def verify() -> Any:
    """Start an integrity check in the background."""
    actor = access.actor()
    try:
        audit.act(actor, "verify ledger", "ledger", "", lambda: scheduled_checks.start(actor.who))
    except OperatorError as refusal:
        flash(gettext("Action failed: %(why)s", why=message_of(refusal)), "bad")
    else:
        flash(gettext("Ledger check started."), "good")
    return redirect(url_for(".index"), 303)


@pages.get("/heads.json")
def heads() -> Response:
    """Download the ledger checkpoints for `tillbook ledger verify --against`."""
    text = json.dumps(integrity.head_rows(), ensure_ascii=False, indent=2) + "\n"
    name = f"heads-{local_time(int(time.time())):%Y-%m-%d-%H%M}.json"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, content_type="application/json", headers=headers)


def _owner(row: Any) -> str:
    return row.owner.name if row.owner else gettext("Platform")


def _owner_link(row: Any) -> str:
    if row.owner is None:
        return ""
    return (channel_link if row.account.kind == "clearing" else merchant_link)(row.owner)


def _concerned(row: Any) -> str:
    """Return the merchant and the channel of an entry of the platform."""
    return "" if row.owner else " · ".join(each.name for each in (row.merchant, row.channel) if each)


def _order_of(row: Any) -> Any:
    return row.posting.of_order if row.posting.order_id else None


ENTRIES = ListPage(
    "entries",
    lazy_gettext("Ledger entries"),
    browse=record_lists.Entries,
    empty=lazy_gettext("No entries yet."),
    hint=lazy_gettext("The first completed order adds the first entries."),
    filters=(
        Filter("account", lazy_gettext("Account"), choices=choices(labels.ACCOUNTS)),
        MERCHANT,
        CHANNEL,
        Filter(
            "purpose",
            lazy_gettext("Purpose"),
            choices=choices(labels.PURPOSES | {"exception": lazy_gettext("Exception")}),
        ),
        Filter("order", lazy_gettext("Order number"), "text"),
        SINCE,
        UNTIL,
    ),
    columns=(
        Column("id", lazy_gettext("Entry"), lambda row: row.id, "number"),
        Column("createtime", lazy_gettext("Posted"), lambda row: row.posting.createtime, "time"),
        Column("account", lazy_gettext("Account"), lambda row: labels.name_of(labels.ACCOUNTS, row.account.kind)),
        Column("owner", lazy_gettext("Owner"), _owner, link=_owner_link, note=_concerned),
        Column("merchant", lazy_gettext("Merchant"), lambda row: row.merchant and row.merchant.name, on="export"),
        Column("channel", lazy_gettext("Channel"), lambda row: row.channel and row.channel.name, on="export"),
        Column("amount", lazy_gettext("Amount (¥)"), lambda row: row.amount, "money"),
        Column(
            "purpose",
            lazy_gettext("Purpose"),
            lambda row: labels.purpose_of(row.posting.purpose),
            note=lambda row: labels.name_of(labels.EXCEPTIONS, row.posting.memo),
        ),
        Column(
            "memo", lazy_gettext("Memo"), lambda row: labels.name_of(labels.EXCEPTIONS, row.posting.memo), on="export"
        ),
        Column(
            "order_no",
            lazy_gettext("Order number"),
            lambda row: _order_of(row).order_no if _order_of(row) else None,
            link=lambda row: order_link(_order_of(row)),
        ),
        Column("who", lazy_gettext("By"), lambda row: labels.who(row.posting.who)),
        Column("number", lazy_gettext("Entry number in account"), lambda row: row.number, "number", on="export"),
        Column("posting", lazy_gettext("Posting number"), lambda row: row.posting_id, "number", on="export"),
    ),
)


class AdjustForm(FlaskForm):
    """An adjustment: amount, reason, channel, and the order that it is about.

    `newest` is the number of the balance's newest entry when the page was shown.
    """

    newest = HiddenField(filters=[row_id])
    amount = SchemaField(lazy_gettext("Amount"), Sum(negative=True))
    reason = StringField(lazy_gettext("Reason"), [DataRequired(), Length(max=300)])
    channel = SelectField(lazy_gettext("Channel"))
    order_no = StringField(lazy_gettext("Order number (optional)"), [Length(max=64)])

    def __init__(self, **options: Any):
        super().__init__(**options)
        each = [SelectChoice(str(row.id), f"{row.id} · {row.name}") for row in channel_setup.with_accounts()]
        self.channel.choices = [SelectChoice("", gettext("none (your own money)")), *each]

    def order_of(self, merchant: Merchant) -> Order | None:
        """Return the order that the adjustment is about, or None. Raises OperatorError."""
        if not (number := (self.order_no.data or "").strip()):
            return None
        order = Order.find(number)
        if order is None:
            raise OperatorError(N_("No order has this number."), "order_no")
        accounts.check_order(merchant, order)
        return order


@merchant_pages.route("/<key>/adjust", methods=["GET", "POST"])
def adjust(key: str) -> Any:
    """Show the form, then the effect for confirmation, then adjust the balance."""
    access.must_act()
    row = find_or_404(merchant_setup.find_merchant, key)
    form = AdjustForm(data={"newest": accounts.newest_entry(row), "order_no": request.args.get("order_no")})
    sure = False
    if form.validate_on_submit():
        try:
            if request.form.get("sure"):
                return _adjusted(row, form)
            form.order_of(row)
            accounts.check_newest(row, form.newest.data)
            accounts.check_cover(row, form.amount.value)
            sure = True
        except OperatorError as refusal:
            show_refusal(form, refusal)
    present = accounts.balances_of(row)["available"]
    asked = request.args.get("order_no")
    back = url_for("order.show", order_no=asked) if asked else merchant_link(row)
    return form_page("console/merchants/adjust.html", form, merchant=row, present=present, sure=sure, back=back)


def _adjusted(row: Merchant, form: AdjustForm) -> Any:
    through = channel_setup.find_usable(int(form.channel.data)) if form.channel.data else None
    fen, reason, actor = form.amount.value, form.reason.data.strip(), access.actor()
    order = form.order_of(row)
    of_order = f"order: {order.order_no}; " if order else ""
    audit.act(
        actor,
        "adjust balance",
        "merchant",
        row.key,
        lambda: accounts.adjust(
            row, fen, reason, channel=through, order=order, who=actor.who, once=True, newest=form.newest.data
        ),
        f"amount: {grouped(fen)}; channel: {through.id if through else '-'}; {of_order}{reason}",
    )
    flash(gettext("Balance adjusted by %(amount)s.", amount=money(fen)), "good")
    return redirect(order_link(order) if order else merchant_link(row), 303)
