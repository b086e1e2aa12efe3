"""What the service's own words are called on the console's pages."""

from __future__ import annotations

from typing import Any

from flask import g
from flask_babel import gettext, lazy_gettext

from gateways import registry
from models.tables.ledger import AVAILABLE, CLEARING, COMMISSION, FEES, HELD
from models.tables.order import BUY, SELL
from schemas.views import CATEGORY_TEXTS, PAY_METHOD_TEXTS
from services.errors import N_
from services.orders.reasons import Reason


def _as_they_are(*texts: str) -> dict[str, Any]:
    """Texts that are called what they are."""
    return {text: lazy_gettext(text) for text in texts}


TYPES = {BUY: lazy_gettext("Deposit"), SELL: lazy_gettext("Withdrawal")}
STATUSES = {
    "pending": lazy_gettext("Pending"),
    "paid": lazy_gettext("Paid"),
    "confirmed": lazy_gettext("Confirmed"),
    "completed": lazy_gettext("Completed"),
    "cancelled": lazy_gettext("Cancelled"),
}
# What a check of a channel is about.
CHECKS = {
    "keys": lazy_gettext("Keys"),
    "collect": lazy_gettext("Taking payments"),
    "pay_out": lazy_gettext("Paying out"),
    "clock": lazy_gettext("Clock"),
    "version": lazy_gettext("Version"),
    **{name: lazy_gettext(text) for name, text in PAY_METHOD_TEXTS.items()},
}
METHODS = {name: lazy_gettext(text) for name, text in PAY_METHOD_TEXTS.items()}
DRIVERS = {name: lazy_gettext(driver.title) if driver.title else name for name, driver in registry.DRIVERS.items()}
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
    "order.credited": lazy_gettext("Credited"),
    "order.refunded": lazy_gettext("Refunded"),
}
EXCEPTIONS = {
    "wrong_amount": lazy_gettext("Wrong amount"),
    "late_payment": lazy_gettext("Late payment"),
    "paid_twice": lazy_gettext("Paid twice"),
    "amount_corrected": lazy_gettext("Amount corrected"),
    "shared_reference": lazy_gettext("Reference of another order"),
    "payout_conflict": lazy_gettext("Payout conflict"),
    "payout_in_progress": lazy_gettext("Payout in progress"),
    "payout_missing": lazy_gettext("Payout missing at the channel"),
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
    "returned": lazy_gettext("Returned by the channel"),
    "paid_out": lazy_gettext("Paid out by the channel"),
    "failed": lazy_gettext("Failed at the channel"),
    "sandbox_removed": lazy_gettext("Sandbox removed"),
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
    "hold_again": lazy_gettext("Withdrawal held again"),
    "release_again": lazy_gettext("Hold returned again"),
    "spend_again": lazy_gettext("Withdrawal paid out after all"),
    "adjustment": lazy_gettext("Adjustment"),
    "sandbox_removal": lazy_gettext("Sandbox money removed"),
}


def reason(why: Reason) -> str:
    """The cause of an exception, or why something happened."""
    return why.text(gettext(why.code.template), inside)


# What the audit log has: each act, and what it is about.
ACTIONS = _as_they_are(
    N_("sign in"),
    N_("sign out"),
    N_("sign out everywhere"),
    N_("end session"),
    N_("end other sessions"),
    N_("confirm identity"),
    N_("set up second factor"),
    N_("remove second factor"),
    N_("renew recovery codes"),
    N_("use recovery code"),
    N_("enter incorrect code"),
    N_("accept order"),
    N_("reject order"),
    N_("mark paid"),
    N_("request payout"),
    N_("approve payout"),
    N_("withdraw payout request"),
    N_("remove sandbox"),
    N_("report not received"),
    N_("ask channel"),
    N_("settle exception"),
    N_("redeliver callback"),
    N_("redeliver callbacks"),
    N_("reveal"),
    N_("export"),
    N_("verify ledger"),
    N_("adjust balance"),
    N_("add merchant"),
    N_("set merchant"),
    N_("rotate API secret"),
    N_("rotate callback secret"),
    N_("reveal callback secret"),
    N_("add receiving account"),
    N_("test callback"),
    N_("add channel"),
    N_("set channel"),
    N_("try channel"),
    N_("add operator"),
    N_("restore"),
    N_("resume"),
    N_("set operator"),
    N_("set password"),
    N_("enable operator"),
    N_("disable operator"),
    N_("make operator"),
    N_("make viewer"),
    N_("end sessions"),
    N_("erase"),
    N_("export personal data"),
)
ABOUT = _as_they_are(
    N_("order"),
    N_("callback"),
    N_("merchant"),
    N_("channel"),
    N_("operator"),
    N_("ledger"),
    N_("list"),
    N_("database"),
    N_("orders"),
    N_("account"),
)
OPERATOR = "operator "
WHO = {
    "merchant": lazy_gettext("merchant"),
    "payer": lazy_gettext("payer"),
    "channel": lazy_gettext("channel"),
    "service": lazy_gettext("service"),
    "operator": lazy_gettext("operator, by a command"),
    "seed": lazy_gettext("demo content"),
}
# What stands inside a sentence of a service (`OperatorError.values`, `Reason.args`), by its name there.
INSIDE = {
    "status": STATUSES,
    "state": {"open": lazy_gettext("under way"), "paid": lazy_gettext("paid")},
    "kind": EXCEPTIONS,
    "resolution": RESOLUTIONS,
}


def word(words: dict[Any, Any], name: Any) -> str:
    """What it is called; a name that nobody knows stands for itself."""
    known: dict[tuple[int, Any], str] = g.setdefault("words", {})  # a file has as many as it has rows
    if (id(words), name) not in known:
        known[id(words), name] = str(words.get(name, name))
    return known[id(words), name]


def inside(name: str, value: str) -> str:
    """A value of a service's sentence as the reader calls it."""
    if name == "who":
        return who(value)
    return word(INSIDE[name], value).lower() if name in INSIDE else value


def who(text: str) -> str:
    """Who did something, as it stands in the history and in the books."""
    if text.startswith(OPERATOR):
        return gettext("operator %(name)s", name=text.removeprefix(OPERATOR))
    return word(WHO, text)


def purpose_of(name: str) -> str:
    """What a posting is for; one that settled an exception names it."""
    kind, _, number = name.partition(" ")
    return f"{lazy_gettext('Exception')} {number}" if kind == "exception" and number else word(PURPOSES, kind)
