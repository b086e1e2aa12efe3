"""Search in the documentation: the sections of its pages, the endpoints, callbacks and error codes of the API."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from flask_babel import gettext

from blueprints.openapi import guides, markdown
from blueprints.openapi.reference import Reference

INTERNALS = "Internals"  # the heading of its pages in the index
MOST_CHARACTERS = 100  # of a search
MOST_WORDS = 8
MOST_HITS = 30
FEW_HITS = 5  # with fewer, the page also offers the search in the other language
EXCERPT = 200  # characters
_CHINESE = r"[\u3400-\u9fff]"
# A compound of Chinese words, which have no spaces between them, by two characters: most words have two.
_PAIRS = re.compile(f"{_CHINESE}{{1,2}}|(?:(?!{_CHINESE}).)+")


@dataclass(frozen=True)
class Section:
    """What is below one heading. `place` is its address below /docs; `heading` is empty at the start of a page.

    `blocks` are its paragraphs, list items, rows of tables and codes. `is_last` if results of other pages precede it:
    it is about internals, or in another language than the reader's.
    """

    page: str
    heading: str
    place: str
    blocks: list[str]
    is_last: bool = False

    @cached_property
    def text(self) -> str:
        """The blocks in lower case, made once."""
        return "\n".join(self.blocks).lower()


@dataclass(frozen=True)
class Hit:
    """A section that was found. Every second part of `excerpt` is a word of the search."""

    page: str
    heading: str
    place: str
    excerpt: list[str]


def sections(reference: Reference, language: str) -> list[Section]:
    """All sections in this language, otherwise in English."""
    found = [*_of_reference(reference)]
    for group, entries in guides.index().items():
        for guide in filter(None, (guides.guide(entry.name, language) for entry in entries)):
            found += _of_guide(guide, group == INTERNALS or guide.language != language)
    return found


def _of_reference(reference: Reference) -> Iterator[Section]:
    page = gettext("API reference")
    for each in reference.operations:
        parts = [*reference.bodies(each), *reference.results(each)]
        rows = [row for part in parts for row in part.rows]
        rows += [row for place in ("path", "query", "header") for row in reference.parameters(each, place)]
        blocks = [f"{each['method']} {each['path']}", each["summary"], *(f"{row.name} · {row.about}" for row in rows)]
        yield Section(page, each["operationId"], f"#{each['operationId']}", [*map(_unmarked, blocks)])
    for each in reference.events():
        yield Section(page, each["name"], f"#{each['name']}", [_unmarked(each["summary"])])
    for code, text, _, action, _ in reference.codes():
        yield Section(page, str(code), f"#{code}", [text, action])


def _unmarked(text: str) -> str:
    """A description without the marks of code."""
    return text.replace("`", "")


def _of_guide(guide: guides.Guide, is_last: bool) -> Iterator[Section]:
    tokens = markdown.parsed(guides.OTHER_LANGUAGE.sub("", guides.text(guide.file)))
    headings = iter(markdown.headings(tokens))
    found: list[tuple[markdown.Heading, list[str]]] = []
    row: list[str] = []
    for before, token in itertools.pairwise(tokens):
        if before.type == "heading_open":
            found.append((next(headings), []))
        elif token.type == "tr_open":
            row = []
        elif before.type == "td_open":
            row.append(markdown.plain(token))
        elif token.type == "tr_close" and row:
            found[-1][1].append(" · ".join(filter(None, row)))
        elif token.type == "inline" and before.type != "th_open":
            found[-1][1].append(markdown.plain(token))
        elif token.type == "fence":
            found[-1][1].append(token.content)
    for heading, blocks in found:
        is_start = heading.level == 1
        place = f"/{guide.name}" if is_start else f"/{guide.name}#{heading.anchor}"
        yield Section(guide.title, "" if is_start else heading.text, place, blocks, is_last)


def find(known: list[Section], text: str) -> list[Hit]:
    """The sections that have every word of the text, best first: in the heading, in the title, then by frequency.

    A word is found in any part of another one and in any case; whole words are first, in the singular or plural. If
    there is nothing, Chinese compounds are divided.
    """
    words = [*dict.fromkeys(text[:MOST_CHARACTERS].lower().split())][:MOST_WORDS]
    found = _ranked(known, words)
    divided = [part for word in words for part in _PAIRS.findall(word)][:MOST_WORDS]
    if not found and divided != words:
        words = divided
        found = _ranked(known, words)
    return [Hit(each.page, each.heading, each.place, _excerpt(each, words)) for each in found[:MOST_HITS]]


def _ranked(known: list[Section], words: list[str]) -> list[Section]:
    # Chinese has no blanks between words, so only letters, digits and _ beside a word make it a part of another one.
    whole = [re.compile(rf"(?<![a-z0-9_]){re.escape(word)}(?:e?s)?(?![a-z0-9_])") for word in words]
    ranked = []
    for each in known if words else ():
        page, heading = each.page.lower(), each.heading.lower()
        own = [word for word in words if word in heading or word in each.text]
        # The page's title can have some of the words, but not all: its sections would all be found.
        if (own or not each.heading) and all(word in own or word in page for word in words):
            in_heading, in_page = (sum(bool(word.search(text)) for word in whole) for text in (heading or page, page))
            parts = (sum(word in heading for word in words), sum(word in page for word in words))
            is_start = not heading
            key = (not each.is_last, in_heading, is_start, in_page, *parts, sum(map(each.text.count, own)))
            ranked.append((key, each))
    return [each for _, each in sorted(ranked, key=lambda one: one[0], reverse=True)]


def _excerpt(section: Section, words: list[str]) -> list[str]:
    """The block that has most of the words, from shortly before the first one; texts and words in turn."""
    block = max(section.blocks, key=lambda each: sum(word in each.lower() for word in words), default="")
    block = " ".join(block.split())
    pattern = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))), re.IGNORECASE)
    first = pattern.search(block)
    start = max(0, (first.start() if first else 0) - EXCERPT // 4) if len(block) > EXCERPT else 0
    if start:  # at the beginning of a word; Chinese has no spaces
        start += max(0, block[start : start + 20].find(" ") + 1)
    shown = block[start : start + EXCERPT]
    shown = f"{'… ' if start else ''}{shown}{' …' if len(block) > start + EXCERPT else ''}"
    return re.split(f"({pattern.pattern})", shown, flags=re.IGNORECASE)
