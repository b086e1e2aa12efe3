"""How any signature is explained: the mistake that gives it, and the first line that differs."""

from __future__ import annotations

import re
import time
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar

from schemas.messages import Message
from services.errors import N_
from services.security.replay import WINDOW

BODY, QUERY = N_("body"), N_("query string")
WHY_LEFT_OUT = {
    "signature": N_("the signature itself"),
    "null": N_("null"),
    "empty": N_("an empty string"),
    "sign": N_("the signature itself"),
    "sign_type": N_("never signed"),
    "own": N_("part of the shop's own address"),
}
MOST_VALUES = 60  # a request has about ten, a withdrawal about thirty; trying mistakes on many more takes seconds


@dataclass(frozen=True)
class Leaf:
    """A value that is not an object or array, as it is signed. `left_out`: one of WHY_LEFT_OUT if it is not signed."""

    path: str
    text: str
    place: str
    left_out: str = ""

    @property
    def line(self) -> str:
        """The value's line in the string to sign."""
        return f"{self.path}={self.text}"


def in_order(leaves: Iterable[Leaf]) -> list[Leaf]:
    """Return values in the order in which they are signed."""
    return sorted(leaves, key=attrgetter("path"))


@dataclass(frozen=True)
class Mistake:
    """A mistake. `what` completes "you get this if ..."."""

    name: str
    what: str
    cure: str


@dataclass(frozen=True)
class Keys:
    """A merchant's secrets: valid ones, newest first; those for other purposes; the replaced one.

    `owner` is the api_key of stored ones, "" if the caller brought the secret. RSA keys are public ones.
    """

    owner: str = ""
    valid: Sequence[str] = field(default=(), repr=False)
    other: Sequence[str] = field(default=(), repr=False)
    replaced: Sequence[str] = field(default=(), repr=False)


@dataclass(frozen=True)
class Received(ABC):
    """A request that can be read, and how its protocol signs.

    `path` is the whole path of its address, `values` has its names on the top level.
    """

    endpoint: str
    path: str
    values: dict[str, Any]
    leaves: tuple[Leaf, ...]
    known_mistakes: ClassVar[tuple[Mistake, ...]]

    def text_of(self, name: str) -> str:
        """Return a value; empty if it is missing or not a text."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def signed(self, *also: str) -> list[Leaf]:
        """Return the values that the signature covers, in order, and those that are left out for these reasons."""
        return in_order(leaf for leaf in self.leaves if leaf.left_out in ("", *also))

    @property
    @abstractmethod
    def ending(self) -> str:
        """The text after the string to sign."""

    @abstractmethod
    def text(self, leaves: Iterable[Leaf]) -> str:
        """Return the string to sign of these values, in this order."""

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """Return the lines of a string to sign."""

    @abstractmethod
    def is_signed(self, text: str, key: bytes, given: str) -> bool:
        """Return whether the key makes this signature of the text."""

    @abstractmethod
    def wrong_texts(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each mistake in the text, with a text that it gives."""

    @abstractmethod
    def wrong_signing(self, text: str, keys: Keys, given: str) -> str:
        """Return the name of the mistake that makes this signature of the right text; empty if it is unknown."""


@dataclass(frozen=True)
class Sentence:
    """A sentence to translate. `good`: it is no reason for a refusal."""

    text: str
    good: bool = True


def bad(text: str, **values: Any) -> Sentence:
    """Return a reason for a refusal."""
    return Sentence(Message(text, **values) if values else text, good=False)


@dataclass(frozen=True)
class FirstDifference:
    """The first difference of two texts: line and column start at 1; the two lines and characters there, or ""."""

    line: int
    column: int
    our_line: str
    their_line: str
    ours: str
    theirs: str


@dataclass(frozen=True)
class Explanation:
    """The explanation of one request.

    `refused` is the reason why it is refused before its signature is verified; then the rest is empty. `lines` are the
    lines of `text` with their values; `ending` is the step after it. `signature` is the right one, if it may be shown.
    `holds` is None without anything to compare. `mistakes` has the one that gives exactly the received signature or
    text, and `their_text` is then the signed text. `checks` are the results of the service's other checks.
    """

    endpoint: str = ""
    refused: str = ""
    text: str = ""
    ending: str = ""
    lines: tuple[tuple[str, Leaf | None], ...] = ()
    left_out: tuple[Leaf, ...] = ()
    signature: str = ""
    given: str = ""
    holds: bool | None = None
    verdict: Sentence = bad(N_("The service refuses this request before it checks the signature."))
    mistakes: tuple[Mistake, ...] = ()
    their_text: str | None = None
    first: FirstDifference | None = None
    checks: tuple[Sentence, ...] = ()

    @property
    def is_right(self) -> bool:
        """True if no mistake was found in the signature."""
        return not self.refused and self.holds is not False and self.their_text in (None, self.text)


def explained(
    received: Received,
    keys: Keys,
    given: str,
    theirs: str | None,
    checks: Iterable[Sentence],
    signature: str = "",
) -> Explanation:
    """Explain a request's signature.

    Args:
        given: the signature.
        theirs: the text that the integrator's code signs, if known.
        checks: the results of other checks.
        signature: the right one, if it may be shown.
    """

    def gives(text: str) -> bool:
        return any(received.is_signed(text, key.encode(), given) for key in keys.valid)

    text, checks = received.text(received.signed()), list(checks)
    holds = gives(text) if keys.valid and given else None
    if theirs and gives(theirs.removesuffix("\n")):
        theirs = theirs.removesuffix("\n")  # an editor or a terminal added it
    if theirs is not None and theirs != text and holds is False:
        if gives(theirs):
            checks.append(Sentence(N_("The signature in the request is that of your text.")))
        else:
            other = N_(
                "The signature in the request is not that of your text: the secret or the digest is wrong too, or the "
                "signature belongs to another request."
            )
            checks.append(bad(other))

    mistake, found = "", N_("You get this signature if")
    if not holds and len(received.leaves) <= MOST_VALUES:
        for name, wrong in received.wrong_texts():
            if holds is False and theirs in (None, wrong) and gives(wrong):
                mistake, theirs = name, wrong
                break
            if theirs == wrong != text:
                mistake, found = name, N_("You get this text if")
                break
        if not mistake and holds is False and theirs in (None, text):
            mistake = received.wrong_signing(text, keys, given)
            theirs = text if mistake else theirs

    if holds:
        verdict = Sentence(N_("The signature is valid."))
    elif mistake:
        verdict = bad(found)
    elif theirs is None and holds is None:
        verdict = Sentence(N_("This is the server's string to sign.") if given else N_("The request has no signature."))
    elif theirs is None:
        unknown = N_(
            "No known mistake gives this signature. Compare the text that your code signs with the server's: "
            "the first line that differs shows the mistake. If no line differs, the secret does."
        )
        verdict = bad(unknown)
    elif theirs != text:
        verdict = bad(N_("The texts differ."))
    elif holds is None:
        verdict = Sentence(N_("Your text equals the server's."))
    else:
        verdict = bad(
            N_("Your text equals the server's, but the signature differs: you used another secret or other bytes.")
        )

    first_line = received.text([])  # epay has none
    lines: list[tuple[str, Leaf | None]] = [(first_line, None)] if first_line else []
    lines += [(leaf.line, leaf) for leaf in received.signed()]
    return Explanation(
        endpoint=received.endpoint,
        text=text,
        ending=received.ending,
        lines=tuple(lines),
        left_out=tuple(leaf for leaf in received.leaves if leaf.left_out),
        signature=signature,
        given=given,
        holds=holds,
        verdict=verdict,
        mistakes=tuple(each for each in received.known_mistakes if each.name == mistake),
        their_text=theirs,
        first=None if theirs in (None, text) else _first_difference(received, text, theirs),
        checks=tuple(checks),
    )


def _first_difference(received: Received, ours: str, theirs: str) -> FirstDifference:
    differ = (at for at, (our, their) in enumerate(zip(ours, theirs, strict=False)) if our != their)
    place = next(differ, min(len(ours), len(theirs)))
    our_lines, their_lines = received.split(ours), received.split(theirs)
    line, column = 0, place
    while column > len(our_lines[line]):
        column -= len(our_lines[line]) + 1  # and what separates it from the next one
        line += 1
    their_line = their_lines[line] if line < len(their_lines) else ""
    our_char, their_char = ours[place : place + 1], theirs[place : place + 1]
    if their_line == our_lines[line]:  # show what is at its end instead
        their_line += their_char
    return FirstDifference(line + 1, column + 1, our_lines[line], their_line, our_char, their_char)


def time_checks(stamp: str, now: float | None) -> Iterator[Sentence]:
    """Yield why a timestamp is refused that arrived at this Unix time, by default now."""
    if not re.fullmatch("[0-9]+", stamp):
        yield bad(N_("timestamp must be a whole number of seconds"))
        return
    if len(stamp) > 12:
        yield bad(N_("timestamp is in milliseconds: it must be in seconds"))
        return
    behind = int(time.time() if now is None else now) - int(stamp)
    if behind > WINDOW:
        yield bad(N_("timestamp is %(seconds)s s behind the server's clock: at most 300 are allowed"), seconds=behind)
    if behind < -WINDOW:
        ahead = N_("timestamp is %(seconds)s s ahead of the server's clock: at most 300 are allowed")
        yield bad(ahead, seconds=-behind)


# How characters are shown

NAMES = {
    "\n": N_("a newline, where the line ends"),
    "\r": N_("a carriage return"),
    "\t": N_("a tab"),
    " ": N_("a space"),
    "": N_("the end"),
}


def name_of(char: str, translated: Callable[[str], str] = str) -> str:
    """Return a character's name: from NAMES, translated, or the character with its Unicode name if not ASCII."""
    if char in NAMES:
        return translated(NAMES[char])
    shown = f"'{char}'" if char.isprintable() else ""
    return shown if char.isascii() and shown else f"{shown} U+{ord(char):04X} {unicodedata.name(char, '')}".strip()


def visible(line: str) -> str:
    """Make all characters of a line visible: spaces around its value as ␣, unprintable ones as escapes."""
    name, equals, value = line.partition("=") if "=" in line else ("", "", line)
    inner = value.strip(" ")
    before = "" if not inner else "␣" * (len(value) - len(value.lstrip(" ")))
    shown = f"{name}{equals}{before}{inner}".ljust(len(line), "␣")
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in shown)
