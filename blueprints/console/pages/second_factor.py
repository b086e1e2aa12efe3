"""The second factor: code at sign-in, setup, recovery codes, removal."""

from __future__ import annotations

from functools import partial
from typing import Any

import segno
from flask import Blueprint, flash, make_response, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext, ngettext
from flask_wtf import FlaskForm
from wtforms import HiddenField, PasswordField, StringField
from wtforms.validators import InputRequired, Length, Regexp

from blueprints.console import access, sign_in_limits
from blueprints.console.access import current_user
from blueprints.console.forms import message_of, show_refusal
from blueprints.console.pages import sign_in
from models.tables.operator import Operator
from services.errors import ApiError, OperatorError
from services.security import passwords, second_factor, sessions

pages = Blueprint("second_factor", __name__)


class CodeForm(FlaskForm):
    """A code of the authenticator app, or a recovery code."""

    code = StringField(lazy_gettext("Code"), [InputRequired(), Length(max=40)])


class SetUpForm(CodeForm):
    """The setup of an app: the secret that the page shows, a first code, and the account's password."""

    secret = HiddenField(validators=[Regexp(r"\A[A-Z2-7]{32}\Z")])
    password = PasswordField(lazy_gettext("Password"), [InputRequired(), Length(max=passwords.LONGEST)])


def flash_codes_left(operator: Operator) -> None:
    """Flash the number of remaining recovery codes."""
    left = second_factor.recovery_codes_left(operator)
    flash(ngettext("%(num)s recovery code left.", "%(num)s recovery codes left.", left), "warn")


@pages.route("/login/code", methods=["GET", "POST"])
def code() -> Any:
    """Ask for a code after the correct password, and begin the session."""
    token = sign_in.pending_token()
    operator = sessions.waiting(token)
    if operator is None:
        return redirect(url_for("sign_in.form", next=request.args.get("next")))
    form, problem, status = CodeForm(), "", 200
    if form.validate_on_submit():
        try:
            is_recovery = sign_in_limits.check_code(operator, form.code.data or "")
            answer = sign_in.begin_session(operator, token)
            if is_recovery:
                flash_codes_left(operator)
            return answer
        except OperatorError as refusal:
            problem, status = message_of(refusal), 401
        except ApiError as refusal:
            problem, status = sign_in_limits.too_many(refusal), 429
    elif form.is_submitted():
        status = 422
    form.code.data = ""
    return render_template("console/sign_in/code.html", form=form, problem=problem, name=operator.name), status


@pages.route("/factor", methods=["GET", "POST"])
def index() -> Any:
    """Show the account's second factor, or the form that sets one up."""
    me = current_user.operator
    if second_factor.of(me) is not None:
        left = second_factor.recovery_codes_left(me)
        return render_template("console/sign_in/second_factor.html", left=left, required=second_factor.is_required())
    form = SetUpForm()
    if form.validate_on_submit():
        try:
            sign_in_limits.check_password(me, form.password.data or "")
            secret, typed, this = str(form.secret.data), form.code.data or "", current_user.session.id
            set_up = partial(second_factor.set_up, me, secret, typed, this)
            answer = make_response(_codes(access.act("set up second factor", "operator", me.name, set_up)))
            sign_in_limits.remember_device(answer, me.name)
            return answer
        except OperatorError as refusal:
            show_refusal(form, refusal)
        except ApiError as refusal:
            flash(sign_in_limits.too_many(refusal), "bad")
    if form.secret.errors or not form.secret.data:
        form.secret.data = second_factor.new_secret()
    secret, form.code.data = str(form.secret.data), ""
    # Not cached, unlike the QR codes of payment pages: it contains a secret.
    qr = segno.make(second_factor.address(secret, current_user.name), error="m")
    page = render_template(
        "console/sign_in/second_factor_new.html",
        form=form,
        picture=qr.svg_data_uri(scale=5, border=2, dark="#000", light="#fff", omitsize=True),
        secret=" ".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
        required=second_factor.is_required(),
    )
    return page, 422 if form.is_submitted() else 200


def _codes(codes: list[str]) -> str:
    return render_template("console/sign_in/recovery_codes.html", codes=codes)


@pages.post("/factor/renew")
def renew() -> Any:
    """Replace the recovery codes and show the new ones once."""
    me = current_user.operator
    try:
        return _codes(access.act("renew recovery codes", "operator", me.name, lambda: second_factor.renew_codes(me)))
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return redirect(url_for(".index"), 303)


@pages.post("/factor/remove")
def remove() -> Any:
    """Remove the account's second factor."""
    me = current_user.operator
    try:
        access.act("remove second factor", "operator", me.name, lambda: second_factor.remove(me))
        flash(gettext("Two-factor authentication is off."), "good")
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
    return redirect(url_for(".index"), 303)
