"""The documentation as pages and as Markdown: the API reference, the guides, `/llms.txt`; and the landing page."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from flask import Blueprint, Response, current_app, render_template, request
from flask_babel import force_locale
from markupsafe import Markup, escape

from blueprints.api.envelope import language
from blueprints.openapi import guides, search
from blueprints.openapi.document import ABOUT, document
from blueprints.openapi.operations import HTML, JSON
from blueprints.openapi.reference import Reference, said
from runtime.state import current
from services.errors import ApiError, Code

docs = Blueprint("docs", __name__)
guide_pages = Blueprint("guides", __name__)

T = TypeVar("T")

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
DEMO = "http://127.0.0.1:8000"  # the address of a demo in the guides
SEARCH = "search"  # the name of its page
TOUR = "tour"  # in app.extensions: what the landing page shows in demo mode
# Sections of the guides that the reference includes: the page and the anchor of its English heading.
INCLUDED = {
    "rule": ("signing", "string-to-sign"),
    "example": ("signing", "worked-example"),
    "callbacks": ("callbacks", "signature-verification"),
    "returning": ("returning", "fields"),
}

docs.add_app_template_filter(said)


@docs.app_template_filter("coded")
def coded(words: str) -> Markup:
    """A text whose parts between backticks are code."""
    parts = [escape(part) for part in words.split("`")]
    parts[1::2] = [Markup("<code>{}</code>").format(part) for part in parts[1::2]]
    return Markup("").join(parts)


def _kept(name: str, chosen: str, make: Callable[[], T]) -> T:
    """Return what was made earlier for this app in this language, or make it."""
    known, key = current_app.extensions, f"{name} {chosen}"
    if key not in known:
        with force_locale(chosen):
            known[key] = make()
    found: T = known[key]
    return found


def _document(chosen: str) -> dict[str, Any]:
    """The OpenAPI document in this language."""
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    return _kept("openapi", chosen, lambda: document(app, current().settings.public_url))


def _addresses() -> dict[str, str]:
    """The addresses that the documentation writes as `{site_url}` and `{base_url}`."""
    url = current().settings.public_url
    return {"site_url": url, "base_url": url + current().settings.api_prefix}


def _filled(text: str) -> str:
    """A text of the documentation, or its HTML, with the addresses of this installation."""
    for name, address in _addresses().items():
        text = text.replace(f"{{{name}}}", escape(address))
    return text.replace(DEMO, escape(current().settings.public_url)) if current().settings.demo else text


def _rendered(found: guides.Guide, base: str, section: str = "") -> Markup:
    """A page, or a section of it, with the addresses of this installation."""
    return Markup(_filled(guides.html(found, base, section)))


def _frame(chosen: str, base: str, name: str) -> dict[str, Any]:
    """What the frame of a page shows.

    `base` precedes the names of pages in links; `name` is the page's own, empty for the reference.
    """
    return {
        "base": base,
        "name": name,
        "language": chosen,
        "demo": current().settings.demo,
        "menu": guides.menu(chosen),
        "most_characters": search.MOST_CHARACTERS,
    }


def _page(template: str, chosen: str, base: str, name: str, values: Callable[[], dict[str, Any]]) -> Response:
    """A page of the documentation in this language, made once."""

    def make() -> str:
        return render_template(template, **_frame(chosen, base, name), **values())

    return Response(_kept(f"{base}/{name}", chosen, make), content_type=f"{HTML}; charset=utf-8")


@guide_pages.after_request
def _strict(response: Response) -> Response:
    """Forbid documentation pages to load anything from other hosts."""
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Vary"] = "Accept-Language"
    return response


# The reference


def _reference_page(chosen: str, base: str) -> Response:
    def values() -> dict[str, Any]:
        included = {}
        for name, (file, anchor) in INCLUDED.items():
            if found := guides.guide(file, chosen):
                included[name] = _rendered(found, base, anchor)
        return {"about": ABOUT, "api": Reference(_document(chosen)), "included": included}

    return _page("openapi/reference.html", chosen, base, "", values)


def _reference_markdown(chosen: str) -> Response:
    def make() -> str:
        prefix = "zh/" if chosen == "zh" else ""
        return render_template("openapi/reference.md", about=ABOUT, api=Reference(_document(chosen)), prefix=prefix)

    return Response(_kept("reference as Markdown", chosen, make), content_type=guides.TYPES[".md"])


@docs.get("/openapi.json")
def openapi() -> Response:
    """The OpenAPI document."""
    chosen = language().language
    text = _kept("openapi text", chosen, lambda: json.dumps(_document(chosen), ensure_ascii=False))
    return Response(text, content_type=JSON, headers={"Access-Control-Allow-Origin": "*", "Vary": "Accept-Language"})


@docs.get("/docs", strict_slashes=False)
def reference() -> Response:
    """The OpenAPI document as a page."""
    return _strict(_reference_page(language().language, "/docs"))


@guide_pages.get("/docs.md")
def markdown() -> Response:
    """The reference as Markdown."""
    return _reference_markdown("en")


# The guides


@guide_pages.get("/")
def home() -> Response:
    """The landing page: a tour in demo mode, otherwise the name of the service."""
    tour: Callable[[], dict[str, Any]] | None = current_app.extensions.get(TOUR)
    return Response(render_template("openapi/home.html", tour=tour and tour()), content_type="text/html; charset=utf-8")


@guide_pages.get("/llms.txt")
def llms() -> Response:
    """The documentation for language models: an index of the Markdown pages (llmstxt.org)."""
    text = render_template("openapi/llms.txt", index=guides.index(), translated=guides.translated(), **_addresses())
    return Response(text, content_type=guides.TEXT)


def _search_page(chosen: str, base: str) -> Response:
    text = " ".join(request.args.get("q", "").split())[: search.MOST_CHARACTERS]

    def known() -> list[search.Section]:
        found = search.sections(Reference(_document(chosen)), chosen)
        return [replace(each, blocks=[*map(_filled, each.blocks)]) for each in found]

    hits = search.find(_kept("sections for search", chosen, known), text)
    with force_locale(chosen):
        facts = {
            "text": text,
            "hits": hits,
            "is_little": len(hits) < search.FEW_HITS or (chosen == "en" and not text.isascii()),
        }
        html = render_template("openapi/search.html", **_frame(chosen, base, SEARCH), **facts)
    return Response(html, content_type=f"{HTML}; charset=utf-8")


@guide_pages.get("/docs/<path:name>")
def guide(name: str) -> Response:
    """A page or a file of docs/. A leading `en/` or `zh/` fixes the language, otherwise the caller's is used."""
    chosen, _, rest = name.partition("/")
    if chosen in guides.LANGUAGES:
        base = f"/docs/{chosen}"
    else:
        chosen, rest, base = language().language, name, "/docs"
    if not rest:
        return _reference_page(chosen, base)
    if rest == SEARCH:
        return _search_page(chosen, base)
    if name in ("en.md", "zh.md"):
        return _reference_markdown(name.removesuffix(".md"))
    if found := guides.guide(rest, chosen):

        def values() -> dict[str, Any]:
            return {"guide": found, "sections": guides.sections(found), "text": _rendered(found, base)}

        return _page("openapi/guide.html", chosen, base, found.name, values)
    file = name.removeprefix("en/")
    if file not in guides.files():
        raise ApiError(Code.PATH_NOT_FOUND)
    path = guides.files()[file]
    return Response(path.read_bytes(), content_type=guides.TYPES[path.suffix])
