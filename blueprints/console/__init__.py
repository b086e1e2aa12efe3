"""The operator console at /console. It is a separate application, so that sessions do not slow down API requests."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask, Response, current_app, render_template, request
from flask.sessions import SecureCookieSessionInterface
from flask_babel import Babel, gettext
from werkzeug.exceptions import HTTPException

from blueprints.api import envelope, hosts, rate_limits
from blueprints.checkout.payment_page import POLICY
from blueprints.console import access, action_labels, browser_names, guides, icons, labels, locale
from blueprints.console.access import current_user
from blueprints.console.pages import BLUEPRINTS, MENU, confirm, menu_counts
from runtime import settings
from runtime.state import current
from services.errors import ERRORS, ApiError
from services.platform import storage_health
from services.security import sessions, vault

PREFIX = "/console"
FORM_LIMIT = 64 * 1024


class _Sessions(SecureCookieSessionInterface):
    """The session cookie. It is `Secure` if the console is reached over HTTPS."""

    def get_cookie_secure(self, app: Flask) -> bool:
        return request.is_secure or current().settings.public_url.startswith("https://")

    def should_set_cookie(self, app: Flask, session: Any) -> bool:
        """Return whether to send the cookie: a page that renews itself leaves messages to the page that is next."""
        return not access.is_renewal() and super().should_set_cookie(app, session)


def _strict(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["X-Service-Version"] = settings.VERSION
    if request.endpoint != "static":
        response.headers["Cache-Control"] = "no-store"
    return response


def _refusal(status: int, text: str) -> tuple[str, int]:
    return render_template("console/refusal.html", status=status, text=text), status


def _failure(status: int, text: str) -> tuple[str, int]:
    """Return an error page without database access: render_template would load the account."""
    template = current_app.jinja_env.get_template("console/failure.html")
    return template.render(status=status, text=text, language=locale.tag()), status


def _http(error: HTTPException) -> Any:
    texts = {
        400: gettext("This form has expired or was not sent from this site. Go back, reload the page and try again."),
        403: gettext("Your role does not allow this. Ask an administrator."),
        404: gettext("Page not found."),
        405: gettext("Method not allowed."),
        413: gettext("The request body is too large."),
        422: gettext("A filter is not valid, so no results are shown. Correct it and try again."),
    }
    status = error.code or 500
    return (_refusal if status < 500 else _failure)(status, texts.get(status, error.name))


def _refused(refusal: ApiError) -> Any:
    busy = gettext("Too many requests. Wait a moment and try again.")
    return _refusal(
        refusal.code // 100, busy if refusal.code == 42900 else refusal.detail or gettext(ERRORS[refusal.code])
    )


def _unexpected(error: Exception) -> Any:
    fault = storage_health.report(error)
    if not fault:
        envelope.log.exception("%s %r failed", request.method, request.path)
    return _failure(
        503 if fault else 500,
        gettext(fault.text) if fault else gettext("Something went wrong. The log has the details."),
    )


def _draining() -> Any:
    return (
        _failure(503, gettext("The service is shutting down. Try again in a minute."))
        if envelope.draining().is_set()
        else None
    )


def create() -> Flask:
    """Create the console, to be mounted at PREFIX."""
    app = Flask(
        "blueprints",
        instance_path=str(current().settings.instance),
        template_folder="templates",
        static_folder="static",
    )
    app.session_interface = _Sessions()
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    # Otherwise Werkzeug redirects an inexact path to an absolute URL with the untrusted Host header.
    app.url_map.merge_slashes = app.url_map.strict_slashes = False
    app.config.update(
        MAX_CONTENT_LENGTH=FORM_LIMIT,
        SESSION_COOKIE_NAME="console",
        SESSION_COOKIE_PATH=PREFIX,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        PERMANENT_SESSION_LIFETIME=sessions.IDLE_SECONDS,
        WTF_CSRF_TIME_LIMIT=None,  # the token is valid as long as the session
        BABEL_TRANSLATION_DIRECTORIES=str(settings.ROOT / "blueprints" / "translations"),
    )
    Babel(app, default_locale=current().settings.language, locale_selector=locale.language)
    app.before_request(_draining)
    rate_limits.init(app)
    hosts.init(app)
    app.after_request(_strict)
    app.register_error_handler(ApiError, _refused)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(Exception, _unexpected)
    access.init(app)
    confirm.init(app)
    locale.init(app)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    app.config["MENU"] = MENU
    app.jinja_env.globals.update(
        menu=MENU, menu_counts=menu_counts, drawn=icons.drawn, short_name=browser_names.short_name
    )
    app.jinja_env.globals.update(labels=labels, describe=action_labels.describe, guide=guides.guide)
    return app


class Mounted:
    """The service with the console below PREFIX. The console is created at its first request."""

    def __init__(self, service: Callable[..., Iterable[bytes]]):
        self._service = service
        self._lock = threading.Lock()
        self._console: Flask | None = None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if not path.startswith(PREFIX) or path[len(PREFIX) : len(PREFIX) + 1] not in ("", "/"):
            return self._service(environ, start_response)
        environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + PREFIX
        environ["PATH_INFO"] = path[len(PREFIX) :]
        return self._present()(environ, start_response)

    def session_of(self, environ: dict[str, Any]) -> str:
        """Return the key of the valid session of a request; empty if it has none."""
        with self._present().request_context(environ | {"HTTP_HOST": "console"}):  # its own Host may be invalid
            return str(current_user.session.key) if current_user else ""

    def _present(self) -> Flask:
        """Return the console with the present key, so that a new key of the vault counts at once."""
        with self._lock:
            self._console = self._console or create()
        # The key that signs cookies and forms derives from the vault's first key, which all hosts share.
        vault_key = vault.key_ring().keys[0].encode()
        self._console.secret_key = hmac.new(vault_key, b"console session", hashlib.sha256).hexdigest()
        return self._console
