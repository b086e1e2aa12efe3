"""The known ways to write a value, or nested values, otherwise than the rule for signing says."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote, quote_plus

from schemas.strict_json import Literal
from services.sandbox.signature_help.received import BODY, Leaf, Received

Write = Callable[[Leaf], str]
_DECIMAL = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


# --- numbers


def _is_amount(leaf: Leaf) -> bool:
    """Is it a number, and none that must be whole: a timestamp is no amount."""
    if not _DECIMAL.fullmatch(leaf.text):
        return False
    return isinstance(leaf.value, Literal) or "." in leaf.text or leaf.path.endswith("amount")


def _number(write: Callable[[float], str]) -> Write:
    def step(leaf: Leaf) -> str:
        # What has more digits than a float holds would be no amount, and inf is none.
        return write(float(leaf.text)) if _is_amount(leaf) and len(leaf.text) < 16 else leaf.text

    return step


def _two_decimals(leaf: Leaf) -> str:
    return f"{float(leaf.text):.2f}" if leaf.path.endswith("amount") and _is_amount(leaf) else leaf.text


def _in_fen(leaf: Leaf) -> str:
    return f"{float(leaf.text) * 100:.0f}" if leaf.path.endswith("amount") and _is_amount(leaf) else leaf.text


def _python_float(leaf: Leaf) -> str:
    return _number(repr)(leaf) if "." in leaf.text or "e" in leaf.text.lower() else leaf.text


NUMBERS = (_number(lambda number: f"{number:.15g}"), _python_float, _two_decimals, _in_fen)

# --- texts


def _percent(safe: str, encode: Callable[..., str] = quote) -> Write:
    return lambda leaf: encode(leaf.text, safe=safe)


PERCENT = (
    _percent(""),
    _percent("!*'()~"),  # encodeURIComponent
    _percent("", quote_plus),
    _percent("*", quote_plus),  # Java's URLEncoder
    _percent("/"),
    lambda leaf: leaf.text if leaf.raw is None else leaf.raw,
)


def _json(leaf: Leaf, ascii_only: bool) -> str:
    return json.dumps(leaf.text, ensure_ascii=ascii_only)[1:-1]


ESCAPED = (
    lambda leaf: _json(leaf, True),
    lambda leaf: _json(leaf, False),
    lambda leaf: _json(leaf, True).replace("/", "\\/"),  # PHP's json_encode
    lambda leaf: _json(leaf, False).replace("/", "\\/"),
)


def _quoted(ascii_only: bool) -> Write:
    return lambda leaf: f'"{_json(leaf, ascii_only)}"' if _is_text(leaf) else leaf.text


def _is_text(leaf: Leaf) -> bool:
    return isinstance(leaf.value, str) and not isinstance(leaf.value, Literal)


QUOTED = (
    _quoted(False),
    _quoted(True),
    lambda leaf: f"'{leaf.text}'" if _is_text(leaf) else leaf.text,
    lambda leaf: f'"{leaf.text}"',
)


def _boolean(true: str, false: str) -> Write:
    return lambda leaf: (true if leaf.value else false) if isinstance(leaf.value, bool) else leaf.text


BOOLEANS = (_boolean("True", "False"), _boolean("1", "0"), _boolean("1", ""), _boolean("TRUE", "FALSE"))
TRIMMED = (lambda leaf: leaf.text.strip(), lambda leaf: leaf.text.rstrip(), lambda leaf: leaf.text.lstrip())

# --- the time


def _time(change: Callable[[int], str]) -> Write:
    def step(leaf: Leaf) -> str:
        is_time = leaf.path == "timestamp" and leaf.text.isascii() and leaf.text.isdigit() and len(leaf.text) < 16
        return change(int(leaf.text)) if is_time else leaf.text

    return step


def _later(seconds: int) -> Write:
    return _time(lambda time: str(time + seconds))


TIMES = (
    *map(_later, (-1, 1, -2, 2, -3, 3)),
    _time(lambda time: str(time // 1000)),
    _time(lambda time: str(time * 1000)),
    _time(lambda time: f"{time}.0"),
)

# --- nested values


def dumped(value: Any, *, ascii_only: bool = False, spaced: bool = False, by_name: bool = False) -> str:
    """A value that was read with its numbers kept as text, as JSON with those very numbers."""
    marks: list[str] = []

    def marked(item: Any) -> Any:
        if isinstance(item, dict):
            return {name: marked(each) for name, each in item.items()}
        if isinstance(item, list):
            return [marked(each) for each in item]
        if isinstance(item, Literal):
            marks.append(item)
            return f"\x00{len(marks) - 1}\x00"  # no value that was read holds this
        return item

    separators = None if spaced else (",", ":")
    text = json.dumps(marked(value), ensure_ascii=ascii_only, separators=separators, sort_keys=by_name)
    return re.sub(r'"\\u0000(\d+)\\u0000"', lambda found: marks[int(found[1])], text)


def _nested(value: Any, path: str, name: Callable[[str, str | int], str]) -> Iterator[Leaf]:
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _nested(item, name(path, key) if path else str(key), name)
    elif not Leaf(path, value, BODY).left_out:
        yield Leaf(path, value, BODY)


NAMES: tuple[Callable[[str, str | int], str], ...] = (
    lambda path, key: f"{path}[{key}]",
    lambda path, key: f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}",
    lambda path, key: f"{path}.{key + 1 if isinstance(key, int) else key}",
    lambda path, key: path if isinstance(key, int) else f"{path}.{key}",
    lambda path, key: f"{path}_{key}",
    lambda path, key: str(key),
)


def unflattened(received: Received) -> Iterable[Any]:
    """Ways to take the fields, where there is anything nested."""
    if not any(isinstance(value, (dict, list)) for value in received.body.values()):
        return []
    in_query = [leaf for leaf in received.leaves if leaf.place != BODY and not leaf.left_out]

    def named(name: Callable[[str, str | int], str]) -> Any:
        return lambda received: [*_nested(received.body, "", name), *in_query]

    def as_text(**how: bool) -> Any:
        def step(received: Received) -> list[Leaf]:
            whole = [
                (name, value if _is_flat(value) else dumped(value, **how)) for name, value in received.body.items()
            ]
            leaves = [Leaf(name, value, BODY) for name, value in whole]
            return [*(leaf for leaf in leaves if not leaf.left_out), *in_query]

        return step

    def flat_only(received: Received) -> list[Leaf]:
        return [leaf for leaf in received.leaves if "." not in leaf.path and not leaf.left_out]

    texts = [as_text(spaced=spaced, ascii_only=ascii_only) for spaced in (False, True) for ascii_only in (False, True)]
    return [flat_only, *map(named, NAMES), *texts]


def _is_flat(value: Any) -> bool:
    return not isinstance(value, (dict, list))


def decoded(secret: str) -> list[bytes]:
    """The bytes that a secret would stand for were it base64 or hex; it is neither."""
    found = []
    for read in (lambda text: base64.b64decode(text + "=" * (-len(text) % 4)), bytes.fromhex, _url_safe):
        with suppress(ValueError, binascii.Error):
            found.append(read(secret))
    return found


def _url_safe(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
