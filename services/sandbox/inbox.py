"""The demo merchant's server: verifies callbacks and returning payers, and responds as a tester chose."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from models.tables.merchant import Merchant
from models.tables.order import Order
from runtime import clock
from runtime.state import Part
from schemas.strict_json import parse
from services.callbacks import test_callback
from services.errors import N_
from services.security import signing, vault

KEPT = 100
FRESH = 300  # seconds, as Standard Webhooks has it
SLOW = 12  # seconds that a late response takes
LONG_HEAD = 40 * 1024  # bytes: more than the service reads of a response
TIMESTAMP = re.compile(r"[0-9]{1,12}")
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")

GOOD = ""
UNKNOWN = N_("Order not found, so its merchant and secret are unknown.")


@dataclass(frozen=True)
class Behaviour:
    """The inbox's response: a name of schemas.sandbox.ANSWERS; for `times` more callbacks, or until it is changed.

    `seconds` is the duration of `slow`, and the Retry-After of `429` and `503`.
    """

    answer: str = "200"
    times: int | None = None
    seconds: int | None = None


@dataclass(frozen=True)
class Arrival:
    """One received callback: `received` in the demo's time, `why` verification failed, `attempt` among those kept."""

    number: int
    received: int
    webhook_id: str
    type: str
    order_no: str
    why: str
    attempt: int
    answered: str
    headers: dict[str, str]
    body: str

    @property
    def verified(self) -> bool:
        """True if its signature is valid."""
        return not self.why

    @property
    def at(self) -> str:
        """The time of receipt, RFC 3339."""
        return clock.rfc3339(self.received)

    @property
    def pretty(self) -> str:
        """The body with one line for each field."""
        return json.dumps(json.loads(self.body), ensure_ascii=False, indent=2)

    def for_scripts(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        return asdict(self) | {"verified": self.verified, "body": json.loads(self.body)}


class Inbox:
    """The last callbacks, newest first, in memory, and the response to the next one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrivals: deque[Arrival] = deque(maxlen=KEPT)
        self.behaviour = Behaviour()  # the response to the next callback
        self._count = 0

    def clear(self) -> None:
        """Delete the received callbacks; the chosen response stays."""
        with self._lock:
            self._arrivals.clear()

    def behave(self, behaviour: Behaviour) -> None:
        """Set the response to the next callbacks."""
        with self._lock:
            self.behaviour = behaviour

    def receive(self, headers: dict[str, str], body: bytes) -> Behaviour:
        """Store a callback; return the response to it.

        Args:
            headers: all of them, by lower-case name.

        Raises:
            ValueError: the body is not a callback.
        """
        event = parse(body)
        json.loads(body)  # Python's own parser rejects more, such as very long numbers
        try:
            kind, order_no = str(event["type"]), str(event["data"]["order_no"])
        except (KeyError, TypeError):
            raise ValueError("no callback") from None
        why, webhook_id = _fault_of(headers, body.decode(), kind, order_no), headers.get("webhook-id", "")
        with self._lock:
            behaviour = self.behaviour
            if behaviour.times is not None:
                left = behaviour.times - 1
                self.behaviour = replace(behaviour, times=left) if left else Behaviour()
            self._count += 1
            before = next((each.attempt for each in self._arrivals if each.webhook_id == webhook_id), 0)
            self._arrivals.appendleft(
                Arrival(
                    number=self._count,
                    received=clock.now(),
                    webhook_id=webhook_id,
                    type=kind,
                    order_no=order_no,
                    why=why,
                    attempt=before + 1,
                    answered=behaviour.answer,
                    headers=headers,
                    body=body.decode(),
                )
            )
        return behaviour

    def arrivals(self, order_no: str = "", webhook_id: str = "") -> list[Arrival]:
        """Return the received callbacks, newest first, of one order or of one callback's attempts."""
        with self._lock:
            found = list(self._arrivals)
        return [each for each in found if order_no in ("", each.order_no) and webhook_id in ("", each.webhook_id)]

    def find(self, number: int) -> Arrival | None:
        """Return the callback with this number, or None."""
        return next((each for each in self.arrivals() if each.number == number), None)


def _fault_of(headers: dict[str, str], body: str, kind: str, order_no: str) -> str:
    """Return the reason not to trust a callback; GOOD if it is genuine."""
    webhook_id, stamp, signature = (headers.get(name, "") for name in HEADERS)
    if not (webhook_id and stamp and signature):
        return N_("A header is missing: webhook-id, webhook-timestamp or webhook-signature.")
    if not TIMESTAMP.fullmatch(stamp):
        return N_("webhook-timestamp must be a whole number of seconds.")
    if abs(time.time() - int(stamp)) > FRESH:
        return N_("webhook-timestamp differs from this machine's clock by more than 300 seconds.")
    if kind == test_callback.TYPE:  # of any merchant
        merchants = list(Merchant.select())
    else:
        merchants = [order.merchant for order in Order.select().where(Order.order_no == order_no)]
    if not merchants:
        return UNKNOWN
    secrets = [secret for merchant in merchants for secret in vault.valid_secrets(merchant, "callback_secret")]
    if not signing.is_valid_webhook(signature, secrets, webhook_id, int(stamp), body):
        return N_("No signature in webhook-signature matches the merchant's callback secret and the exact body.")
    return GOOD


inbox = Part(Inbox)


# The page to which payers return

RETURN_FIELDS = ("order_no", "merchant_order_no", "status", "timestamp", "signature")
FIELD_MISSING = N_("A field is missing: order_no, merchant_order_no, status, timestamp or signature.")


def signed_content(fields: Mapping[str, str]) -> str:
    """Return the text that the signature of a return covers."""
    return f"{fields['order_no']}.{fields['timestamp']}.{_returned_body(fields)}"


def _returned_body(fields: Mapping[str, str]) -> str:
    """Return the body of the signature as Standard Webhooks has it."""
    return f"{fields['status']}.{fields['merchant_order_no']}"


def fault_of_return(fields: Mapping[str, str]) -> str:
    """Return the reason not to trust a return; GOOD if it is genuine."""
    if not all(name in fields for name in RETURN_FIELDS):
        return FIELD_MISSING
    if not TIMESTAMP.fullmatch(fields["timestamp"]):
        return N_("timestamp must be a whole number of seconds.")
    stamp = int(fields["timestamp"])
    if abs(time.time() - stamp) > FRESH:
        return N_("timestamp differs from this machine's clock by more than 300 seconds.")
    order = Order.find(fields["order_no"])
    if order is None:
        return UNKNOWN
    secrets = vault.valid_secrets(order.merchant, "callback_secret")
    if not signing.is_valid_webhook(fields["signature"], secrets, order.order_no, stamp, _returned_body(fields)):
        return N_("No signature matches the merchant's callback secret and these fields.")
    return GOOD
