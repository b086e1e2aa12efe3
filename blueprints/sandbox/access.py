"""The blueprint of /sandbox, mounted in demo mode only: access, and responses to browsers and scripts."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, redirect, request, url_for
from flask_babel import gettext
from marshmallow import Schema

from blueprints.api.envelope import ok, refuse
from blueprints.checkout.payment_page import POLICY
from services.errors import N_, ApiError, Code, OperatorError

sandbox = Blueprint("sandbox", __name__, url_prefix="/sandbox")

JSON = "application/json"


@sandbox.before_request
def _only_from_here() -> None:
    """Refuse a form of another site. Scripts send neither of the two headers."""
    if request.method in ("GET", "HEAD"):
        return
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        is_ours = site in ("same-origin", "none")
    else:
        is_ours = origin is None or origin.partition("://")[2] == request.host
    if not is_ours:
        raise ApiError(Code.ADDRESS_NOT_ALLOWED, detail=N_("the form is from a different site"))


@sandbox.after_request
def _strict(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Vary"] = "Accept, Accept-Language"
    return response


@sandbox.errorhandler(OperatorError)
def _not_possible(error: OperatorError) -> Response:
    """Return the refusal as a documented error response."""

    def said(text: str) -> str:
        return gettext(text, **error.values)

    data = {name: [said(text) for text in texts] for name, texts in error.wrong.items()}
    return refuse(ApiError(Code.INVALID_FIELDS, data or None, detail="" if data else said(error.text)))


def form_of(schema: Schema) -> dict[str, Any]:
    """Return the loaded fields of the form. Raises ValidationError."""
    loaded: dict[str, Any] = schema.load(request.form.to_dict())
    return loaded


def wants_json() -> bool:
    """Return whether the Accept header prefers JSON explicitly."""
    return request.accept_mimetypes.best_match(["text/html", JSON]) == JSON and bool(request.accept_mimetypes)


def wants_page() -> bool:
    """Return whether the Accept header prefers HTML, as a browser's does."""
    return request.accept_mimetypes.best_match([JSON, "text/html"]) == "text/html"


def done(data: Any, page: str = "sandbox.index", **values: Any) -> Any:
    """Return the result as JSON to a script; redirect a browser to a page."""
    return redirect(url_for(page, **values), 303) if wants_page() else ok(data)
