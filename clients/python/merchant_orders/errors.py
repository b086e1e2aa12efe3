"""What can go wrong. There are two kinds: `Refused`, nothing happened, and `OutcomeUnknown`, an order may be there."""

from __future__ import annotations

from typing import Any


class OrdersError(Exception):
    """A call that was not answered with success.

    Attributes:
        code: the service's five digits (docs/errors.md); None where the service itself did not answer.
        msg: its text for people; don't compare it in code.
        data: for `Invalid` the messages by the field's dotted path, for `ChannelRefused` the order_no, else None.
        status: the HTTP status; None where no answer came.
        retry_after: seconds, if the service named them.
        idempotency_key: of the `create_buy` or `create_sell` that failed.
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
        return f"{self.code or self.status or 'no answer'}: {self.msg}{fields}"


class Refused(OrdersError):
    """The service said no. This call made no order and moved no money."""


class OutcomeUnknown(OrdersError):
    """No final answer came in time. After a creation an order may be there or not.

    Call again with the same arguments and `idempotency_key=error.idempotency_key`: that finds the order or makes it.
    """


class BadRequest(Refused):
    """The request itself, its address or its form is wrong."""


class NotAuthorized(Refused):
    """Key, signature, clock, or the address that you call from."""


class NotFound(Refused):
    """No such order, region or channel, or it isn't yours."""


class Invalid(Refused):
    """`data` has the messages of each field by its dotted path, such as `gatewaya_card_info.card_no`."""


class KeyReused(Refused):
    """The Idempotency-Key was used before, for another order."""


class InsufficientBalance(Refused):
    """The balance does not cover the withdrawal. Once it does, use a new Idempotency-Key."""


class NoReceivingAccount(Refused):
    """The operator has no receiving account of yours on file. Once there is one, use a new Idempotency-Key."""


class ChannelRefused(Refused):
    """The channel refused the order, which is `cancelled`. Use another channel, or retry later with a new key."""

    @property
    def order_no(self) -> str | None:
        """The number of the cancelled order; None from a service before 0.4.0."""
        return self.data.get("order_no") if isinstance(self.data, dict) else None


class TooManyRequests(Refused):
    """Still too many after all retries."""


BY_CODE: dict[int, type[OrdersError]] = {
    40101: NotAuthorized,
    40102: NotAuthorized,
    40103: NotAuthorized,
    # Each nonce is made anew, so one that was used means that something on the way sent our request twice.
    40104: OutcomeUnknown,
    40300: NotAuthorized,
    40401: NotFound,
    40402: NotFound,
    40403: NotFound,
    40901: InsufficientBalance,
    40902: OutcomeUnknown,
    40903: NoReceivingAccount,
    42200: Invalid,
    42201: KeyReused,
    42900: TooManyRequests,
    50201: ChannelRefused,
}

# What the service says only after it looked the Idempotency-Key up: no earlier try with that key has made an order.
CONCLUSIVE = {40403, 40901, 40903, 42200, 42201, 50201}


def kind_of(code: int | None, status: int) -> type[OrdersError]:
    """The class for a code; for one that this version doesn't know, and for an answer without any, by the status."""
    if code in BY_CODE:
        return BY_CODE[code]
    if status == 429:
        return TooManyRequests
    return BadRequest if 300 <= status < 500 else OutcomeUnknown
