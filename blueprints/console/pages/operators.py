"""The console's page of accounts: who may look, who may act, and changing that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import abort, flash, redirect, url_for
from flask_admin import expose
from flask_babel import gettext, lazy_gettext
from flask_login import current_user
from flask_wtf import FlaskForm
from wtforms import PasswordField, SelectChoice, SelectField, StringField
from wtforms.validators import DataRequired, EqualTo, InputRequired, Length

from blueprints.console import access
from blueprints.console.forms import refuse, told
from blueprints.console.layout import Page
from models.db.base import LARGEST_ID
from models.tables.operator import OPERATOR, VIEWER, Operator
from services.errors import OperatorError
from services.security import audit, operators, passwords, second_factor

ACCOUNT = f"/<int(max={LARGEST_ID}):operator_id>"


class PasswordForm(FlaskForm):
    """A password, typed twice."""

    password = PasswordField(
        lazy_gettext("Password"),
        [InputRequired(), Length(passwords.SHORTEST, passwords.LONGEST)],
    )
    again = PasswordField(
        lazy_gettext("Password, once more"),
        [InputRequired(), EqualTo("password", lazy_gettext("The two passwords differ."))],
    )


class NewOperatorForm(PasswordForm):
    """A new account."""

    name = StringField(lazy_gettext("User name"), [DataRequired(), Length(max=64)])
    role = SelectField(
        lazy_gettext("Role"),
        choices=[
            SelectChoice(VIEWER, lazy_gettext("viewer: may look")),
            SelectChoice(OPERATOR, lazy_gettext("operator: may look and act")),
        ],
    )


# What can be done to an account by one button: the word in the address, what the log calls it, and the act.
ACTS: dict[str, tuple[str, Callable[[Operator, str], None]]] = {
    "enable": ("enable operator", lambda row, by: operators.change(row, enabled=True, by=by)),
    "disable": ("disable operator", lambda row, by: operators.change(row, enabled=False, by=by)),
    "operator": ("make operator", lambda row, by: operators.change(row, role=OPERATOR, by=by)),
    "viewer": ("make viewer", lambda row, by: operators.change(row, role=VIEWER, by=by)),
    "end": ("end sessions", lambda row, by: operators.end_sessions(row)),
}


class OperatorsPage(Page):
    """All accounts of the console."""

    def __init__(self) -> None:
        named = {"name": lazy_gettext("Operators"), "category": lazy_gettext("Set up")}
        super().__init__(**named, endpoint="operators", url="/operators")

    def _found(self, operator_id: int) -> Operator:
        return Operator.get_or_none(Operator.id == operator_id) or abort(404)

    @expose("/", methods=("GET", "POST"))
    def index(self) -> Any:
        """The accounts, and the form for another one."""
        form = NewOperatorForm()
        if form.validate_on_submit():
            try:
                return self._added(form)
            except OperatorError as refusal:
                refuse(form, refusal)
        page = self.render(
            "console/operators.html",
            **{"form": form, "rows": operators.every(), "me": current_user.name},
            with_factor=second_factor.of_all(),
        )
        return page, 422 if form.errors else 200

    def _added(self, form: NewOperatorForm) -> Any:
        name, role = (form.name.data or "").strip(), form.role.data
        audit.act(
            access.actor(),
            "add operator",
            "operator",
            name,
            lambda: operators.add(name, form.password.data or "", role),
            role,
        )
        flash(gettext("%(name)s may sign in now.", name=name), "good")
        return redirect(url_for("operators.index"), 303)

    @expose(f"{ACCOUNT}/<word>", methods=("POST",))
    def change(self, operator_id: int, word: str) -> Any:
        """One of ACTS."""
        row = self._found(operator_id)
        action, do = ACTS.get(word) or abort(404)
        try:
            audit.act(access.actor(), action, "operator", row.name, lambda: do(row, current_user.name))
            flash(gettext("Done. %(name)s is signed out everywhere.", name=row.name), "good")
        except OperatorError as refusal:
            flash(told(refusal), "bad")
        return redirect(url_for("operators.index"), 303)

    @expose(f"{ACCOUNT}/password", methods=("GET", "POST"))
    def password(self, operator_id: int) -> Any:
        """A new password for somebody."""
        access.must_act()
        row, form = self._found(operator_id), PasswordForm()
        if row.name == current_user.name:
            return redirect(url_for("access.password"))
        if form.validate_on_submit():
            try:
                new = form.password.data or ""
                audit.act(
                    access.actor(), "set password", "operator", row.name, lambda: operators.set_password(row, new)
                )
                flash(gettext("%(name)s has a new password, and is signed out everywhere.", name=row.name), "good")
                return redirect(url_for("operators.index"), 303)
            except OperatorError as refusal:
                refuse(form, refusal)
        return self.render("console/operator_password.html", form=form, operator=row), 422 if form.errors else 200


def views() -> list[Any]:
    """The page of accounts."""
    return [OperatorsPage()]
