"""Columns that several lists share, and where their cells lead."""

from __future__ import annotations

from typing import Any

from flask import url_for
from flask_babel import lazy_gettext

from blueprints.console import labels
from blueprints.console.cells import Column


def order_link(order: Any) -> str:
    """The page of an order."""
    return url_for("order.show", order_no=order.order_no)


def merchant_link(merchant: Any) -> str:
    """The page of a merchant."""
    return url_for("merchant.show", key=merchant.key)


def channel_link(channel: Any) -> str:
    """The page of a channel."""
    return url_for("channel.show", channel_id=channel.id)


def status_of(order: Any) -> tuple[str, Any]:
    """The state of an order, as a tag."""
    return order.status, labels.word(labels.STATUSES, order.status)


def merchant_columns(of: Any = lambda row: row) -> list[Column]:
    """Whose a row is: its name, in a file also its key. `of(row)` has the merchant."""
    return [
        Column(
            "merchant",
            lazy_gettext("Merchant"),
            lambda row: of(row).merchant.name,
            link=lambda row: merchant_link(of(row).merchant),
        ),
        Column("merchant_key", lazy_gettext("Merchant's key"), lambda row: of(row).merchant.key, on="export"),
    ]
