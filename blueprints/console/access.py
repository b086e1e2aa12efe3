"""Access control: the session and the role that a request needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from flask import Flask, abort, g, redirect, request, session, url_for
from flask_wtf import CSRFProtect
from werkzeug.local import LocalProxy

from blueprints.api.rate_limits import STRANGERS_FORM
from blueprints.console import uploads
from models.tables.operator import ADMINISTRATOR, OPERATOR, ROLES, Operator, Session
from services.security import audit, second_factor, sessions

T = TypeVar("T")

TOKEN = "_user_id"  # the session's token in the cookie: renaming it would sign everybody out
# Endpoints that need no session.
PUBLIC = {"static", "language", "sign_in.form", "sign_in.submit", "second_factor.code"}
# Endpoints for an account that still lacks a required second factor.
WITHOUT_SECOND_FACTOR = {"sign_in.sign_out", "sign_in.sign_out_everywhere", "sign_in.password", "second_factor.index"}
# Forms that viewers may send, and the endings of those of every list.
VIEWERS = WITHOUT_SECOND_FACTOR | {
    "sign_in.end_session",
    "sign_in.end_other_sessions",
    "second_factor.renew",
    "second_factor.remove",
    "confirm.check",
}
VIEWERS_OF_LISTS = (".export", ".export_all", ".save_view", ".delete_view")
# Blueprints and endpoints whose forms need an administrator. The others need an operator.
ADMINISTRATION = {
    "accounts",
    "channel",
    "channels",
    "merchant",
    "merchants",
    "notifications",
    "operators",
}


@dataclass(frozen=True)
class User:
    """The account of a request, with its session."""

    operator: Operator
    session: Session

    @property
    def name(self) -> str:
        """The account's name."""
        return str(self.operator.name)

    @property
    def may_act(self) -> bool:
        """Return whether the account may send the forms of the requested page."""
        name = str(request.endpoint)
        return self.has(ADMINISTRATOR if ADMINISTRATION & {name, name.partition(".")[0]} else OPERATOR)

    @property
    def may_administer(self) -> bool:
        """Return whether the account may change merchants, channels and accounts."""
        return self.has(ADMINISTRATOR)

    def has(self, role: str) -> bool:
        """Return whether the account has this role or a higher one."""
        return ROLES.index(self.operator.role) >= ROLES.index(role)


def user() -> User | None:
    """Return the account whose session the request's cookie has, read once in a request; None for strangers."""
    if "user" not in g:
        token = str(session.get(TOKEN, ""))
        found = sessions.find(token, seen=not is_renewal()) if token else None
        g.user = User(found.operator, found) if found else None
    known: User | None = g.user
    return known


# The same, to be read like a value. It is false for strangers, whom only the endpoints in PUBLIC meet.
current_user: User = LocalProxy(user)  # type: ignore[assignment]


def actor() -> audit.Actor:
    """Return the account of the request, for the audit log and order timelines."""
    return audit.Actor(current_user.name, request.remote_addr or "")


def act(action: str, about: str, key: str, do: Callable[[], T], detail: str | audit.Changes = "") -> T:
    """Run `do` for the account of the request and record it in the audit log (`audit.act`)."""
    return audit.act(actor(), action, about, key, do, detail)


def must_act() -> None:
    """Refuse a page that the account's role does not allow to use. Raises Forbidden."""
    if not current_user.may_act:
        abort(403)


def is_renewal() -> bool:
    """Return whether the request is by a page that renews itself, not by its reader."""
    return request.method == "GET" and request.headers.get("X-Live") == "1"


def _check() -> Any:
    """Require a session, the second factor if it is mandatory, and the role that a change needs."""
    if request.endpoint in PUBLIC:
        request.max_content_length = STRANGERS_FORM
        return None
    if not current_user:
        if request.method != "GET":
            return redirect(url_for("sign_in.form"))
        return redirect(url_for("sign_in.form", next=request.full_path.rstrip("?")))
    if request.endpoint not in WITHOUT_SECOND_FACTOR and second_factor.is_missing(current_user.operator):
        return redirect(url_for("second_factor.index"))
    is_for_viewers = request.endpoint in VIEWERS or str(request.endpoint).endswith(VIEWERS_OF_LISTS)
    if request.method not in ("GET", "HEAD") and not is_for_viewers:
        must_act()
    if request.path.endswith(uploads.ENDINGS):
        request.max_content_length = request.max_form_memory_size = uploads.LIMIT
    return None


def init(app: Flask) -> None:
    """Check the session, the role and the CSRF token before every request; give templates the account."""
    app.before_request(_check)
    app.context_processor(lambda: {"current_user": user()})
    CSRFProtect(app)
