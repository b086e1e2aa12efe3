"""Signatures of the epay protocol, for the driver and for the gateway that shops use."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any


def signed_text(fields: Mapping[str, Any]) -> str:
    """Return the text to sign: all nonempty fields except the signature, sorted by name, not URL-encoded."""
    given = {name: str(value) for name, value in fields.items() if not isinstance(value, (dict, list, type(None)))}
    return "&".join(
        f"{name}={given[name]}" for name in sorted(given) if name not in ("sign", "sign_type") and given[name].strip()
    )


def md5_signature(fields: Mapping[str, Any], key: str) -> str:
    """Return version 1's signature in lowercase hex."""
    return hashlib.md5((signed_text(fields) + key).encode(), usedforsecurity=False).hexdigest()
