"""A received request: each value, its position, and whether the signature covers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import werkzeug.urls  # noqa: F401  makes the error handler by which Flask reads a query string that is not UTF-8

from schemas.strict_json import parse, parse_query
from services.errors import N_

ENDPOINTS = ("createOrder", "orderQueryDetail", "orderQueryList", "getPayChannels", "balanceQuery")
AUTH_IN_QUERY = ("getPayChannels",)  # endpoints that accept the four auth parameters in the query string, too
# The path of a value from that of the object or array that contains it, and its key.
Name = Callable[[str, str | int], str]
BODY, QUERY = N_("body"), N_("query string")
WHY_LEFT_OUT = {
    "signature": N_("the signature itself"),
    "null": N_("null"),
    "empty": N_("an empty string"),
    "sign": N_("the signature itself"),
    "sign_type": N_("never signed"),
    "own": N_("part of the shop's own address"),
}


@dataclass(frozen=True)
class Leaf:
    """A value that is not an object or array. `raw`: the text in the query string before decoding."""

    path: str
    value: Any
    place: str
    raw: str | None = None

    @property
    def text(self) -> str:
        """The value as it is signed."""
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        return self.value or ""

    @property
    def left_out(self) -> str:
        """The reason why the signature does not cover it, one of WHY_LEFT_OUT; empty if it does."""
        if self.path == "signature":
            return "signature"
        return "null" if self.value is None else "" if self.text else "empty"


@dataclass(frozen=True)
class Received:
    """A valid request. `path` is the whole path of its address."""

    endpoint: str
    path: str
    raw_body: str
    body: dict[str, Any]
    query: dict[str, str]
    leaves: tuple[Leaf, ...]

    def auth(self, name: str) -> str:
        """Return one of the four auth fields as the service reads it; empty if it is missing."""
        sent = self.query | self.body if self.endpoint in AUTH_IN_QUERY else self.body
        value = sent.get(name)
        return value if isinstance(value, str) else ""


def _dotted(path: str, key: str | int) -> str:
    return f"{path}.{key}"


def leaves(value: Any, place: str, name: Name = _dotted, path: str = "") -> Iterator[Leaf]:
    """Yield the values within a value; `name` makes the paths of nested ones."""
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, place, name, name(path, key) if path else str(key))
    else:
        yield Leaf(path, value, place)


def read(path: str, body: bytes, query: str) -> Received:
    """Parse a request as the service does.

    Args:
        path: the path of the address.
        query: the query string, as it was sent.

    Raises:
        Malformed: the request is refused before its signature is verified (40000).
    """
    endpoint = path.rsplit("/", 1)[-1]
    fields = parse(body) if body or endpoint not in AUTH_IN_QUERY else {}
    pairs = parse_qsl(query, keep_blank_values=True, errors="werkzeug.url_quote")
    asked = parse_query(pairs)
    undecoded = [pair.partition("=")[2] for pair in query.split("&") if pair]
    in_query = (Leaf(name, value, QUERY, raw) for (name, value), raw in zip(pairs, undecoded, strict=True))
    return Received(endpoint, path, body.decode(), fields, asked, (*leaves(fields, BODY), *in_query))
