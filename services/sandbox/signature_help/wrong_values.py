"""Known deviations from the rule for writing values and nested values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any
from urllib.parse import quote, quote_plus

from schemas.strict_json import Literal
from services.sandbox.signature_help.received import BODY, QUERY, Leaf, Name, Received, leaves

Write = Callable[[Leaf], str]


def _only(fits: Callable[[Leaf], Any], write: Write) -> Write:
    """Write the matching values this way, and the others by the rule."""
    return lambda leaf: write(leaf) if fits(leaf) else leaf.text


# --- numbers


def _is_number(leaf: Leaf) -> bool:
    """Return whether a float can hold the number and it may have decimals, unlike a timestamp."""
    if len(leaf.text) > 15 or not re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", leaf.text):
        return False
    return isinstance(leaf.value, Literal) or "." in leaf.text or leaf.path.endswith("amount")


def _is_amount(leaf: Leaf) -> bool:
    return leaf.path.endswith("amount") and _is_number(leaf)


def _is_time(leaf: Leaf) -> bool:
    return leaf.path == "timestamp" and bool(re.fullmatch("[0-9]{1,15}", leaf.text))


def _later(seconds: int) -> Write:
    return _only(_is_time, lambda leaf: str(int(leaf.text) + seconds))


NUMBERS = (
    _only(_is_number, lambda leaf: f"{float(leaf.text):.15g}"),
    _only(lambda leaf: _is_number(leaf) and re.search("[.eE]", leaf.text), lambda leaf: repr(float(leaf.text))),
    _only(_is_amount, lambda leaf: f"{float(leaf.text):.2f}"),
    _only(_is_amount, lambda leaf: f"{float(leaf.text) * 100:.0f}"),  # in fen
)
TIMES = (
    *map(_later, (-1, 1, -2, 2, -3, 3)),
    _only(_is_time, lambda leaf: str(int(leaf.text) // 1000)),
    _only(_is_time, lambda leaf: str(int(leaf.text) * 1000)),
    _only(_is_time, lambda leaf: f"{int(leaf.text)}.0"),
)

# --- texts


def _percent(safe: str, encode: Callable[..., str] = quote) -> Write:
    return lambda leaf: encode(leaf.text, safe=safe)


def _escaped(leaf: Leaf, ascii_only: bool = False) -> str:
    return json.dumps(leaf.text, ensure_ascii=ascii_only)[1:-1]


def _is_text(leaf: Leaf) -> bool:
    return isinstance(leaf.value, str) and not isinstance(leaf.value, Literal)


def _boolean(true: str, false: str) -> Write:
    return _only(lambda leaf: isinstance(leaf.value, bool), lambda leaf: true if leaf.value else false)


PERCENT = (
    _percent(""),
    _percent("!*'()~"),  # encodeURIComponent
    _percent("", quote_plus),
    _percent("*", quote_plus),  # Java's URLEncoder
    _percent("/"),
    lambda leaf: leaf.text if leaf.raw is None else leaf.raw,
)
ESCAPED = (
    lambda leaf: _escaped(leaf, True),
    lambda leaf: _escaped(leaf),
    lambda leaf: _escaped(leaf, True).replace("/", "\\/"),  # PHP's json_encode
    lambda leaf: _escaped(leaf).replace("/", "\\/"),
)
QUOTED = (
    _only(_is_text, lambda leaf: f'"{_escaped(leaf)}"'),
    _only(_is_text, lambda leaf: f'"{_escaped(leaf, True)}"'),
    _only(_is_text, lambda leaf: f"'{leaf.text}'"),
    lambda leaf: f'"{leaf.text}"',
)
BOOLEANS = (_boolean("True", "False"), _boolean("1", "0"), _boolean("1", ""), _boolean("TRUE", "FALSE"))
TRIMMED = (lambda leaf: leaf.text.strip(), lambda leaf: leaf.text.rstrip(), lambda leaf: leaf.text.lstrip())

# --- nested values


def _is_nested(value: Any) -> bool:
    return isinstance(value, (dict, list))


def _marked(value: Any) -> Any:
    """Return a value with its numbers as unique texts, marked by control characters, which requests can't contain."""
    if isinstance(value, dict):
        return {name: _marked(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_marked(item) for item in value]
    return f"\x00{value}\x00" if isinstance(value, Literal) else value


def dumped(value: Any, **how: Any) -> str:
    """Return a value as JSON with exactly the numbers in the request; `how` is for json.dumps."""
    return re.sub(r'"\\u0000(.*?)\\u0000"', r"\1", json.dumps(_marked(value), **how))


# Without spaces, and in Python's default format.
JSON_FORMS = [
    {"separators": separators, "ensure_ascii": ascii_only}
    for separators, ascii_only in product(((",", ":"), None), (False, True))
]
_NAMES: tuple[Name, ...] = (
    lambda path, key: f"{path}[{key}]",
    lambda path, key: f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}",
    lambda path, key: f"{path}.{key + 1 if isinstance(key, int) else key}",
    lambda path, key: path if isinstance(key, int) else f"{path}.{key}",
    lambda path, key: f"{path}_{key}",
    lambda path, key: str(key),
)


def _with_body(of_body: Callable[[dict[str, Any]], Iterable[Leaf]]) -> Callable[[Received], list[Leaf]]:
    """Select the body's values this way, and those of the query string by the rule."""

    def step(received: Received) -> list[Leaf]:
        in_query = (leaf for leaf in received.leaves if leaf.place == QUERY)
        return [leaf for leaf in (*of_body(received.body), *in_query) if not leaf.left_out]

    return step


def _flat_only(body: dict[str, Any]) -> list[Leaf]:
    return [Leaf(name, value, BODY) for name, value in body.items() if not _is_nested(value)]


def _named(name: Name) -> Any:
    return lambda body: leaves(body, BODY, name)


def _as_json(how: dict[str, Any]) -> Any:
    return lambda body: [
        Leaf(name, dumped(value, **how) if _is_nested(value) else value, BODY) for name, value in body.items()
    ]


UNFLATTENED = tuple(map(_with_body, (_flat_only, *map(_named, _NAMES), *map(_as_json, JSON_FORMS))))
