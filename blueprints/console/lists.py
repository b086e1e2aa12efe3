"""The console's lists: what each shows, and what it can be narrowed by."""

from __future__ import annotations

from typing import Any

from flask_babel import lazy_gettext

from blueprints.console.frame import Filter, List
from models.order import STATUSES, Order


class Orders(List):
    """All orders."""

    joined = (Order.merchant, Order.channel)
    column_list = ("order_no", "createtime", "order_type", "amount", "status", "merchant", "channel")
    filters = (
        Filter(
            "status",
            lazy_gettext("Status"),
            lambda query, value: query.where(Order.status == value),
            choices=lambda: [(each, each) for each in STATUSES],
        ),
    )


def views() -> list[Any]:
    """All of them, in the order of the menu."""
    return [Orders(Order, lazy_gettext("Orders"), "orders", category=lazy_gettext("Daily work"))]
