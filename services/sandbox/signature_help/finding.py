"""Finds the known mistake, or the pair of them, that produces the received text, signature, or a single line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from services.sandbox.signature_help import texts as comparing
from services.sandbox.signature_help.mistakes import MISTAKES, Mistake
from services.sandbox.signature_help.received import Received
from services.sandbox.signature_help.recipe import Keys, Recipe
from services.sandbox.signature_help.texts import Row

# A request has about ten values, a withdrawal about thirty. Trying all mistakes on thousands would take seconds.
MOST_VALUES = 500  # the largest request on which mistakes are tried
# The largest request on which pairs of mistakes are tried: values and characters.
MOST_IN_PAIRS, LONGEST_IN_PAIRS = 60, 8192
MOST_ROWS = 300  # the largest text whose single lines are analyzed

Alone = tuple[Mistake, Callable[..., Any], str]  # a mistake, the function that makes it, and the resulting text


@dataclass(frozen=True)
class Protocol:
    """A way to sign: its steps, the known mistakes in them, and how a string to sign is split into lines."""

    recipe: type[Recipe]
    mistakes: tuple[Mistake, ...]
    split: Callable[[str, Received], list[str]] = lambda text, received: text.split("\n")


API = Protocol(Recipe, MISTAKES)


def _alone(protocol: Protocol, received: Received) -> Iterator[Alone]:
    """Yield each way to make each mistake, except those that change nothing in this request."""
    if len(received.leaves) > MOST_VALUES:
        return
    right = protocol.recipe().text(received)
    for mistake in protocol.mistakes:
        for way in mistake.ways:
            text = protocol.recipe(**{mistake.step: way}).text(received) if mistake.in_text else right
            if not mistake.in_text or text != right:
                yield mistake, way, text


def _in_text(protocol: Protocol, received: Received) -> list[Alone]:
    return [each for each in _alone(protocol, received) if each[0].in_text]


def _tried(
    protocol: Protocol, received: Received, alone: list[Alone]
) -> Iterator[tuple[tuple[Mistake, ...], Recipe, str]]:
    """Yield each mistake alone, then each pair, with the resulting text."""
    for mistake, way, text in alone:
        yield (mistake,), protocol.recipe(**{mistake.step: way}), text
    if len(received.leaves) > MOST_IN_PAIRS or sum(len(leaf.text) for leaf in received.leaves) > LONGEST_IN_PAIRS:
        return
    for (one, way, text), (two, other, _) in combinations(sorted(alone, key=lambda each: not each[0].in_text), 2):
        if one.step != two.step:
            recipe = protocol.recipe(**{one.step: way, two.step: other})
            yield (one, two), recipe, recipe.text(received) if two.in_text else text


def by_text(protocol: Protocol, received: Received, theirs: str) -> tuple[Mistake, ...]:
    """Return the mistakes that together produce exactly this text; () if there are none."""
    tried = _tried(protocol, received, _in_text(protocol, received))
    return next((mistakes for mistakes, _, text in tried if text == theirs), ())


def by_signature(
    protocol: Protocol, received: Received, keys: Keys, given: str
) -> tuple[tuple[Mistake, ...], str | None]:
    """Return the mistakes that together produce exactly this signature, and their text; () if there are none."""
    for mistakes, recipe, text in _tried(protocol, received, list(_alone(protocol, received))):
        if recipe.makes(given, text, received, keys):
            return mistakes, text
    return (), None


def of_signing(protocol: Protocol, received: Received, keys: Keys, given: str, theirs: str) -> Mistake | None:
    """Return the mistake that turned this text into this signature, or None."""
    for mistake, way, _ in _alone(protocol, received):
        recipe = protocol.recipe(**{mistake.step: way})
        if not mistake.in_text and recipe.makes(given, theirs, received, keys):
            return mistake
    return None


def with_mistakes(protocol: Protocol, rows: list[Row], received: Received, found: tuple[Mistake, ...]) -> list[Row]:
    """Return the rows of two texts, each with the mistake that alone causes its difference, one of `found` if any."""
    if len(rows) > MOST_ROWS:
        return rows
    alone = sorted(_in_text(protocol, received), key=lambda each: each[0] not in found)
    made = [(mistake, protocol.split(text, received)) for mistake, _, text in alone]
    tried = [(mistake, lines, comparing.paths(lines)) for mistake, lines in made]
    order = _order([row.path for row in sorted(rows, key=lambda row: row.their_number or 0) if row.their_number], tried)
    return [replace(row, mistake=order if row.state == comparing.MOVED else _of_row(row, tried)) for row in rows]


def _order(theirs: list[str], tried: list[tuple[Mistake, list[str], list[str]]]) -> Mistake | None:
    """Return the mistake that puts the lines into this order, regardless of other mistakes in them."""
    for mistake, _, paths in tried:
        if mistake.step == "order" and [p for p in paths if p in theirs] == [p for p in theirs if p in paths]:
            return mistake
    return None


def _of_row(row: Row, tried: list[tuple[Mistake, list[str], list[str]]]) -> Mistake | None:
    for mistake, lines, paths in tried:
        if row.state == comparing.MISSING:
            if mistake.step in ("fields", "first") and row.path not in paths:
                return mistake
        elif row.state != comparing.SAME and row.theirs in lines:
            return mistake
    return None
