"""The ten commonest mistakes of each protocol in words, and how those are made that both protocols know."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import md5
from operator import attrgetter
from urllib.parse import quote, quote_plus

from services.errors import N_
from services.sandbox.signature_help.explanation import Keys, Leaf, Mistake, Received
from services.security.signing import WEBHOOK_PREFIX

PERCENT = Mistake(
    "percent",
    N_("values are signed URL-encoded (percent-encoded)"),
    N_("Sign the characters themselves, in UTF-8."),
)

MERCHANT_API = (
    Mistake(
        "line_ends",
        N_("the lines are joined with something other than a newline, or the text ends with a newline"),
        N_(
            "Join the lines with one newline character, \\n, and end the text after the last line. In a shell, use "
            "printf: echo adds a newline."
        ),
    ),
    Mistake(
        "first_line",
        N_("line 1 is missing, or is not exactly the endpoint's name"),
        N_("Write only the endpoint's name in line 1, such as createOrder, spelled as in the URL."),
    ),
    Mistake(
        "blank_signed",
        N_("empty or null values are signed"),
        N_("Leave them out of the text. They may stay in the body."),
    ),
    Mistake(
        "unsorted",
        N_("the lines are not sorted by path, byte by byte"),
        N_("Sort by path only, byte by byte (LC_ALL=C)."),
    ),
    Mistake(
        "left_out",
        N_("a value that is sent is not signed"),
        N_("Sign every value except the signature: also api_key, timestamp, nonce and the query parameters."),
    ),
    Mistake(
        "number",
        N_("a number is signed with other digits than it is sent with"),
        N_('Send amounts as strings, such as "12.50", and sign the same text.'),
    ),
    PERCENT,
    Mistake(
        "wrong_secret",
        N_("another secret is used: the callback secret, an expired one or the api_key"),
        N_("Use the API secret from the latest rotation. The callback secret is the one that begins with whsec_."),
    ),
    Mistake(
        "secret_misread",
        N_("the secret has an extra space, newline or quotation mark, or is decoded"),
        N_("Use the secret's characters as the key: add nothing, decode nothing."),
    ),
    Mistake(
        "digest",
        N_("the signature is in upper case or base64, has a prefix, or is made with another hash or without HMAC"),
        N_("Use HMAC-SHA256: the secret is the key, the text is the message. Write it as 64 lowercase hex digits."),
    ),
)

EPAY = (
    Mistake(
        "sign_signed",
        N_("sign or sign_type is signed"),
        N_("Leave out sign and sign_type. Add them to the request after you compute the signature."),
    ),
    Mistake(
        "blank_signed",
        N_("empty values are signed"),
        N_("Leave them out of the text. They may stay in the request."),
    ),
    Mistake(
        "own_query_signed",
        N_("fields of the shop's own address are part of the text"),
        N_("Verify only the fields of the notice, or use a notify_url without a query."),
    ),
    Mistake(
        "unsorted",
        N_("the fields are not sorted by name, byte by byte"),
        N_("Sort the fields by name, byte by byte."),
    ),
    Mistake(
        "left_out",
        N_("a field is sent that is not signed: it is added after signing"),
        N_("Sign every field that you send, such as sitename, device or cid, or do not send it."),
    ),
    Mistake(
        "money",
        N_("money is signed with other digits than it is sent with"),
        N_("Write money once, such as 12.50, and sign and send the same text."),
    ),
    PERCENT,
    Mistake(
        "key_joined",
        N_("something is between the text and the key, such as &key= or &"),
        N_("Append the key directly to the last value."),
    ),
    Mistake(
        "wrong_key",
        N_("the key is expired, the API secret or the platform's, or has an extra space, newline or quotation mark"),
        N_(
            "Use the latest key of the epay gateway: add nothing, decode nothing. RSA: sign with the merchant's "
            "private key, and verify notices with the platform's public key."
        ),
    ),
    Mistake(
        "hash",
        N_("HMAC, another hash or MD5 twice is used, or the key is in front of the text"),
        N_("Use the MD5 of the text followed by the key."),
    ),
)

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


def wrong_values(received: Received, numbers: str) -> Iterator[tuple[str, list[Leaf]]]:
    """Yield the name of each mistake in the values, with the values that are then signed, in order.

    `numbers` is the name of the mistake in amounts.
    """
    right = received.signed()
    yield "blank_signed", received.signed("empty")
    sent = [leaf for leaf in received.leaves if not leaf.left_out]
    yield "unsorted", sent
    yield "unsorted", sorted(sent, key=attrgetter("path"), reverse=True)
    yield "unsorted", sorted(sent, key=attrgetter("line"))
    yield "unsorted", sorted(sent, key=lambda leaf: leaf.path.casefold())
    for left_out in right:
        yield "left_out", [leaf for leaf in right if leaf is not left_out]
    for write in ("{:.15g}".format, repr, "{:.2f}".format, _in_fen):
        yield numbers, [replace(leaf, text=write(float(leaf.text))) if _is_amount(leaf) else leaf for leaf in right]
    quote_all = partial(quote, safe="")
    as_javascript = partial(quote, safe="!*'()~")  # encodeURIComponent
    encodings: list[Callable[[str], str]] = [quote_all, as_javascript, quote, quote_plus]  # PHP: http_build_query
    for encode in encodings:
        yield "percent", [replace(leaf, text=encode(leaf.text)) for leaf in right]
    addresses = ("notify_url", "return_url")
    yield "percent", [replace(leaf, text=quote_all(leaf.text)) if leaf.path in addresses else leaf for leaf in right]


def _is_amount(leaf: Leaf) -> bool:
    """Return whether a value is an amount, or a number with decimals."""
    is_number = len(leaf.text) <= 15 and _NUMBER.fullmatch(leaf.text)
    return bool(is_number) and ("." in leaf.text or leaf.path.endswith(("amount", "money")))


def _in_fen(number: float) -> str:
    return f"{number * 100:.0f}"


def other_keys(keys: Keys, received: Received) -> Iterator[bytes]:
    """Use a secret for another purpose, a replaced one, the merchant's own name, or none."""
    for key in (*keys.other, *keys.replaced, received.text_of("api_key"), received.text_of("pid"), ""):
        yield key.encode()
        with suppress(ValueError):  # not a callback secret, whose key is in base64
            yield base64.b64decode(key.removeprefix(WEBHOOK_PREFIX))


def misread_keys(keys: Keys) -> Iterator[bytes]:
    """Use the key with additional characters, in upper case, or decoded."""
    for key in keys.valid:
        for text in (f"{key}\n", f"{key}\r\n", f" {key}", f"{key} ", f'"{key}"', f"'{key}'", key.upper()):
            yield text.encode()
        for decode in (bytes.fromhex, base64.b64decode):
            with suppress(ValueError):
                yield decode(key)


def same(made: str, given: str) -> bool:
    """Compare two signatures in constant time."""
    return hmac.compare_digest(made.encode(), given.encode())


def md5_of(data: bytes) -> str:
    """Return the MD5 in lowercase hex."""
    return md5(data, usedforsecurity=False).hexdigest()
