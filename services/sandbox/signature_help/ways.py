"""Ways to make the mistakes that both protocols know. Each replaces a step of the Protocol."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from hashlib import md5
from urllib.parse import quote, quote_plus

from services.sandbox.signature_help.explanation import MOST_VALUES, Keys, Leaf, Pairs, Proof, Received, signed
from services.security.signing import WEBHOOK_PREFIX

Fields = Callable[[Iterable[Leaf]], list[Leaf]]


def also_signed(*reasons: str, null: str = "") -> Fields:
    """Sign values that are left out for these reasons, too; null values as this text."""
    return lambda leaves: [
        replace(leaf, text=null) if leaf.left_out == "null" else leaf
        for leaf in leaves
        if leaf.left_out in ("", *reasons)
    ]


def _without(position: int) -> Fields:
    return lambda leaves: [leaf for at, leaf in enumerate(signed(leaves)) if at != position]


WITHOUT_ONE = [_without(position) for position in range(MOST_VALUES)]
ORDERS: list[Callable[[Pairs], Pairs]] = [
    lambda pairs: pairs,
    lambda pairs: sorted(pairs, reverse=True),
    lambda pairs: sorted(pairs, key="=".join),  # whole lines
    lambda pairs: sorted(pairs, key=lambda pair: pair[0].casefold()),
]
PERCENT: list[Callable[[Leaf], str]] = [
    lambda leaf: quote(leaf.text, safe=""),
    lambda leaf: quote(leaf.text, safe="!*'()~"),  # JavaScript's encodeURIComponent
    lambda leaf: quote(leaf.text),
    lambda leaf: quote_plus(leaf.text),  # PHP's http_build_query
    lambda leaf: quote(leaf.text, safe="") if leaf.path in ("notify_url", "return_url") else leaf.text,
]


def _amounts(write: Callable[[float], str]) -> Callable[[Leaf], str]:
    """Write amounts, and numbers with decimals, this way."""

    def step(leaf: Leaf) -> str:
        is_number = len(leaf.text) <= 15 and re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", leaf.text)
        is_amount = "." in leaf.text or leaf.path.endswith(("amount", "money"))
        return write(float(leaf.text)) if is_number and is_amount else leaf.text

    return step


AMOUNTS = [
    _amounts("{:.15g}".format),
    _amounts(repr),
    _amounts("{:.2f}".format),
    _amounts(lambda number: f"{number * 100:.0f}"),  # in fen
]


def joined(separator: str, end: str = "") -> Callable[[list[str]], str]:
    """Join the lines with this separator, and end the text with this."""
    return lambda lines: separator.join(lines) + end


def other_keys(keys: Keys, received: Received) -> Iterator[bytes]:
    """Use a secret for another purpose, a replaced one, the merchant's own name, or none."""
    for key in (*keys.other, *keys.replaced, received.text_of("api_key"), received.text_of("pid"), ""):
        yield key.encode()
        with suppress(ValueError):  # not a callback secret, whose key is in base64
            yield base64.b64decode(key.removeprefix(WEBHOOK_PREFIX))


def misread_keys(keys: Keys, received: Received) -> Iterator[bytes]:
    """Use the key with additional characters, in upper case, or decoded."""
    for key in keys.valid:
        for text in (f"{key}\n", f"{key}\r\n", f" {key}", f"{key} ", f'"{key}"', f"'{key}'", key.upper()):
            yield text.encode()
        for decode in (bytes.fromhex, base64.b64decode):
            with suppress(ValueError):
                yield decode(key)


def equals(sign: Callable[[bytes, bytes], str]) -> Proof:
    """Return the proof that a signature is what this function makes of a key and a text. It takes constant time."""
    return lambda key, text, given: hmac.compare_digest(sign(key, text).encode(), given.encode())


def md5_of(data: bytes) -> str:
    """Return the MD5 in lowercase hex."""
    return md5(data, usedforsecurity=False).hexdigest()
