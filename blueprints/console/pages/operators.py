"""The team: console accounts and their roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint, abort, flash, redirect, request, url_for
from flask_babel import gettext, lazy_gettext
from flask_wtf import FlaskForm
from wtforms import PasswordField, SelectChoice, SelectField, StringField
from wtforms.validators import DataRequired, EqualTo, InputRequired, Length

from blueprints.console import access
from blueprints.console.access import current_user
from blueprints.console.forms import accepted, form_page, message_of
from models.db.base import LARGEST_ID
from models.tables.operator import ADMINISTRATOR, OPERATOR, VIEWER, Operator
from services.errors import OperatorError
from services.security import operators, passwords, second_factor

ACCOUNT = f"/<int(max={LARGEST_ID}):operator_id>"

pages = Blueprint("operators", __name__, url_prefix="/operators")


class PasswordForm(FlaskForm):
    """A password with its confirmation."""

    password = PasswordField(lazy_gettext("Password"), [InputRequired(), Length(passwords.SHORTEST, passwords.LONGEST)])
    again = PasswordField(
        lazy_gettext("Confirm password"),
        [InputRequired(), EqualTo("password", lazy_gettext("The passwords do not match."))],
    )


class NewOperatorForm(PasswordForm):
    """A new account."""

    name = StringField(lazy_gettext("User name"), [DataRequired(), Length(max=64)])
    role = SelectField(
        lazy_gettext("Role"),
        choices=[
            SelectChoice(VIEWER, lazy_gettext("Viewer: sees everything but personal data, changes nothing")),
            SelectChoice(OPERATOR, lazy_gettext("Operator: daily work with orders, payouts and callbacks")),
            SelectChoice(ADMINISTRATOR, lazy_gettext("Administrator: also merchants, channels, balances and accounts")),
        ],
    )


# Changes of an account by one button: the word in the form, the name in the audit log, the function.
ACTS: dict[str, tuple[str, Callable[[Operator, str], None]]] = {
    "enable": ("enable operator", lambda row, by: operators.change(row, enabled=True, by=by)),
    "disable": ("disable operator", lambda row, by: operators.change(row, enabled=False, by=by)),
    VIEWER: ("make viewer", lambda row, by: operators.change(row, role=VIEWER, by=by)),
    OPERATOR: ("make operator", lambda row, by: operators.change(row, role=OPERATOR, by=by)),
    ADMINISTRATOR: ("make administrator", lambda row, by: operators.change(row, role=ADMINISTRATOR, by=by)),
    "end": ("end sessions", lambda row, by: operators.end_sessions(row)),
}


def _found(operator_id: int) -> Operator:
    return Operator.get_or_none(Operator.id == operator_id) or abort(404)


@pages.route("/", methods=["GET", "POST"])
def index() -> Any:
    """Show all accounts and the form for a new one, or add an account."""
    form = NewOperatorForm()
    return accepted(form, lambda: _added(form)) or form_page(
        "console/operators.html", form, rows=operators.every(), me=current_user.name, with_factor=second_factor.of_all()
    )


def _added(form: NewOperatorForm) -> Any:
    name, role = (form.name.data or "").strip(), form.role.data
    access.act("add operator", "operator", name, lambda: operators.add(name, form.password.data or "", role), role)
    flash(gettext("Account %(name)s added.", name=name), "good")
    return redirect(url_for("operators.index"), 303)


@pages.post(f"{ACCOUNT}/change")
def change(operator_id: int) -> Any:
    """Change an account by one of ACTS."""
    row = _found(operator_id)
    action, do = ACTS.get(request.form.get("change", "")) or abort(404)
    try:
        access.act(action, "operator", row.name, lambda: do(row, current_user.name))
        flash(gettext("Done. %(name)s is signed out everywhere.", name=row.name), "good")
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
    return redirect(url_for("operators.index"), 303)


@pages.route(f"{ACCOUNT}/password", methods=["GET", "POST"])
def password(operator_id: int) -> Any:
    """Set the password of another account."""
    access.must_act()
    row, form = _found(operator_id), PasswordForm()
    if row.name == current_user.name:
        return redirect(url_for("sign_in.password"))
    return accepted(form, lambda: _set_password(row, form.password.data or "")) or form_page(
        "console/operator_password.html", form, operator=row
    )


def _set_password(row: Operator, new: str) -> Any:
    access.act("set password", "operator", row.name, lambda: operators.set_password(row, new))
    flash(gettext("Password changed. %(name)s is signed out everywhere.", name=row.name), "good")
    return redirect(url_for("operators.index"), 303)
