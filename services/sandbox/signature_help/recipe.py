"""The steps of signing, each of which can be replaced; the defaults are the rule (docs/signing.md)."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from services.sandbox.signature_help.received import Leaf, Received

Pairs = list[tuple[str, str]]  # path, text


@dataclass(frozen=True)
class Keys:
    """A merchant's secrets: valid ones, newest first; those for other purposes; expired ones.

    `api_key` is "" if the caller brought the secret. RSA keys are public ones.
    """

    api_key: str = ""
    api: tuple[str, ...] = field(default=(), repr=False)
    other: tuple[str, ...] = field(default=(), repr=False)
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
    digest: Callable[..., Any] = in_hex

    def text(self, received: Received) -> str:
        """Return the string to sign."""
        pairs = self.order([(leaf.path, self.value(leaf)) for leaf in self.fields(received)])
        return self.join(received, [*self.first(received), *(f"{path}={text}" for path, text in pairs)])

    def makes(self, given: str, text: str, received: Received, keys: Keys) -> bool:
        """Return whether these steps turn a text into this signature by one of the secrets, in constant time."""
        return any(
            hmac.compare_digest(self.digest(key, text).encode(), given.encode()) for key in self.key(keys, received)
        )
