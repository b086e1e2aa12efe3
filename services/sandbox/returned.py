"""The demo merchant's page to which payers return: verifies the fields as a shop has to."""

from __future__ import annotations

import time
from collections.abc import Mapping

from models.tables.order import Order
from services.errors import N_
from services.sandbox.inbox import FRESH, GOOD, TIMESTAMP, UNKNOWN
from services.security import signing, vault

FIELDS = ("order_no", "merchant_order_no", "status", "timestamp", "signature")
MISSING = N_("A field is missing: order_no, merchant_order_no, status, timestamp or signature.")
NO_TIME = N_("timestamp must be a whole number of seconds.")
STALE = N_("timestamp differs from this machine's clock by more than 300 seconds.")
FORGED = N_("No signature matches the merchant's callback secret and these fields.")


def signed_content(fields: Mapping[str, str]) -> str:
    """Return the text that the signature covers."""
    return f"{fields['order_no']}.{fields['timestamp']}.{body_of(fields)}"


def body_of(fields: Mapping[str, str]) -> str:
    """Return the body of the signature as Standard Webhooks has it."""
    return f"{fields['status']}.{fields['merchant_order_no']}"


def fault_of(fields: Mapping[str, str]) -> str:
    """Return the reason not to trust a return; GOOD if it is genuine."""
    if not all(name in fields for name in FIELDS):
        return MISSING
    if not TIMESTAMP.fullmatch(fields["timestamp"]):
        return NO_TIME
    stamp = int(fields["timestamp"])
    if abs(time.time() - stamp) > FRESH:
        return STALE
    order = Order.get_or_none(Order.order_no == fields["order_no"])
    if order is None:
        return UNKNOWN
    secrets = vault.valid_secrets(order.merchant, "callback_secret")
    is_valid = signing.is_valid_webhook(fields["signature"], secrets, order.order_no, stamp, body_of(fields))
    return GOOD if is_valid else FORGED
