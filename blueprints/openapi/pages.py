"""The interface for developers: the OpenAPI document and its reference page."""

from __future__ import annotations

import json
from typing import Any

from flask import Blueprint, Response, current_app, render_template
from markupsafe import Markup, escape

from blueprints.api.envelope import language
from blueprints.openapi.document import document
from blueprints.openapi.operations import HTML, JSON
from blueprints.openapi.reference import Reference
from runtime import current

docs = Blueprint("docs", __name__)

POLICY = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


def _kept(name: str, make: Any) -> Any:
    """Return the page made earlier for this app, or make it."""
    known = current_app.extensions
    if name not in known:
        known[name] = make()
    return known[name]


def _document() -> dict[str, Any]:
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    return _kept("openapi", lambda: document(app, current().settings.public_url))


@docs.app_template_filter("coded")
def _coded(words: str) -> Markup:
    """A text with what stands between backticks as code."""
    parts = [escape(part) for part in words.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if odd % 2 else part for odd, part in enumerate(parts)
    )


@docs.get("/openapi.json")
def openapi() -> Response:
    """This document."""
    text = _kept("openapi text", lambda: json.dumps(_document(), ensure_ascii=False))
    return Response(text, content_type=JSON, headers={"Access-Control-Allow-Origin": "*"})


@docs.get("/docs")
def reference() -> Response:
    """This document as a page to read."""
    page = _kept(
        f"reference {language()}",
        lambda: render_template("docs.html", api=Reference(_document()), demo=current().settings.demo),
    )
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", "Vary": "Accept-Language"}
    return Response(page, content_type=f"{HTML}; charset=utf-8", headers=headers)
