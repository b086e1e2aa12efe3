"""Explains the signature of a request to the merchant API (docs/signing.md)."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl

import werkzeug.urls  # noqa: F401  makes the error handler by which Flask reads a query string that is not UTF-8

from models.tables.merchant import Merchant
from schemas.signature_fields import AUTH, NONCE
from schemas.strict_json import Malformed, parse, parse_query
from services.errors import N_
from services.sandbox import seeding
from services.sandbox.signature_help import mistakes
from services.sandbox.signature_help.explanation import (
    BODY,
    QUERY,
    Explanation,
    Keys,
    Leaf,
    Received,
    Sentence,
    bad,
    explained,
    time_checks,
)
from services.security import signing, vault

MISTAKES = mistakes.MERCHANT_API
ENDPOINTS = (
    "createOrder",
    "orderQueryDetail",
    "orderQueryList",
    "getPayChannels",
    "balanceQuery",
    "statementQuery",
    "createRefund",
    "refundQueryDetail",
    "refundQueryList",
)
AUTH_IN_QUERY = ("getPayChannels",)  # endpoints that accept the four auth parameters in the query string, too


class _Request(Received):
    known_mistakes = MISTAKES
    ending = N_("The text ends without a newline.")

    def text(self, leaves: Iterable[Leaf]) -> str:
        return "\n".join([self.endpoint, *(leaf.line for leaf in leaves)])

    def split(self, text: str) -> list[str]:
        return text.split("\n")

    def is_signed(self, text: str, key: bytes, given: str) -> bool:
        return mistakes.same(hmac.digest(key, text.encode(), "sha256").hex(), given)

    def wrong_texts(self) -> Iterator[tuple[str, str]]:
        lines = [leaf.line for leaf in self.signed()]
        for by in ("\n", "\r\n", "&", "", "\\n"):
            for end in ("", "\n", "\r\n", "&"):
                yield "line_ends", by.join([self.endpoint, *lines]) + end
        yield "first_line", "\n".join(lines)
        for first in (f"/{self.endpoint}", self.path, f"POST {self.path}", *ENDPOINTS):
            yield "first_line", "\n".join([first, *lines])
        for null in ("", "null", "None"):
            blank = self.signed("empty", "null")
            written = [replace(leaf, text=null) if leaf.left_out == "null" else leaf for leaf in blank]
            yield "blank_signed", self.text(written)
        yield "left_out", self.text(leaf for leaf in self.signed() if leaf.path not in AUTH)
        yield "left_out", self.text(leaf for leaf in self.signed() if leaf.place != QUERY)
        for name, leaves in mistakes.wrong_values(self, numbers="number"):
            yield name, self.text(leaves)

    def wrong_signing(self, text: str, keys: Keys, given: str) -> str:
        if any(self.is_signed(text, key, given) for key in mistakes.other_keys(keys, self)):
            return "wrong_secret"
        if any(self.is_signed(text, key, given) for key in mistakes.misread_keys(keys)):
            return "secret_misread"
        made = (digest for key in keys.valid for digest in _wrong_digests(text.encode(), key.encode()))
        return "digest" if any(mistakes.same(digest, given) for digest in made) else ""


def _wrong_digests(text: bytes, key: bytes) -> Iterator[str]:
    right = hmac.digest(key, text, "sha256")
    yield right.hex().upper()
    yield base64.b64encode(right).decode()
    yield f"sha256={right.hex()}"
    yield f"SHA2-256(stdin)= {right.hex()}"  # openssl
    yield hmac.digest(text, key, "sha256").hex()
    yield hmac.digest(key, text, "sha1").hex()
    yield hmac.digest(key, text, "md5").hex()
    yield sha256(text + key).hexdigest()
    yield sha256(key + text).hexdigest()
    yield sha256(text).hexdigest()
    yield mistakes.md5_of(text + key)
    yield mistakes.md5_of(text + b"&key=" + key)


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
    received = _Request(endpoint, path, values, (*_leaves(sent, BODY), *_leaves(asked, QUERY)))
    given = received.text_of("signature") if signature is None else signature
    # Callers know a secret that they sent, and those of demo merchants, which are published.
    knows = keys.valid and (not keys.owner or set(keys.valid) <= {each["secret"] for each in seeding.MERCHANTS})
    return explained(
        received,
        keys,
        given,
        theirs,
        _checks(received, given, keys, now),
        signature=signing.sign(keys.valid[0], received.text(received.signed())) if knows else "",
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
