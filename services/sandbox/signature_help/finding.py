"""Which known mistake, or which two, give the text or the signature that came; and which gives a single line."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from services.sandbox.signature_help import texts as comparing
from services.sandbox.signature_help.mistakes import MISTAKES, Mistake
from services.sandbox.signature_help.received import Received
from services.sandbox.signature_help.recipe import Keys, Recipe
from services.sandbox.signature_help.texts import Row

# A request has some ten values, a withdrawal some thirty. To try all on thousands would take seconds.
MOST_VALUES = 500  # of a request on which mistakes are tried
MOST_IN_PAIRS, LONGEST_IN_PAIRS = 60, 8192  # values and characters of one on which they are tried two at a time
MOST_ROWS = 300  # above it no single line is looked into

Alone = tuple[Mistake, Callable[..., Any], str]  # a mistake, the way it is made, and the text that it gives


def _alone(received: Received) -> Iterator[Alone]:
    """Each way to make each mistake, but for those that change nothing of this request's."""
    if len(received.leaves) > MOST_VALUES:
        return
    right = Recipe().text(received)
    for mistake in MISTAKES:
        for way in mistake.ways:
            text = Recipe(**{mistake.step: way}).text(received) if mistake.in_text else right
            if not mistake.in_text or text != right:
                yield mistake, way, text


def _in_text(received: Received) -> list[Alone]:
    return [each for each in _alone(received) if each[0].in_text]


def _tried(received: Received, alone: list[Alone]) -> Iterator[tuple[tuple[Mistake, ...], Recipe, str]]:
    """Each mistake alone, then two at a time, with the text that they give."""
    for mistake, way, text in alone:
        yield (mistake,), Recipe(**{mistake.step: way}), text
    if len(received.leaves) > MOST_IN_PAIRS or sum(len(leaf.text) for leaf in received.leaves) > LONGEST_IN_PAIRS:
        return
    for (one, way, text), (two, other, _) in combinations(sorted(alone, key=lambda each: not each[0].in_text), 2):
        if one.step != two.step:
            recipe = Recipe(**{one.step: way, two.step: other})
            yield (one, two), recipe, recipe.text(received) if two.in_text else text


def by_text(received: Received, theirs: str) -> tuple[Mistake, ...]:
    """The mistakes that together give exactly this text; none where none do."""
    tried = _tried(received, _in_text(received))
    return next((mistakes for mistakes, _, text in tried if text == theirs), ())


def by_signature(received: Received, keys: Keys, given: str) -> tuple[tuple[Mistake, ...], str | None]:
    """The mistakes that together give exactly this signature, and the text that they give; none where none do."""
    for mistakes, recipe, text in _tried(received, list(_alone(received))):
        if _is_among(given, recipe.signatures(received, text, keys)):
            return mistakes, text
    return (), None


def of_signing(received: Received, keys: Keys, given: str, theirs: str) -> Mistake | None:
    """The mistake by which this text was made into this signature."""
    for mistake, way, _ in _alone(received):
        if not mistake.in_text and _is_among(given, Recipe(**{mistake.step: way}).signatures(received, theirs, keys)):
            return mistake
    return None


def _is_among(given: str, signatures: Iterable[str]) -> bool:
    """Compare in constant time: the signatures are made with a merchant's secret."""
    return any(hmac.compare_digest(each.encode(), given.encode()) for each in signatures)


def with_mistakes(rows: list[Row], received: Received) -> list[Row]:
    """The rows of two texts, each with the mistake that alone makes its difference."""
    if len(rows) > MOST_ROWS:
        return rows
    made = [(mistake, text.split("\n")) for mistake, _, text in _in_text(received)]
    tried = [(mistake, lines, comparing.paths(lines)) for mistake, lines in made]
    order = _order([row.path for row in sorted(rows, key=lambda row: row.their_number or 0) if row.their_number], tried)
    return [replace(row, mistake=order if row.state == comparing.MOVED else _of_row(row, tried)) for row in rows]


def _order(theirs: list[str], tried: list[tuple[Mistake, list[str], list[str]]]) -> Mistake | None:
    """The mistake that puts the lines into this order, whatever else is wrong with them."""
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
