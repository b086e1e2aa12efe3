"""Where payers return after the payment: a signed address of the shop (docs/returning.md)."""

from __future__ import annotations

import re
import time
from urllib.parse import unquote_plus, urlencode, urlsplit

from models.tables.epay import EpayOrder
from models.tables.order import COMPLETED, PROVEN, Order
from services.callbacks import epay_notices
from services.merchants import cache, epay_accounts, payment_page
from services.security import vault
from services.security.signing import sign_webhook

# A merchant's number with this is not signed, because the signature could have another meaning: the number could end in
# a time and the body of a callback, or in a time, a status and the number of another order.
AMBIGUOUS = re.compile(rf"\{{|\.({'|'.join(PROVEN)})\.")


def has_address(order: Order) -> bool:
    """Return whether the payer can return once the payment is proven."""
    return bool(_url(order, epay_notices.payment_of(order)))


def address(order: Order) -> str:
    """Return where the payer returns now; empty if there is no address, or the payment is not proven."""
    if order.status not in PROVEN:  # first, because open pages ask every two seconds
        return ""
    payment = epay_notices.payment_of(order)
    url = _url(order, payment)
    if not url:
        return ""
    if payment is None or not payment.return_url:
        return _with_query(payment_page.filled(url, order), _signed(order))
    account = cache.by_id(order.merchant_id).account
    body = epay_notices.body_of(account, payment, order)
    return epay_notices.address(account, payment, body, back=True) if order.status == COMPLETED else ""


def _url(order: Order, payment: EpayOrder | None) -> str:
    """Return the address without the order's fields: that of the epay payment, or else the merchant's."""
    known = cache.by_id(order.merchant_id)
    if payment is None or not payment.return_url:
        return "" if AMBIGUOUS.search(order.merchant_order_no) else str(known.page.return_url)
    return payment.return_url if epay_accounts.allows(known.account, payment.return_url) else ""


def _signed(order: Order) -> dict[str, str | int]:
    """Return the fields of a return. Their signature is that of a callback.

    Its id is the order's number, and its body the status and the merchant's number with a dot between them.
    """
    now = int(time.time())  # as for callbacks: shops compare it with their own clock, which a demo does not move
    secrets = vault.valid_secrets(cache.by_id(order.merchant_id).merchant, "callback_secret")
    body = f"{order.status}.{order.merchant_order_no}"
    return {
        "order_no": order.order_no,
        "merchant_order_no": order.merchant_order_no,
        "status": order.status,
        "timestamp": now,
        "signature": sign_webhook(secrets, order.order_no, now, body),
    }


def _with_query(url: str, fields: dict[str, str | int]) -> str:
    """Return an address with these fields in its query, in place of its own fields with the same names."""
    parts = urlsplit(url)
    own = [each for each in parts.query.split("&") if each and unquote_plus(each.partition("=")[0]) not in fields]
    return parts._replace(query="&".join([*own, urlencode(fields)])).geturl()
