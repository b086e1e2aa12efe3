"""The parameters of the query endpoints (docs/orders.md)."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, validate, validates_schema

from models.db.base import LARGEST_ID
from models.tables.channel import CATEGORIES
from models.tables.order import STATUSES
from models.tables.refund import REFUND_STATUSES
from schemas.fields import LARGEST_TIME, MaxBytes, MaxLength, OneOf, Request, Text, Whole, Yuan
from schemas.messages import N_

BY = ("id", "order_no", "merchant_order_no")


class OrderDetailQuery(Request):
    """One of three parameters, by their priority."""

    id = Whole(1, LARGEST_ID)
    order_no = Text(validate=MaxLength(64))
    merchant_order_no = Text(validate=MaxLength(255))

    @validates_schema
    def one_is_there(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Require at least one."""
        if not data:
            raise ValidationError({name: [N_("One of id, order_no, merchant_order_no is required.")] for name in BY})


class OrderListQuery(Request):
    """A page and its filters. `before` is the last order of the previous page."""

    page = Whole(1, 1_000_000_000, load_default=1)
    limit = Whole(1, 100, load_default=20)
    status = Text(validate=OneOf(STATUSES))
    order_type = Whole(1, 2)
    merchant_order_no = Text(validate=MaxLength(255))
    start_time = Whole(0, LARGEST_TIME)
    end_time = Whole(0, LARGEST_TIME)
    before = Text(validate=MaxLength(64))

    @validates_schema
    def one_way_to_page(self, data: dict[str, Any], **kwargs: Any) -> None:
        """`before` names the page, so `page` must not."""
        if "before" in data and data["page"] > 1:
            raise ValidationError(N_("Must be 1 if before is sent."), "page")


class NewRefund(Request):
    """A refund of a deposit. The merchant's number makes it unique, so a repeated request is the same refund."""

    order_no = Text(required=True, validate=MaxLength(64))
    cny_amount = Yuan(required=True)
    merchant_refund_no = Text(required=True, validate=MaxLength(64))
    reason = Text(load_default="", validate=MaxBytes(80))


class RefundDetailQuery(Request):
    """One of two parameters, by their priority."""

    refund_no = Text(validate=MaxLength(64))
    merchant_refund_no = Text(validate=MaxLength(64))

    @validates_schema
    def one_is_there(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Require at least one."""
        if not data:
            names = ("refund_no", "merchant_refund_no")
            raise ValidationError({name: [N_("One of refund_no, merchant_refund_no is required.")] for name in names})


class RefundListQuery(Request):
    """A page of refunds and its filters. `before` is the last refund of the previous page."""

    page = Whole(1, 1_000_000_000, load_default=1)
    limit = Whole(1, 100, load_default=20)
    status = Text(validate=OneOf(REFUND_STATUSES))
    order_no = Text(validate=MaxLength(64))
    start_time = Whole(0, LARGEST_TIME)
    end_time = Whole(0, LARGEST_TIME)
    before = Text(validate=MaxLength(64))

    @validates_schema
    def one_way_to_page(self, data: dict[str, Any], **kwargs: Any) -> None:
        """`before` names the page, so `page` must not."""
        if "before" in data and data["page"] > 1:
            raise ValidationError(N_("Must be 1 if before is sent."), "page")


class ChannelListQuery(Request):
    """The filter of the channel list, a query parameter."""

    category = Text(validate=OneOf(CATEGORIES))


class BalanceQuery(Request):
    """The balance has no parameters."""


class StatementQuery(Request):
    """A month, and a page of its lines, oldest first. `after` is the last line of the previous page."""

    month = Text(
        required=True, validate=validate.Regexp(r"[12][0-9]{3}-(0[1-9]|1[0-2])\Z", error=N_("Must be YYYY-MM."))
    )
    format = Text(load_default="json", validate=OneOf(("json", "csv")))
    limit = Whole(1, 1000, load_default=100)
    after = Text(validate=MaxLength(64))


class CityQuery(Request):
    """The province whose cities are requested (docs/regions.md)."""

    province = Text(required=True)


class DistrictQuery(CityQuery):
    """The city whose districts are requested."""

    city = Text(required=True)
