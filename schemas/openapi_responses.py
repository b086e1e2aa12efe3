"""The whole `data` of each response for the OpenAPI document: the views and the fields that are added to them."""

from __future__ import annotations

from marshmallow import fields, validate

from models.tables.order import BUY, SELL, STATUSES
from schemas.views import (
    BuyOrderView,
    ChannelView,
    OrderView,
    RefundView,
    SellOrderView,
    StatementDayView,
    StatementLineView,
    StatementView,
    View,
)


class CreatedBuyOrder(BuyOrderView):
    """A new deposit."""

    order_type = fields.Integer(validate=validate.OneOf([BUY]))
    payment_method = fields.String(allow_none=True)
    pay_url = fields.String()


class Account(View):
    """A payout account as it was when the order was created."""

    bank = fields.String()
    sub_bank = fields.String()
    card_number = fields.String()
    real_name = fields.String()


class AccountWithText(Account):
    """A payout account with a text to show."""

    full_info = fields.String()


class CreatedSellOrder(SellOrderView):
    """A new withdrawal."""

    order_type = fields.Integer(validate=validate.OneOf([SELL]))
    payment_method_snapshot = fields.Nested(Account)
    customer_payment_method = fields.Nested(AccountWithText)


class OrderPage(View):
    """One page of orders."""

    list = fields.List(fields.Nested(OrderView))
    total = fields.Integer()
    page = fields.Integer()
    limit = fields.Integer()


class RefundPage(View):
    """One page of refunds."""

    list = fields.List(fields.Nested(RefundView))
    total = fields.Integer()
    page = fields.Integer()
    limit = fields.Integer()


class StatementPage(StatementView):
    """A statement with one page of its lines."""

    days = fields.List(fields.Nested(StatementDayView))
    list = fields.List(fields.Nested(StatementLineView))
    limit = fields.Integer()
    next = fields.String()


class StatementFile(StatementView):
    """A statement with one part of its lines as CSV."""

    days = fields.List(fields.Nested(StatementDayView))
    csv = fields.String()
    limit = fields.Integer()
    next = fields.String()


class Channel(ChannelView):
    """A channel with its display texts."""

    category_text = fields.String()
    pay_method_text = fields.String()


class ChannelList(View):
    """The channels that the merchant may use."""

    list = fields.List(fields.Nested(Channel))
    total = fields.Integer()


class Region(View):
    """A province, city or district."""

    name = fields.String()
    code = fields.String()


class City(View):
    """A city in the tree; `items` has the code of each district by its name."""

    val = fields.String()
    items = fields.Dict(values=fields.String())


class Province(View):
    """A province in the tree; `items` has each city by its name."""

    val = fields.String()
    items = fields.Dict(values=fields.Nested(City))


# Panels of the payment page: the order's status, or what a payer must know instead.
PAGE_STATES = (*STATUSES, "expired", "checking", "late", "refunded")


class PaymentState(View):
    """The parts of the payment page that change while it is open."""

    status = fields.String(validate=validate.OneOf(STATUSES))
    ready = fields.Boolean()
    moved = fields.Boolean()
    state = fields.String(validate=validate.OneOf(PAGE_STATES))
    checking = fields.Boolean()
    seconds_left = fields.Integer()
    received_at = fields.Integer(allow_none=True)
    can_return = fields.Boolean()


class Health(View):
    """The response to a process supervisor."""

    version = fields.String()


class Readiness(View):
    """The fault by check, or `ok`."""

    database = fields.String()
    scheduler = fields.String()
    disk = fields.String()
    clock = fields.String()
    proxy = fields.String()


class NoticeRefused(View):
    """A driver's response to a rejected notice, if its upstream expects JSON."""

    code = fields.String()
    message = fields.String()


class Event(View):
    """The body of a callback about an order."""

    type = fields.String()
    timestamp = fields.String()
    data = fields.Nested(OrderView)


class RefundEvent(View):
    """The body of a callback about a refund."""

    type = fields.String()
    timestamp = fields.String()
    data = fields.Nested(RefundView)
