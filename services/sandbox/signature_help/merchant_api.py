"""Explains the signature of a request to the merchant API (docs/signing.md)."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl

import werkzeug.urls  # noqa: F401  makes the error handler by which Flask reads a query string that is not UTF-8

from models.tables.merchant import Merchant
from schemas.signature_fields import AUTH, NONCE
from schemas.strict_json import Malformed, parse, parse_query
from services.errors import N_
from services.sandbox import seeding
from services.sandbox.signature_help import ways
from services.sandbox.signature_help.explanation import (
    BODY,
    QUERY,
    Explanation,
    Keys,
    Leaf,
    Mistake,
    Protocol,
    Received,
    Sentence,
    bad,
    explained,
    signed,
    time_checks,
)
from services.security import signing, vault

ENDPOINTS = ("createOrder", "orderQueryDetail", "orderQueryList", "getPayChannels", "balanceQuery")
AUTH_IN_QUERY = ("getPayChannels",)  # endpoints that accept the four auth parameters in the query string, too


def _first_line(line: str) -> Callable[[Received], list[str]]:
    return lambda received: [line]


def _hmac(key: bytes, text: bytes) -> str:
    return hmac.digest(key, text, "sha256").hex()


MISTAKES = (
    Mistake(
        "line_ends",
        N_("the lines are joined with something other than a newline, or the text ends with a newline"),
        N_(
            "Join the lines with one newline character, \\n, and end the text after the last line. In a shell, use "
            "printf: echo adds a newline."
        ),
        {"join": [ways.joined(by, end) for by in ("\n", "\r\n", "&", "", "\\n") for end in ("", "\n", "\r\n", "&")]},
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
        {
            "fields": [
                ways.also_signed("empty"),
                *(ways.also_signed("empty", "null", null=text) for text in ("", "null", "None")),
            ]
        },
    ),
    Mistake(
        "unsorted",
        N_("the lines are not sorted by path, byte by byte"),
        N_("Sort by path only, byte by byte (LC_ALL=C)."),
        {"order": ways.ORDERS},
    ),
    Mistake(
        "left_out",
        N_("a value that is sent is not signed"),
        N_("Sign every value except the signature: also api_key, timestamp, nonce and the query parameters."),
        {
            "fields": [
                lambda leaves: [leaf for leaf in signed(leaves) if leaf.path not in AUTH],
                lambda leaves: [leaf for leaf in signed(leaves) if leaf.place != QUERY],
                *ways.WITHOUT_ONE,
            ]
        },
    ),
    Mistake(
        "number",
        N_("a number is signed with other digits than it is sent with"),
        N_('Send amounts as strings, such as "12.50", and sign the same text.'),
        {"value": ways.AMOUNTS},
    ),
    Mistake(
        "percent",
        N_("values are signed URL-encoded (percent-encoded)"),
        N_("Sign the characters themselves, in UTF-8."),
        {"value": ways.PERCENT},
    ),
    Mistake(
        "wrong_secret",
        N_("another secret is used: the callback secret, an expired one or the api_key"),
        N_("Use the API secret from the latest rotation. The callback secret is the one that begins with whsec_."),
        {"keys": [ways.other_keys]},
    ),
    Mistake(
        "secret_misread",
        N_("the secret has an extra space, newline or quotation mark, or is decoded"),
        N_("Use the secret's characters as the key: add nothing, decode nothing."),
        {"keys": [ways.misread_keys]},
    ),
    Mistake(
        "digest",
        N_("the signature is in upper case or base64, has a prefix, or is made with another hash or without HMAC"),
        N_("Use HMAC-SHA256: the secret is the key, the text is the message. Write it as 64 lowercase hex digits."),
        {
            "proof": [
                ways.equals(lambda key, text: _hmac(key, text).upper()),
                ways.equals(lambda key, text: base64.b64encode(hmac.digest(key, text, "sha256")).decode()),
                ways.equals(lambda key, text: f"sha256={_hmac(key, text)}"),
                ways.equals(lambda key, text: f"SHA2-256(stdin)= {_hmac(key, text)}"),  # openssl
                ways.equals(lambda key, text: _hmac(text, key)),
                ways.equals(lambda key, text: hmac.digest(key, text, "sha1").hex()),
                ways.equals(lambda key, text: hmac.digest(key, text, "md5").hex()),
                ways.equals(lambda key, text: sha256(text + key).hexdigest()),
                ways.equals(lambda key, text: sha256(key + text).hexdigest()),
                ways.equals(lambda key, text: sha256(text).hexdigest()),
                ways.equals(lambda key, text: ways.md5_of(text + key)),
                ways.equals(lambda key, text: ways.md5_of(text + b"&key=" + key)),
            ]
        },
    ),
)
_PROTOCOL = Protocol(MISTAKES, ways.equals(_hmac))


def explain(
    path: str,
    body: bytes,
    query: str,
    keys: Keys,
    *,
    theirs: str | None = None,
    signature: str | None = None,
    now: float | None = None,
) -> Explanation:
    """Explain the signature of one request.

    The right signature is returned only to callers who know the secret, since it would be valid in a request.

    Args:
        path: the path of the address.
        query: the query string as received.
        keys: the secrets; without them no signature is verified.
        theirs: the text that the integrator's code signs.
        signature: theirs; None for the one in the request.
        now: the Unix time when it arrived; None for the present.
    """
    endpoint = path.rsplit("/", 1)[-1]
    try:
        sent = parse(body) if body or endpoint not in AUTH_IN_QUERY else {}
        asked = parse_query(parse_qsl(query, keep_blank_values=True, errors="werkzeug.url_quote"))
    except Malformed as error:
        return Explanation(refused=error.message)
    values = asked | sent if endpoint in AUTH_IN_QUERY else sent
    received = Received(endpoint, path, values, (*_leaves(sent, BODY), *_leaves(asked, QUERY)))
    given = received.text_of("signature") if signature is None else signature
    # Callers know a secret that they sent, and those of demo merchants, which are published.
    knows = keys.valid and (not keys.owner or set(keys.valid) <= {each["secret"] for each in seeding.MERCHANTS})
    return explained(
        _PROTOCOL,
        received,
        keys,
        given,
        theirs,
        _checks(received, given, keys, now),
        signature=signing.sign(keys.valid[0], _PROTOCOL.text(received)) if knows else "",
    )


def keys_of(merchant: Merchant) -> Keys:
    """Return a stored merchant's secrets."""
    return Keys(
        owner=merchant.key,
        valid=vault.valid_secrets(merchant, "secret"),
        other=vault.valid_secrets(merchant, "callback_secret"),
        replaced=(vault.decrypt(merchant.previous_secret),) if merchant.previous_secret else (),
    )


def _leaves(value: Any, place: str, path: str = "") -> Iterator[Leaf]:
    """Yield the values within a value, each with its path, in the order of the request."""
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, place, f"{path}.{key}" if path else str(key))
    else:
        text = ("true" if value else "false") if isinstance(value, bool) else value or ""
        left_out = "signature" if path == "signature" else "null" if value is None else "" if text else "empty"
        yield Leaf(path, text, place, left_out)


def _checks(received: Received, given: str, keys: Keys, now: float | None) -> Iterator[Sentence]:
    """Yield why the service may refuse the request for another reason than its signature."""
    in_query = {leaf.path for leaf in received.leaves if leaf.place == QUERY}
    for name in AUTH:
        if received.text_of(name) or (name == "signature" and given):
            continue
        if name in in_query:
            yield bad(N_("%(name)s is in the query string, but this endpoint takes it from the body only"), name=name)
        else:
            yield bad(N_("%(name)s is missing or is not a string"), name=name)
    if keys.owner and received.text_of("api_key") not in ("", keys.owner):
        yield bad(N_("the secret belongs to the api_key %(key)s, not to this one"), key=keys.owner)
    if stamp := received.text_of("timestamp"):
        yield from time_checks(stamp, now)
    if (nonce := received.text_of("nonce")) and not re.fullmatch(NONCE, nonce):
        yield bad(N_("nonce must have 8 to 64 of the characters A-Z a-z 0-9 _ . -"))
    if given and not re.fullmatch("[0-9a-f]{64}", given):
        yield bad(N_("signature must be 64 lowercase hex digits"))
