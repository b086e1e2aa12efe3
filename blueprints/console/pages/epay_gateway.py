"""The page of a merchant's account at the epay gateway: the values for its shop, its settings and keys."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from flask import flash, redirect, render_template, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from wtforms import BooleanField, HiddenField, RadioField, SelectChoice, StringField
from wtforms.validators import Length

from blueprints.console import access, labels
from blueprints.console.forms import (
    SchemaField,
    accepted,
    find_or_404,
    form_page,
    message_of,
)
from blueprints.console.pages.merchants import LONGEST_KEEP, RotateForm
from blueprints.console.pages.merchants import pages as merchant_pages
from models.tables.channel import Channel
from models.tables.epay import EpayAccount
from models.tables.merchant import Merchant
from schemas.fields import Whole
from services.errors import N_, OperatorError
from services.merchants import edit_conflicts, epay_accounts, merchant_setup
from services.security import audit

BY_METHOD, OWN = "methods", "own"
RECORDED = ("pid", "hosts", "types", "webhooks")
Pair = tuple[int, str]

pages = merchant_pages


class NewPid(SchemaField):
    """A merchant number; empty for the next free one."""

    def pre_validate(self, form: Any) -> None:
        """Validate the number if there is one."""
        if (self.data or "").strip():
            super().pre_validate(form)


class EpayForm(FlaskForm):
    """The settings of an account. `mark` is the version that the page showed, empty without an account.

    `pairs` are the merchant's channels with their payment methods. Each has a field for its types.
    """

    pairs: tuple[Pair, ...] = ()
    mark = HiddenField()
    hosts = StringField(lazy_gettext("Hosts of the shop"), [Length(max=2000)])
    types = RadioField(
        lazy_gettext("Channels"),
        choices=[
            SelectChoice(BY_METHOD, lazy_gettext("All of the merchant’s channels, by payment method")),
            SelectChoice(OWN, lazy_gettext("Selected channels")),
        ],
        default=BY_METHOD,
    )
    webhooks = BooleanField(lazy_gettext("Also send callbacks for epay orders"))

    def types_of(self) -> epay_accounts.Types:
        """Return the channels by type as they were entered; empty for all by payment method."""
        found: epay_accounts.Types = {}
        for channel, method in self.pairs if self.types.data == OWN else ():
            for name in re.split(r"[\s,，、]+", self.field_of(channel, method).data or ""):
                if name:
                    found.setdefault(name, []).append((channel, method))
        return found

    def field_of(self, channel: int, method: str) -> Any:
        """Return the field for the types of a channel and a payment method."""
        return self[f"type_{channel}_{method}"]


class NewEpayForm(EpayForm):
    """The settings, and the merchant number, which cannot be changed later."""

    pid = NewPid(lazy_gettext("Merchant number (pid)"), Whole(1, epay_accounts.LAST_PID))


def _form_class(base: type[EpayForm], channels: list[Channel], types: epay_accounts.Types) -> type[EpayForm]:
    """Return a form with a field for each channel and payment method."""
    pairs = tuple((channel.id, method) for channel in channels for method in channel.pay_methods)
    names = {channel.id: channel.name for channel in channels}
    fields = {
        f"type_{channel}_{method}": StringField(
            f"{names[channel]} · {labels.name_of(labels.METHODS, method)}",
            [Length(max=200)],
            default=", ".join(name for name, each in types.items() if (channel, method) in each) if types else method,
        )
        for channel, method in pairs
    }
    return type(base.__name__, (base,), {"pairs": pairs, **fields})


def _present(account: EpayAccount | None) -> dict[str, Any]:
    """Return the account's settings as the form's data."""
    if account is None:
        return {}
    return {
        "mark": edit_conflicts.version_of(account),
        "hosts": ", ".join(account.hosts.split(",")),
        "types": OWN if account.types else BY_METHOD,
        "webhooks": bool(account.webhooks),
    }


@pages.route("/<key>/epay", methods=["GET", "POST"])
def epay(key: str) -> Any:
    """Show a merchant's account at the epay gateway with its form, or change it or open it."""
    row = find_or_404(merchant_setup.find_merchant, key)
    account, channels = epay_accounts.of_merchant(row), list(Channel.linked_to(row))
    base = NewEpayForm if account is None else EpayForm
    types = epay_accounts.types_of(account) if account else {}
    form = _form_class(base, channels, types)(data=_present(account))

    def do() -> Any:
        return _opened(row, form) if account is None else _changed(row, account, form)

    facts: dict[str, Any] = {"merchant": row, "account": account, "channels": channels}
    if account is not None:
        facts |= {
            "values": epay_accounts.settings_of(account),
            "rotate": RotateForm(formdata=None),
            "marks": {kind: epay_accounts.version_of(account, kind) for kind in epay_accounts.KEY_KINDS},
            "old_until": epay_accounts.old_until(account),
        }
    return accepted(form, do) or form_page("console/merchants/epay.html", form, **facts)


def _facts(form: EpayForm, account: EpayAccount | None) -> dict[str, Any]:
    """Return the entered settings for `epay_accounts`. Raises OperatorError for invalid ones, before any record."""
    types = form.types_of()
    if form.types.data == OWN and not types:
        raise OperatorError(gettext("Enter a type for at least one channel."), "types")
    facts = {
        "hosts": re.split(r"[\s,，、]+", form.hosts.data or ""),
        "types": types,
        "webhooks": bool(form.webhooks.data),
    }
    if account is not None and _same(epay_accounts.types_of(account), types, form.pairs):
        del facts["types"]  # keeps the order in which payers see the channels
    return facts


def _same(stored: epay_accounts.Types, entered: epay_accounts.Types, pairs: tuple[Pair, ...]) -> bool:
    """Return whether both have the same channels by type, as far as the form shows them."""
    shown = {(name, *pair) for name, each in stored.items() for pair in each if pair in pairs}
    return bool(stored) == bool(entered) and shown == {(name, *pair) for name, each in entered.items() for pair in each}


def _texts(columns: dict[str, Any]) -> dict[str, str]:
    """Return stored settings as texts, for the audit log."""
    given = EpayAccount(**columns)
    return {
        "hosts": given.hosts,
        "types": epay_accounts.types_text(epay_accounts.types_of(given)),
        "webhooks": "yes" if given.webhooks else "no",
    }


def _opened(row: Merchant, form: EpayForm) -> str:
    pid = form["pid"].value
    facts = _facts(form, None)
    texts = ({"pid": str(pid)} if pid else {}) | _texts(epay_accounts.checked(row, facts))
    do = partial(epay_accounts.enable, row, pid=pid, mark=form.mark.data or "", **facts)
    account, new = access.act("enable epay gateway", "merchant", row.key, do, audit.changes({}, texts))
    return _new_keys(account, "md5", new, is_new=True)


def _changed(row: Merchant, account: EpayAccount, form: EpayForm) -> Any:
    facts, before = _facts(form, account), {name: account.__data__[name] for name in ("hosts", "types", "webhooks")}
    detail = audit.changes(_texts(before), _texts(before | epay_accounts.checked(row, facts)))
    if detail:
        do = partial(epay_accounts.change, account, mark=form.mark.data or "", **facts)
        access.act("set epay gateway", "merchant", row.key, do, detail)
    flash(gettext("Saved.") if detail else gettext("No changes."), "good")
    return redirect(url_for("merchant.epay", key=row.key), 303)


@pages.post("/<key>/epay/<any(enable, disable):what>")
def switch_epay(key: str, what: str) -> Any:
    """Enable or disable an account."""
    account = find_or_404(epay_accounts.find, find_or_404(merchant_setup.find_merchant, key))
    do = partial(epay_accounts.change, account, enabled=what == "enable")
    access.act(f"{what} epay gateway", "merchant", key, do)
    flash(gettext("Epay gateway enabled.") if what == "enable" else gettext("Epay gateway disabled."), "good")
    return redirect(url_for("merchant.epay", key=key), 303)


@pages.post("/<key>/epay/rotate/<any(md5, rsa):kind>")
def rotate_epay(key: str, kind: str) -> Any:
    """Replace the MD5 key, or create or replace the RSA keys; show the new one once."""
    row, form = find_or_404(merchant_setup.find_merchant, key), RotateForm()
    account = find_or_404(epay_accounts.find, row)
    has_old = bool(account.key if kind == "md5" else account.public_key)
    try:
        if not form.validate():
            raise OperatorError(gettext("Enter a number of hours from 0 to %(most)s.", most=LONGEST_KEEP))
        hours = form.keep_hours.value
        do = partial(epay_accounts.rotate, account, kind, keep_hours=hours, mark=form.mark.data or "")
        detail = N_("the old one stays valid for %(hours)s hours") % {"hours": hours} if has_old else ""
        new = access.act(f"rotate epay {kind.upper()} key", "merchant", key, do, detail)
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return redirect(url_for("merchant.epay", key=key), 303)
    return _new_keys(epay_accounts.find(row), kind, new, keep_hours=hours if has_old else None)


def _new_keys(account: EpayAccount, kind: str, new: str, *, is_new: bool = False, keep_hours: int | None = None) -> str:
    """Show all values for the shop, with a new secret key, once.

    Args:
        is_new: whether the account is new.
        keep_hours: the hours for which the old key stays valid; None if there was none.
    """
    return render_template(
        "console/merchants/epay_keys.html",
        merchant=account.merchant,
        values=epay_accounts.settings_of(account),
        kind=kind,
        new=new,
        is_new=is_new,
        keep_hours=keep_hours,
    )
