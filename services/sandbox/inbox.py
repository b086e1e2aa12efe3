"""The demo merchant's server: takes callbacks in, checks them, and answers as a tester chose."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

import business_clock
from models.tables.merchant import Merchant
from models.tables.order import Order
from runtime import Part
from schemas.strict_json import parse
from services.callbacks import test_callback
from services.errors import N_
from services.security import signing, vault

KEPT = 100
FRESH = 300  # seconds, as Standard Webhooks has it
SLOW = 12  # seconds that an answer takes which is to come too late
LONG_HEAD = 40 * 1024  # bytes: more than the service reads of an answer
TIMESTAMP = re.compile(r"[0-9]{1,12}")
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")

GOOD = ""
MISSING = N_("A header is missing: webhook-id, webhook-timestamp or webhook-signature.")
NO_TIME = N_("webhook-timestamp is not a whole number of seconds.")
STALE = N_("webhook-timestamp is more than 300 seconds off this machine's clock.")
UNKNOWN = N_("There is no such order here, so nobody knows whose secret it should be signed with.")
FORGED = N_("No signature in webhook-signature fits the merchant's callback secret and these very bytes.")


@dataclass(frozen=True)
class Behaviour:
    """What the inbox answers: a name of schemas.sandbox.ANSWERS; `times` more callbacks, or until it is changed.

    `seconds` is how long `slow` takes, and what `429` and `503` ask for in Retry-After.
    """

    answer: str = "200"
    times: int | None = None
    seconds: int | None = None


@dataclass(frozen=True)
class Arrival:
    """One callback as it came: `received` in the demo's time, `why` it does not verify, `attempt` among those kept."""

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
        """Does its signature hold?"""
        return not self.why

    @property
    def at(self) -> str:
        """When it came, RFC 3339."""
        return business_clock.rfc3339(self.received)

    @property
    def pretty(self) -> str:
        """The body, a line a field."""
        return json.dumps(json.loads(self.body), ensure_ascii=False, indent=2)

    def for_scripts(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return asdict(self) | {"verified": self.verified, "body": json.loads(self.body)}


class Inbox:
    """The last callbacks, newest first, in memory, and what the next is answered with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrivals: deque[Arrival] = deque(maxlen=KEPT)
        self.behaviour = Behaviour()  # what the next callback is answered with
        self._count = 0

    def clear(self) -> None:
        """Forget what came; what is answered stays."""
        with self._lock:
            self._arrivals.clear()

    def behave(self, behaviour: Behaviour) -> None:
        """Answer like this from now on."""
        with self._lock:
            self.behaviour = behaviour

    def take(self, headers: dict[str, str], body: bytes) -> Behaviour:
        """Take a callback in; what to answer.

        Args:
            headers: all of them, by their names in lower case.

        Raises:
            ValueError: it is no callback.
        """
        event = parse(body)
        json.loads(body)  # Python's own reading refuses more: numbers too long for it
        try:
            kind, order_no = str(event["type"]), str(event["data"]["order_no"])
        except (KeyError, TypeError):
            raise ValueError("no callback") from None
        why, webhook_id = _wrong(headers, body.decode(), kind, order_no), headers.get("webhook-id", "")
        with self._lock:
            behaviour = self._next()
            self._count += 1
            before = next((each.attempt for each in self._arrivals if each.webhook_id == webhook_id), 0)
            self._arrivals.appendleft(
                Arrival(
                    number=self._count,
                    received=business_clock.now(),
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

    def _next(self) -> Behaviour:
        now = self.behaviour
        if now.times is not None:
            left = now.times - 1
            self.behaviour = Behaviour(now.answer, left, now.seconds) if left else Behaviour()
        return now

    def arrivals(self, order_no: str = "", webhook_id: str = "") -> list[Arrival]:
        """What came, newest first: of one order, or all tries of one callback."""
        with self._lock:
            found = list(self._arrivals)
        return [each for each in found if order_no in ("", each.order_no) and webhook_id in ("", each.webhook_id)]

    def find(self, number: int) -> Arrival | None:
        """One of them."""
        return next((each for each in self.arrivals() if each.number == number), None)


def _wrong(headers: dict[str, str], body: str, kind: str, order_no: str) -> str:
    """Why a receiver must not believe it; GOOD where it may."""
    webhook_id, stamp, signature = (headers.get(name, "") for name in HEADERS)
    if not (webhook_id and stamp and signature):
        return MISSING
    if not TIMESTAMP.fullmatch(stamp):
        return NO_TIME
    if abs(time.time() - int(stamp)) > FRESH:
        return STALE
    merchants = _whose(kind, order_no)
    if not merchants:
        return UNKNOWN
    secrets = [secret for merchant in merchants for secret in vault.valid_secrets(merchant, "callback_secret")]
    return GOOD if signing.is_valid_webhook(signature, secrets, webhook_id, int(stamp), body) else FORGED


def _whose(kind: str, order_no: str) -> list[Merchant]:
    """Whose secret may have signed it: the order's merchant; any, where it is a test of an order that never was."""
    if kind == test_callback.TYPE:
        return list(Merchant.select())
    order = Order.get_or_none(Order.order_no == order_no)
    return [order.merchant] if order else []


inbox = Part(Inbox)
