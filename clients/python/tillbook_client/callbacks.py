"""Verify callbacks and read their events; verify returning payers."""

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
from datetime import datetime, timezone
from typing import Any, Protocol

from tillbook_client.answers import Order, Refund, read

PREFIX = "whsec_"
UNIX_SECONDS = re.compile(r"[0-9]{1,12}")


class BadSignature(Exception):
    """The callback or the return is forged, altered or too old. Respond to a callback with 401."""


class Headers(Protocol):
    """The headers of any framework, or a dict."""

    def items(self) -> Iterable[tuple[str, str]]: ...


@dataclass(frozen=True)
class Event:
    """A genuine callback.

    Attributes:
        id: the same at each delivery; process each id once.
        type: such as `order.completed`, `refund.completed`, `test`. Ignore unknown types: later versions may add some.
        timestamp: when the order or the refund reached that status.
        data: the `data` of the body.
    """

    id: str
    type: str
    timestamp: datetime
    data: Mapping[str, Any]

    @property
    def order(self) -> Order:
        """The order at the time of an event `order.*`."""
        return read(Order, self.data)

    @property
    def refund(self) -> Refund:
        """The refund at the time of an event `refund.*`."""
        return read(Refund, self.data)


@dataclass(frozen=True)
class Return:
    """A payer's genuine return to the shop.

    Attributes:
        status: `confirmed` (the money is received) or `completed` (it is credited).
        timestamp: when the service sent the payer back.
    """

    order_no: str
    merchant_order_no: str
    status: str
    timestamp: datetime


def verify(
    headers: Headers,
    body: bytes,
    secrets: str | Sequence[str],
    *,
    tolerance: float = 300.0,
    now: float | None = None,
) -> Event:
    """Return the event of a callback after verifying its signature.

    Args:
        headers: of the request, in any case.
        body: the raw bytes, before any parsing.
        secrets: the callback secret (`whsec_...`), or several during a rotation.
        tolerance: seconds by which `webhook-timestamp` may differ from now.
        now: Unix seconds; by default the clock.

    Raises:
        BadSignature: respond with 401.
        ValueError: a secret is not a callback secret.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    webhook_id, timestamp, signatures = (lower.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    _check(webhook_id, timestamp, signatures, body, secrets, tolerance, now)
    said = json.loads(body)
    moment = datetime.fromisoformat(said["timestamp"].replace("Z", "+00:00"))
    return Event(webhook_id, said["type"], moment, said["data"])


def verify_return(
    fields: Mapping[str, str], secrets: str | Sequence[str], *, tolerance: float = 300.0, now: float | None = None
) -> Return:
    """Return the order with which a payer returned to the shop, after verifying the signature.

    It only tells which page to show. Credit the payer on the callback.

    Args:
        fields: the decoded fields of the address's query.
        secrets, tolerance, now: as for `verify`; `tolerance` is for `timestamp`.

    Raises:
        BadSignature: the fields are forged, altered or too old.
        ValueError: a secret is not a callback secret.
    """
    order_no, timestamp, signatures = (fields.get(name, "") for name in ("order_no", "timestamp", "signature"))
    status, number = fields.get("status", ""), fields.get("merchant_order_no", "")
    _check(order_no, timestamp, signatures, f"{status}.{number}".encode(), secrets, tolerance, now)
    return Return(order_no, number, status, datetime.fromtimestamp(int(timestamp), timezone.utc))


def _check(
    webhook_id: str,
    timestamp: str,
    signatures: str,
    body: bytes,
    secrets: str | Sequence[str],
    tolerance: float,
    now: float | None,
) -> None:
    """Raise BadSignature unless one of the signatures is valid, and the time is near."""
    keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    if not UNIX_SECONDS.fullmatch(timestamp):
        raise BadSignature("no timestamp")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance:
        raise BadSignature(f"the timestamp {timestamp} is more than {tolerance:.0f} s from this machine's clock")
    content = f"{webhook_id}.{timestamp}.".encode() + body
    expected = [b"v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()) for key in keys]
    given = [signature.encode() for signature in signatures.split()]
    if not any(hmac.compare_digest(one, other) for one in expected for other in given):
        raise BadSignature("no signature matches: the secret is wrong, or the body or the fields were changed")


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True) if secret.startswith(PREFIX) else b""
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError("a callback secret is whsec_ and base64; this may be the API secret")
    return key
