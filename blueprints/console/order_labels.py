"""What only the order's and the callback's pages say in words: states at length, reasons, who, fields."""

from __future__ import annotations

from typing import Any

from flask_babel import lazy_gettext
from markupsafe import Markup

from blueprints.console import labels
from blueprints.console.locale import printable
from models.tables.order import CANCELLED, COMPLETED, CONFIRMED, PAID, PENDING
from services.orders.reasons import reason_of

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


def detail(exception: Any) -> Markup:
    """What an exception says."""
    return text(labels.reason(reason_of(exception)))


def text(value: Any) -> Markup:
    """A text of a stranger: escaped, whole, and kept from turning round or hiding what stands beside it."""
    return Markup("<bdi>{}</bdi>").format(printable(value))
