"""What the service's own words are called on the console's pages."""

from __future__ import annotations

from typing import Any

from flask import g
from flask_babel import lazy_gettext

from models.ledger import AVAILABLE, CLEARING, COMMISSION, FEES, HELD
from models.order import BUY, SELL
from schemas.views import CATEGORY_TEXTS, PAY_METHOD_TEXTS

TYPES = {BUY: lazy_gettext("Deposit"), SELL: lazy_gettext("Withdrawal")}
STATUSES = {
    "pending": lazy_gettext("Pending"),
    "paid": lazy_gettext("Paid"),
    "confirmed": lazy_gettext("Confirmed"),
    "completed": lazy_gettext("Completed"),
    "cancelled": lazy_gettext("Cancelled"),
}
METHODS = {name: lazy_gettext(text) for name, text in PAY_METHOD_TEXTS.items()}
CATEGORIES = {name: lazy_gettext(text) for name, text in CATEGORY_TEXTS.items()}
CALLBACKS = {
    "pending": lazy_gettext("Waiting"),
    "delivered": lazy_gettext("Delivered"),
    "dead": lazy_gettext("Given up"),
}
EVENTS = {
    "order.paid": lazy_gettext("Paid"),
    "order.confirmed": lazy_gettext("Confirmed"),
    "order.completed": lazy_gettext("Completed"),
    "order.cancelled": lazy_gettext("Cancelled"),
}
EXCEPTIONS = {
    "wrong_amount": lazy_gettext("Wrong amount"),
    "late_payment": lazy_gettext("Late payment"),
    "paid_twice": lazy_gettext("Paid twice"),
    "payout_conflict": lazy_gettext("Payout conflict"),
    "reversed": lazy_gettext("Reversed by the channel"),
    "unknown_outcome": lazy_gettext("Channel does not answer"),
}
RESOLUTIONS = {
    "credit": lazy_gettext("Credited"),
    "refund": lazy_gettext("Refunded"),
    "complete": lazy_gettext("Completed"),
    "cancel": lazy_gettext("Cancelled"),
    "corrected": lazy_gettext("Corrected by the channel"),
    "answered": lazy_gettext("The channel answered"),
}
ACCOUNTS = {
    AVAILABLE: lazy_gettext("Available"),
    HELD: lazy_gettext("Held"),
    FEES: lazy_gettext("Fees"),
    COMMISSION: lazy_gettext("Commission"),
    CLEARING: lazy_gettext("Clearing"),
}
PURPOSES = {
    "credit": lazy_gettext("Deposit credited"),
    "hold": lazy_gettext("Withdrawal held"),
    "release": lazy_gettext("Hold returned"),
    "spend": lazy_gettext("Withdrawal paid out"),
    "return": lazy_gettext("Withdrawal given back"),
    "adjustment": lazy_gettext("Adjustment"),
}


def word(words: dict[Any, Any], name: Any) -> str:
    """What it is called; a name that nobody knows stands for itself."""
    known: dict[tuple[int, Any], str] = g.setdefault("words", {})  # a file has as many as it has rows
    if (id(words), name) not in known:
        known[id(words), name] = str(words.get(name, name))
    return known[id(words), name]


def purpose_of(name: str) -> str:
    """What a posting is for; one that settled an exception names it."""
    kind, _, number = name.partition(" ")
    return f"{lazy_gettext('Exception')} {number}" if kind == "exception" and number else word(PURPOSES, name)
