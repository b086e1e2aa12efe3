"""Signatures of the epay protocol, for the driver and for the gateway that shops use."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

# In the signed text, values are not encoded: a part of one can be read as another field. A payment whose amount or
# number could be read in two ways is refused. A query in these fields may contain any name but notify_url.
WITH_QUERY = ("notify_url", "return_url", "param")
TWO_WAYS = re.compile(r"&(money|out_trade_no|notify_url)=")


def signed_text(fields: Mapping[str, Any]) -> str:
    """Return the text to sign: all nonempty fields except the signature, sorted by name, not URL-encoded."""
    given = {name: str(value) for name, value in fields.items() if not isinstance(value, (dict, list, type(None)))}
    return "&".join(
        f"{name}={given[name]}" for name in sorted(given) if name not in ("sign", "sign_type") and given[name].strip()
    )


def md5_signature(fields: Mapping[str, Any], key: str) -> str:
    """Return version 1's signature in lowercase hex."""
    return hashlib.md5((signed_text(fields) + key).encode(), usedforsecurity=False).hexdigest()


def fits_another(fields: Mapping[str, str]) -> bool:
    """Return whether a field of a payment may hold parts of its other fields, so that its signature fits another."""
    pairs = [(name, f"{name}={value}") for name, value in fields.items()]
    return any(
        "&notify_url=" in pair or (name not in WITH_QUERY and TWO_WAYS.search(pair) is not None) for name, pair in pairs
    )
