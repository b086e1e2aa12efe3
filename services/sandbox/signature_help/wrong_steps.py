"""Known deviations from the steps of signing; those of writing values are in wrong_values."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from typing import Any

from schemas.strict_json import Literal
from services.sandbox.signature_help.received import ENDPOINTS, QUERY, Leaf, Received
from services.sandbox.signature_help.recipe import Keys, Pairs, counted, in_hex
from services.sandbox.signature_help.wrong_values import JSON_FORMS, dumped
from services.security.signing import WEBHOOK_PREFIX

Fields = Callable[[Received], list[Leaf]]

# --- the selection of values


def _with_blanks(null: str | None, empty: bool) -> Fields:
    """Write null values as this text, or leave them out; keep or leave out empty ones."""
    kept = {"": True, "null": null is not None, "empty": empty, "signature": False}
    return lambda received: [
        Leaf(leaf.path, null, leaf.place) if leaf.left_out == "null" else leaf
        for leaf in received.leaves
        if kept[leaf.left_out]
    ]


def without_query(received: Received) -> list[Leaf]:
    return [leaf for leaf in counted(received) if leaf.place != QUERY]


def with_signature(received: Received) -> list[Leaf]:
    return [*counted(received), *(leaf for leaf in received.leaves if leaf.path == "signature")]


def with_empty_signature(received: Received) -> list[Leaf]:
    return [*counted(received), Leaf("signature", "", QUERY)]


def _without_the_three(received: Received) -> list[Leaf]:
    return [leaf for leaf in counted(received) if leaf.path not in ("api_key", "timestamp", "nonce")]


def _without(number: int) -> Fields:
    """Leave out the value at this position, if there are so many."""

    def step(received: Received) -> list[Leaf]:
        fields = counted(received)
        gone = {leaf.path for leaf in fields[number : number + 1]}
        return [leaf for leaf in fields if leaf.path not in gone]

    return step


BLANKS = [_with_blanks(null, empty) for null, empty in product(("", "null", "None", None), (True, False))]
LEFT_OUT = [_without_the_three, *map(_without, range(64))]


def _without_values(is_left_out: Callable[[Leaf], bool]) -> Fields:
    return lambda received: [leaf for leaf in counted(received) if not is_left_out(leaf)]


def _is_zero(leaf: Leaf) -> bool:
    return bool(re.fullmatch(r"-?0+(\.0+)?([eE].*)?", leaf.text)) and isinstance(leaf.value, Literal)


ZEROS = [
    _without_values(lambda leaf: _is_zero(leaf) or leaf.value is False or leaf.text == "0"),  # PHP's empty()
    _without_values(lambda leaf: _is_zero(leaf) or leaf.value is False),  # a truth test in most languages
    _without_values(lambda leaf: _is_zero(leaf) or leaf.text == "0"),
    _without_values(_is_zero),
]

# --- the order


def _by(key: Callable[[tuple[str, str]], Any]) -> Callable[[Pairs], Pairs]:
    return lambda pairs: sorted(pairs, key=key)


UNSORTED: tuple[Callable[[Pairs], Pairs], ...] = (
    lambda pairs: pairs,
    lambda pairs: sorted(pairs, key=lambda pair: pair[0], reverse=True),
)
SORTED_OTHERWISE = (
    _by(lambda pair: f"{pair[0]}={pair[1]}"),
    _by(lambda pair: pair[0].casefold()),
    # The order of `localeCompare` and `sort` in most languages: punctuation counts little, lower case is first.
    _by(lambda pair: (pair[0].casefold().replace("_", "").replace(".", ""), pair[0].swapcase())),
    _by(lambda pair: pair[0].split(".")),
    _by(lambda pair: [part.zfill(6) if part.isdigit() else part for part in pair[0].split(".")]),
)

# --- line 1


def _first(form: str) -> Any:
    return lambda received: [form.format(name=received.endpoint, path=received.path, bare=received.path.strip("/"))]


def lower_case(received: Received) -> list[str]:
    return [received.endpoint.lower()]


def upper_camel_case(received: Received) -> list[str]:
    return [received.endpoint[:1].upper() + received.endpoint[1:]]


PATHS = [_first(form) for form in ("/{name}", "{path}", "{bare}", "POST {path}", "POST {name}", "POST\n{path}")]
OTHER_ENDPOINTS = [*map(_first, ENDPOINTS), lower_case, upper_camel_case]

# --- the whole text


def joined(separator: str, end: str = "") -> Callable[[Received, list[str]], str]:
    return lambda received, lines: separator.join(lines) + end


def _body(**how: Any) -> Callable[[Received, list[str]], str]:
    def step(received: Received, lines: list[str]) -> str:
        return dumped({name: value for name, value in received.body.items() if name != "signature"}, **how)

    return step


BODIES = (
    lambda received, lines: received.raw_body,
    lambda received, lines: f"{received.endpoint}\n{received.raw_body}",
    *(_body(**form, sort_keys=by_name) for form, by_name in product(JSON_FORMS, (False, True))),
)

# --- the secret


def callback_secret(keys: Keys, received: Received) -> list[bytes]:
    bare = [secret.removeprefix(WEBHOOK_PREFIX) for secret in keys.other]
    return [*(secret.encode() for secret in (*keys.other, *bare)), *(base64.b64decode(text) for text in bare)]


def misread(keys: Keys, received: Received) -> Iterator[bytes]:
    """Add characters around the secret, or decode it wrongly: as hex, or as either kind of base64."""
    for secret in keys.api:
        yield from (form.format(secret).encode() for form in ("{}\n", "{}\r\n", " {}", "{} ", '"{}"', "'{}'"))
        for decode in (bytes.fromhex, base64.b64decode, base64.urlsafe_b64decode):
            with suppress(ValueError):
                yield decode(secret if decode == bytes.fromhex else f"{secret}==")


def own_name(keys: Keys, received: Received) -> list[bytes]:
    return [received.auth("api_key").encode(), b""]


def ended(keys: Keys, received: Received) -> list[bytes]:
    return [secret.encode() for secret in keys.ended]


# --- the signature of the text


def in_base64(key: bytes, text: str) -> str:
    return base64.b64encode(hmac.digest(key, text.encode(), "sha256")).decode()


def base64_of_hex(key: bytes, text: str) -> str:
    return base64.b64encode(in_hex(key, text).encode()).decode()


def url_base64(key: bytes, text: str) -> str:
    return in_base64(key, text).translate(str.maketrans("+/", "-_")).rstrip("=")


def _other_hash(name: str) -> Any:
    return lambda key, text: hmac.digest(key, text.encode(), name).hex()


def _bare_hash(name: str, form: bytes) -> Any:
    return lambda key, text: hashlib.new(name, form % {b"key": key, b"text": text.encode()}).hexdigest()


def _swapped(key: bytes, text: str) -> str:
    return hmac.digest(text.encode(), key, "sha256").hex()


def prefixed(form: str) -> Any:
    return lambda key, text: form + in_hex(key, text)


def in_charset(charset: str) -> Any:
    return lambda key, text: hmac.digest(key, text.encode(charset, "replace"), "sha256").hex()


HASHES = (
    *map(_other_hash, ("md5", "sha1", "sha512", "sha384")),
    *(
        _bare_hash(name, form)
        for name in ("sha256", "md5")
        for form in (b"%(text)s%(key)s", b"%(key)s%(text)s", b"%(text)s", b"%(text)s\n%(key)s", b"%(text)s&key=%(key)s")
    ),
    _swapped,
)
