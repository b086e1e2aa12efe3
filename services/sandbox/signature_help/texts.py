"""Two strings to sign side by side: the lines that differ, and the first different character."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from services.errors import N_
from services.sandbox.signature_help.mistakes import Mistake

SAME, DIFFERENT, MISSING, EXTRA, MOVED = "same", "different", "missing", "extra", "moved"
STATES = {
    SAME: N_("the same"),
    DIFFERENT: N_("differs"),
    MISSING: N_("missing in yours"),
    EXTRA: N_("only in yours"),
    MOVED: N_("in another place in yours"),
}
# Characters that are invisible, or look like another one.
NAMES = {
    "\n": N_("a newline, where the line ends"),
    "\r": N_("a carriage return"),
    "\t": N_("a tab"),
    " ": N_("a space"),
    "\u00a0": N_("a no-break space"),
    "\u3000": N_("a full-width space"),
    "\u200b": N_("a zero-width space"),
    "\ufeff": N_("a byte order mark"),
    "": N_("the end"),
}


@dataclass(frozen=True)
class Row:
    """A line of the server's text, of the other text, or of both under one name. Numbers start at 1; None for no line.

    `mistake` is the one that alone produces this line, if any.
    """

    state: str
    path: str
    number: int | None = None
    ours: str = ""
    their_number: int | None = None
    theirs: str = ""
    mistake: Mistake | None = None


@dataclass(frozen=True)
class FirstDifference:
    """The first difference of two texts: line and column start at 1; `ours` and `theirs` are the characters, or ""."""

    line: int
    column: int
    ours: str
    theirs: str


def name_of(char: str, translated: Callable[[str], str] = str) -> str:
    """Return a character's name: from NAMES, translated, or the character with its Unicode name if not ASCII."""
    if char in NAMES:
        return translated(NAMES[char])
    shown = f"'{char}'" if char.isprintable() else ""
    return shown if char.isascii() and shown else f"{shown} U+{ord(char):04X} {unicodedata.name(char, '')}".strip()


def visible(line: str) -> str:
    """Make all characters of a line visible: spaces around its value as ␣, unprintable ones as escapes."""
    path, equals, value = line.partition("=") if "=" in line else ("", "", line)
    kept = value.lstrip(" ")
    before, inner = len(value) - len(kept), kept.rstrip(" ")
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in path + equals + "␣" * before + inner)
    return shown + "␣" * (len(kept) - len(inner))


def first_difference(ours: str, theirs: str, lines: list[str]) -> FirstDifference | None:
    """Return the first difference of two texts, or None. `lines` are those of ours."""
    if ours == theirs:
        return None
    shortest = min(len(ours), len(theirs))
    place = next((at for at in range(shortest) if ours[at] != theirs[at]), shortest)
    line, column = 0, place
    while column > len(lines[line]):
        column -= len(lines[line]) + 1  # and what separates it from the next one
        line += 1
    return FirstDifference(line + 1, column + 1, ours[place : place + 1], theirs[place : place + 1])


def paths(lines: list[str]) -> list[str]:
    """Return the name of each line; line 1, which has no value, has the name ""."""
    return ["" if not at and "=" not in line else line.partition("=")[0] for at, line in enumerate(lines)]


def rows(mine: list[str], yours: list[str]) -> list[Row]:
    """Return the lines of both texts in the order of ours; lines of theirs only are where they would be in ours."""
    names, their_names = paths(mine), paths(yours)
    found: list[Row] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, names, their_names, autojunk=False).get_opcodes():
        if kind == "equal":
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                state = SAME if mine[i] == yours[j] else DIFFERENT
                found.append(Row(state, names[i], i + 1, mine[i], j + 1, yours[j]))
            continue
        found += [Row(MISSING, names[i], i + 1, mine[i]) for i in range(i1, i2)]
        found += [Row(EXTRA, their_names[j], None, "", j + 1, yours[j]) for j in range(j1, j2)]
    return _with_moved(found)


def _with_moved(found: list[Row]) -> list[Row]:
    """Merge the rows of one name at two positions."""
    elsewhere = {row.path: row for row in found if row.state == EXTRA}
    merged = []
    for row in found:
        other = elsewhere.pop(row.path, None) if row.state == MISSING else None
        moved = other and replace(other, state=MOVED, number=row.number, ours=row.ours)
        merged.append(moved or row)
    gone = {row.their_number for row in merged if row.state == MOVED}
    return [row for row in merged if row.state != EXTRA or row.their_number not in gone]
