"""The fields of a new order (`NewOrder`, for withdrawals too) and of a deposit (docs/orders.md)."""

from __future__ import annotations

from marshmallow import validate

from models.db.base import LARGEST_ID
from models.tables.channel import PAY_METHODS
from models.tables.order import BUY
from schemas.fields import Request, Text, Whole, Yuan


class NewOrder(Request):
    """The common fields of buy and sell orders. `cny_amount` loads as integer fen."""

    order_type = Whole(1, 2, required=True)
    cny_amount = Yuan(required=True)
    paychannel_id = Whole(1, LARGEST_ID, required=True)
    paychannel_paymethod = Text(required=True, validate=validate.OneOf(PAY_METHODS))
    merchant_order_no = Text(validate=validate.Length(max=255))


class BuyOrder(NewOrder):
    """A deposit."""

    order_type = Whole(BUY, BUY, required=True)

    customer_name = Text(validate=validate.Length(max=100))
