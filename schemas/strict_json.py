"""The JSON that callers may send: strict, bounded, with numbers kept as they were sent."""

from __future__ import annotations

import json
import re
from typing import Any

DEEPEST = 5
_KEY = re.compile(r"[A-Za-z0-9_]+")
_UNSIGNABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Malformed(ValueError):
    """The text is not JSON that this service accepts; the message says where it fails."""


class Literal(str):
    """A JSON number, as the text that was sent."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if not _KEY.fullmatch(key):
            raise Malformed("a name may have only letters, digits and _")
        if key in result:
            raise Malformed(f"{key} is there twice")
        result[key] = value
    return result


def _no_constant(name: str) -> None:
    raise Malformed(f"{name} is not JSON")


_decoder = json.JSONDecoder(
    parse_int=Literal, parse_float=Literal, parse_constant=_no_constant, object_pairs_hook=_object
)


def check(value: Any, depth: int = 1) -> None:
    """Refuse what can't be signed: control characters, lone surrogates, nesting deeper than five."""
    if isinstance(value, str):
        if _UNSIGNABLE.search(value):
            raise Malformed("control characters are not allowed")
    elif isinstance(value, (dict, list)):
        if depth > DEEPEST:
            raise Malformed(f"nested deeper than {DEEPEST}")
        for item in value.values() if isinstance(value, dict) else value:
            check(item, depth + 1)


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object in `body`, numbers as `Literal`.

    Raises:
        Malformed: no UTF-8, no JSON object, a name twice, control characters, too deep.
    """
    try:
        value = _decoder.decode(body.decode())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Malformed(str(error)) from None
    except RecursionError:
        raise Malformed(f"nested deeper than {DEEPEST}") from None
    if not isinstance(value, dict):
        raise Malformed("the body must be a JSON object")
    check(value)
    return value


def parse_query(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """The parameters of a query string, held to the same rules.

    Raises:
        Malformed: as `parse`.
    """
    value = _object(pairs)
    check(value)
    return value
