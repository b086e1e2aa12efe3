"""The files of docs/ that the service serves: pages in two languages, their index, files to download."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath

from blueprints.openapi import markdown
from runtime import settings
from services.errors import N_

FOLDER = settings.ROOT / "docs"
LANGUAGES = ("en", "zh")
INDEX = "README"
# The headings of the index, and the entries without a Chinese page, as the menu shows them.
HEADINGS = {
    "For integrators": N_("For integrators"),
    "Quickstart": N_("Quickstart"),
    "How-to guides": N_("How-to guides"),
    "Reference": N_("Reference pages"),
    "Internals": N_("Internals"),
    "Architecture": N_("Architecture"),
    "Performance": N_("Performance"),
    "Signature vectors": N_("Signature vectors"),
}
OTHER_LANGUAGE = re.compile(r"^\[English\]\(.*\)\n", re.MULTILINE)  # in the files; a served page has it in its frame
TEXT = "text/plain; charset=utf-8"
TYPES = {
    ".md": "text/markdown; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
    **dict.fromkeys((".go", ".java", ".mjs", ".php", ".py", ".sh"), TEXT),
}


@dataclass(frozen=True)
class Guide:
    """A page in one language. `name` is its path below docs/ without `.md`, the same for all languages."""

    name: str
    language: str

    @property
    def file(self) -> str:
        """The path of its file below docs/."""
        return f"zh/{self.name}.md" if self.language == "zh" else f"{self.name}.md"

    @property
    def title(self) -> str:
        """The first heading."""
        return _headings(self.file)[0].text


@dataclass(frozen=True)
class Entry:
    """A link of the index with its description; `name` is empty if it is a file to download."""

    name: str
    file: str
    text: str
    about: str


@cache
def files() -> dict[str, Path]:
    """What is served, by its path below docs/."""
    found = (path for path in sorted(FOLDER.rglob("*")) if path.suffix in TYPES and path.is_file())
    return {path.relative_to(FOLDER).as_posix(): path for path in found}


@cache
def text(file: str) -> str:
    """The text of a file."""
    return files()[file].read_text("utf-8")


def guide(name: str, language: str) -> Guide | None:
    """A page in this language, otherwise in English; None if there is none."""
    if name == INDEX or name.startswith("zh/"):
        return None
    found = (Guide(name, each) for each in (language, "en"))
    return next((each for each in found if each.file in files()), None)


@cache
def index() -> dict[str, list[Entry]]:
    """The links of docs/README.md by the heading that they are under."""
    groups: dict[str, list[Entry]] = {}
    tokens = markdown.parsed(text(f"{INDEX}.md")) if f"{INDEX}.md" in files() else []
    heading = ""
    for before, token in itertools.pairwise(tokens):
        if before.type == "heading_open":
            heading = markdown.plain(token)
        elif token.type == "inline":
            href = next((str(each.attrs["href"]) for each in token.children or () if each.type == "link_open"), "")
            if href in files():
                title, _, about = markdown.plain(token).partition(": ")
                name = href.removesuffix(".md") if href.endswith(".md") else ""
                groups.setdefault(heading, []).append(Entry(name, href, title, about))
    return groups


@cache
def _headings(file: str) -> list[markdown.Heading]:
    return markdown.headings(markdown.parsed(text(file)))


def menu(language: str) -> dict[str, list[tuple[Entry, str]]]:
    """The index with each page's title in this language."""

    def title(entry: Entry) -> str:
        found = guide(entry.name, language)
        return found.title if found and found.language == language != "en" else HEADINGS.get(entry.text, entry.text)

    return {
        HEADINGS.get(heading, heading): [(entry, title(entry)) for entry in entries]
        for heading, entries in index().items()
    }


def translated() -> list[tuple[Guide, Entry]]:
    """The Chinese pages with their entries in the index."""
    found = ((guide(entry.name, "zh"), entry) for entries in index().values() for entry in entries)
    return [(each, entry) for each, entry in found if each and each.language == "zh"]


def sections(found: Guide) -> list[markdown.Heading]:
    """The headings below the title, for the menu."""
    return [each for each in _headings(found.file) if each.level == 2]


def _address(file: str, href: str, base: str) -> str:
    """Return the served address of a link in this file; empty if its target is not served."""
    path, hash_, anchor = href.partition("#")
    if not path or re.match(r"[a-z]+:|/", path):
        return href
    target = normpath(join(dirname(file), path))
    if target not in files():
        return ""
    if not target.endswith(".md"):
        return f"/docs/{target}"
    name = target.removesuffix(".md").removeprefix("zh/")
    if name == INDEX:
        return base
    if file == f"zh/{target}":  # a translation names its English page
        base = "/docs/en"
    elif target.startswith("zh/") and not file.startswith("zh/"):
        base = "/docs/zh"
    return f"{base}/{name}{hash_}{anchor}"


def html(found: Guide, base: str, section: str = "") -> str:
    """A page as HTML, or one section of it by the anchor of its English heading.

    `base` precedes the names of other pages in links: `/docs`, or `/docs/zh` if the reader has chosen a language.
    Headings of a translation also have the anchors of the English page, so links work in both languages.
    """
    english = _headings(f"{found.name}.md") if f"{found.name}.md" in files() else []
    own = _headings(found.file)
    others = [each.anchor for each in english] if len(english) == len(own) else []
    return markdown.rendered(
        OTHER_LANGUAGE.sub("", text(found.file)), lambda href: _address(found.file, href, base), others, section
    )
