"""How a signature is made, in steps that can each be replaced; the defaults are the rule (docs/signing.md)."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from services.sandbox.signature_help.received import Leaf, Received

Pairs = list[tuple[str, str]]  # path, text


@dataclass(frozen=True)
class Keys:
    """A merchant's secrets: valid ones, newest first; the callbacks'; those that have ended. `api_key` may be ""."""

    api_key: str = ""
    api: tuple[str, ...] = field(default=(), repr=False)
    callback: tuple[str, ...] = field(default=(), repr=False)
    ended: tuple[str, ...] = field(default=(), repr=False)


def counted(received: Received) -> list[Leaf]:
    return [leaf for leaf in received.leaves if not leaf.left_out]


def as_it_is(leaf: Leaf) -> str:
    return leaf.text


def by_path(pairs: Pairs) -> Pairs:
    return sorted(pairs, key=itemgetter(0))


def name(received: Received) -> list[str]:
    return [received.endpoint]


def by_newlines(received: Received, lines: list[str]) -> str:
    return "\n".join(lines)


def api_secret(keys: Keys, received: Received) -> list[bytes]:
    return [secret.encode() for secret in keys.api]


def in_hex(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()


@dataclass(frozen=True)
class Recipe:
    """The steps from a request to its signature."""

    fields: Callable[[Received], Iterable[Leaf]] = counted
    value: Callable[[Leaf], str] = as_it_is
    order: Callable[[Pairs], Pairs] = by_path
    first: Callable[[Received], list[str]] = name
    join: Callable[[Received, list[str]], str] = by_newlines
    key: Callable[[Keys, Received], list[bytes]] = api_secret
    digest: Callable[[bytes, str], str] = in_hex

    def text(self, received: Received) -> str:
        """The string to sign."""
        pairs = self.order([(leaf.path, self.value(leaf)) for leaf in self.fields(received)])
        return self.join(received, [*self.first(received), *(f"{path}={text}" for path, text in pairs)])

    def signatures(self, received: Received, text: str, keys: Keys) -> list[str]:
        """The signatures of a text, one for each secret."""
        return [self.digest(key, text) for key in self.key(keys, received)]
