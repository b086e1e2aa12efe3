"""The names of statuses, kinds, codes and fields in the reader's language."""

from __future__ import annotations

from typing import Any

from flask import g
from flask_babel import gettext, lazy_gettext
from markupsafe import Markup

from blueprints.console.locale import printable
from gateways import registry
from models.tables.ledger import AVAILABLE, CLEARING, COMMISSION, FEES, HELD
from models.tables.order import BUY, CANCELLED, COMPLETED, CONFIRMED, PAID, PENDING, SELL
from schemas.views import CATEGORY_TEXTS, PAY_METHOD_TEXTS
from services.errors import N_
from services.orders.reasons import Reason, reason_of


def _as_they_are(*texts: str) -> dict[str, Any]:
    """Names that are the keys themselves, translated."""
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
    return why.text(gettext(why.code.template), name_inside)


# The audit log's acts, and what an act is about.
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
MEANING = {
    (True, PENDING): lazy_gettext("It awaits payment."),
    (True, PAID): lazy_gettext("Somebody says that it was paid. It is not proven."),
    (True, CONFIRMED): lazy_gettext("The payment is proven. It is credited after the settlement delay."),
    (True, COMPLETED): lazy_gettext("It is credited to the merchant."),
    (True, CANCELLED): lazy_gettext("It was cancelled before it was credited."),
    (False, PENDING): lazy_gettext("It waits to be accepted. Its money is held."),
    (False, PAID): lazy_gettext("The money was sent."),
    (False, CONFIRMED): lazy_gettext("It is accepted, and on its way out. Its money is held."),
    (False, COMPLETED): lazy_gettext("It is paid out, and the hold is spent."),
    (False, CANCELLED): lazy_gettext("It is not paid out, and the hold is returned."),
}
NEXT = {
    "ask": lazy_gettext("asks the channel whether it is paid"),
    "expire": lazy_gettext("lets it expire, unless it is paid"),
    "end claim": lazy_gettext("cancels it, unless the money is confirmed"),
    "credit": lazy_gettext("credits it to the merchant"),
    "ask for late money": lazy_gettext("asks the channel whether money came late"),
    "accept by rule": lazy_gettext("accepts it by rule"),
    "hand over": lazy_gettext("hands it to the channel, or asks what became of it"),
    "ask for late payout": lazy_gettext("asks the channel whether it was paid out all the same"),
}
FIELDS = {
    "customer_name": lazy_gettext("Customer's name"),
    "bank": lazy_gettext("Bank"),
    "sub_bank": lazy_gettext("Branch"),
    "card_number": lazy_gettext("Account number"),
    "real_name": lazy_gettext("Account holder"),
    "gatewaya_personal_data.name": lazy_gettext("Person's name"),
    "gatewaya_personal_data.cert_type": lazy_gettext("Certificate's type"),
    "gatewaya_personal_data.cert_no": lazy_gettext("Certificate's number"),
    "gatewaya_personal_data.cert_validity_type": lazy_gettext("Certificate's validity"),
    "gatewaya_personal_data.cert_begin_date": lazy_gettext("Certificate valid from"),
    "gatewaya_personal_data.cert_end_date": lazy_gettext("Certificate valid until"),
    "gatewaya_personal_data.mobile_no": lazy_gettext("Mobile number"),
    "gatewaya_personal_data.email": lazy_gettext("E-mail"),
    "gatewaya_personal_data.address": lazy_gettext("Address"),
    "gatewaya_card_info.card_type": lazy_gettext("Card's type"),
    "gatewaya_card_info.card_name": lazy_gettext("Card holder"),
    "gatewaya_card_info.card_no": lazy_gettext("Card number"),
    "gatewaya_card_info.prov_id": lazy_gettext("Card's province"),
    "gatewaya_card_info.area_id": lazy_gettext("Card's city or district"),
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
# Names of the values inside a service's sentence (`OperatorError.values`, `Reason.args`).
INSIDE = {
    "status": STATUSES,
    "state": {"open": lazy_gettext("under way"), "paid": lazy_gettext("paid")},
    "kind": EXCEPTIONS,
    "resolution": RESOLUTIONS,
}


def name_of(names: dict[Any, Any], key: Any) -> str:
    """The name in the reader's language, from one of the tables above; a key that is not there stays as it is."""
    known: dict[tuple[int, Any], str] = g.setdefault("names", {})  # an export looks the same keys up in every row
    if (id(names), key) not in known:
        known[id(names), key] = str(names.get(key, key))
    return known[id(names), key]


def name_inside(name: str, value: str) -> str:
    """A value inside a service's sentence, in the reader's language."""
    if name == "who":
        return who(value)
    return name_of(INSIDE[name], value).lower() if name in INSIDE else value


def who(text: str) -> str:
    """The actor of a line of the history or the ledger."""
    if text.startswith(OPERATOR):
        return gettext("operator %(name)s", name=text.removeprefix(OPERATOR))
    return name_of(WHO, text)


def purpose_of(name: str) -> str:
    """The purpose of a posting, with the exception's number if it resolved one."""
    kind, _, number = name.partition(" ")
    return f"{lazy_gettext('Exception')} {number}" if kind == "exception" and number else name_of(PURPOSES, kind)


def detail(exception: Any) -> Markup:
    """The cause of an exception, marked up."""
    return text(reason(reason_of(exception)))


def text(value: Any) -> Markup:
    """A text of a stranger: escaped, and kept from reversing or hiding the text around it."""
    return Markup("<bdi>{}</bdi>").format(printable(value))
