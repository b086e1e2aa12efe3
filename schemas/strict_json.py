"""The JSON of requests: strict, bounded, with numbers kept as text."""

from __future__ import annotations

import json
import re
from typing import Any

from schemas.messages import N_, Message

DEEPEST = 5
DEEPEST_DECODED = 100  # each version of Python has a limit of its own, and this is below all of them
MOST_SHOWN = 64  # characters of a name in a message
_KEY = re.compile(r"[A-Za-z0-9_]+")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[\[\]{}]', re.DOTALL)  # a bracket, or a string with the quote at its end
_UNSIGNABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # half of a character beyond U+FFFF: JSON decodes a whole pair to one
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")  # such a half in UTF-8, which does not allow it


class Malformed(ValueError):
    """The text is not JSON that this service accepts; `message` names the path of the fault."""

    def __init__(self, text: str, /, **values: Any):
        self.message = Message(text, **values)
        super().__init__(self.message)


class Literal(str):
    """A JSON number, as the text in the request."""


class _Constant(str):
    """NaN or an infinity, which are refused."""


class _Pairs(list[tuple[str, Any]]):
    """The names and values of an object, including repeated names."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = dict(pairs)
    if len(result) != len(pairs) or not all(map(_KEY.fullmatch, result)):
        raise ValueError
    return result


def _no_constant(name: str) -> None:
    raise ValueError(name)


_decoder = json.JSONDecoder(
    parse_int=Literal, parse_float=Literal, parse_constant=_no_constant, object_pairs_hook=_object
)
_lenient = json.JSONDecoder(parse_int=Literal, parse_float=Literal, parse_constant=_Constant, object_pairs_hook=_Pairs)


def is_half(error: UnicodeDecodeError) -> bool:
    """Return whether the bytes that are not UTF-8 are a part of one character, as in a text that is cut by bytes."""
    is_cut = error.end - error.start > 1 or error.reason == "unexpected end of data"
    return is_cut or bool(_ENCODED_SURROGATE.match(error.object, error.start))


def _is_signable(value: Any, depth: int = 1) -> bool:
    """Return whether it has no control characters or lone surrogates, and at most five levels of nesting."""
    if isinstance(value, str):
        return not _UNSIGNABLE.search(value)
    if isinstance(value, (dict, list)):
        if depth > DEEPEST:
            return False
        for item in value.values() if isinstance(value, dict) else value:
            if not _is_signable(item, depth + 1):
                return False
    return True


def _path(parent: str, name: str | int) -> str:
    own = str(name) if isinstance(name, int) or _KEY.fullmatch(name) else ascii(name)[1:-1]
    own = own if len(own) <= MOST_SHOWN else f"{own[:MOST_SHOWN]}..."
    return f"{parent}.{own}" if parent else own


def _fault(value: Any, path: str = "", depth: int = 1) -> Malformed | None:
    """Return the first fault in a value of `_lenient`."""
    if isinstance(value, _Constant):
        return Malformed(N_("%(path)s: %(name)s is not a JSON value"), path=path, name=str(value))
    if isinstance(value, str):
        if half := _SURROGATE.search(value):
            why = N_("%(path)s: \\u%(code)s is half a character, such as an emoji cut in two: send whole characters")
            return Malformed(why, path=path, code=f"{ord(half[0]):04x}")
        is_bad = _UNSIGNABLE.search(value)
        return Malformed(N_("%(path)s: control characters are not allowed"), path=path) if is_bad else None
    if not isinstance(value, list):
        return None
    if depth > DEEPEST:
        return Malformed(N_("%(path)s: nested deeper than %(most)s levels"), path=path, most=DEEPEST)
    pairs = value if isinstance(value, _Pairs) else enumerate(value)
    seen = set()
    for name, item in pairs:
        own = _path(path, name)
        if isinstance(name, str) and not _KEY.fullmatch(name):
            return Malformed(N_("%(path)s: a name may only have letters, digits and _"), path=own)
        if name in seen:
            return Malformed(N_("%(path)s: the name appears twice"), path=own)
        seen.add(name)
        if found := _fault(item, own, depth + 1):
            return found
    return None


def _depth(text: str) -> int:
    """Return the deepest level of objects and arrays, also of invalid JSON."""
    level = deepest = 0
    for token in _TOKEN.finditer(text):
        level += (token[0] in "[{") - (token[0] in "]}")
        deepest = max(deepest, level)
    return deepest


def _invalid(text: str, at: int) -> Malformed:
    """Return why a text is not JSON, by where decoding stopped: the reasons that Python gives depend on its version."""
    why = N_("invalid JSON at line %(line)s, column %(column)s: unexpected %(found)s")
    unclosed = next((token.start() for token in _TOKEN.finditer(text) if token[1] == ""), len(text))
    if unclosed <= at < len(text):
        at, why = unclosed, N_("invalid JSON at line %(line)s, column %(column)s: this string has no end")
    elif not text[at:].strip():
        why = N_("invalid JSON at line %(line)s, column %(column)s: the text ends too early")
    elif text[at] in "]}" and (before := text[:at].rstrip()).endswith(","):
        at = len(before) - 1  # before Python 3.13 decoding stopped after such a comma
    place, char = json.JSONDecodeError("", text, at), text[at : at + 1]
    found = char if char.isascii() and char.isprintable() else f"U+{ord(char):04X}"
    return Malformed(why, line=place.lineno, column=place.colno, found=found)


def _refused(text: str) -> Malformed:
    """Return why `parse` refuses a text. It is decoded again, leniently, to find the path of the fault."""
    if not text.strip():
        return Malformed(N_("the body is empty"))
    if text.startswith("\ufeff"):
        return Malformed(N_("the body begins with a byte order mark: send UTF-8 without it"))
    if _depth(text) > DEEPEST_DECODED:
        return Malformed(N_("nested deeper than %(most)s levels"), most=DEEPEST)
    try:
        value = _lenient.decode(text)
    except json.JSONDecodeError as error:
        return _invalid(text, error.pos)
    return (isinstance(value, _Pairs) and _fault(value)) or Malformed(N_("the body must be a JSON object"))


def parse(body: bytes) -> dict[str, Any]:
    """Return the JSON object in `body`, with numbers as `Literal`.

    Raises:
        Malformed: not UTF-8, not a JSON object, a repeated name, control characters, too deep.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        half = N_("the body is not UTF-8: byte %(at)s begins half a character, such as an emoji cut in two")
        raise Malformed(half if is_half(error) else N_("the body is not UTF-8: byte %(at)s"), at=error.start) from None
    try:
        value = _decoder.decode(text)
    except (ValueError, RecursionError):
        raise _refused(text) from None
    if not isinstance(value, dict) or not _is_signable(value):
        raise _refused(text)
    return value


def parse_query(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the parameters of a query string, by the same rules.

    Raises:
        Malformed: as `parse`.
    """
    if fault := _fault(_Pairs(pairs)):
        raise fault
    return dict(pairs)
