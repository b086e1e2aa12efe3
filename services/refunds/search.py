"""A merchant's refunds: one by its number, and pages of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from models.tables.merchant import Merchant
from models.tables.order import Order
from models.tables.refund import Refund
from services.errors import ApiError, Code


class Page(NamedTuple):
    """One page of refunds, newest first, and the number of all that match."""

    refunds: list[Refund]
    total: int


def _of(merchant: Merchant) -> Any:
    return Refund.select(Refund, Order).join(Order).where(Refund.merchant == merchant.id)


def find(merchant: Merchant, query: dict[str, Any]) -> Refund:
    """Return the merchant's refund by `refund_no`, or else by `merchant_refund_no`.

    Raises:
        ApiError: Code.REFUND_NOT_FOUND.
    """
    name = "refund_no" if "refund_no" in query else "merchant_refund_no"
    found: Refund | None = _of(merchant).where(getattr(Refund, name) == query[name]).first()
    if found is None:
        raise ApiError(Code.REFUND_NOT_FOUND)
    return found


def page(merchant: Merchant, query: dict[str, Any]) -> Page:
    """Return one page of a merchant's refunds, by the loaded fields of `refundQueryList`.

    Raises:
        ApiError: Code.REFUND_NOT_FOUND, `before` is not a refund of the merchant.
    """
    found = _of(merchant)
    if "status" in query:
        found = found.where(Refund.status == query["status"])
    if "order_no" in query:
        found = found.where(Order.order_no == query["order_no"])
    if "start_time" in query:
        found = found.where(Refund.createtime >= query["start_time"])
    if "end_time" in query:
        found = found.where(Refund.createtime <= query["end_time"])
    total, rows = found.count(), found.order_by(Refund.id.desc()).limit(query["limit"])
    if "before" in query:
        rows = rows.where(Refund.id < find(merchant, {"refund_no": query["before"]}).id)
    else:
        rows = rows.offset((query["page"] - 1) * query["limit"])
    return Page(list(rows), total)
