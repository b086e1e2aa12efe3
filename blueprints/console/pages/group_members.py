"""The members of a group of channels, on the page of the group: their order, limits, today's use and state."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from flask import abort, flash, redirect, request, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from wtforms import HiddenField, SelectChoice, SelectField, StringField
from wtforms.validators import Length

from blueprints.console import access, labels
from blueprints.console.forms import (
    SchemaField,
    accepted,
    find_or_404,
    form_page,
    message_of,
    row_id,
    texts,
    translate,
)
from blueprints.console.pages.channels import CHANNEL, is_failing
from blueprints.console.pages.channels import pages as channel_pages
from models.db.base import LARGEST_ID
from models.tables.channel import WEIGHT, Channel, ChannelMember
from runtime.money import hundredths
from schemas.fields import Sum, Whole
from services.channels import channel_setup, group_setup
from services.channels.calls import driver_of
from services.channels.group_setup import MemberState
from services.errors import OperatorError
from services.merchants import edit_conflicts
from services.security import audit

MEMBERS = f"{CHANNEL}/members"
MEMBER = f"{MEMBERS}/<int(max={LARGEST_ID}):member_id>"
pages = channel_pages

FIELDS = ("weight", "min_amount", "max_amount", "daily_amount", "daily_count", "hours")


class _Limit(SchemaField):
    """A limit, or nothing for none."""

    def pre_validate(self, form: Any) -> None:
        """Convert the text. Raises StopValidation with the schema's message."""
        self.value = None
        if (self.data or "").strip():
            super().pre_validate(form)


class MemberForm(FlaskForm):
    """The limits of a member. `mark` is the version that the page showed."""

    mark = HiddenField()
    weight = SchemaField(lazy_gettext("Weight"), Whole(1, group_setup.MOST_WEIGHT), default="1")
    min_amount = _Limit(lazy_gettext("Minimum amount of a deposit"), Sum())
    max_amount = _Limit(lazy_gettext("Maximum amount of a deposit"), Sum())
    daily_amount = _Limit(lazy_gettext("Daily amount"), Sum())
    daily_count = _Limit(lazy_gettext("Daily number of deposits"), Whole(1, group_setup.MOST_COUNT))
    hours = StringField(lazy_gettext("Hours"), [Length(max=20)])

    def facts(self) -> dict[str, Any]:
        """Return the arguments for `group_setup.set_member`."""
        return {name: self[name].value for name in FIELDS if name != "hours"} | {
            "hours": (self.hours.data or "").strip()
        }


class NewMemberForm(MemberForm):
    """The limits, and the channel."""

    channel = SelectField(lazy_gettext("Channel"), coerce=row_id)

    def __init__(self, group: Channel, **options: Any):
        super().__init__(**options)
        present = {row.channel_id for row in ChannelMember.select().where(ChannelMember.group == group)}
        self.channel.choices = [
            SelectChoice(row.id, f"{row.id} · {row.name}")
            for row in channel_setup.every()
            if not row.is_group
            and row.id not in present
            and (row.category, row.settlement_days) == (group.category, group.settlement_days)
        ]


def _group(channel_id: int) -> Channel:
    row = find_or_404(channel_setup.find_channel, channel_id)
    return row if row.is_group else abort(404)


def _member(group: Channel, member_id: int) -> ChannelMember:
    return find_or_404(partial(group_setup.find_member, group), member_id)


def _shares(group: Channel) -> bool:
    """Return whether the weights of a group's members have an effect."""
    return bool(driver_of(group).config["mode"] == WEIGHT)


@pages.context_processor
def _of_groups() -> dict[str, Any]:
    """Give the page of a channel the members of a group, whether they have weights, and their states."""
    facts = {"why_not": _why_not, "works_by": _works_by, "is_failing": is_failing}
    return {"members_of": group_setup.states, "shares": _shares, **facts}


def _why_not(state: MemberState) -> list[tuple[str, str]]:
    """Return the reasons why a member takes no deposits now, each with the labels of its payment methods before it.

    One reason for all methods has no labels. Empty if it takes deposits by all its methods.
    """
    methods_of: dict[str, list[str]] = {}
    for method, why in state.why_not.items():
        methods_of.setdefault(translate(why), []).append(method)
    every = len(state.member.channel.pay_methods)
    return [("" if len(methods) == every else _labels(methods), why) for why, methods in methods_of.items()]


def _works_by(state: MemberState) -> str:
    """Return the labels of the payment methods by which a member takes deposits now; "" if it takes none."""
    return _labels(method for method in state.member.channel.pay_methods if method not in state.why_not)


def _labels(methods: Iterable[str]) -> str:
    return gettext(", ").join(labels.name_of(labels.METHODS, method) for method in methods)


def _back(group: Channel) -> Any:
    return redirect(url_for("channel.show", channel_id=group.id, _anchor="members"), 303)


def _page(form: MemberForm, group: Channel, channel: Channel | None = None) -> Any:
    return form_page("console/channels/member.html", form, group=group, channel=channel)


@pages.route(f"{MEMBERS}/new", methods=["GET", "POST"])
def add_member(channel_id: int) -> Any:
    """Show the form for a new member, or add it as the last one."""
    access.must_act()
    group = _group(channel_id)
    form = NewMemberForm(group)
    return accepted(form, lambda: _added(group, form)) or _page(form, group)


def _added(group: Channel, form: NewMemberForm) -> Any:
    channel = channel_setup.find_channel(form.channel.data)
    detail = audit.changes({}, {"channel": _named(channel), **texts(form, FIELDS)})
    add = partial(group_setup.add_member, group, channel, **form.facts())
    access.act("add member", "channel", str(group.id), add, detail)
    flash(gettext("%(name)s is now the last channel of this group.", name=channel.name), "good")
    return _back(group)


@pages.route(MEMBER, methods=["GET", "POST"])
def member(channel_id: int, member_id: int) -> Any:
    """Show the limits of a member, or change them."""
    access.must_act()
    group = _group(channel_id)
    row = _member(group, member_id)
    form = MemberForm(data=_present(row) | {"mark": edit_conflicts.version_of(row)})
    return accepted(form, lambda: _changed(group, row, form)) or _page(form, group, row.channel)


def _present(row: ChannelMember) -> dict[str, Any]:
    """Return a member's limits as the form's data."""
    amounts = {name: getattr(row, name) for name in ("min_amount", "max_amount", "daily_amount")}
    data = {name: "" if fen is None else hundredths(fen) for name, fen in amounts.items()}
    count = "" if row.daily_count is None else str(row.daily_count)
    return data | {"weight": str(row.weight), "daily_count": count, "hours": row.hours}


def _changed(group: Channel, row: ChannelMember, form: MemberForm) -> Any:
    before = MemberForm(formdata=None, data=_present(row))
    detail = audit.changes(texts(before, FIELDS), texts(form, FIELDS))
    if detail:
        change = partial(group_setup.set_member, row, mark=form.mark.data, **form.facts())
        access.act("set member", "channel", str(group.id), change, _of_channel(row, detail))
    flash(gettext("Saved.") if detail else gettext("No changes."), "good")
    return _back(group)


@pages.post(f"{MEMBER}/place")
def place_member(channel_id: int, member_id: int) -> Any:
    """Move a member to the place in the form."""
    group = _group(channel_id)
    row, place = _member(group, member_id), row_id(request.form.get("place", ""))
    if not 1 <= place <= group_setup.MOST:
        abort(400)
    detail = audit.changes({"position": str(row.position)}, {"position": str(place)})
    move = partial(group_setup.set_member, row, position=place)
    _try(group, "set member", move, _of_channel(row, detail))
    return _back(group)


@pages.post(f"{MEMBER}/remove")
def remove_member(channel_id: int, member_id: int) -> Any:
    """Remove a member. Its open orders continue."""
    group = _group(channel_id)
    row = _member(group, member_id)
    detail = audit.changes({"channel": _named(row.channel)}, {"channel": ""})
    if _try(group, "remove member", partial(group_setup.remove_member, row), detail):
        flash(gettext("%(name)s is no longer in this group. Its open orders continue.", name=row.channel.name), "good")
    return _back(group)


def _named(channel: Channel) -> str:
    return f"{channel.id} {channel.name}"


def _of_channel(row: ChannelMember, detail: audit.Changes) -> audit.Changes:
    """Return changes of a member with its channel before them."""
    name = _named(row.channel)
    return audit.Changes((("channel", name, name), *detail.fields))


def _try(group: Channel, action: str, do: Any, detail: audit.Changes) -> bool:
    try:
        access.act(action, "channel", str(group.id), do, detail)
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return False
    return True
