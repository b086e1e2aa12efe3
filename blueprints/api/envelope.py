"""The envelope of all responses, and the error handlers that turn exceptions into responses."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from babel import Locale
from flask import Flask, Response, render_template, request
from flask_babel import force_locale, gettext
from marshmallow import ValidationError
from werkzeug.datastructures import LanguageAccept, MIMEAccept
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.http import parse_accept_header

from blueprints.api.environ_keys import CODE, ENDPOINT, REFUSED
from runtime import settings
from runtime.state import Part, current
from schemas.messages import Message, flat
from services.errors import ERRORS, N_, ApiError, Code
from services.platform import storage_health

log = logging.getLogger(__name__)

draining = Part(threading.Event)  # set when the process begins to stop

# Codes for the framework's own errors.
HTTP_CODES = {
    404: Code.PATH_NOT_FOUND,
    405: Code.METHOD_NOT_ALLOWED,
    413: Code.BODY_TOO_LARGE,
    415: Code.UNSUPPORTED_MEDIA_TYPE,
}
SERVED_WHILE_DRAINING = ("/metrics",)
WITHOUT_REQUEST = (
    Code.MALFORMED_REQUEST,
    Code.BODY_TIMEOUT,
    Code.BODY_TOO_LARGE,
    Code.INTERNAL_ERROR,
    Code.SERVICE_UNAVAILABLE,
)  # responses that the server sends without the application
MOST_LANGUAGES = 200  # maximum characters parsed of Accept-Language and Accept, since parsing a long one is slow
AS_PAGES = (Code.PATH_NOT_FOUND, Code.METHOD_NOT_ALLOWED)  # errors that browsers get as a page
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
LOCALES = {name: Locale(name) for name in ("en", "zh")}


def language() -> Locale:
    """The caller's preferred language among the available ones, otherwise the one in the settings."""
    return _best_language(request.environ.get("HTTP_ACCEPT_LANGUAGE", "")[:MOST_LANGUAGES], current().settings.language)


def _best_language(accept_language: str, own: str) -> Locale:
    if not accept_language:
        return LOCALES[own]
    accepted = parse_accept_header(accept_language, LanguageAccept)
    return LOCALES[accepted.best_match(sorted(LOCALES, key=lambda name: name != own)) or own]


@cache
def _translated(language: Locale, text: str) -> str:
    """Translate a success text, with a cache: the look-up costs 5 % of a page of orders."""
    return gettext(text)


_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _envelope(code: int, msg: str, data: Any, status: int = 200, **more: Any) -> Response:
    return as_json({"code": code, "msg": msg, "data": data, **more}, status)


def as_json(facts: dict[str, Any], status: int = 200) -> Response:
    """Return a JSON response; its `code` is counted and logged."""
    request.environ[CODE] = facts["code"]
    return Response(f"{_json.encode(facts)}\n", status, content_type="application/json")


def ok(data: Any, msg: str = N_("success"), **more: Any) -> Response:
    """Return a success response; `more` is `time` in the two responses of createOrder."""
    return _envelope(1, _translated(language(), msg), data, **more)


def _is_browser() -> bool:
    """Return whether the caller opens an address and prefers a page to JSON, as browsers do and clients do not.

    Java's client states text/html, but only browsers also state application/xhtml+xml.
    """
    header = request.environ.get("HTTP_ACCEPT", "")[:MOST_LANGUAGES]
    if request.method not in ("GET", "HEAD") or "application/xhtml+xml" not in header:
        return False
    accepted = parse_accept_header(header, MIMEAccept)
    return accepted.quality("text/html") > accepted.quality("application/json")


def _page(code: Code) -> Response:
    """Return an error as a page in the caller's language."""
    request.environ[CODE] = code
    response = Response(
        render_template("nothing_here.html", code=code), code // 100, content_type="text/html; charset=utf-8"
    )
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Vary"] = "Accept, Accept-Language"
    return response


def refuse(refusal: ApiError) -> Response:
    """Return an error response, with its HTTP status and headers."""
    if refusal.code in AS_PAGES and _is_browser():
        return _page(refusal.code)
    text = gettext(ERRORS[refusal.code])
    msg = gettext("%(error)s: %(detail)s", error=text, detail=translated(refusal.detail)) if refusal.detail else text
    response = _envelope(refusal.code, msg, refusal.data, refusal.code // 100)
    if refusal.retry_after is not None:
        response.headers["Retry-After"] = str(refusal.retry_after)
    if refusal.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


def translated(message: str) -> str:
    """Translate a message about a field, or an error's detail, to the caller's language."""
    return gettext(message.text, **message.values) if isinstance(message, Message) else gettext(message)


def _validation(error: ValidationError) -> Response:
    data = {path: [translated(message) for message in messages] for path, messages in flat(error.messages).items()}
    return refuse(ApiError(Code.INVALID_FIELDS, data))


def _http(error: HTTPException) -> Response:
    if (error.code or 500) >= 500:
        return _unexpected(error)
    code = HTTP_CODES.get(error.code or 400, Code.MALFORMED_REQUEST)
    response = refuse(ApiError(code) if code != 40000 else ApiError(code, detail=error.name))
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return response


def _unexpected(error: Exception) -> Response:
    return refuse(unexpected(error))


def unexpected(error: Exception) -> ApiError:
    """Return the refusal after any other error, which is logged: the database can't be used, or the code is wrong."""
    if fault := storage_health.report(error):
        return ApiError(Code.SERVICE_UNAVAILABLE, retry_after=fault.retry_after)
    log.error("%s %r failed", request.method, request.path, exc_info=error)
    return ApiError(Code.INTERNAL_ERROR)


def _refuse_while_draining() -> None:
    if draining().is_set() and request.path not in SERVED_WHILE_DRAINING:
        raise ApiError(Code.SERVICE_UNAVAILABLE)


def _version(response: Response) -> Response:
    request.environ[ENDPOINT] = request.endpoint or "other"
    response.headers["X-Service-Version"] = settings.VERSION
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def prepared(app: Flask) -> Callable[[dict[str, Any], Any], list[bytes]]:
    """Return the WSGI application for the HTTP server's own refusals, whose code is in the environ, made beforehand."""

    def made(code: int, name: str) -> tuple[str, list[tuple[str, str]], bytes]:
        with app.test_request_context("/no-route"), force_locale(name):  # so that no blueprint adds its headers
            response = app.process_response(refuse(ApiError(Code(code))))
            return response.status, list(response.headers), response.get_data()

    answers = {(code, name): made(code, name) for code in WITHOUT_REQUEST for name in LOCALES}
    own = current().settings.language

    def given(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        code = environ[CODE] = environ[REFUSED]
        accepted = environ.get("HTTP_ACCEPT_LANGUAGE", "")[:MOST_LANGUAGES]
        status, headers, body = answers[code, _best_language(accepted, own).language]
        start_response(status, headers.copy())
        return [body]

    return given


def init(app: Flask) -> None:
    """Register the error handlers and the common headers."""
    app.before_request(_refuse_while_draining)
    app.after_request(_version)
    app.register_error_handler(ApiError, refuse)
    app.register_error_handler(ValidationError, _validation)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(Exception, _unexpected)
