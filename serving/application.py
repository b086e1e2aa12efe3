"""The served application: what its requests pass, its blueprints and the console."""

from __future__ import annotations

import logging
from typing import Any

from flask import Flask
from flask_babel import Babel
from werkzeug.middleware.proxy_fix import ProxyFix

from blueprints import sandbox
from blueprints.api import envelope, metrics, rate_limits
from blueprints.api.health import health
from blueprints.api.merchant import merchant_api
from blueprints.api.notices import notices
from blueprints.api.regions import regions
from blueprints.api.request_log import Logged
from blueprints.checkout.payment_page import pages
from blueprints.console import Mounted
from blueprints.epay.gateway import epay
from blueprints.openapi.guide_pages import guide_pages
from blueprints.openapi.pages import docs
from net.ip_addresses import address_of, forwarded_address
from runtime import settings

log = logging.getLogger(__name__)

BODY_LIMIT = 64 * 1024


def logged(application: Any, chosen: settings.Settings, kind: type[Logged] = Logged) -> Any:
    """Return the WSGI application with the request log, and the caller's address as trusted proxies report it."""
    hops = chosen.trusted_proxies
    return ProxyFix(_with_address(kind(application, chosen.access_log), hops), x_for=0, x_proto=hops)


def _with_address(application: Any, hops: int) -> Any:
    """Return the WSGI application, whose REMOTE_ADDR is the caller's plain address: without port, brackets or zone.

    It is the one that the outermost of the trusted proxies appended to X-Forwarded-For. If that is not an address, it
    is the address of the proxy that is connected. Commas count even within quotes, which a caller may have opened.
    """

    def call(environ: Any, start_response: Any) -> Any:
        forwarded = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
        address = forwarded_address(forwarded[-hops]) if 0 < hops <= len(forwarded) else None
        if address := address or address_of(environ.get("REMOTE_ADDR", "")):
            environ["REMOTE_ADDR"] = str(address)
        return application(environ, start_response)

    return call


def entering(app: Flask, application: Any) -> Any:
    """Return the WSGI application, whose requests enter the application's runtime."""

    def enter(environ: Any, start_response: Any) -> Any:
        app.extensions["runtime"].enter()
        return application(environ, start_response)

    return enter


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
    mounted = app.extensions["console"] = Mounted(app.wsgi_app)
    served = rate_limits.ValidHosts(mounted, refusing=app.wsgi_app)
    app.wsgi_app = logged(served, chosen)  # type: ignore[method-assign]
    envelope.init(app)
    rate_limits.init(app)
    register(app, chosen.api_prefix, chosen.demo)
    app.wsgi_app = entering(app, app.wsgi_app)  # type: ignore[method-assign]
