"""The signature of a request."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}.{index}")
    elif isinstance(value, float):
        raise TypeError(f"{path} is a float, whose text is not reliable: send a str")
    elif value is not None and value != "":
        yield path, value if isinstance(value, str) else json.dumps(value)


def string_to_sign(endpoint: str, *sources: Mapping[str, Any]) -> str:
    """Return the text to sign.

    Args:
        endpoint: the last part of the path, such as `createOrder`.
        sources: the JSON body and the query parameters, the body first.
    """
    leaves = [leaf for source in sources for leaf in _leaves(source) if leaf[0] != "signature"]
    leaves.sort(key=itemgetter(0))  # stable: of two with the same path, the body's is first
    return "\n".join([endpoint, *(f"{path}={value}" for path, value in leaves)])


def sign(secret: str, text: str) -> str:
    """Return the HMAC-SHA256 of `text` with the API secret, in lowercase hex."""
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
