"""The documentation of the service as pages and as Markdown, `/llms.txt`, and the landing page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, current_app, render_template

from blueprints.api.envelope import language
from blueprints.openapi import guides
from blueprints.openapi.pages import MARKDOWN, addresses, page, reference_markdown, reference_page, rendered, strict
from services.errors import ApiError, Code

guide_pages = Blueprint("guides", __name__)
guide_pages.after_request(strict)

REFERENCES = {f"{each}.md": each for each in guides.LANGUAGES}
TOUR = "tour"  # in app.extensions: what the landing page shows in demo mode


@guide_pages.get("/")
def home() -> Response:
    """The landing page: a tour in demo mode, otherwise the name of the service."""
    tour: Callable[[], dict[str, Any]] | None = current_app.extensions.get(TOUR)
    return Response(render_template("home.html", tour=tour and tour()), content_type="text/html; charset=utf-8")


@guide_pages.get("/llms.txt")
def llms() -> Response:
    """The documentation for language models: an index of the Markdown pages (llmstxt.org)."""
    text = render_template("llms.txt", index=guides.index(), translated=guides.translated(), **addresses())
    return Response(text, content_type=guides.TEXT)


@guide_pages.get("/docs.md")
def markdown() -> Response:
    """The reference as Markdown."""
    return _reference_markdown("en")


def _reference_markdown(chosen: str) -> Response:
    return Response(reference_markdown(chosen), content_type=MARKDOWN)


def _page(found: guides.Guide, chosen: str, base: str) -> Response:
    def values() -> dict[str, Any]:
        return {"guide": found, "sections": guides.sections(found), "text": rendered(found, base)}

    return page("guide.html", chosen, base, found.name, values)


@guide_pages.get("/docs/<path:name>")
def guide(name: str) -> Response:
    """A page or a file of docs/. A leading `en/` or `zh/` fixes the language, otherwise the caller's is used."""
    chosen, _, rest = name.partition("/")
    if chosen in guides.LANGUAGES:
        base = f"/docs/{chosen}"
    else:
        chosen, rest, base = language().language, name, "/docs"
    if not rest:
        return reference_page(chosen, base)
    if name in REFERENCES:
        return _reference_markdown(REFERENCES[name])
    if found := guides.guide(rest, chosen):
        return _page(found, chosen, base)
    file = name.removeprefix("en/")
    if file not in guides.files():
        raise ApiError(Code.PATH_NOT_FOUND)
    path = guides.files()[file]
    return Response(path.read_bytes(), content_type=guides.TYPES[path.suffix])
