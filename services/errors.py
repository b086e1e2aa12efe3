"""Errors: `ApiError` with a documented code for API callers, `OperatorError` for the console and commands."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any

from runtime.texts import N_ as N_


class Code(IntEnum):
    """The codes of the API's errors (docs/errors.md). The first three digits are the HTTP status."""

    MALFORMED_REQUEST = 40000
    UNKNOWN_API_KEY = 40101
    BAD_SIGNATURE = 40102
    TIMESTAMP_OUTSIDE_WINDOW = 40103
    INVALID_NONCE = 40104
    ADDRESS_NOT_ALLOWED = 40300
    ORDER_NOT_FOUND = 40401
    REGION_NOT_FOUND = 40402
    CHANNEL_NOT_FOUND = 40403
    PATH_NOT_FOUND = 40404
    REFUND_NOT_FOUND = 40405
    LINE_NOT_FOUND = 40406
    METHOD_NOT_ALLOWED = 40500
    BODY_TIMEOUT = 40800
    INSUFFICIENT_BALANCE = 40901
    REQUEST_IN_PROGRESS = 40902
    NO_PAYOUT_ACCOUNT = 40903
    NOT_REFUNDABLE = 40904
    BODY_TOO_LARGE = 41300
    UNSUPPORTED_MEDIA_TYPE = 41500
    INVALID_FIELDS = 42200
    IDEMPOTENCY_KEY_REUSED = 42201
    TOO_MANY_REQUESTS = 42900
    INTERNAL_ERROR = 50000
    CHANNEL_FAILED = 50201
    SERVICE_UNAVAILABLE = 50300


# Message ids for translation.
ERRORS = {
    Code.MALFORMED_REQUEST: N_("malformed request"),
    Code.UNKNOWN_API_KEY: N_("invalid api_key"),
    Code.BAD_SIGNATURE: N_("bad signature"),
    Code.TIMESTAMP_OUTSIDE_WINDOW: N_("invalid timestamp"),
    Code.INVALID_NONCE: N_("invalid nonce"),
    Code.ADDRESS_NOT_ALLOWED: N_("IP address not allowed"),
    Code.ORDER_NOT_FOUND: N_("order not found"),
    Code.REGION_NOT_FOUND: N_("region not found"),
    Code.CHANNEL_NOT_FOUND: N_("channel not found"),
    Code.PATH_NOT_FOUND: N_("path not found"),
    Code.REFUND_NOT_FOUND: N_("refund not found"),
    Code.LINE_NOT_FOUND: N_("statement line not found"),
    Code.METHOD_NOT_ALLOWED: N_("method not allowed"),
    Code.BODY_TIMEOUT: N_("the request body was not received in time"),
    Code.INSUFFICIENT_BALANCE: N_("insufficient balance"),
    Code.REQUEST_IN_PROGRESS: N_("a request with this Idempotency-Key is still in progress"),
    Code.NO_PAYOUT_ACCOUNT: N_("no payout account on file"),
    Code.NOT_REFUNDABLE: N_("the order is not refundable, or not by this amount"),
    Code.BODY_TOO_LARGE: N_("the request body is too large"),
    Code.UNSUPPORTED_MEDIA_TYPE: N_("the content type must be application/json"),
    Code.INVALID_FIELDS: N_("invalid fields"),
    Code.IDEMPOTENCY_KEY_REUSED: N_(
        "this Idempotency-Key or merchant_refund_no was used with different data; look up the first order or refund"
    ),
    Code.TOO_MANY_REQUESTS: N_("too many requests"),
    Code.INTERNAL_ERROR: N_("internal error"),
    Code.CHANNEL_FAILED: N_("the channel refused the order or refund, which is cancelled"),
    Code.SERVICE_UNAVAILABLE: N_("the service is temporarily unavailable"),
}


class Action(StrEnum):
    """The action of a caller after an error, `x-action` in the OpenAPI document. The key is the Idempotency-Key of
    createOrder, or the merchant_refund_no of createRefund."""

    SAME_KEY = "same-key"
    NEW_KEY = "new-key"
    NO_RETRY = "no-retry"


ACTION_LABELS = {
    Action.SAME_KEY: N_("Retry with the same key"),
    Action.NEW_KEY: N_("Retry with a new key"),
    Action.NO_RETRY: N_("Do not retry"),
}

# Codes that are not listed: Action.NO_RETRY, the same request fails again.
_RETRIES = {
    Code.INVALID_NONCE: Action.SAME_KEY,
    Code.BODY_TIMEOUT: Action.SAME_KEY,
    Code.INSUFFICIENT_BALANCE: Action.NEW_KEY,
    Code.REQUEST_IN_PROGRESS: Action.SAME_KEY,
    Code.NO_PAYOUT_ACCOUNT: Action.NEW_KEY,
    Code.TOO_MANY_REQUESTS: Action.SAME_KEY,
    Code.INTERNAL_ERROR: Action.SAME_KEY,
    Code.CHANNEL_FAILED: Action.NEW_KEY,
    Code.SERVICE_UNAVAILABLE: Action.SAME_KEY,
}
ACTIONS = {code: _RETRIES.get(code, Action.NO_RETRY) for code in ERRORS}

# Default Retry-After, in seconds.
RETRY_AFTER = {Code.INTERNAL_ERROR: 5, Code.SERVICE_UNAVAILABLE: 1}


class ApiError(Exception):
    """An API error with its documented code.

    `data` is null or as documented for the code, such as `{path: [messages]}`. `detail` follows the code's text.
    `retry_after` is in seconds and becomes the header. `replayed` marks the stored error of an earlier request with the
    same Idempotency-Key.
    """

    def __init__(
        self, code: Code, data: Any = None, *, detail: str = "", retry_after: int | None = None, replayed: bool = False
    ):
        super().__init__(f"{code} {ERRORS[code]}" + (f": {detail}" if detail else ""))
        self.code, self.data, self.detail = code, data, detail
        self.retry_after = RETRY_AFTER.get(code) if retry_after is None else retry_after
        self.replayed = replayed


class OperatorError(Exception):
    """An operator's action that is not possible; the text gives the reason.

    `wrong` is `{field: [messages]}` for display next to the fields of a form, or the name of the field that the text
    itself is about; `config.NAME` is a field of a driver's config. `values` fill the `%(name)s` of the text and the
    messages, which are translated without them.
    """

    def __init__(self, text: str, wrong: dict[str, list[str]] | str = "", /, **values: str):
        super().__init__(text % values if values else text)
        self.text, self.values = text, values
        self.wrong = wrong if isinstance(wrong, dict) else {wrong: [text]} if wrong else {}


def refuse(why: str) -> None:
    """Raise OperatorError with this reason, unless it is empty."""
    if why:
        raise OperatorError(why)
