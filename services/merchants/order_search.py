"""A merchant's list of orders, with limits for expensive searches.

A search that cannot use the index (`models/queries/search.py`) reads all orders of the merchant. It runs on any
core, one at a time per merchant. Searches by fewer than three characters also have their own rate.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from models.queries import order_page, search
from models.tables.merchant import Merchant
from runtime.state import Part, current
from services.errors import ApiError, Code
from services.platform import cpu_affinity
from services.platform.rate_limits import Rate

_short = Part(lambda: Rate(current().settings.short_searches, seconds=1))
_lock = threading.Lock()
_reading: Part[set[int]] = Part(set)  # ids of merchants with a running search that reads all orders


def page(merchant: Merchant, query: dict[str, Any]) -> order_page.Page:
    """Return one page of a merchant's orders, by the loaded fields of `orderQueryList`.

    Raises:
        ApiError: Code.ORDER_NOT_FOUND, `before` is not an order of the merchant; Code.TOO_MANY_REQUESTS, too many short
            searches, or another one that reads all orders is running.
    """
    before = order_page.seq_of(merchant.id, query["before"]) if "before" in query else None
    if before is None and "before" in query:
        raise ApiError(Code.ORDER_NOT_FOUND)
    text = query.get("merchant_order_no")
    if text is not None and len(text) < search.LEAST:
        _short().count(merchant.key)

    def read_all(read: Callable[[], search.Ids]) -> search.Ids:
        with _lock:
            if merchant.id in _reading():
                raise ApiError(Code.TOO_MANY_REQUESTS, retry_after=1)
            _reading().add(merchant.id)
        try:
            return cpu_affinity.do(read)
        finally:
            with _lock:
                _reading().discard(merchant.id)

    return order_page.page(merchant.id, query, read_all, before)
