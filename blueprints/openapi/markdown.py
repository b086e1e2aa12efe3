"""Markdown to HTML: anchors on headings, rewritten links, tables that fold on narrow screens. HTML is escaped."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import escape

COMMENT = re.compile(r"(```.*?```)|<!--.*?-->", re.DOTALL)  # or code, which is kept
_reader = MarkdownIt("commonmark", {"html": False}).enable("table")


@dataclass(frozen=True)
class Heading:
    """`anchor` is as the repository's web page names it."""

    level: int
    text: str
    anchor: str


def parsed(source: str) -> list[Token]:
    """The tokens of a text without its comments."""
    return _reader.parse(COMMENT.sub(lambda found: found[1] or "", source))


def plain(token: Token) -> str:
    """The text of an inline token without its marks."""
    return "".join(
        " " if each.type == "softbreak" else each.content for each in token.children or () if each.type != "image"
    )


def headings(tokens: list[Token]) -> list[Heading]:
    """All headings in their order."""
    found: list[Heading] = []
    for before, token in itertools.pairwise(tokens):
        if before.type == "heading_open":
            words = plain(token)
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            taken = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", each.anchor) is not None for each in found)
            found.append(Heading(int(before.tag[1:]), words, f"{slug}-{taken}" if taken else slug))
    return found


def rendered(source: str, address: Callable[[str], str], others: list[str], section: str = "") -> str:
    """A text as HTML.

    `address` maps the target of a link; a link without one becomes plain text. `others` are second anchors of the
    headings, in their order. `section` is an anchor: only what is between that heading and the next one is rendered,
    nothing if there is no such heading.
    """
    tokens = parsed(source)
    known = headings(tokens)
    anchors = {each.anchor for each in known}
    starts: list[int] = []  # of the headings
    wanted = None  # the heading of the section
    for place, (before, token) in enumerate(itertools.pairwise(tokens)):
        if before.type == "heading_open":
            number = len(starts)
            anchor = known[number].anchor
            other = others[number] if number < len(others) else anchor
            second = f'<span id="{escape(other)}"></span>' if other not in anchors else ""
            own = f'<a class="anchor" href="#{escape(anchor)}" aria-label="#">#</a>' if before.tag != "h1" else ""
            before.attrSet("id", anchor)
            token.children = [_raw(second), *(token.children or []), _raw(own)]
            if wanted is None and section in (anchor, other):
                wanted = number
            starts.append(place)
    _fold(tokens)
    for token in tokens:
        if token.type == "inline":
            token.children = _linked(token.children or [], address)
        elif token.type == "fence":
            language = escape(token.info.split()[0] if token.info else "text")
            code = f'<pre tabindex="0"><code class="language-{language}">{escape(token.content)}</code></pre>\n'
            token.type, token.content = "html_block", code
    if section:
        starts.append(len(tokens))
        tokens = [] if wanted is None else tokens[starts[wanted] + 3 : starts[wanted + 1]]
    return _reader.renderer.render(tokens, _reader.options, {})


def _fold(tokens: list[Token]) -> None:
    """Name the column in each cell, for tables shown as blocks, and align by class: inline styles are forbidden."""
    labels: list[str] = []
    column = 0
    for before, token in itertools.pairwise(tokens):
        if before.type == "thead_open":
            labels = []
        elif before.type == "th_open":
            labels.append(plain(token))
            if not token.content:
                before.tag = "td"  # an empty cell heads nothing
        elif token.type == "th_close" and not before.content:
            token.tag = "td"
        elif before.type == "tr_open":
            column = 0
        if style := token.attrs.pop("style", "") if token.type in ("th_open", "td_open") else "":
            token.attrSet("class", str(style).removeprefix("text-align:"))
        if token.type == "td_open":
            token.attrSet("data-label", labels[column])
            column += 1


def _linked(children: list[Token], address: Callable[[str], str]) -> list[Token]:
    """The tokens with each link's target mapped, and without the links that have none."""
    found, is_dropped = [], False
    for token in children:
        if token.type == "image":
            token.attrSet("src", address(str(token.attrs["src"])))
        if token.type == "link_open":
            href = address(str(token.attrs["href"]))
            is_dropped = not href
            token.attrSet("href", href)
        if not (is_dropped and token.type in ("link_open", "link_close")):
            found.append(token)
    return found


def _raw(text: str) -> Token:
    return Token("html_inline", "", 0, content=text)
