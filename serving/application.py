"""The served application: what its requests pass, its blueprints and the console."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask
from flask_babel import Babel

from blueprints import page_texts, sandbox
from blueprints.api import envelope, hosts, metrics, rate_limits
from blueprints.api.environ_keys import REFUSED, SINCE
from blueprints.api.health import health
from blueprints.api.merchant import merchant_api
from blueprints.api.notices import notices
from blueprints.api.regions import regions
from blueprints.api.request_log import Logged
from blueprints.checkout.payment_page import pages
from blueprints.console import Mounted
from blueprints.epay.gateway import epay
from blueprints.openapi.pages import docs, guide_pages
from runtime import settings
from runtime.state import current
from services.platform import proxies

BODY_LIMIT = 64 * 1024

Application = Callable[..., Iterable[bytes]]  # WSGI


def _entered(app: Flask, application: Application, access_log: bool) -> Application:
    """Return the WSGI application for requests as the HTTP server passes them on: what each of them goes through first.

    It enters the app's runtime, gets the caller's address as trusted proxies report it, and is logged.
    """
    inner = proxies.behind(Logged(application, access_log), current().settings.trusted_proxies)

    def enter(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        app.extensions["runtime"].enter()
        return inner(environ, start_response)

    return enter


def refusals(app: Flask, access_log: bool) -> Application:
    """Return what makes the HTTP server's own responses: its argument `plain`."""
    application = _entered(app, envelope.prepared(app), access_log)

    def refuse(environ: dict[str, Any], start_response: Any, *, code: int, since: float) -> Iterable[bytes]:
        return application(environ | {REFUSED: code, SINCE: since}, start_response)

    return refuse


def register(app: Flask, api_prefix: str, demo: bool = True) -> None:
    """Register all blueprints except the console; the sandbox in demo mode only."""
    app.register_blueprint(merchant_api, url_prefix=api_prefix + str(merchant_api.url_prefix))
    for blueprint in (regions, pages, notices, epay, health, metrics.blueprint, docs, guide_pages):
        app.register_blueprint(blueprint)
    if demo:
        sandbox.mount(app)


def init(app: Flask, chosen: settings.Settings) -> None:
    """Make an application serve everything, including the console."""
    app.url_map.merge_slashes = False  # addresses with extra slashes are unknown, not redirects
    app.config["MAX_CONTENT_LENGTH"] = BODY_LIMIT
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False  # such a response would have no envelope
    app.config["BABEL_TRANSLATION_DIRECTORIES"] = str(settings.ROOT / "blueprints" / "translations")
    Babel(app, default_locale=chosen.language, locale_selector=envelope.language)
    app.context_processor(page_texts.of_page)
    mounted = app.extensions["console"] = Mounted(app.wsgi_app)
    served = hosts.ValidHosts(mounted, refusing=app.wsgi_app)
    app.wsgi_app = _entered(app, served, chosen.access_log)  # type: ignore[method-assign]
    envelope.init(app)
    rate_limits.init(app)
    hosts.init(app)
    register(app, chosen.api_prefix, chosen.demo)
