"""Finds the known mistake, or the pair of them, that produces the received text, signature, or a single line."""

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

# A request has about ten values, a withdrawal about thirty. Trying all mistakes on thousands would take seconds.
MOST_VALUES = 500  # the largest request on which mistakes are tried
# The largest request on which pairs of mistakes are tried: values and characters.
MOST_IN_PAIRS, LONGEST_IN_PAIRS = 60, 8192
MOST_ROWS = 300  # the largest text whose single lines are analyzed

Alone = tuple[Mistake, Callable[..., Any], str]  # a mistake, the function that makes it, and the resulting text


def _alone(received: Received) -> Iterator[Alone]:
    """Yield each way to make each mistake, except those that change nothing in this request."""
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
    """Yield each mistake alone, then each pair, with the resulting text."""
    for mistake, way, text in alone:
        yield (mistake,), Recipe(**{mistake.step: way}), text
    if len(received.leaves) > MOST_IN_PAIRS or sum(len(leaf.text) for leaf in received.leaves) > LONGEST_IN_PAIRS:
        return
    for (one, way, text), (two, other, _) in combinations(sorted(alone, key=lambda each: not each[0].in_text), 2):
        if one.step != two.step:
            recipe = Recipe(**{one.step: way, two.step: other})
            yield (one, two), recipe, recipe.text(received) if two.in_text else text


def by_text(received: Received, theirs: str) -> tuple[Mistake, ...]:
    """Return the mistakes that together produce exactly this text; () if there are none."""
    tried = _tried(received, _in_text(received))
    return next((mistakes for mistakes, _, text in tried if text == theirs), ())


def by_signature(received: Received, keys: Keys, given: str) -> tuple[tuple[Mistake, ...], str | None]:
    """Return the mistakes that together produce exactly this signature, and their text; () if there are none."""
    for mistakes, recipe, text in _tried(received, list(_alone(received))):
        if _is_among(given, recipe.signatures(received, text, keys)):
            return mistakes, text
    return (), None


def of_signing(received: Received, keys: Keys, given: str, theirs: str) -> Mistake | None:
    """Return the mistake that turned this text into this signature, or None."""
    for mistake, way, _ in _alone(received):
        if not mistake.in_text and _is_among(given, Recipe(**{mistake.step: way}).signatures(received, theirs, keys)):
            return mistake
    return None


def _is_among(given: str, signatures: Iterable[str]) -> bool:
    """Compare in constant time: the signatures are made with a merchant's secret."""
    return any(hmac.compare_digest(each.encode(), given.encode()) for each in signatures)


def with_mistakes(rows: list[Row], received: Received) -> list[Row]:
    """Return the rows of two texts, each with the mistake that alone causes its difference."""
    if len(rows) > MOST_ROWS:
        return rows
    made = [(mistake, text.split("\n")) for mistake, _, text in _in_text(received)]
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
