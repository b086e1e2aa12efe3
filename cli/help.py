"""The help and click's own messages in the language of the commands, in lines that fit the terminal."""

from __future__ import annotations

import inspect
import os
import re
import unicodedata
from collections.abc import Iterable
from copy import copy
from gettext import bindtextdomain, gettext

import click

from services.platform.language import CATALOGS

_OPENING, _CLOSING, _WIDE = "（《“", "，。；：、！？）》”", "\u2e80-\u9fff\uff00-\uff60"
# A word with the blanks before it. A line may break after each Chinese character, but not apart from its punctuation.
_WORDS = re.compile(rf"(\s*)([{_OPENING}]*(?:[{_WIDE}]|[^\s{_WIDE}]+)[{_CLOSING}]*)")


def choose(language: str) -> None:
    """Set the language, `en` or `zh`, of `gettext`: click translates by it, and so does this module."""
    bindtextdomain("messages", CATALOGS)
    os.environ["LANGUAGE"] = language


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes: a Chinese character has two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _wrapped(text: str, width: int) -> str:
    """Wrap the paragraphs of a text, and mark each so that click, which counts characters, keeps its lines."""
    done = []
    for paragraph in text.split("\n\n"):
        lines = [""]
        for blank, word in _WORDS.findall(paragraph):
            if lines[-1] and columns(lines[-1] + blank + word) > width:
                lines.append(word)
            else:
                lines[-1] += blank + word
        done.append("\n".join(["\b", *lines]))
    return "\n\n".join(done)


class _Formatter(click.HelpFormatter):
    def write_heading(self, heading: str) -> None:
        text = gettext("{heading}:").format(heading=heading)
        self.write(f"{'':>{self.current_indent}}{text}\n")

    def write_text(self, text: str) -> None:
        super().write_text(_wrapped(text, self.width - self.current_indent))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        rows = list(rows)
        first = min(max(len(term) for term, _ in rows), col_max) + col_spacing
        super().write_dl([(term, _wrapped(text, self.width - first - 2)) for term, text in rows], col_max, col_spacing)


class Context(click.Context):
    """A context whose help is wrapped by columns."""

    formatter_class = _Formatter


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a command's help, each in one line: these are translated."""
    return [" ".join(each.split()) for each in inspect.cleandoc(text).split("\n\n")]


def translated(command: click.Command) -> click.Command:
    """Return a copy of a command with its help in the chosen language."""
    shown = copy(command)
    shown.context_class = Context
    texts = [gettext(each) for each in paragraphs(command.help or "")]
    shown.help, shown.short_help = "\n\n".join(texts), re.split(r"(?<=\.) |。", texts[0])[0]
    shown.params = [copy(each) for each in command.params]
    for each in shown.params:
        if isinstance(each, click.Option) and each.help:
            each.help = gettext(each.help)
    return shown
