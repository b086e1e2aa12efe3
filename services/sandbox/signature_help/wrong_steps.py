"""The known ways to do a step of signing otherwise than the rule says; how values are written is in wrong_values."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from itertools import product
from operator import itemgetter
from typing import Any

from services.sandbox.signature_help import wrong_values as values
from services.sandbox.signature_help.received import ENDPOINTS, QUERY, Leaf, Received
from services.sandbox.signature_help.recipe import Keys, Pairs, counted, in_hex
from services.security.signing import WEBHOOK_PREFIX

# --- which values


def _with_blanks(null: str | None, empty: bool) -> Any:
    def step(received: Received) -> Iterable[Leaf]:
        for leaf in received.leaves:
            if leaf.left_out == "null" and null is not None:
                yield Leaf(leaf.path, null, leaf.place)
            elif not leaf.left_out or (leaf.left_out == "empty" and empty):
                yield leaf

    return step


blanks = [_with_blanks(null, empty) for null, empty in product(("", "null", "None", None), (True, False))][:-1]


def without_query(received: Received) -> list[Leaf]:
    return [leaf for leaf in counted(received) if leaf.place != QUERY]


def with_signature(received: Received) -> list[Leaf]:
    without = [leaf for leaf in received.leaves if leaf.path == "signature"]
    return [*counted(received), *without]


def with_empty_signature(received: Received) -> list[Leaf]:
    return [*counted(received), Leaf("signature", "", QUERY)]


def _leaving_out(path: str) -> Any:
    return lambda received: [leaf for leaf in counted(received) if leaf.path != path]


def _without_the_three(received: Received) -> list[Leaf]:
    return [leaf for leaf in counted(received) if leaf.path not in ("api_key", "timestamp", "nonce")]


MOST_LEFT_OUT = 64  # values that are left out one by one


def one_left_out(received: Received) -> list[Any]:
    paths = [leaf.path for leaf in counted(received)]
    return [_without_the_three, *map(_leaving_out, paths[:MOST_LEFT_OUT])]


# --- in which order


def as_sent(pairs: Pairs) -> Pairs:
    return pairs


def whole_lines(pairs: Pairs) -> Pairs:
    return sorted(pairs, key=lambda pair: f"{pair[0]}={pair[1]}")


def ignoring_case(pairs: Pairs) -> Pairs:
    return sorted(pairs, key=lambda pair: pair[0].casefold())


def letters_first(pairs: Pairs) -> Pairs:
    """As `localeCompare` and `sort` in most languages do it: signs count little, lower case comes first."""
    return sorted(pairs, key=lambda pair: (pair[0].casefold().replace("_", "").replace(".", ""), pair[0].swapcase()))


def by_levels(pairs: Pairs) -> Pairs:
    return sorted(pairs, key=lambda pair: pair[0].split("."))


def numbers_as_numbers(pairs: Pairs) -> Pairs:
    return sorted(pairs, key=lambda pair: [(part.zfill(6) if part.isdigit() else part) for part in pair[0].split(".")])


def backwards(pairs: Pairs) -> Pairs:
    return sorted(pairs, key=itemgetter(0), reverse=True)


# --- line 1


def _first(form: str) -> Any:
    return lambda received: [form.format(name=received.endpoint, path=received.path, bare=received.path.strip("/"))]


paths = [_first(form) for form in ("/{name}", "{path}", "{bare}", "POST {path}", "POST {name}", "POST\n{path}")]


def _named(name: str) -> Any:
    return lambda received: [name]


def other_endpoints(received: Received) -> list[Any]:
    own = received.endpoint
    names = (*ENDPOINTS, own.lower(), own[:1].upper() + own[1:])
    return [_named(name) for name in names if name != own]


# --- all of it


def joined(separator: str, end: str = "") -> Any:
    return lambda received, lines: separator.join(lines) + end


def raw_body(received: Received, lines: list[str]) -> str:
    return received.raw_body


def body_under_name(received: Received, lines: list[str]) -> str:
    return f"{received.endpoint}\n{received.raw_body}"


def _without_signature(**how: Any) -> Any:
    def step(received: Received, lines: list[str]) -> str:
        return values.dumped({name: value for name, value in received.body.items() if name != "signature"}, **how)

    return step


bodies = [
    _without_signature(ascii_only=ascii_only, spaced=spaced, by_name=by_name)
    for ascii_only, spaced, by_name in product((False, True), repeat=3)
]

# --- the secret


def callback_secret(keys: Keys, received: Received) -> list[bytes]:
    bare = [secret.removeprefix(WEBHOOK_PREFIX) for secret in keys.callback]
    return [*(secret.encode() for secret in (*keys.callback, *bare)), *(base64.b64decode(text) for text in bare)]


def misread(keys: Keys, received: Received) -> list[bytes]:
    forms = ("{}\n", "{}\r\n", " {}", "{} ", '"{}"', "'{}'")
    decoded = [text for secret in keys.api for text in values.decoded(secret)]
    return [*(form.format(secret).encode() for secret in keys.api for form in forms), *decoded]


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


def swapped(key: bytes, text: str) -> str:
    return hmac.digest(text.encode(), key, "sha256").hex()


hashes = [_other_hash(name) for name in ("md5", "sha1", "sha512", "sha384")] + [
    _bare_hash(name, form)
    for name in ("sha256", "md5")
    for form in (b"%(text)s%(key)s", b"%(key)s%(text)s", b"%(text)s", b"%(text)s\n%(key)s", b"%(text)s&key=%(key)s")
]


def _prefixed(form: str) -> Any:
    return lambda key, text: form + in_hex(key, text)


prefixes = [
    _prefixed(form) for form in ("sha256=", "v1,", "0x", "(stdin)= ", "SHA2-256(stdin)= ", "HMAC-SHA2-256(stdin)= ")
]


def in_charset(charset: str) -> Any:
    return lambda key, text: hmac.digest(key, text.encode(charset, "replace"), "sha256").hex()
