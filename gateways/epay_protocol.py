"""Signatures of the epay protocol, for the driver and for the gateway that shops use."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

# The fields of payments and notices. In the signed text, values are not encoded: after `&`, one of these names in a
# value could be read as that field.
NAMES = frozenset(
    (
        "clientip",
        "device",
        "method",
        "money",
        "name",
        "notify_url",
        "out_trade_no",
        "param",
        "pid",
        "return_url",
        "sitename",
        "timestamp",
        "trade_no",
        "trade_status",
        "type",
    )
)
# A value of these fields could also end before `&` and any name that sorts between the field and the one after it. A
# shorter return_url does no harm: it leads a payer to an allowed host with the same fields.
NEXT = {"name": "out_trade_no", "notify_url": "out_trade_no", "param": "pid"}
_INSIDE = re.compile(r"&([^&=]*)=")


def signed_text(fields: Mapping[str, Any]) -> str:
    """Return the text to sign: all nonempty fields except the signature, sorted by name, not URL-encoded."""
    given = {name: str(value) for name, value in fields.items() if not isinstance(value, (dict, list, type(None)))}
    return "&".join(
        f"{name}={given[name]}" for name in sorted(given) if name not in ("sign", "sign_type") and given[name].strip()
    )


def md5_signature(fields: Mapping[str, Any], key: str) -> str:
    """Return version 1's signature in lowercase hex."""
    return hashlib.md5((signed_text(fields) + key).encode(), usedforsecurity=False).hexdigest()


def ambiguous(fields: Mapping[str, str]) -> list[str]:
    """Return the names of fields whose value has a part that could be read as another field of the same signed text.

    If there are none, the text cannot be cut into another payment or notice that is accepted.
    """
    found = []
    for name, value in fields.items():
        inside = _INSIDE.findall(value)
        hidden = [each for each in inside if each in NAMES or each in fields or name < each < NEXT.get(name, "")]
        if "&" in name or "=" in name or hidden:
            found.append(name)
    return found
