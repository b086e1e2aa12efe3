"""Access control: the session and the role that a request needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flask import Flask, abort, redirect, request, url_for
from flask_login import LoginManager, UserMixin, current_user
from flask_wtf import CSRFProtect
from werkzeug.exceptions import Forbidden

from blueprints.api.rate_limits import STRANGERS_FORM
from blueprints.console import uploads
from models.tables.operator import ADMINISTRATOR, OPERATOR, ROLES, Operator, Session
from services.security import audit, second_factor, sessions

T = TypeVar("T")

# Endpoints that need no session.
PUBLIC = {"static", "language", "sign_in.form", "sign_in.submit", "second_factor.code"}
# Endpoints for an account that still lacks a required second factor.
WITHOUT_SECOND_FACTOR = {"sign_in.sign_out", "sign_in.sign_out_everywhere", "sign_in.password", "second_factor.index"}
# Forms that viewers may send. They may also export every list and save its filters.
VIEWERS = WITHOUT_SECOND_FACTOR | {
    "sign_in.end_session",
    "sign_in.end_other_sessions",
    "second_factor.renew",
    "second_factor.remove",
    "confirm.check",
}
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


def _role_for(endpoint: str | None) -> str:
    """Return the role that the forms of an endpoint's page need."""
    name = str(endpoint)
    return ADMINISTRATOR if ADMINISTRATION & {name, name.partition(".")[0]} else OPERATOR


class User(UserMixin):
    """The account of a request, with its session. When the session begins, it has the token for the cookie instead."""

    def __init__(self, operator: Operator, session: Session | None = None, token: str = ""):
        self.operator, self.name, self.session, self._token = operator, operator.name, session, token

    def get_id(self) -> str:
        """Return the token for the cookie."""
        return self._token

    @property
    def may_act(self) -> bool:
        """Return whether the account may send the forms of the requested page."""
        return self.has(_role_for(request.endpoint))

    @property
    def may_administer(self) -> bool:
        """Return whether the account may change merchants, channels and accounts."""
        return self.has(ADMINISTRATOR)

    def has(self, role: str) -> bool:
        """Return whether the account has this role or a higher one."""
        return ROLES.index(self.operator.role) >= ROLES.index(role)


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


def _load(token: str) -> User | None:
    found = sessions.find(token, seen=not is_renewal())
    return User(found.operator, found) if found else None


def _is_for_viewers(endpoint: str | None) -> bool:
    return endpoint in VIEWERS or str(endpoint).endswith((".export", ".save_view", ".delete_view"))


def _check() -> Any:
    """Require a session, the second factor if it is mandatory, and the role that a change needs."""
    if request.endpoint in PUBLIC:
        request.max_content_length = STRANGERS_FORM
        return None
    if not current_user.is_authenticated:
        if request.method != "GET":
            return redirect(url_for("sign_in.form"))
        return redirect(url_for("sign_in.form", next=request.full_path.rstrip("?")))
    if request.endpoint not in WITHOUT_SECOND_FACTOR and second_factor.is_missing(current_user.operator):
        return redirect(url_for("second_factor.index"))
    if request.method not in ("GET", "HEAD") and not _is_for_viewers(request.endpoint) and not current_user.may_act:
        raise Forbidden
    if request.path.endswith(uploads.ENDING):
        request.max_content_length = uploads.LIMIT
    return None


def init(app: Flask) -> None:
    """Check the session, the role and the CSRF token before every request."""
    manager = LoginManager(app)
    manager.session_protection = None  # it would bind the session to an IP address, which changes on phones
    manager.user_loader(_load)
    app.before_request(_check)
    CSRFProtect(app)
