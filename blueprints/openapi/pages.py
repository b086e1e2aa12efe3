"""The interface for developers: the OpenAPI document and its reference page."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, current_app, render_template
from flask_babel import force_locale
from markupsafe import Markup, escape

from blueprints.api.envelope import language
from blueprints.openapi import guides
from blueprints.openapi.document import ABOUT, document
from blueprints.openapi.operations import HTML, JSON
from blueprints.openapi.reference import Reference, said
from runtime.state import current

docs = Blueprint("docs", __name__)

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
MARKDOWN = guides.TYPES[".md"]
DEMO = "http://127.0.0.1:8000"  # the address of a demo in the guides
# Sections of the guides that the reference includes: the page and the anchor of its English heading.
INCLUDED = {
    "rule": ("signing", "string-to-sign"),
    "example": ("signing", "worked-example"),
    "callbacks": ("callbacks", "signature-verification"),
}


def kept(name: str, make: Any) -> Any:
    """Return the page made earlier for this app, or make it."""
    known = current_app.extensions
    if name not in known:
        known[name] = make()
    return known[name]


def _document(chosen: str) -> dict[str, Any]:
    """The OpenAPI document in this language, made once."""
    app = current_app._get_current_object()  # type: ignore[attr-defined]

    def make() -> dict[str, Any]:
        with force_locale(chosen):
            return document(app, current().settings.public_url)

    return kept(f"openapi {chosen}", make)


docs.add_app_template_filter(said)


@docs.app_template_filter("coded")
def _coded(words: str) -> Markup:
    """A text whose parts between backticks are code."""
    parts = [escape(part) for part in words.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if odd % 2 else part for odd, part in enumerate(parts)
    )


def page(template: str, chosen: str, base: str, name: str, values: Callable[[], dict[str, Any]]) -> Response:
    """A page of the documentation in this language, made once.

    `base` precedes the names of pages in links; `name` is the page's own, empty for the reference.
    """

    def make() -> str:
        with force_locale(chosen):
            frame = {"base": base, "name": name, "language": chosen, "demo": current().settings.demo}
            return render_template(template, **frame, menu=guides.menu(chosen), **values())

    return Response(kept(f"{base}/{name} {chosen}", make), content_type=f"{HTML}; charset=utf-8")


def reference_page(chosen: str, base: str) -> Response:
    """The reference in this language."""

    def values() -> dict[str, Any]:
        return {"about": ABOUT, "api": Reference(_document(chosen)), "included": _included(chosen, base)}

    return page("docs.html", chosen, base, "", values)


def _included(chosen: str, base: str) -> dict[str, Markup]:
    found = {name: (guides.guide(file, chosen), anchor) for name, (file, anchor) in INCLUDED.items()}
    return {name: rendered(guide, base, anchor) for name, (guide, anchor) in found.items() if guide}


def rendered(found: guides.Guide, base: str, section: str = "") -> Markup:
    """A page, or a section of it, with the addresses of this installation."""
    html = guides.html(found, base, section)
    for name, address in addresses().items():
        html = html.replace(f"{{{name}}}", escape(address))
    if current().settings.demo:
        html = html.replace(DEMO, escape(current().settings.public_url))
    return Markup(html)


def addresses() -> dict[str, str]:
    """The addresses that the documentation writes as `{site_url}` and `{base_url}`."""
    url = current().settings.public_url
    return {"site_url": url, "base_url": url + current().settings.api_prefix}


def reference_markdown(chosen: str) -> str:
    """The reference as Markdown."""

    def make() -> str:
        with force_locale(chosen):
            return render_template(
                "docs.md", about=ABOUT, api=Reference(_document(chosen)), prefix="zh/" if chosen == "zh" else ""
            )

    return kept(f"reference as Markdown {chosen}", make)


def strict(response: Response) -> Response:
    """Forbid documentation pages to load anything from other hosts."""
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Vary"] = "Accept-Language"
    return response


@docs.get("/openapi.json")
def openapi() -> Response:
    """The OpenAPI document."""
    chosen = language().language
    text = kept(f"openapi text {chosen}", lambda: json.dumps(_document(chosen), ensure_ascii=False))
    return Response(text, content_type=JSON, headers={"Access-Control-Allow-Origin": "*", "Vary": "Accept-Language"})


@docs.get("/docs", strict_slashes=False)
def reference() -> Response:
    """The OpenAPI document as a page."""
    return strict(reference_page(language().language, "/docs"))
