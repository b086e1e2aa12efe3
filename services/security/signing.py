"""Signatures: the string to sign of requests, and Standard Webhooks for callbacks."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

WEBHOOK_PREFIX = "whsec_"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}.{index}")
    elif isinstance(value, bool):
        yield path, "true" if value else "false"
    elif value is not None and value != "":
        yield path, value


def string_to_sign(endpoint: str, *sources: dict[str, Any]) -> str:
    """Return the text that `signature` covers.

    Args:
        endpoint: the last part of the path, such as `createOrder`.
        sources: the JSON body and the query parameters, with numbers as the text in the request.
    """
    leaves = [leaf for source in sources for leaf in _leaves(source) if leaf[0] != "signature"]
    # Code points sort as UTF-8 bytes do. The sort is stable, so of two values with one path the body's stays first.
    leaves.sort(key=itemgetter(0))
    return "\n".join([endpoint, *(f"{path}={value}" for path, value in leaves)])


def sign(secret: str, text: str) -> str:
    """Return the lowercase hex HMAC-SHA256 of `text` under the API secret."""
    return hmac.digest(secret.encode(), text.encode(), "sha256").hex()


def is_valid(signature: str, secrets: Iterable[str], text: str) -> bool:
    """Return whether `signature` is that of `text` under one of the secrets; compares in constant time."""
    given = signature.encode()
    return any(hmac.compare_digest(sign(secret, text).encode(), given) for secret in secrets)


def sign_webhook(secrets: Iterable[str], webhook_id: str, timestamp: int, body: str) -> str:
    """Return the `webhook-signature` header: one `v1,` signature for each valid secret, joined by spaces."""
    content = f"{webhook_id}.{timestamp}.{body}".encode()

    def one(secret: str) -> str:
        key = base64.b64decode(secret.removeprefix(WEBHOOK_PREFIX))
        return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()

    return " ".join(one(secret) for secret in secrets)


def is_valid_webhook(header: str, secrets: Iterable[str], webhook_id: str, timestamp: int, body: str) -> bool:
    """Return whether one of the signatures in the header matches one of the secrets."""
    expected = sign_webhook(secrets, webhook_id, timestamp, body).split()
    return any(hmac.compare_digest(own.encode(), given.encode()) for own in expected for given in header.split())
