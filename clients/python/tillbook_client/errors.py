"""Errors, of two kinds: `Refused` (nothing happened) and `OutcomeUnknown` (the order or refund may exist)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any


class OrdersError(Exception):
    """A call without success.

    Attributes:
        code: the error code (docs/errors.md); None if there is no response of the service.
        msg: text for people; do not compare it in code.
        data: for `Invalid` the messages by the field's dotted path, for `ChannelRefused` the order_no or refund_no, for
            `NotRefundable` the reason and what is left, otherwise None.
        status: the HTTP status; None without a response.
        retry_after: seconds, if the service sent them.
        idempotency_key: of the `create_buy` or `create_sell` that failed; the `merchant_refund_no` of `create_refund`.
    """

    def __init__(
        self,
        msg: str,
        code: int | None = None,
        data: Any = None,
        status: int | None = None,
        retry_after: float | None = None,
    ):
        super().__init__(msg)
        self.msg, self.code, self.data, self.status, self.retry_after = msg, code, data, status, retry_after
        self.idempotency_key: str | None = None

    def __str__(self) -> str:
        fields = f" {self.data}" if self.data else ""
        return f"{self.code or self.status or 'no response'}: {self.msg}{fields}"


class Refused(OrdersError):
    """The service refused. This call created no order or refund and moved no money."""


class OutcomeUnknown(OrdersError):
    """There was no final response in time. The order or refund may exist.

    Call again with the same arguments and `idempotency_key=error.idempotency_key`: this finds the order or creates it.
    For a refund, the same arguments are enough.
    """


class BadRequest(Refused):
    """The address or the form of the request is wrong."""


class NotAuthorized(Refused):
    """The key, the signature, the clock or the caller's address is wrong."""


class NotFound(Refused):
    """The order, refund, region or channel does not exist or is not yours."""


class Invalid(Refused):
    """Fields are invalid. `data` has their messages by dotted path, such as `gatewaya_card_info.card_no`."""


class KeyReused(Refused):
    """The Idempotency-Key was used with a different order, or the merchant_refund_no with a different refund.

    Look that order up by its merchant_order_no, or that refund by its merchant_refund_no.
    """


class InsufficientBalance(Refused):
    """The balance does not cover the withdrawal or refund.

    Once it does, use a new Idempotency-Key for the withdrawal. A refund keeps its merchant_refund_no.
    """


class NotRefundable(Refused):
    """The order is not refundable, or not by this amount."""

    @property
    def reason(self) -> str:
        """`disabled`, `state`, `window`, `driver`, `exception` or `amount` (docs/refunds.md)."""
        return str(self.data["reason"])

    @property
    def left(self) -> Decimal:
        """What can still be refunded, in yuan."""
        return Decimal(self.data["left"])


class NoPayoutAccount(Refused):
    """You have no payout account. Ask the operator to add one, then use a new Idempotency-Key."""


class ChannelRefused(Refused):
    """The channel refused the order or refund, which is `cancelled`.

    For an order, use another channel, or retry later. Use a new idempotency_key and a new merchant_order_no: a query by
    merchant_order_no returns the oldest order. For a refund, use a new merchant_refund_no.
    """

    @property
    def order_no(self) -> str | None:
        """The number of the cancelled order; None for a refund, and from a service before 0.4.0."""
        return self.data.get("order_no") if isinstance(self.data, dict) else None

    @property
    def refund_no(self) -> str | None:
        """The number of the cancelled refund; None for an order."""
        return self.data.get("refund_no") if isinstance(self.data, dict) else None


class TooManyRequests(Refused):
    """There were too many requests, also after all retries."""


BY_CODE: dict[int, type[OrdersError]] = {
    40101: NotAuthorized,
    40102: NotAuthorized,
    40103: NotAuthorized,
    # Each nonce is new, so a used one means that something in between sent the request twice.
    40104: OutcomeUnknown,
    40300: NotAuthorized,
    40401: NotFound,
    40402: NotFound,
    40403: NotFound,
    40405: NotFound,
    40406: NotFound,
    40901: InsufficientBalance,
    40902: OutcomeUnknown,
    40903: NoPayoutAccount,
    40904: NotRefundable,
    42200: Invalid,
    42201: KeyReused,
    42900: TooManyRequests,
    50201: ChannelRefused,
}

# Codes that the service returns after checking the Idempotency-Key or the merchant_refund_no: no earlier attempt
# created an order or a refund.
CONCLUSIVE = {40401, 40403, 40901, 40903, 40904, 42200, 42201, 50201}


def kind_of(code: int | None, status: int) -> type[OrdersError]:
    """Return the class for a code. For an unknown or missing code, the status decides."""
    if code in BY_CODE:
        return BY_CODE[code]
    if status == 429:
        return TooManyRequests
    return BadRequest if 300 <= status < 500 else OutcomeUnknown
