"""The steps of signing, each of which can be replaced; the defaults are the rule (docs/signing.md)."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from services.sandbox.signature_help.received import Leaf, Received

Pairs = list[tuple[str, str]]  # path, text


@dataclass(frozen=True)
class Keys:
    """A merchant's secrets: valid ones, newest first; callback secrets; expired ones.

    `api_key` is "" if the caller brought the secret.
    """

    api_key: str = ""
    api: tuple[str, ...] = field(default=(), repr=False)
    callback: tuple[str, ...] = field(default=(), repr=False)
    ended: tuple[str, ...] = field(default=(), repr=False)


def counted(received: Received) -> list[Leaf]:
    return [leaf for leaf in received.leaves if not leaf.left_out]


def in_hex(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()


@dataclass(frozen=True)
class Recipe:
    """The steps from a request to its signature."""

    fields: Callable[[Received], Iterable[Leaf]] = counted
    value: Callable[[Leaf], str] = lambda leaf: leaf.text
    order: Callable[[Pairs], Pairs] = lambda pairs: sorted(pairs, key=itemgetter(0))
    first: Callable[[Received], list[str]] = lambda received: [received.endpoint]
    join: Callable[[Received, list[str]], str] = lambda received, lines: "\n".join(lines)
    key: Callable[[Keys, Received], Iterable[bytes]] = lambda keys, received: [secret.encode() for secret in keys.api]
    digest: Callable[[bytes, str], str] = in_hex

    def text(self, received: Received) -> str:
        """Return the string to sign."""
        pairs = self.order([(leaf.path, self.value(leaf)) for leaf in self.fields(received)])
        return self.join(received, [*self.first(received), *(f"{path}={text}" for path, text in pairs)])

    def signatures(self, received: Received, text: str, keys: Keys) -> list[str]:
        """Return the signatures of a text, one for each secret."""
        return [self.digest(key, text) for key in self.key(keys, received)]
