"""Requests that need the password again: which they are, and the page that asks for it."""

from __future__ import annotations

import logging
from typing import Any

from flask import Blueprint, Flask, current_app, flash, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext
from flask_login import current_user
from flask_wtf import FlaskForm
from wtforms import PasswordField
from wtforms.validators import InputRequired, Length

from blueprints.console import access
from services import audit, operators, passwords, sessions
from services.errors import Refused

log = logging.getLogger(__name__)

# What needs a confirmation of the last five minutes, and the page to return to once there is one. Accounts are among
# them because a new account, or another one's password, would be a way around the question.
NEEDED = {
    ("POST", "order.reveal"): "order.show",
    ("POST", "merchant.reveal"): "merchant.show",
    ("POST", "merchant.rotate"): "merchant.show",
    ("GET", "merchant.adjust"): "merchant.adjust",
    ("POST", "merchant.adjust"): "merchant.adjust",
    ("GET", "merchant.account"): "merchant.account",
    ("POST", "merchant.account"): "merchant.account",
    ("POST", "operators.index"): "operators.index",
    ("POST", "operators.change"): "operators.index",
    ("GET", "operators.password"): "operators.password",
    ("POST", "operators.password"): "operators.password",
}

pages = Blueprint("confirm", __name__)


class PasswordAgain(FlaskForm):
    """The account's own password."""

    password = PasswordField(lazy_gettext("Password"), [InputRequired(), Length(max=passwords.LONGEST)])


@pages.get("/confirm")
def form() -> Any:
    """The form."""
    return _page(PasswordAgain(), 200)


def _page(form: FlaskForm, status: int, problem: str = "") -> Any:
    return render_template("console/confirm.html", form=form, problem=problem), status


@pages.post("/confirm")
def check() -> Any:
    """Check the password and return to the page that needed it."""
    form = PasswordAgain()
    if not form.validate_on_submit():
        return _page(form, 422)
    me = current_user.operator
    try:
        take_back = access.count_try(own=f"account {me.name}")
        holds = operators.password_holds(me, form.password.data or "")
    except Refused as refusal:
        seconds = refusal.retry_after or 1
        return _page(form, 429, gettext("Too many tries. Try again in %(seconds)s seconds.", seconds=seconds))
    if not holds:
        log.warning("Console: %s at %s gave a wrong password", current_user.name, request.remote_addr)
        return _page(form, 401, gettext("The password is incorrect."))
    take_back()
    audit.record(access.actor(), "confirm identity")
    sessions.confirm(current_user.session)
    flash(gettext("Confirmed for five minutes. Now repeat the action."), "good")
    return redirect(access.own(request.args.get("next", "")), 303)


def ask(endpoint: str, **arguments: Any) -> Any:
    """Lead to the form, and from there to this page."""
    page = url_for(endpoint, **arguments).removeprefix(request.script_root)
    return redirect(url_for("confirm.form", next=page), 303)


def _check() -> Any:
    page = NEEDED.get((request.method, str(request.endpoint)))
    if page is None or not current_user.may_act or sessions.is_confirmed(current_user.session):
        return None
    taken = next(current_app.url_map.iter_rules(page)).arguments
    return ask(page, **{name: value for name, value in (request.view_args or {}).items() if name in taken})


def init(app: Flask) -> None:
    """Ask before what needs it; after the checks of sessions, roles and forms."""
    app.before_request(_check)
    app.register_blueprint(pages)
