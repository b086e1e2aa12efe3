"""Sign-in, sign-out, and the account's own password and sessions."""

from __future__ import annotations

import logging
from typing import Any

from flask import Blueprint, abort, flash, redirect, render_template, request, session, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from wtforms import PasswordField, StringField
from wtforms.validators import InputRequired, Length

from blueprints.api.rate_limits import caller
from blueprints.console import access, sign_in_limits
from blueprints.console.access import current_user
from blueprints.console.forms import message_of
from blueprints.console.locale import internal_url
from models.db.base import LARGEST_ID
from models.tables.operator import Operator
from runtime.state import current
from services.errors import N_, ApiError, OperatorError
from services.security import audit, operators, passwords, second_factor, sessions, sign_in_tries

log = logging.getLogger(__name__)

pages = Blueprint("sign_in", __name__)


class SignInForm(FlaskForm):
    """Name and password."""

    name = StringField(lazy_gettext("User name"), [InputRequired(), Length(max=64)])
    password = PasswordField(lazy_gettext("Password"), [InputRequired(), Length(max=passwords.LONGEST)])


class NewPasswordForm(FlaskForm):
    """The account's current password, and a new one with its confirmation."""

    present = PasswordField(lazy_gettext("Current password"), [InputRequired()])
    new = PasswordField(lazy_gettext("New password"), [InputRequired(), Length(passwords.SHORTEST, passwords.LONGEST)])
    again = PasswordField(lazy_gettext("Confirm new password"), [InputRequired()])


@pages.get("/login")
def form() -> Any:
    """Show the form."""
    if current_user:
        return redirect(internal_url(request.args.get("next", "")))
    return _page(SignInForm(), 200)


def _page(form: SignInForm, status: int, problem: str = "") -> Any:
    known = Operator.select().exists()
    demo = current().settings.demo
    return render_template("console/sign_in/sign_in.html", form=form, problem=problem, known=known, demo=demo), status


@pages.post("/login")
def submit() -> Any:
    """Begin a session, or ask for the code of the second factor."""
    form = SignInForm()
    if not form.validate_on_submit():
        return _page(form, 422)
    name = form.name.data or ""
    device = sign_in_limits.known_device(name)
    try:
        take_back = sign_in_limits.count_try(device)
        try:
            found = operators.sign_in(name, form.password.data or "", known=bool(device))
        except ApiError:
            take_back()  # no password was compared
            raise
    except ApiError as refusal:
        return *_page(form, 429, sign_in_limits.too_many(refusal)), {"Retry-After": str(refusal.retry_after or 1)}
    if found is None:
        log.warning("Console: failed sign-in from %s", request.remote_addr)
        sign_in_tries.count_failed(caller(request.remote_addr or "") or sign_in_tries.LOCAL)
        return _page(form, 401, gettext("Incorrect user name or password."))
    take_back()
    if second_factor.of(found) is None:
        return begin_session(found)
    log.info("Console: %s at %s gave the password and must give a code", name, request.remote_addr)
    token = sessions.wait_for_code(found)
    if token is None:
        return _changed()
    session.clear()
    session["pending"] = token
    return redirect(url_for("second_factor.code", next=request.args.get("next")))


def pending_token() -> str:
    """Return the token of this browser's sign-in that waits for its code; empty if there is none."""
    return str(session.get("pending", ""))


def begin_session(operator: Operator, pending: str = "") -> Any:
    """Begin the session of an authenticated account and redirect to the requested page.

    Args:
        pending: the token of the sign-in, if it waited for a code.
    """
    audit.record(audit.Actor(operator.name, request.remote_addr or ""), "sign in")  # if this fails, no session begins
    token = sessions.begin(operator, request.remote_addr or "", request.user_agent.string, pending)
    if token is None:
        return _changed()
    session.clear()  # an earlier token or name must not remain
    session[access.TOKEN] = token
    session.permanent = True
    response = redirect(internal_url(request.args.get("next", "")), 302)
    sign_in_limits.remember_device(response, operator.name)
    return response


def _changed() -> Any:
    return _page(SignInForm(formdata=None), 401, gettext("This account was changed. Sign in again."))


@pages.post("/logout")
def sign_out() -> Any:
    """End this session."""
    me, operator, this = access.actor(), current_user.operator, current_user.session.id
    response = _signed_out()
    sessions.end(operator, this)  # first, so that it ends even if the audit log cannot be written
    audit.record(me, "sign out")
    return response


@pages.post("/logout/everywhere")
def sign_out_everywhere() -> Any:
    """End all sessions of the account."""
    me = current_user.operator
    access.act("sign out everywhere", "operator", me.name, lambda: operators.end_sessions(me))
    return _signed_out()


def _signed_out() -> Any:
    session.clear()
    return redirect(url_for("sign_in.form"))


@pages.route("/password", methods=["GET", "POST"])
def password() -> Any:
    """Change the account's own password, which ends all its sessions."""
    form = NewPasswordForm()
    if not form.validate_on_submit():
        return render_template("console/sign_in/password.html", form=form)
    me = current_user.operator
    try:
        sign_in_limits.check_password(me, form.present.data or "")
        if form.new.data != form.again.data:
            raise OperatorError(N_("The new passwords do not match."))
        access.act("set password", "operator", me.name, lambda: operators.set_password(me, form.new.data or ""))
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return render_template("console/sign_in/password.html", form=form), 422
    except ApiError as refusal:
        flash(sign_in_limits.too_many(refusal), "bad")
        return render_template("console/sign_in/password.html", form=form), 429
    response = _signed_out()
    flash(gettext("Password changed. Sign in with the new password."), "good")
    return response


@pages.get("/sessions/")
def own_sessions() -> str:
    """List the account's own sessions."""
    rows = sessions.of(current_user.operator)
    return render_template("console/sign_in/sessions.html", rows=rows, this=current_user.session.id)


@pages.post(f"/sessions/<int(max={LARGEST_ID}):session_id>/end")
def end_session(session_id: int) -> Any:
    """End one of the account's own sessions."""
    me = current_user.operator
    if session_id not in {row.id for row in sessions.of(me)}:
        abort(404)
    access.act("end session", "operator", me.name, lambda: sessions.end(me, session_id))
    flash(gettext("Session ended."), "good")
    return redirect(url_for(".own_sessions"), 303)


@pages.post("/sessions/others")
def end_other_sessions() -> Any:
    """End all of the account's sessions except this one."""
    me, this = current_user.operator, current_user.session.id
    access.act("end other sessions", "operator", me.name, lambda: sessions.end_all(me, but=this))
    flash(gettext("All other sessions ended."), "good")
    return redirect(url_for(".own_sessions"), 303)
