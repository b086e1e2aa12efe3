"""The list of channels, and the pages of one: choice of provider, settings, connection test."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from flask import Response, abort, flash, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext, ngettext
from flask_wtf import FlaskForm
from markupsafe import Markup
from wtforms import BooleanField, HiddenField, SelectChoice, SelectField, StringField
from wtforms.validators import DataRequired, Length

from blueprints.console import access, driver_form, labels, uploads
from blueprints.console.columns import Column, channel_link, unusable_marks
from blueprints.console.filters import ENABLED, Filter, choices
from blueprints.console.forms import (
    Checkboxes,
    SchemaField,
    find_or_404,
    form_page,
    message_of,
    row_id,
    show_refusal,
    texts,
    translate,
)
from blueprints.console.list_page import ListPage, pages_of_one
from gateways import registry
from gateways.base import METHODS, NO_STATUS_CHECKS
from models.db.base import LARGEST_ID
from models.tables.channel import GROUP, LARGEST_AMOUNT, Channel
from runtime.money import fen, grouped, hundredths
from schemas.fields import Percent, Sum, Whole
from services.channels import channel_setup, groups, merchant_move, pictures
from services.channels.calls import driver_of
from services.console import setup_lists
from services.errors import N_, OperatorError
from services.merchants import cache, edit_conflicts, links, merchant_setup
from services.security import audit

CHANNEL = f"/<int(max={LARGEST_ID}):channel_id>"
PICTURE = f"{CHANNEL}/picture/<any({', '.join(METHODS)}):method>"
AMOUNTS = ("min_amount", "max_amount", "passage_rate", "commission_rate", "deposit_rate", "auto_accept_max")
NUMBERS = (*AMOUNTS, "settlement_days")
COSTS = {method: f"cost_{method}" for method in METHODS}  # the fields with the rates of deposits
FIELDS = ("name", "pay_method", *NUMBERS, *COSTS.values(), "hours", "takes_orders", "enabled", "merchants")
# A group's members decide these, and it takes no withdrawals.
NOT_OF_GROUPS = ("pay_method", *AMOUNTS, *COSTS.values())
# What a category means for withdrawals. Deposits are the same in all of them.
CATEGORY_EFFECTS = {
    "gateway_a": lazy_gettext("withdrawals to a card in each request, with the holder’s identity data"),
    "gateway_b": lazy_gettext("withdrawals to the merchant’s payout account"),
    "gateway_c": lazy_gettext("withdrawals to the merchant’s payout account, as gateway_b"),
}
# The settings that a move of merchants compares, beside those of the form.
COMPARED = {
    "category": lazy_gettext("Category"),
    "deposits": lazy_gettext("Payment methods of deposits"),
    "withdrawals": lazy_gettext("Payment methods of withdrawals"),
    "amounts": lazy_gettext("Order amounts (¥)"),
}
ONLY_IN_DEMO = N_("The sandbox is available in demo mode only. This channel accepts no orders and cannot be enabled.")

pages = pages_of_one("channel", "channels")


def _methods(row: Channel) -> Markup:
    """Return the payment methods, with a mark of those that payers cannot use."""
    if not row.pay_method:  # a group without members
        return Markup("")
    marks, comma = unusable_marks(row), gettext(", ")
    hidden = Markup('<span class="skip">{}</span> ').format(comma)  # a mark is apart from the next one
    parts: list[str] = []
    for method in row.pay_methods:
        parts += (marks[method], hidden) if method in marks else (labels.name_of(labels.METHODS, method), comma)
    return Markup("").join(parts[:-1])


def is_failing(row: Channel) -> bool:
    """Return whether groups leave a channel out for any payment method, or only try whether it works again."""
    return any(known and known.level for known in (cache.health_of(row.id, method) for method in METHODS))


def state_of(row: Channel) -> tuple[str, str]:
    """Return whether a channel takes new orders now: the state's name and its label."""
    if not row.enabled:
        return "off", gettext("Disabled")
    if not row.takes_orders:
        return "warn", gettext("No new orders")
    if groups.why_closed(row):
        return "warn", gettext("Outside its hours")
    if is_failing(row):
        return "bad", gettext("Payments fail")
    return "good", gettext("Enabled")


def _owed(row: Channel, amount: int) -> int | None:
    """Return what is owed, in fen and at least 0; None for a group, which has no account."""
    return None if row.is_group else max(amount, 0)


CHANNELS = ListPage(
    "channels",
    lazy_gettext("Channels"),
    browse=setup_lists.Channels,
    new=("channel.new", lazy_gettext("New channel")),
    empty=lazy_gettext("No channels yet."),
    hint=lazy_gettext("A channel connects a payment provider, or your own account for manual transfers."),
    filters=(
        Filter("text", lazy_gettext("Name"), "search"),
        Filter("driver", lazy_gettext("Provider"), choices=choices(labels.DRIVERS)),
        Filter("category", lazy_gettext("Category"), choices=choices(labels.CATEGORIES)),
        ENABLED,
    ),
    columns=(
        Column("id", lazy_gettext("ID"), lambda row: row.id, "number", link=channel_link),
        Column("name", lazy_gettext("Channel"), lambda row: row.name, link=channel_link),
        Column("category", lazy_gettext("Category"), lambda row: labels.name_of(labels.CATEGORIES, row.category)),
        Column("driver", lazy_gettext("Provider"), lambda row: labels.name_of(labels.DRIVERS, row.driver)),
        Column(
            "methods",
            lazy_gettext("Methods"),
            _methods,
            "html",
        ),
        Column("least", lazy_gettext("Minimum (¥)"), lambda row: row.min_amount, "money"),
        Column("most", lazy_gettext("Maximum (¥)"), lambda row: row.max_amount, "money"),
        Column("receivable", lazy_gettext("Receivable (¥)"), lambda row: _owed(row, -row.clearing), "money", on="page"),
        Column("payable", lazy_gettext("Payable (¥)"), lambda row: _owed(row, row.clearing), "money", on="page"),
        Column("clearing", lazy_gettext("Channel clearing (¥)"), lambda row: row.clearing, "money", on="export"),
        Column("linked", lazy_gettext("Merchants"), lambda row: row.linked, "count"),
        Column("enabled", lazy_gettext("Status"), state_of, "state"),
        Column("hours", lazy_gettext("Hours of new orders"), lambda row: row.hours, on="export"),
    ),
)


def _cost(method: str) -> Any:
    return SchemaField(labels.METHODS[method], Percent(), default="0.00")


class ChannelForm(FlaskForm):
    """The settings that all drivers share. `mark` is the version that the page showed."""

    mark = HiddenField()
    name = StringField(lazy_gettext("Name"), [DataRequired(), Length(max=100)])
    pay_method = Checkboxes(lazy_gettext("Payment methods"))
    min_amount = SchemaField(lazy_gettext("Minimum order amount"), Sum(), default="0.01")
    max_amount = SchemaField(lazy_gettext("Maximum order amount"), Sum(), default=hundredths(LARGEST_AMOUNT))
    passage_rate = SchemaField(
        lazy_gettext("Channel fee on withdrawals (paid by the merchant)"), Percent(-100), default="0.00"
    )
    commission_rate = SchemaField(lazy_gettext("Channel cost of withdrawals (paid by you)"), Percent(), default="0.00")
    cost_wxpay, cost_alipay, cost_bank = map(_cost, METHODS)
    deposit_rate = SchemaField(lazy_gettext("Security deposit on withdrawals"), Percent(), default="0.00")
    settlement_days = SchemaField(lazy_gettext("Settlement delay of deposits (T+N)"), Whole(0, 365), default="0")
    auto_accept_max = SchemaField(lazy_gettext("Auto-approve withdrawals up to"), Sum(zero=True), default="0.00")
    hours = StringField(lazy_gettext("Hours of new orders"), [Length(max=20)])
    takes_orders = BooleanField(lazy_gettext("Accept new orders"), default=True)
    enabled = BooleanField(lazy_gettext("Enabled"), default=True)
    merchants = Checkboxes(lazy_gettext("Merchants with access"), coerce=int)
    same_account = BooleanField(lazy_gettext("This is a new name for the same account"))

    def __init__(self, driver: str, **options: Any):
        super().__init__(**options)
        methods = registry.DRIVERS[driver].methods
        self.pay_method.choices = [SelectChoice(each, labels.name_of(labels.METHODS, each)) for each in methods]
        absent = NOT_OF_GROUPS if driver == GROUP else [COSTS[each] for each in METHODS if each not in methods]
        for name in absent:
            del self[name]
        self.merchants.choices = [SelectChoice(row.id, f"{row.key} · {row.name}") for row in merchant_setup.merchants()]

    @property
    def costs(self) -> dict[str, SchemaField]:
        """The fields of the channel costs of deposits, by payment method."""
        return {method: self[name] for method, name in COSTS.items() if name in self}

    @property
    def named(self) -> tuple[str, ...]:
        """The names of the fields that the audit log has."""
        return tuple(name for name in FIELDS if name in self)

    def facts(self) -> dict[str, Any]:
        """Return the arguments for `channel_setup.set_channel`."""
        found: dict[str, Any] = {name: self[name].value for name in NUMBERS if name in self}
        found |= {name: (self[name].data or "").strip() for name in ("name", "hours")}
        found |= {name: self[name].data for name in ("enabled", "takes_orders")}
        found["cost_rates"] = {method: field.value for method, field in self.costs.items()}
        found["merchants"] = self.merchants.data or ()
        if "pay_method" in self:
            found["pay_method"] = ",".join(self.pay_method.data or ())
        return found


class NewChannelForm(ChannelForm):
    """The settings, and the category, which cannot be changed later."""

    category = SelectField(
        lazy_gettext("Category"),
        [DataRequired()],
        choices=[
            SelectChoice(name, lazy_gettext("%(category)s: %(effect)s", category=name, effect=effect))
            for name, effect in CATEGORY_EFFECTS.items()
        ],
        default="gateway_b",
    )

    def __init__(self, driver: str, **options: Any):
        super().__init__(driver, **options)
        if driver == GROUP:  # a group takes no withdrawals, which is all that a category decides
            self.category.choices = [SelectChoice(name, labels.CATEGORIES[name]) for name in CATEGORY_EFFECTS]

    def facts(self) -> dict[str, Any]:
        """Return the arguments for `channel_setup.add_channel`."""
        return super().facts() | {"category": self.category.data, "new_name": True}


def _present(row: Channel) -> dict[str, Any]:
    """Return the channel's settings as the form's data."""
    numbers = {name: hundredths(getattr(row, name)) for name in AMOUNTS}
    numbers |= {name: hundredths(row.cost_rate(method)) for method, name in COSTS.items()}
    return numbers | {
        "name": row.name,
        "pay_method": row.pay_methods,
        "settlement_days": str(row.settlement_days),
        "hours": row.hours,
        "takes_orders": bool(row.takes_orders),
        "enabled": bool(row.enabled),
        "merchants": links.merchants_of(row),
    }


@pages.route("/new", methods=["GET", "POST"])
def new() -> Any:
    """Show the choice of driver; with `?driver=`, show the form for a new channel or add the channel."""
    access.must_act()
    driver = request.args.get("driver", "")
    if driver not in registry.usable():
        drivers = [
            {"name": name, "title": translate(each.title) or name, "about": translate(each.about)}
            for name, each in registry.DRIVERS.items()
            if name in registry.usable()
        ]
        return render_template("console/channels/driver.html", drivers=drivers)
    form = driver_form.form_class(NewChannelForm, driver, {})(driver)
    if not form.is_submitted():
        if "pay_method" in form:
            form.pay_method.data = list(registry.DRIVERS[driver].methods)
        if len(form.merchants.choices) == 1:
            form.merchants.data = [form.merchants.choices[0].value]
    elif driver_form.is_valid(form, driver, {}, partial(channel_setup.wrong_config, driver)):
        try:
            return _added(form, driver)
        except OperatorError as refusal:
            show_refusal(form, refusal)
    rows = driver_form.rows(form, driver, {})
    title = labels.name_of(labels.DRIVERS, driver)
    facts = {"rows": rows, "driver": driver, "title": title, "by_hand": registry.DRIVERS[driver].by_hand}
    return form_page("console/channels/new.html", form, **facts)


def _added(form: NewChannelForm, driver: str) -> Any:
    given, facts = driver_form.changed(form, driver, {}), form.facts()
    _, config = driver_form.changes(given, {})
    detail = audit.changes({}, {"driver": driver, **texts(form, ("category", *form.named)), **config})
    add = partial(channel_setup.add_channel, driver=driver, config=given, **facts)
    made = access.act("add channel", "channel", facts["name"], add, detail)
    by_hand = registry.DRIVERS[driver].by_hand
    if made.is_group:
        told = gettext("Group added. Add its channels on this page.")
    elif by_hand:
        told = gettext("Channel added. You can upload images of your QR codes on this page.")
    else:
        told = gettext("Channel added. Test the connection before merchants use it.")
    flash(told, "good")
    return redirect(url_for("channel.show", channel_id=made.id), 303)


@pages.route(CHANNEL, methods=["GET", "POST"])
def show(channel_id: int) -> Any:
    """Show a channel and its form, or change the channel."""
    row = find_or_404(channel_setup.find_channel, channel_id)
    present = channel_setup.config_of(row)
    form = driver_form.form_class(ChannelForm, row.driver, present)(
        row.driver, data=_present(row) | {"mark": edit_conflicts.version_of(row)}
    )
    check = partial(channel_setup.wrong_config, row.driver)
    if form.is_submitted() and driver_form.is_valid(form, row.driver, present, check):
        try:
            return _changed(row, form, present)
        except OperatorError as refusal:
            show_refusal(form, refusal)
    by_hand, digests = registry.DRIVERS[row.driver].by_hand, pictures.digests(row)
    return form_page(
        "console/channels/channel.html",
        form,
        channel=row,
        state=state_of(row),
        is_linked=bool(links.merchants_of(row)),
        in_groups=channel_setup.groups_of(row),
        rows=driver_form.rows(form, row.driver, present),
        title=labels.name_of(labels.DRIVERS, row.driver),
        warning="" if row.driver in registry.usable() else gettext(ONLY_IN_DEMO),
        category=labels.name_of(labels.CATEGORIES, row.category),
        category_effect=CATEGORY_EFFECTS[row.category],
        not_checked="" if driver_of(row).checks_status else gettext(NO_STATUS_CHECKS),
        by_hand=by_hand,
        unusable={
            method: (labels.name_of(labels.METHODS, method), translate(why))
            for method, why in pictures.unusable_methods(row).items()
        },
        # The QR code images of manual channels, one for each payment method.
        pictures=[
            (each, labels.name_of(labels.METHODS, each), digests.get(each, "")) for each in row.pay_methods if by_hand
        ],
        most_kb=pictures.LARGEST // 1024,
    )


def _changed(row: Channel, form: ChannelForm, present: dict[str, Any]) -> Any:
    given, facts = driver_form.changed(form, row.driver, present), form.facts()
    before = ChannelForm(row.driver, formdata=None, data=_present(row))
    old, new = driver_form.changes(given, present)
    detail = audit.changes(texts(before, before.named) | old, texts(form, form.named) | new)
    if detail:
        same = bool(form.same_account.data)
        change = partial(channel_setup.set_channel, row, given, same_account=same, mark=form.mark.data, **facts)
        access.act(
            "set channel", "channel", str(row.id), change, replace(detail, note="the same account" if same else "")
        )
    flash(gettext("Saved.") if detail else gettext("No changes."), "good")
    return redirect(url_for("channel.show", channel_id=row.id), 303)


def _manual_channel(channel_id: int) -> Channel:
    row = find_or_404(channel_setup.find_channel, channel_id)
    if not registry.DRIVERS[row.driver].by_hand:
        abort(404)
    return row


@pages.get(PICTURE)
def picture(channel_id: int, method: str) -> Response:
    """Return the image of a QR code."""
    found = pictures.find(_manual_channel(channel_id), method)
    return Response(found.content, content_type=found.content_type) if found else abort(404)


@pages.post(f"{PICTURE}/upload")
def upload(channel_id: int, method: str) -> Any:
    """Store an uploaded image of a QR code."""
    row = _manual_channel(channel_id)
    try:
        _, content = uploads.sent_file("picture", pictures.LARGEST)
        store = partial(pictures.put, row, method, content)
        access.act("set QR code image", "channel", str(row.id), store, method)
        flash(gettext("Saved. The payment page shows the image."), "good")
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
    return redirect(url_for("channel.show", channel_id=row.id, _anchor="pictures"), 303)


@pages.post(f"{PICTURE}/remove")
def remove_picture(channel_id: int, method: str) -> Any:
    """Delete the image of a QR code."""
    row = _manual_channel(channel_id)
    access.act("remove QR code image", "channel", str(row.id), partial(pictures.remove, row, method), method)
    flash(gettext("Image removed."), "good")
    return redirect(url_for("channel.show", channel_id=row.id, _anchor="pictures"), 303)


@pages.route(f"{CHANNEL}/move", methods=["GET", "POST"])
def move(channel_id: int) -> Any:
    """Show what changes if all merchants of a channel use another one; move them if exactly that was confirmed."""
    access.must_act()
    row = find_or_404(channel_setup.find_channel, channel_id)
    target_id, keep = row_id(request.values.get("to", "")), request.values.get("keep") == "yes"
    others = [each for each in channel_setup.every() if each.enabled and each.id != row.id]
    target = next((each for each in others if each.id == target_id), None)
    plan, status = None, 200
    if target is not None:
        try:
            plan = merchant_move.plan(row, target, keep=keep)
            if request.method == "POST":
                return _moved(row, target, plan)
        except OperatorError as refusal:
            flash(message_of(refusal), "bad")
            status = 422
    settings = [
        (
            COMPARED.get(each.name) or getattr(ChannelForm, each.name).args[0],
            *(_in_words(each.name, value) for value in (each.present, each.new, each.loses)),
        )
        for each in (plan.settings if plan else ())
    ]
    names = {each.id: each.name for each in channel_setup.every()}
    types = {each.key: _changed_types(each, names) for each in (plan.merchants if plan else ())}
    facts = {"channel": row, "others": others, "target": target, "keep": keep, "plan": plan, "settings": settings}
    closed = translate(plan.closed) if plan else ""
    return render_template("console/channels/move.html", closed=closed, types=types, **facts), status


def _in_words(name: str, value: str) -> str:
    """Return a compared setting as people read it; "" for none."""
    words = {"deposits": labels.METHODS, "withdrawals": labels.METHODS, "category": labels.CATEGORIES}
    units = {"passage_rate": " %", "deposit_rate": " %", "auto_accept_max": " ¥"}
    if name in words:
        return gettext(", ").join(labels.name_of(words[name], each) for each in value.split(",") if each)
    if name == "amounts":
        ranges = [each.split("-") for each in value.split(", ") if each]
        texts_of = (gettext("%(low)s to %(high)s", low=grouped(fen(a)), high=grouped(fen(b))) for a, b in ranges)
        return gettext("; ").join(texts_of)
    return value + units.get(name, "") if value else ""


def _changed_types(merchant: merchant_move.Moved, names: dict[int, str]) -> list[tuple[str, str, str]]:
    """Return each type of an epay gateway whose channels change, and these channels as people read them.

    Args:
        names: those of all channels, by id.
    """

    def read(text: str) -> dict[str, str]:
        found: dict[str, list[str]] = {}
        for part in filter(None, text.split(",")):
            name, pair = part.split("=")
            channel, method = pair.split(":")
            about = {"name": names[int(channel)], "method": labels.name_of(labels.METHODS, method)}
            shown = about["name"] if method == name else gettext("%(name)s (%(method)s)", **about)
            found.setdefault(name, []).append(shown)
        return {name: gettext(", ").join(each) for name, each in found.items()}

    new = read(merchant.new_types)
    return [(name, old, new[name]) for name, old in read(merchant.types).items() if old != new[name]]


def _moved(row: Channel, target: Channel, plan: merchant_move.Plan) -> Any:
    """Move the merchants as the page showed it. Raises OperatorError, also if something else would change now."""
    if request.form.get("mark") != plan.mark:
        raise merchant_move.Outdated(merchant_move.OUTDATED)
    action = "share merchants" if plan.keep else "move merchants"
    do = partial(merchant_move.move, row, target, keep=plan.keep, mark=plan.mark)
    access.act(action, "channel", str(row.id), do, plan.detail)
    text = ngettext(
        "%(num)s merchant now uses %(name)s.",
        "%(num)s merchants now use %(name)s.",
        len(plan.merchants),
        name=target.name,
    )
    flash(text, "good")
    return redirect(url_for("channel.show", channel_id=row.id), 303)


@pages.post(f"{CHANNEL}/try")
def attempt(channel_id: int) -> Any:
    """Test the connection with a status check of a nonexistent order, and show the result."""
    row = find_or_404(channel_setup.find_channel, channel_id)
    try:
        found = access.act("try channel", "channel", str(row.id), lambda: channel_setup.check(row))
    except channel_setup.CheckFailed as failure:
        found = failure.findings
    rows = [(labels.name_of(labels.CHECKS, each.about), each.good, translate(each.text, **each.args)) for each in found]
    next_step = (
        gettext("Correct the settings and save them, then test again.")
        if any(each.good is False for each in found)
        else gettext("Link the channel to merchants, then try it with a payment link of a small amount.")
    )
    rows.append((gettext("Next step"), None, next_step))
    flash(rows, "found")  # type: ignore[arg-type]  # the session stores any JSON
    return redirect(url_for("channel.show", channel_id=channel_id, _anchor="check"), 303)
