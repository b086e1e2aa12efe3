"""Callbacks: is this one the service's, and what does it say?"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from merchant_orders.answers import Order, read

PREFIX = "whsec_"
UNIX_SECONDS = re.compile(r"[0-9]{1,12}")


class BadSignature(Exception):
    """This callback is not the service's, was changed on its way, or is too old. Answer it with 401."""


class Headers(Protocol):
    """Those of any framework, or a dict."""

    def items(self) -> Iterable[tuple[str, str]]: ...


@dataclass(frozen=True)
class Event:
    """A callback that the service made.

    Attributes:
        id: the same each time that it is sent: do your work once for each.
        type: `order.completed`, `order.cancelled`, `order.paid`, `order.confirmed`, `test`. Ignore others: there may
            be more of them one day.
        timestamp: when the order reached that status.
        data: the body's `data` as it came.
    """

    id: str
    type: str
    timestamp: datetime
    data: Mapping[str, Any]

    @property
    def order(self) -> Order:
        """The order as it was then."""
        return read(Order, self.data)


def verify(
    headers: Headers,
    body: bytes,
    secrets: str | Sequence[str],
    *,
    tolerance: float = 300.0,
    now: float | None = None,
) -> Event:
    """The event of a request, whose signature holds.

    Args:
        headers: of the request; upper or lower case is all the same.
        body: its raw bytes, before any parsing.
        secrets: the callback secret (`whsec_...`), or several while it is changed.
        tolerance: seconds that `webhook-timestamp` may be away from now.
        now: Unix seconds; the clock unless given.

    Raises:
        BadSignature: answer with 401.
        ValueError: a secret is none.
    """
    keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    lower = {name.lower(): value for name, value in headers.items()}
    webhook_id, timestamp, signatures = (lower.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not UNIX_SECONDS.fullmatch(timestamp):
        raise BadSignature("no webhook-timestamp")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance:
        raise BadSignature(f"webhook-timestamp {timestamp} is more than {tolerance:.0f} s from this machine's clock")
    content = f"{webhook_id}.{timestamp}.".encode() + body
    expected = [b"v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()) for key in keys]
    given = [signature.encode() for signature in signatures.split()]
    if not any(hmac.compare_digest(one, other) for one in expected for other in given):
        raise BadSignature("no signature fits: another secret, or not the raw body")
    said = json.loads(body)
    moment = datetime.fromisoformat(said["timestamp"].replace("Z", "+00:00"))
    return Event(webhook_id, said["type"], moment, said["data"])


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True) if secret.startswith(PREFIX) else b""
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError("a callback secret is whsec_ and base64; it is not the API secret")
    return key
