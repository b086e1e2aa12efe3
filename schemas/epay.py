"""Requests of the epay gateway: forms in which unknown and empty fields are allowed (docs/epay-inbound.md)."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields, pre_load, validate

from net.urls import http_parts
from runtime import money
from schemas.fields import MOST_FEN, MaxBytes, MaxLength, Whole
from schemas.messages import N_

MOST_BYTES = 127  # of a name, which is cut there as on other platforms
MOST_IN_ADDRESS = 1000  # bytes of an address or `param`: encoded, a notice has less than 8 KiB, servers' usual limit
MOST_LISTED = 50
FURTHEST = 10_000  # the largest offset of a list
_UNUSABLE = re.compile(r" |%(?![0-9A-Fa-f]{2})")  # a space, or a % without its two digits


class Yuan(fields.Field[Any]):
    """An amount as epay writes it: 1, 1.5, 1.50 or 1.5000. Loads as integer fen."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        try:
            fen = money.fen(value)
        except ValueError:
            raise ValidationError(N_("Must be an amount in yuan with at most two decimals.")) from None
        if not 0 < fen <= MOST_FEN:
            raise ValidationError(N_("Must be greater than 0.") if not fen else N_("Is too large."))
        return fen


class WebAddress(fields.String):
    """An http(s) address without a user name or spaces.

    Args:
        fragment: whether it can have one. In some panels the page to return to is there: `/#/order/1`.
    """

    malformed = N_("Must be an address such as https://shop.example/notify.")

    def __init__(self, *, fragment: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.fragment = fragment

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        parts = http_parts(text)
        usable = parts is not None and "@" not in parts.netloc and text.isprintable() and not _UNUSABLE.search(text)
        if not usable or ("#" in text and not self.fragment):
            raise ValidationError(self.malformed)
        return text


class EpayRequest(Schema):
    """Base of the gateway's requests. Empty texts count as not sent."""

    class Meta:
        unknown = EXCLUDE

    @pre_load
    def drop_empty(self, data: Any, **kwargs: Any) -> Any:
        """Remove empty fields."""
        return {name: value for name, value in data.items() if value.strip()}


class EpayPayment(EpayRequest):
    """A payment: the fields of submit.php, mapi.php and api/pay/create. `amount` is in fen."""

    out_trade_no = fields.String(
        required=True,
        validate=validate.Regexp(
            r"[A-Za-z0-9._|-]{1,150}\Z", error=N_("Must be 1 to 150 letters, digits, . _ - or |.")
        ),
    )
    type = fields.String(
        load_default="", validate=validate.Regexp(r"[A-Za-z0-9_-]{1,32}\Z", error=N_("Must be a type such as alipay."))
    )
    amount = Yuan(required=True, data_key="money")
    name = fields.String(required=True)
    notify_url = WebAddress(required=True, validate=MaxBytes(MOST_IN_ADDRESS))
    return_url = WebAddress(fragment=True, load_default="", validate=MaxBytes(MOST_IN_ADDRESS))
    param = fields.String(load_default="", validate=MaxBytes(MOST_IN_ADDRESS))


class EpayRefund(EpayRequest):
    """The amount of a refund in fen and the shop's number for it, as in the merchant API; empty without one.

    `money` is required: a signature of version 2 does not cover the address, so a query must not also be a refund.
    """

    amount = Yuan(required=True, data_key="money")
    out_refund_no = fields.String(load_default="", validate=MaxLength(64))


class EpayList(EpayRequest):
    """A page of payments."""

    limit = Whole(1, 1_000_000, load_default=10)
    offset = Whole(0, FURTHEST, load_default=0)


def cut(name: str) -> str:
    """Return a name of at most 127 bytes."""
    return name.encode()[:MOST_BYTES].decode(errors="ignore")
