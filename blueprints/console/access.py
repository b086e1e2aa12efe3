"""Who may do what in the console: signing in and out, and roles."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from flask import Blueprint, Flask, abort, flash, redirect, render_template, request, session, url_for
from flask_babel import gettext, lazy_gettext
from flask_login import LoginManager, UserMixin, current_user, login_user, logout_user
from flask_wtf import CSRFProtect, FlaskForm
from werkzeug.exceptions import Forbidden
from wtforms import PasswordField, StringField
from wtforms.validators import InputRequired, Length

from blueprints.api.rate_limits import STRANGERS_FORM, caller, network
from blueprints.console import devices, locale
from blueprints.console.forms import told
from models.tables.operator import OPERATOR, Operator, Session
from runtime import Part, current
from services.errors import N_, ApiError, Code, OperatorError
from services.platform.rate_limits import Rate
from services.security import audit, operators, passwords, second_factor, sessions

log = logging.getLogger(__name__)

WINDOW = 300  # seconds
# Tries that fail in a window: of one address or known device, of one /48 of IPv6, and of all strangers together.
TRIES, TRIES_OF_SITE, TRIES_OF_ALL = 10, 40, 120
# Codes of the second factor that fail in a window, of an account or known device: only someone with the password tries.
CODES, CODE_WINDOW = 10, 3_600
WRONG_PASSWORD = N_("The password is incorrect.")
PENDING_SECONDS = 300  # between the password and the code

access = Blueprint("access", __name__)
OPEN = {"static", "language", "access.login", "access.sign_in", "factor.code"}  # what needs no session
# What an account without the second factor that is required may do.
FIRST = {"access.logout", "access.everywhere", "access.password", "factor.index"}
# What viewers may send.
OWN = FIRST | {"sessions.end", "sessions.others", "factor.renew", "factor.remove", "confirm.check"}


def _changes_nothing(endpoint: str | None) -> bool:
    """May a viewer send this?"""
    return endpoint in OWN or str(endpoint).endswith(".export")


class User(UserMixin):
    """The account behind a request, with its session or, when that begins, the token for its cookie."""

    def __init__(self, operator: Operator, session: Session | None = None, token: str = ""):
        self.operator, self.name, self.session, self._token = operator, operator.name, session, token

    def get_id(self) -> str:
        """The token that the cookie carries."""
        return self._token

    @property
    def may_act(self) -> bool:
        """May it change anything?"""
        return bool(self.operator.role == OPERATOR)


def actor() -> audit.Actor:
    """Who asks, for the audit log and the history."""
    return audit.Actor(current_user.name, request.remote_addr or "")


class SignIn(FlaskForm):
    """Name and password."""

    name = StringField(lazy_gettext("User name"), [InputRequired(), Length(max=64)])
    password = PasswordField(lazy_gettext("Password"), [InputRequired(), Length(max=passwords.LONGEST)])


class NewPassword(FlaskForm):
    """The account's own new password, twice."""

    present = PasswordField(lazy_gettext("Present password"), [InputRequired()])
    new = PasswordField(
        lazy_gettext("New password"),
        [InputRequired(), Length(passwords.SHORTEST, passwords.LONGEST)],
    )
    again = PasswordField(lazy_gettext("New password, once more"), [InputRequired()])


_rates = Part(
    lambda: {
        "own": Rate(TRIES, WINDOW),
        "address": Rate(TRIES, WINDOW),
        "site": Rate(TRIES_OF_SITE, WINDOW),
        "all": Rate(TRIES_OF_ALL, WINDOW),
        "code": Rate(CODES, CODE_WINDOW),
    }
)


def count_try(own: str = "", kind: str = "own") -> Callable[[], None]:
    """Count a try before it is made, so that many at once are not more; what is returned takes it back.

    Args:
        own: what counts instead of the address: a known device, or the account.
        kind: `own` for a password, `code` for a code of the second factor.

    Raises:
        ApiError: TOO_MANY_REQUESTS.
    """
    address = request.remote_addr or ""
    strangers = {"address": caller(address), "site": network(address), "all": "all"}
    counted: list[tuple[Rate, str]] = []

    def take_back() -> None:
        for rate, who in counted:
            rate.take_back(who)

    for name, who in ({kind: own} if own else strangers).items():
        if name == "site" and not who:
            continue
        if not _rates()[name].hit(who):
            take_back()  # it is not made
            raise ApiError(Code.TOO_MANY_REQUESTS, retry_after=_rates()[name].retry_after(who))
        counted.append((_rates()[name], who))
    return take_back


def too_many(refusal: ApiError) -> str:
    """What a page says of a 42900."""
    return gettext("Too many tries. Try again in %(seconds)s seconds.", seconds=refusal.retry_after or 1)


def check_password(operator: Operator, password: str) -> None:
    """Check the password of the account that is signed in, and count a try that fails.

    Raises:
        OperatorError: it is incorrect.
        ApiError: Code.TOO_MANY_REQUESTS, too many tries, or too many wait for the hash of theirs, which is no try.
    """
    take_back = count_try(f"account {operator.name}")
    try:
        holds = operators.password_holds(operator, password)
    except ApiError:
        take_back()
        raise
    if not holds:
        log.warning("Console: %s at %s gave a wrong password", operator.name, request.remote_addr)
        raise OperatorError(WRONG_PASSWORD, {"password": [WRONG_PASSWORD]})
    take_back()


def own(path: str) -> str:
    """An address of the console's own, whatever somebody asks for; the first page where that is none."""
    return locale.own(path) or url_for("admin.index")


@access.get("/login")
def login() -> Any:
    """The form."""
    if current_user.is_authenticated:
        return redirect(own(request.args.get("next", "")))
    return _form(SignIn(), 200)


def _form(form: SignIn, status: int, problem: str = "") -> Any:
    known = Operator.select().exists()
    demo = current().settings.demo
    return render_template("console/login.html", form=form, problem=problem, known=known, demo=demo), status


@access.post("/login")
def sign_in() -> Any:
    """Begin a session."""
    form = SignIn()
    if not form.validate_on_submit():
        return _form(form, 422)
    name = form.name.data or ""
    device = devices.known_to(name)
    try:
        take_back = count_try(own=device)
        found = _signed_in(name, form.password.data or "", device, take_back)
    except ApiError as refusal:
        page, status = _form(form, 429, too_many(refusal))
        return page, status, {"Retry-After": str(refusal.retry_after or 1)}
    if found is None:
        log.warning("console: somebody at %s could not sign in", request.remote_addr)
        return _form(form, 401, gettext("Name or password are wrong."))
    take_back()
    if second_factor.of(found) is None:
        return begin_session(found)
    log.info("Console: %s at %s gave the password and must give a code", name, request.remote_addr)
    session.clear()
    session["pending"] = [found.id, found.session, int(time.time())]
    return redirect(url_for("factor.code", next=request.args.get("next")))


def pending() -> Operator | None:
    """The account whose password was given a moment ago, and which must still give a code."""
    try:
        operator_id, mark, at = session.get("pending", [])
    except ValueError:
        return None
    found: Operator | None = Operator.get_or_none(Operator.id == operator_id, Operator.session == mark)
    return found if at > time.time() - PENDING_SECONDS else None


def begin_session(found: Operator) -> Any:
    """Begin the session of an account that has proven who it is, and lead to the page that was wanted."""
    audit.record(audit.Actor(found.name, request.remote_addr or ""), "sign in")  # else there is no session
    token = sessions.begin(found, request.remote_addr or "", request.user_agent.string)
    if token is None:
        return _form(SignIn(formdata=None), 401, gettext("This account has just been changed. Sign in again."))
    session.clear()  # a token or a name from before must not live on
    login_user(User(found, token=token))
    session.permanent = True
    response = redirect(own(request.args.get("next", "")), 302)
    devices.remember(response, found.name)
    return response


def _signed_in(name: str, password: str, device: str, take_back: Callable[[], None]) -> Operator | None:
    try:
        return operators.sign_in(name, password, known=bool(device))
    except ApiError:
        take_back()  # nothing was compared
        raise


@access.post("/logout")
def logout() -> Any:
    """End this session."""
    me, operator, this = actor(), current_user.operator, current_user.session.id
    answer = _ended()
    sessions.end(operator, this)  # before the entry, so that it ends even if the audit log can't be written
    audit.record(me, "sign out")
    return answer


@access.post("/logout/everywhere")
def everywhere() -> Any:
    """End all sessions of the account."""
    me = current_user.operator
    audit.act(actor(), "sign out everywhere", "operator", me.name, lambda: operators.end_sessions(me))
    return _ended()


def _ended() -> Any:
    logout_user()
    session.clear()
    return redirect(url_for("access.login"))


@access.route("/password", methods=["GET", "POST"])
def password() -> Any:
    """A new password for the account itself; all its sessions end."""
    form = NewPassword()
    if not form.validate_on_submit():
        return render_template("console/password.html", form=form)
    me = current_user.operator
    try:
        check_password(me, form.present.data or "")
        if form.new.data != form.again.data:
            raise OperatorError(N_("the new passwords differ"))
        audit.act(actor(), "set password", "operator", me.name, lambda: operators.set_password(me, form.new.data or ""))
    except OperatorError as refusal:
        flash(told(refusal), "bad")
        return render_template("console/password.html", form=form), 422
    answer = _ended()
    flash(gettext("The password is changed. Sign in with it."), "good")
    return answer


def _load(token: str) -> User | None:
    found = sessions.find(token)
    return User(found.operator, found) if found else None


def _check() -> Any:
    """Nothing without a session, and no change by a viewer."""
    if request.endpoint in OPEN:
        request.max_content_length = STRANGERS_FORM
        return None
    if not current_user.is_authenticated:
        if request.method != "GET":
            return redirect(url_for("access.login"))
        return redirect(url_for("access.login", next=request.full_path.rstrip("?")))
    if request.endpoint not in FIRST and second_factor.is_missing(current_user.operator):
        return redirect(url_for("factor.index"))
    if request.method not in ("GET", "HEAD") and not _changes_nothing(request.endpoint) and not current_user.may_act:
        raise Forbidden
    return None


def must_act() -> None:
    """Refuse a page that is of no use to a viewer. Raises Forbidden."""
    if not current_user.may_act:
        abort(403)


def init(app: Flask) -> None:
    """Put sessions, roles and forgery protection in front of everything."""
    manager = LoginManager(app)
    manager.session_protection = None  # it would tie a session to an address, which a phone changes
    manager.user_loader(_load)
    app.before_request(_check)
    CSRFProtect(app)
    app.register_blueprint(access)
