"""The console's pages of one merchant: setting it up, its secrets, its accounts, a test callback."""

from __future__ import annotations

from typing import Any

from flask import abort, flash, redirect, url_for
from flask_admin import expose
from flask_babel import gettext, lazy_gettext
from flask_login import current_user

from blueprints.console import access
from blueprints.console.forms import refuse, said, texts, told
from blueprints.console.merchant_forms import (
    LONGEST_KEEP,
    MORE_EVENTS,
    AccountForm,
    MerchantForm,
    NewMerchantForm,
    RotateForm,
)
from blueprints.console.pages.adjustment import Adjusting
from models.tables.account import PayoutAccount
from models.tables.merchant import Merchant
from schemas.views import hundredths
from services.callbacks import test_callback
from services.errors import OperatorError
from services.ledger import accounts
from services.merchants import links, merchant_setup, versions
from services.security import audit, masking, vault

FIELDS = ("name", "callback_url", "events", "buy_rate", "sell_rate", "allowed_addresses", "enabled", "channels")
MASKS = {"callback_url": masking.address}  # for viewers
RECORDED = MASKS | {"allowed_addresses": masking.networks}


def _present(row: Merchant) -> dict[str, Any]:
    """What the form shows of a merchant."""
    return {
        "name": row.name,
        "callback_url": row.callback_url,
        "events": [event for event in row.events.split(",") if event in MORE_EVENTS],
        "buy_rate": hundredths(row.buy_rate),
        "sell_rate": hundredths(row.sell_rate),
        "allowed_addresses": row.allowed_addresses,
        "enabled": bool(row.enabled),
        "channels": links.channels_of(row),
    }


def _seen(row: Merchant) -> dict[str, Any]:
    """The same, as far as whoever asks may see it."""
    present = _present(row)
    masks = {} if current_user.may_act else MASKS
    return present | {name: mask(present[name]) for name, mask in masks.items()}


class MerchantPage(Adjusting):
    """One merchant, or a new one."""

    def __init__(self) -> None:
        super().__init__(name=lazy_gettext("Merchant"), endpoint="merchant", url="/merchant")

    def _found(self, key: str) -> Merchant:
        try:
            return merchant_setup.find_merchant(key)
        except OperatorError:
            abort(404)

    @expose("/")
    def index(self) -> Any:
        """The list of all is a page of its own."""
        return redirect(url_for("merchants.index_view"))

    @expose("/new", methods=("GET", "POST"))
    def new(self) -> Any:
        """A form for a new merchant; the answer to it shows the secrets, once."""
        access.must_act()
        form = NewMerchantForm()
        if form.validate_on_submit():
            try:
                return self._added(form)
            except OperatorError as refusal:
                refuse(form, refusal)
        return self.render("console/merchant_new.html", form=form), 422 if form.errors else 200

    def _added(self, form: NewMerchantForm) -> str:
        key, facts = (form.key.data or "").strip(), form.facts()
        made, secret = audit.act(
            access.actor(),
            "add merchant",
            "merchant",
            key,
            lambda: merchant_setup.add_merchant(key, **facts),
            audit.changes({}, texts(form, FIELDS), RECORDED),
        )
        shown = {"secret": secret, "callback_secret": vault.decrypt(made.callback_secret)}
        return self.render("console/merchant_secrets.html", merchant=made, is_new=True, **shown)

    @expose("/<key>", methods=("GET", "POST"))
    def show(self, key: str) -> Any:
        """A merchant's page, with the form that changes it."""
        row = self._found(key)
        form = MerchantForm(data=_seen(row) | {"mark": versions.version_of(row)})
        if form.validate_on_submit():
            try:
                return self._changed(row, form)
            except OperatorError as refusal:
                refuse(form, refusal)
        return self._page(row, form), 422 if form.errors else 200

    def _page(self, row: Merchant, form: MerchantForm) -> str:
        return self.render(
            "console/merchant.html",
            merchant=row,
            form=form,
            rotate=RotateForm(formdata=None),
            marks={
                "api": merchant_setup.version_of(row, callback=False),
                "callback": merchant_setup.version_of(row, callback=True),
            },
            balances=accounts.balances_of(row),
            accounts=[(account, masking.account(account)) for account in merchant_setup.accounts_on_file([row])],
        )

    def _changed(self, row: Merchant, form: MerchantForm) -> Any:
        before = MerchantForm(formdata=None, data=_present(row))
        detail = audit.changes(texts(before, FIELDS), texts(form, FIELDS), RECORDED)
        if detail:
            facts = form.facts()
            audit.act(
                access.actor(),
                "set merchant",
                "merchant",
                row.key,
                lambda: merchant_setup.set_merchant(row, mark=form.mark.data, **facts),
                detail,
            )
        flash(gettext("Saved.") if detail else gettext("Nothing was changed."), "good")
        return redirect(url_for("merchant.show", key=row.key), 303)

    @expose("/<key>/rotate/<any(api, callback):kind>", methods=("POST",))
    def rotate(self, key: str, kind: str) -> Any:
        """A new secret of either kind, shown once on the answer."""
        row, form, callback = self._found(key), RotateForm(), kind == "callback"
        try:
            if not form.validate():
                raise OperatorError(gettext("The hours are a number from 0 to %(most)s.", most=LONGEST_KEEP))
            new = audit.act(
                access.actor(),
                "rotate callback secret" if callback else "rotate API secret",
                "merchant",
                key,
                lambda: merchant_setup.rotate(
                    row, callback=callback, keep_hours=form.keep_hours.value, mark=form.mark.data
                ),
                f"the old one stays valid for {form.keep_hours.value} hours",
            )
        except OperatorError as refusal:
            flash(told(refusal), "bad")
            return redirect(url_for("merchant.show", key=key), 303)
        shown = {"callback_secret" if callback else "secret": new, "keep_hours": form.keep_hours.value}
        return self.render("console/merchant_secrets.html", merchant=row, **shown)

    @expose("/<key>/reveal", methods=("POST",))
    def reveal(self, key: str) -> str:
        """The callback secret; the API secret is never shown again."""
        row = self._found(key)
        audit.record(access.actor(), "reveal callback secret", "merchant", key)
        shown = {"callback_secret": vault.decrypt(row.callback_secret)}
        return self.render("console/merchant_secrets.html", merchant=row, **shown)

    @expose("/<key>/account", methods=("GET", "POST"))
    def account(self, key: str) -> Any:
        """A new receiving account."""
        access.must_act()
        row = self._found(key)
        newest = PayoutAccount.of(row)
        form = AccountForm(data={"after": newest.id if newest else 0})
        if form.validate_on_submit():
            details = {
                name: (form[name].data or "").strip() for name in ("bank", "sub_bank", "card_number", "real_name")
            }
            try:
                self._add_account(row, details, form.after.data)
                return redirect(url_for("merchant.show", key=key), 303)
            except OperatorError as refusal:
                refuse(form, refusal)
        return self.render("console/merchant_account.html", form=form, merchant=row), 422 if form.errors else 200

    def _add_account(self, row: Merchant, details: dict[str, str], after: int) -> None:
        ending = masking.ending(details["card_number"]).lstrip("*")
        audit.act(
            access.actor(),
            "add receiving account",
            "merchant",
            row.key,
            lambda: merchant_setup.add_account(row, after=after, **details),
            f"ending in {ending}",
        )
        flash(gettext("Withdrawals now go to the account ending in %(ending)s.", ending=ending), "good")

    @expose("/<key>/test", methods=("POST",))
    def test(self, key: str) -> Any:
        """One test callback now, and what came of it."""
        row = self._found(key)
        try:
            outcome = audit.act(access.actor(), "test callback", "merchant", key, lambda: test_callback.callback(row))
        except OperatorError as refusal:
            flash(told(refusal), "bad")
            return redirect(url_for("merchant.show", key=key), 303)
        return self.render("console/merchant_test.html", merchant=row, outcome=outcome, problem=said(outcome.problem))


def views() -> list[Any]:
    """The pages of merchants."""
    return [MerchantPage()]
