"""Explains the signature of a request to the merchant API (docs/signing.md)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import werkzeug.urls  # noqa: F401  makes the error handler by which Flask reads a query string that is not UTF-8

from models.tables.merchant import Merchant
from schemas.signature_fields import AUTH, NONCE
from schemas.strict_json import Malformed, parse, parse_query
from services.errors import N_
from services.sandbox import seeding
from services.sandbox.signature_help.explanation import (
    BODY,
    QUERY,
    Explanation,
    Keys,
    Leaf,
    Protocol,
    Received,
    Sentence,
    bad,
    explained,
    time_check,
)
from services.sandbox.signature_help.mistakes import ENDPOINTS as ENDPOINTS
from services.sandbox.signature_help.mistakes import MERCHANT_API, equals, hmac_of
from services.security import signing, vault

AUTH_IN_QUERY = ("getPayChannels",)  # endpoints that accept the four auth parameters in the query string, too
NO_KEYS = Keys()


def explain(
    path: str,
    body: bytes,
    query: str = "",
    keys: Keys = NO_KEYS,
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
        now: the Unix time with which the timestamp is compared.
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
        _checks(received, given, keys, time.time() if now is None else now),
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


def _checks(received: Received, given: str, keys: Keys, now: float) -> Iterator[Sentence]:
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
        yield time_check(stamp, now)
    if (nonce := received.text_of("nonce")) and not re.fullmatch(NONCE, nonce):
        yield bad(N_("nonce must have 8 to 64 of the characters A-Z a-z 0-9 _ . -"))
    if given and not re.fullmatch("[0-9a-f]{64}", given):
        yield bad(N_("signature must be 64 lowercase hex digits"))


MISTAKES = MERCHANT_API
_PROTOCOL = Protocol(MISTAKES, equals(hmac_of))
