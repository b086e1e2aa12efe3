"""Reasons to refuse an epay request, with the codes of the protocol."""

from __future__ import annotations

from enum import Enum

from services.errors import N_

GENERAL, AUTHENTICATION, INCOMPLETE, NO_SUCH_METHOD = -1, -3, -4, -5


class Refusal(Enum):
    """The code and the text for the shop's developer, in English for translation."""

    NO_FIELDS = INCOMPLETE, N_("No parameters received")
    NOT_JSON = INCOMPLETE, N_("The parameters are JSON. Send them as a form or in the query")
    NOT_A_FORM = INCOMPLETE, N_("The parameters are not valid UTF-8, or one is repeated")
    HALF_CHARACTER = (
        INCOMPLETE,
        N_("%(name)s has half a character, such as an emoji cut in two. Cut texts by characters, not by bytes"),
    )
    NO_NUMBER = INCOMPLETE, N_("trade_no or out_trade_no is required")
    UNKNOWN_ACT = NO_SUCH_METHOD, N_("Unknown act")
    UNKNOWN_PID = AUTHENTICATION, N_("Merchant number (pid) not found or not enabled")
    WRONG_KEY = AUTHENTICATION, N_("Wrong merchant key")
    NOT_SIGNED = AUTHENTICATION, N_("sign is missing")
    BAD_SIGNATURE = (
        AUTHENTICATION,
        N_("Signature verification failed. Check the key and that all parameters are signed"),
    )
    AMBIGUOUS = (
        AUTHENTICATION,
        N_("A part of %(name)s could be read as another field, such as &type=. Rename that part or URL-encode it"),
    )
    WRONG_SIGN_TYPE = AUTHENTICATION, N_("sign_type must be %(wanted)s at this address")
    NO_RSA_KEYS = AUTHENTICATION, N_("The merchant has no RSA keys")
    STALE = AUTHENTICATION, N_("timestamp is missing or differs by more than 5 minutes. Check the shop's clock")
    ADDRESS_NOT_ALLOWED = AUTHENTICATION, N_("IP address not allowed")
    INVALID_FIELD = GENERAL, N_("%(name)s: %(why)s")
    HOST_NOT_ALLOWED = GENERAL, N_("The host in %(name)s is not in the list of allowed hosts")
    NO_CHANNEL = GENERAL, N_("No payment method is available for this type")
    AMOUNT_LIMITS = GENERAL, N_("The amount is outside the limits of the payment method")
    CHANGED = GENERAL, N_("out_trade_no was used with other parameters. Use a new one")
    PAID_ALREADY = GENERAL, N_("This order is paid already")
    ENDED = GENERAL, N_("This order has ended. Use a new out_trade_no")
    OTHER_TYPE = GENERAL, N_("This order was started with another type")
    CHANNEL_REFUSED = GENERAL, N_("The payment channel rejected the payment. Try again or use another type")
    NO_ORDER = GENERAL, N_("Order not found")
    NOT_CLOSED = GENERAL, N_("The order could not be closed. It may still be paid")
    NO_REFUNDS = GENERAL, N_("Refunds are not enabled for this merchant")
    NOT_BY_POST = GENERAL, N_("Send refunds by POST")
    NO_REFUND_NUMBER = INCOMPLETE, N_("refund_no or out_refund_no is required")
    UNNUMBERED = INCOMPLETE, N_("A signed refund of version 1 needs out_refund_no, because its signature has no time")
    NO_REFUND = GENERAL, N_("Refund not found")
    NOT_PAID = GENERAL, N_("This order is not paid and cannot be refunded")
    NO_REFUNDS_OF_CHANNEL = GENERAL, N_("The payment channel of this order does not support refunds")
    REFUND_TOO_LATE = GENERAL, N_("The payment is too old to be refunded")
    UNDER_REVIEW = GENERAL, N_("This payment is under review. Refund it later")
    REFUND_AMOUNT = GENERAL, N_("money is more than what can be refunded: %(left)s")
    BALANCE_TOO_LOW = GENERAL, N_("The merchant's balance is too low for this refund")
    REFUND_CHANGED = GENERAL, N_("out_refund_no was used for another refund. Use a new one")
    REFUND_REJECTED = (
        GENERAL,
        N_("This refund was rejected, and no money moved. To try again, use a new out_refund_no if you send one"),
    )
    NO_TRANSFERS = GENERAL, N_("Transfers are not supported")
    NO_SETTLEMENTS = GENERAL, N_("Settlement records are not supported")
    TOO_MANY_REQUESTS = GENERAL, N_("Too many requests")
    BUSY = GENERAL, N_("The service is temporarily unavailable. Try again")

    @property
    def code(self) -> int:
        """The protocol's code, below zero."""
        return self.value[0]

    @property
    def text(self) -> str:
        """The text in English, with `%(name)s` for values."""
        return self.value[1]


class Refused(Exception):
    """An epay request that is refused.

    `values` fill the text. `page` is the number of the order that the payer can go on with, or look at; empty without
    one. `detail` follows the text.
    """

    def __init__(self, reason: Refusal, *, page: str = "", detail: str = "", **values: str):
        super().__init__(reason.name)
        self.reason, self.page, self.detail, self.values = reason, page, detail, values
