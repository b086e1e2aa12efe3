"""What the service's own words are called on the console's pages."""

from __future__ import annotations

from typing import Any

from flask import g
from flask_babel import gettext, lazy_gettext

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


# What an exception says, as far as it is always the same.
DETAILS = {
    "paid once more, under another number": lazy_gettext("paid once more, under another number"),
    "paid after it was cancelled": lazy_gettext("paid after it was cancelled"),
    "paid an amount that does not match": lazy_gettext("paid an amount that does not match"),
    "paid after an operator had credited other money": lazy_gettext("paid after an operator had credited other money"),
    "failed although confirmed": lazy_gettext("failed although confirmed"),
    "failed although completed": lazy_gettext("failed although completed"),
    "failed although paid": lazy_gettext("failed although paid"),
    "paid out although pending": lazy_gettext("paid out although pending"),
    "paid out although paid": lazy_gettext("paid out although paid"),
    "paid out although completed": lazy_gettext("paid out although completed"),
    "paid out although cancelled": lazy_gettext("paid out although cancelled"),
    "paid out an amount that does not match": lazy_gettext("paid out an amount that does not match"),
}
# What the audit log has: each act, and what it is about.
ACTIONS = {
    "sign in": lazy_gettext("sign in"),
    "sign out": lazy_gettext("sign out"),
    "sign out everywhere": lazy_gettext("sign out everywhere"),
    "accept order": lazy_gettext("accept order"),
    "reject order": lazy_gettext("reject order"),
    "mark paid": lazy_gettext("mark paid"),
    "ask channel": lazy_gettext("ask channel"),
    "settle exception": lazy_gettext("settle exception"),
    "redeliver callback": lazy_gettext("redeliver callback"),
    "redeliver callbacks": lazy_gettext("redeliver callbacks"),
    "reveal": lazy_gettext("reveal"),
    "export": lazy_gettext("export"),
    "verify ledger": lazy_gettext("verify ledger"),
    "adjust balance": lazy_gettext("adjust balance"),
    "add merchant": lazy_gettext("add merchant"),
    "set merchant": lazy_gettext("set merchant"),
    "rotate API secret": lazy_gettext("rotate API secret"),
    "rotate callback secret": lazy_gettext("rotate callback secret"),
    "reveal callback secret": lazy_gettext("reveal callback secret"),
    "add receiving account": lazy_gettext("add receiving account"),
    "test callback": lazy_gettext("test callback"),
    "add channel": lazy_gettext("add channel"),
    "set channel": lazy_gettext("set channel"),
    "try channel": lazy_gettext("try channel"),
    "add operator": lazy_gettext("add operator"),
    "set operator": lazy_gettext("set operator"),
    "set password": lazy_gettext("set password"),
    "enable operator": lazy_gettext("enable operator"),
    "disable operator": lazy_gettext("disable operator"),
    "make operator": lazy_gettext("make operator"),
    "make viewer": lazy_gettext("make viewer"),
    "end sessions": lazy_gettext("end sessions"),
}
ABOUT = {
    "order": lazy_gettext("order"),
    "callback": lazy_gettext("callback"),
    "merchant": lazy_gettext("merchant"),
    "channel": lazy_gettext("channel"),
    "operator": lazy_gettext("operator"),
    "ledger": lazy_gettext("ledger"),
    "list": lazy_gettext("list"),
}
OPERATOR = "operator "
WHO = {
    "merchant": lazy_gettext("merchant"),
    "payer": lazy_gettext("payer"),
    "channel": lazy_gettext("channel"),
    "service": lazy_gettext("service"),
    "operator": lazy_gettext("operator, by a command"),
    "seed": lazy_gettext("demo content"),
}
# What stands inside a sentence of a service (`NotPossible.values`), by its name there.
INSIDE = {"status": STATUSES, "state": {"open": lazy_gettext("under way"), "paid": lazy_gettext("paid")}}


def word(words: dict[Any, Any], name: Any) -> str:
    """What it is called; a name that nobody knows stands for itself."""
    known: dict[tuple[int, Any], str] = g.setdefault("words", {})  # a file has as many as it has rows
    if (id(words), name) not in known:
        known[id(words), name] = str(words.get(name, name))
    return known[id(words), name]


def inside(name: str, value: str) -> str:
    """A value of a service's sentence as the reader calls it."""
    return word(INSIDE[name], value).lower() if name in INSIDE else value


def who(text: str) -> str:
    """Who did something, as it stands in the history and in the books."""
    if text.startswith(OPERATOR):
        return gettext("operator %(name)s", name=text.removeprefix(OPERATOR))
    return word(WHO, text)


def purpose_of(name: str) -> str:
    """What a posting is for; one that settled an exception names it."""
    kind, _, number = name.partition(" ")
    return f"{lazy_gettext('Exception')} {number}" if kind == "exception" and number else word(PURPOSES, name)
