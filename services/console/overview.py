"""What an operator looks through: orders and callbacks of one merchant or of all, newest first."""

from __future__ import annotations

from typing import Any

from models.queries import order_page
from models.tables.account import PayoutAccount
from models.tables.merchant import Merchant
from models.tables.order import Order, PaymentException
from models.tables.outbox import CALLBACK_STATES, Callback


def _newest(rows: list[Any], limit: int) -> list[Any]:
    return sorted(rows, key=lambda row: (row.createtime, row.id), reverse=True)[:limit]


def open_exceptions() -> dict[int, list[str]]:
    """The kinds of open exceptions by order id."""
    kinds: dict[int, list[str]] = {}
    rows = PaymentException.select().where(PaymentException.resolution.is_null())
    for row in rows.order_by(PaymentException.createtime):
        kinds.setdefault(row.order_id, []).append(row.kind)
    return kinds


def orders(merchants: list[Merchant], filters: dict[str, Any], limit: int) -> list[Any]:
    """The newest orders of these merchants; `filters` are `status` and `order_type`."""
    query = {"page": 1, "limit": limit, **filters}
    return _newest([row for merchant in merchants for row in order_page.page(merchant.id, query).orders], limit)


def orders_with(
    kinds: dict[int, list[str]], merchants: list[Merchant], filters: dict[str, Any], limit: int
) -> list[Any]:
    """Those of `open_exceptions` that are of these merchants and fulfil the filters."""
    conditions = [getattr(Order, name) == value for name, value in filters.items()]
    return _newest(
        list(Order.select().where(Order.id.in_(list(kinds)), Order.merchant.in_(merchants), *conditions)), limit
    )


def callbacks(merchants: list[Merchant], state: str | None, limit: int) -> list[Callback]:
    """The newest callbacks to these merchants, in one state or in any."""
    states = [state] if state else CALLBACK_STATES
    return _newest(
        [
            row
            for merchant in merchants
            for each in states
            for row in Callback.select(Callback, Order)
            .join(Order)
            .where(Callback.merchant == merchant, Callback.state == each)
            .order_by(Callback.createtime.desc(), Callback.id.desc())
            .limit(limit)
        ],
        limit,
    )


def accounts(merchants: list[Merchant]) -> list[PayoutAccount]:
    """The receiving accounts on file of these merchants."""
    on_file = PayoutAccount.select().where(PayoutAccount.on_file)
    return [
        row for each in merchants for row in on_file.where(PayoutAccount.merchant == each).order_by(PayoutAccount.id)
    ]
