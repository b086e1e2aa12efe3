"""Refunds for tests of what reads them: the permission of the merchant `demo`, and refunds with a chosen outcome."""

from __future__ import annotations

from itertools import count

from gateways.sandbox.records import books
from models.tables.merchant import AUTOMATIC, KEEP, Merchant
from services.merchants import cache
from tests.support import Answer, Api

_numbers = count(1)


def allow(mode: str = AUTOMATIC, fees: str = KEEP) -> None:
    """Allow the merchant `demo` refunds, automatic ones up to 100,000 yuan."""
    facts = {"refund_mode": mode, "refund_auto_max": 10_000_000, "refund_fees": fees}
    Merchant.update(facts).where(Merchant.key == "demo").execute()
    cache.forget()


def request(api: Api, order_no: str, amount: str = "100.00", outcome: str = "success", **more: str) -> Answer:
    """Request a refund by the API; `outcome` is that of the sandbox's upstream."""
    books().set_next_refund(order_no, outcome)
    fields = {"order_no": order_no, "cny_amount": amount, "merchant_refund_no": f"M-{next(_numbers)}"}
    return api.call("createRefund", fields | more)


def refunded(api: Api, order_no: str, amount: str = "100.00", outcome: str = "success") -> str:
    """Request a refund; return its number."""
    answer = request(api, order_no, amount, outcome)
    assert answer.code == (50201 if outcome == "fail" else 1), answer
    return str(answer.data["refund_no"])
