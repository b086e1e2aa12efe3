"""The ten commonest mistakes of each protocol, as data: in words, and the wrong steps by which each is made."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from hashlib import md5, sha256
from urllib.parse import quote, quote_plus

from schemas.signature_fields import AUTH
from services.errors import N_
from services.sandbox.signature_help.explanation import (
    MOST_VALUES,
    QUERY,
    Keys,
    Leaf,
    Mistake,
    Pairs,
    Proof,
    Received,
    signed,
)
from services.security.signing import WEBHOOK_PREFIX

ENDPOINTS = ("createOrder", "orderQueryDetail", "orderQueryList", "getPayChannels", "balanceQuery")


# Ways to make a mistake that both protocols know. Each replaces a step.


def also_signed(*reasons: str, null: str = "") -> Callable[[Iterable[Leaf]], list[Leaf]]:
    """Sign values that are left out for these reasons, too; null values as this text."""
    return lambda leaves: [
        replace(leaf, text=null) if leaf.left_out == "null" else leaf
        for leaf in leaves
        if leaf.left_out in ("", *reasons)
    ]


def _without(position: int) -> Callable[[Iterable[Leaf]], list[Leaf]]:
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


# The merchant API


def _first_line(line: str) -> Callable[[Received], list[str]]:
    return lambda received: [line]


def hmac_of(key: bytes, text: bytes) -> str:
    """Return the HMAC-SHA256 in lowercase hex."""
    return hmac.digest(key, text, "sha256").hex()


MERCHANT_API = (
    Mistake(
        "line_ends",
        N_("the lines are joined with something other than a newline, or the text ends with a newline"),
        N_(
            "Join the lines with one newline character, \\n, and end the text after the last line. In a shell, use "
            "printf: echo adds a newline."
        ),
        {"join": [joined(by, end) for by in ("\n", "\r\n", "&", "", "\\n") for end in ("", "\n", "\r\n", "&")]},
    ),
    Mistake(
        "first_line",
        N_("line 1 is missing, or is not exactly the endpoint's name"),
        N_("Write only the endpoint's name in line 1, such as createOrder, spelled as in the URL."),
        {
            "first": [
                lambda received: [],
                lambda received: [f"/{received.endpoint}"],
                lambda received: [received.path],
                lambda received: [f"POST {received.path}"],
                *map(_first_line, ENDPOINTS),
            ]
        },
    ),
    Mistake(
        "blank_signed",
        N_("empty or null values are signed"),
        N_("Leave them out of the text. They may stay in the body."),
        {"fields": [also_signed("empty"), *(also_signed("empty", "null", null=text) for text in ("", "null", "None"))]},
    ),
    Mistake(
        "unsorted",
        N_("the lines are not sorted by path, byte by byte"),
        N_("Sort by path only, byte by byte (LC_ALL=C)."),
        {"order": ORDERS},
    ),
    Mistake(
        "left_out",
        N_("a value that is sent is not signed"),
        N_("Sign every value except the signature: also api_key, timestamp, nonce and the query parameters."),
        {
            "fields": [
                lambda leaves: [leaf for leaf in signed(leaves) if leaf.path not in AUTH],
                lambda leaves: [leaf for leaf in signed(leaves) if leaf.place != QUERY],
                *WITHOUT_ONE,
            ]
        },
    ),
    Mistake(
        "number",
        N_("a number is signed with other digits than it is sent with"),
        N_('Send amounts as strings, such as "12.50", and sign the same text.'),
        {"value": AMOUNTS},
    ),
    Mistake(
        "percent",
        N_("values are signed URL-encoded (percent-encoded)"),
        N_("Sign the characters themselves, in UTF-8."),
        {"value": PERCENT},
    ),
    Mistake(
        "wrong_secret",
        N_("another secret is used: the callback secret, an expired one or the api_key"),
        N_("Use the API secret from the latest rotation. The callback secret is the one that begins with whsec_."),
        {"keys": [other_keys]},
    ),
    Mistake(
        "secret_misread",
        N_("the secret has an extra space, newline or quotation mark, or is decoded"),
        N_("Use the secret's characters as the key: add nothing, decode nothing."),
        {"keys": [misread_keys]},
    ),
    Mistake(
        "digest",
        N_("the signature is in upper case or base64, has a prefix, or is made with another hash or without HMAC"),
        N_("Use HMAC-SHA256: the secret is the key, the text is the message. Write it as 64 lowercase hex digits."),
        {
            "proof": [
                equals(lambda key, text: hmac_of(key, text).upper()),
                equals(lambda key, text: base64.b64encode(hmac.digest(key, text, "sha256")).decode()),
                equals(lambda key, text: f"sha256={hmac_of(key, text)}"),
                equals(lambda key, text: f"SHA2-256(stdin)= {hmac_of(key, text)}"),  # openssl
                equals(lambda key, text: hmac_of(text, key)),
                equals(lambda key, text: hmac.digest(key, text, "sha1").hex()),
                equals(lambda key, text: hmac.digest(key, text, "md5").hex()),
                equals(lambda key, text: sha256(text + key).hexdigest()),
                equals(lambda key, text: sha256(key + text).hexdigest()),
                equals(lambda key, text: sha256(text).hexdigest()),
                equals(lambda key, text: md5(text + key).hexdigest()),
                equals(lambda key, text: md5(text + b"&key=" + key).hexdigest()),
            ]
        },
    ),
)

# Epay

_REQUIRED = ("pid", "type", "out_trade_no", "notify_url", "return_url", "name", "money")
_DOCUMENTED = (*_REQUIRED, "method", "timestamp", "clientip", "device", "param")


def md5_of(data: bytes) -> str:
    """Return the MD5 in lowercase hex."""
    return md5(data, usedforsecurity=False).hexdigest()


def is_hex(made: str, given: str) -> bool:
    """Return whether a signature is this one in hex, in either case; compares in constant time."""
    return hmac.compare_digest(made.encode(), given.lower().encode())


def is_md5(data: bytes, given: str) -> bool:
    """Return whether a signature is the MD5 of the data, in either case."""
    return is_hex(md5_of(data), given)


EPAY = (
    Mistake(
        "sign_signed",
        N_("sign or sign_type is signed"),
        N_("Leave out sign and sign_type. Add them to the request after you compute the signature."),
        {
            "fields": [
                also_signed("sign_type"),
                also_signed("sign_type", "empty"),
                lambda leaves: [*signed(leaves), Leaf("sign_type", "MD5", QUERY)],
                lambda leaves: [*signed(leaves), Leaf("sign_type", "RSA", QUERY)],
                lambda leaves: [*signed(leaves), Leaf("sign", "", QUERY)],
            ]
        },
    ),
    Mistake(
        "blank_signed",
        N_("empty values are signed"),
        N_("Leave them out of the text. They may stay in the request."),
        {"fields": [also_signed("empty")]},
    ),
    Mistake(
        "own_query_signed",
        N_("fields of the shop's own address are part of the text"),
        N_("Verify only the fields of the notice, or use a notify_url without a query."),
        {"fields": [also_signed("own"), also_signed("own", "empty")]},
    ),
    Mistake(
        "unsorted",
        N_("the fields are not sorted by name, byte by byte"),
        N_("Sort the fields by name, byte by byte."),
        {"order": ORDERS},
    ),
    Mistake(
        "left_out",
        N_("a field is sent that is not signed: it is added after signing"),
        N_("Sign every field that you send, such as sitename, device or cid, or do not send it."),
        {
            "fields": [
                lambda leaves: [leaf for leaf in signed(leaves) if leaf.path in _REQUIRED],
                lambda leaves: [leaf for leaf in signed(leaves) if leaf.path in (*_REQUIRED, "sitename")],
                lambda leaves: [leaf for leaf in signed(leaves) if leaf.path in _DOCUMENTED],
                *WITHOUT_ONE,
            ]
        },
    ),
    Mistake(
        "money",
        N_("money is signed with other digits than it is sent with"),
        N_("Write money once, such as 12.50, and sign and send the same text."),
        {"value": AMOUNTS},
    ),
    Mistake(
        "percent",
        N_("values are signed URL-encoded (percent-encoded)"),
        N_("Sign the characters themselves, in UTF-8."),
        {"value": PERCENT},
    ),
    Mistake(
        "key_joined",
        N_("something is between the text and the key, such as &key= or &"),
        N_("Append the key directly to the last value."),
        {"join": [joined("&", end) for end in ("&key=", "&", "key=", "\n")]},
    ),
    Mistake(
        "wrong_key",
        N_("the key is expired, the API secret or the platform's, or has an extra space, newline or quotation mark"),
        N_(
            "Use the latest key of the epay gateway: add nothing, decode nothing. RSA: sign with the merchant's "
            "private key, and verify notices with the platform's public key."
        ),
        {"keys": [other_keys, misread_keys]},
    ),
    Mistake(
        "hash",
        N_("HMAC, another hash or MD5 twice is used, or the key is in front of the text"),
        N_("Use the MD5 of the text followed by the key."),
        {
            "proof": [
                lambda key, text, given: is_hex(hmac.digest(key, text, "md5").hex(), given),
                lambda key, text, given: is_hex(hmac.digest(key, text, "sha256").hex(), given),
                lambda key, text, given: is_hex(sha256(text + key).hexdigest(), given),
                lambda key, text, given: is_md5(md5_of(text + key).encode(), given),
                lambda key, text, given: is_md5(key + text, given),
            ]
        },
    ),
)
