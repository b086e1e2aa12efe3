"""Requests and responses of each endpoint for the OpenAPI document: one row per endpoint and method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from marshmallow import Schema, fields

from schemas import openapi_responses
from schemas.new_order import BuyOrder, GatewayASellOrder, SellOrder
from schemas.queries import (
    BalanceQuery,
    ChannelListQuery,
    CityQuery,
    DistrictQuery,
    NewRefund,
    OrderDetailQuery,
    OrderListQuery,
    RefundDetailQuery,
    RefundListQuery,
    StatementQuery,
)
from schemas.signature_fields import AUTH, OptionalAuth, signed
from schemas.views import BalanceView, OrderView, RefundView
from services.errors import N_, Code

JSON, TEXT, HTML = "application/json", "text/plain", "text/html"
FORM = "application/x-www-form-urlencoded"

SIGNED = (
    Code.UNKNOWN_API_KEY,
    Code.BAD_SIGNATURE,
    Code.TIMESTAMP_OUTSIDE_WINDOW,
    Code.INVALID_NONCE,
    Code.ADDRESS_NOT_ALLOWED,
    Code.UNSUPPORTED_MEDIA_TYPE,
    Code.INVALID_FIELDS,
)
ORDERS, REFUNDS, REGIONS = N_("Orders"), N_("Refunds"), N_("Regions")
PAYMENT, SERVICE = N_("Payment page and notices"), N_("Service")
CALLBACKS = "Callbacks"
TAGS = {
    ORDERS: N_("Signed requests of merchants."),
    REFUNDS: N_("Signed requests of merchants that may refund deposits."),
    REGIONS: N_("Provinces, cities and districts, without a signature."),
    PAYMENT: N_("For payers' browsers and for channels, without a signature."),
    SERVICE: N_("For operators' tools and for developers, without a signature."),
    CALLBACKS: N_("Signed requests of the service to merchants."),
}

# How the routes begin that are not part of the API: files of pages, the documentation, tools of demo mode, and the
# epay gateway, which has a protocol of its own.
LEFT_OUT = (
    "pages.static",
    "pages.qr_image",
    "pages.logo",
    "pages.language",
    "pages.domain_file",
    "pages.returned",
    "guides",
    "sandbox",
    "epay",
)


@dataclass(frozen=True)
class Operation:
    """One endpoint by one method.

    `route` is Flask's endpoint and `about` the summary. `body` has the alternative schemas of the JSON body, each with
    the optional fields that its example shows. `data` has the alternatives of a success's `data`; `time` means that
    the envelope has the field. `others` are responses without an envelope: HTTP status, media type (empty for no body).
    `codes` are the errors in addition to those of every request. `takes` are request headers, `sends` the response
    headers in addition to those of every response.
    """

    name: str
    route: str
    tag: str
    about: str
    codes: tuple[int, ...] = ()
    method: str = "get"
    body: dict[type[Schema], tuple[str, ...]] = field(default_factory=dict)
    body_required: bool = True
    form: tuple[str, ...] = ()
    query: tuple[type[Schema], ...] = ()
    query_texts: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()
    data: tuple[fields.Field[Any], ...] = ()
    time: bool = False
    others: tuple[tuple[int, str], ...] = ()


PAGE = ("Content-Security-Policy", "Referrer-Policy", "Vary")
REGION = ("Access-Control-Allow-Origin", "ETag", "Vary", "Content-Encoding")
NOTICE: tuple[tuple[int, str], ...] = ((200, TEXT), (204, ""), (400, TEXT), (400, JSON))
_A_CITY = {"val": "440100", "items": {"天河区": "440106"}}
_A_TREE = {"广东省": {"val": "440000", "items": {"广州市": _A_CITY}}}
_CITIES = [{"name": "广州市", "code": "440100"}]
_DISTRICTS = [{"name": "天河区", "code": "440106"}]

OPERATIONS = (
    Operation(
        "createOrder",
        "merchant.create_order",
        ORDERS,
        N_("Create a deposit or a withdrawal, by `order_type`."),
        (
            *SIGNED,
            Code.CHANNEL_NOT_FOUND,
            Code.INSUFFICIENT_BALANCE,
            Code.REQUEST_IN_PROGRESS,
            Code.NO_PAYOUT_ACCOUNT,
            Code.IDEMPOTENCY_KEY_REUSED,
            Code.CHANNEL_FAILED,
        ),
        method="post",
        body={
            signed(BuyOrder): ("merchant_order_no",),
            signed(SellOrder): ("merchant_order_no",),
            signed(GatewayASellOrder): ("merchant_order_no",),
        },
        takes=("Idempotency-Key",),
        sends=("Idempotency-Replayed",),
        data=(fields.Nested(openapi_responses.CreatedBuyOrder), fields.Nested(openapi_responses.CreatedSellOrder)),
        time=True,
    ),
    Operation(
        "orderQueryDetail",
        "merchant.order_query_detail",
        ORDERS,
        N_("Return one order, found by id, order number or your own number."),
        (*SIGNED, Code.ORDER_NOT_FOUND),
        method="post",
        body={signed(OrderDetailQuery): ("merchant_order_no",)},
        data=(fields.Nested(OrderView),),
    ),
    Operation(
        "orderQueryList",
        "merchant.order_query_list",
        ORDERS,
        N_("Return one page of your orders, newest first."),
        (*SIGNED, Code.ORDER_NOT_FOUND),
        method="post",
        body={signed(OrderListQuery): ("page", "limit", "status")},
        data=(fields.Nested(openapi_responses.OrderPage),),
    ),
    Operation(
        "getPayChannels",
        "merchant.get_pay_channels",
        ORDERS,
        N_("Return the channels that you can use."),
        SIGNED,
        method="post",
        body={OptionalAuth: AUTH},
        body_required=False,
        query=(ChannelListQuery, OptionalAuth),
        data=(fields.Nested(openapi_responses.ChannelList),),
    ),
    Operation(
        "balanceQuery",
        "merchant.balance_query",
        ORDERS,
        N_("Return your balance: available, held, and not credited yet."),
        SIGNED,
        method="post",
        body={signed(BalanceQuery): ()},
        data=(fields.Nested(BalanceView),),
    ),
    Operation(
        "statementQuery",
        "merchant.statement_query",
        ORDERS,
        N_("Return your statement of a month, with a page of its lines as JSON or CSV."),
        (*SIGNED, Code.LINE_NOT_FOUND),
        method="post",
        body={signed(StatementQuery): ("limit",)},
        data=(fields.Nested(openapi_responses.StatementPage), fields.Nested(openapi_responses.StatementFile)),
    ),
    Operation(
        "createRefund",
        "merchant.create_refund",
        REFUNDS,
        N_("Refund a deposit, whole or in part. The same `merchant_refund_no` is the same refund."),
        (
            *SIGNED,
            Code.ORDER_NOT_FOUND,
            Code.INSUFFICIENT_BALANCE,
            Code.NOT_REFUNDABLE,
            Code.IDEMPOTENCY_KEY_REUSED,
            Code.CHANNEL_FAILED,
        ),
        method="post",
        body={signed(NewRefund): ("reason",)},
        sends=("Idempotency-Replayed",),
        data=(fields.Nested(RefundView),),
    ),
    Operation(
        "refundQueryDetail",
        "merchant.refund_query_detail",
        REFUNDS,
        N_("Return one refund, found by its number or your own number."),
        (*SIGNED, Code.REFUND_NOT_FOUND),
        method="post",
        body={signed(RefundDetailQuery): ("merchant_refund_no",)},
        data=(fields.Nested(RefundView),),
    ),
    Operation(
        "refundQueryList",
        "merchant.refund_query_list",
        REFUNDS,
        N_("Return one page of your refunds, newest first."),
        (*SIGNED, Code.REFUND_NOT_FOUND),
        method="post",
        body={signed(RefundListQuery): ("page", "limit", "status")},
        data=(fields.Nested(openapi_responses.RefundPage),),
    ),
    Operation(
        "regionData",
        "regions.region_data",
        REGIONS,
        N_("Return all provinces, cities and districts as a tree. The response is large."),
        data=(fields.Dict(values=fields.Nested(openapi_responses.Province), metadata={"examples": [_A_TREE]}),),
        takes=("If-None-Match",),
        sends=REGION,
        others=((304, ""),),
    ),
    Operation(
        "provinceList",
        "regions.province_list",
        REGIONS,
        N_("Return all provinces."),
        data=(fields.List(fields.Nested(openapi_responses.Region)),),
        takes=("If-None-Match",),
        sends=REGION,
        others=((304, ""),),
    ),
    Operation(
        "cityList",
        "regions.city_list",
        REGIONS,
        N_("Return the cities of a province."),
        (Code.REGION_NOT_FOUND, Code.INVALID_FIELDS),
        query=(CityQuery,),
        data=(fields.List(fields.Nested(openapi_responses.Region), metadata={"examples": [_CITIES]}),),
        takes=("If-None-Match",),
        sends=REGION,
        others=((304, ""),),
    ),
    Operation(
        "districtList",
        "regions.district_list",
        REGIONS,
        N_("Return the districts of a city."),
        (Code.REGION_NOT_FOUND, Code.INVALID_FIELDS),
        query=(DistrictQuery,),
        data=(fields.List(fields.Nested(openapi_responses.Region), metadata={"examples": [_DISTRICTS]}),),
        takes=("If-None-Match",),
        sends=REGION,
        others=((304, ""),),
    ),
    Operation(
        "paymentPage",
        "pages.index",
        PAYMENT,
        N_("Show the payment page of a deposit."),
        query_texts=("order_no", "played", "refused", "again", "retried", "stay"),
        sends=(*PAGE, "Set-Cookie"),
        others=((200, HTML), (303, HTML), (404, HTML), (429, HTML)),
    ),
    Operation(
        "paymentState",
        "pages.status",
        PAYMENT,
        N_("Return the state of a deposit for the payment page."),
        (Code.ORDER_NOT_FOUND,),
        query_texts=("order_no",),
        sends=PAGE,
        data=(fields.Nested(openapi_responses.PaymentState),),
    ),
    Operation(
        "paymentOpened",
        "pages.open_now",
        PAYMENT,
        N_("Open the payment at the channel for the payer's browser."),
        (Code.ORDER_NOT_FOUND,),
        method="post",
        form=("order_no", "again"),
        sends=PAGE,
        others=((303, HTML), (429, HTML)),
    ),
    Operation(
        "paymentForm",
        "pages.go",
        PAYMENT,
        N_("Forward the payer to the channel's page with a signed form."),
        (Code.ORDER_NOT_FOUND,),
        query_texts=("order_no",),
        sends=PAGE,
        others=((200, HTML), (303, HTML), (429, HTML)),
    ),
    Operation(
        "paymentSignedIn",
        "pages.signed_in",
        PAYMENT,
        N_("Take the payer back from the channel's sign-in and open the payment."),
        (Code.ORDER_NOT_FOUND,),
        query_texts=("order_no", "code", "state", "retried"),
        sends=(*PAGE, "Set-Cookie"),
        others=((303, HTML), (429, HTML), (502, HTML)),
    ),
    Operation(
        "paymentSent",
        "pages.claim",
        PAYMENT,
        N_("Record the payer's claim that the money was sent. The operator confirms it."),
        (Code.ORDER_NOT_FOUND,),
        method="post",
        form=("order_no",),
        sends=PAGE,
        others=((303, HTML), (429, HTML)),
    ),
    Operation(
        "paymentChosen",
        "pages.choose",
        PAYMENT,
        N_("Create the order of an epay payment at the channel that the payer chose."),
        method="post",
        form=("order_no", "choice"),
        sends=PAGE,
        others=((303, HTML), (429, HTML)),
    ),
    Operation(
        "paymentReturn",
        "pages.back",
        PAYMENT,
        N_("Send the payer back to the shop with a signed address, once the payment is proven."),
        (Code.ORDER_NOT_FOUND,),
        query_texts=("order_no",),
        sends=PAGE,
        others=((303, HTML), (429, HTML)),
    ),
    # The channel's driver writes the acknowledgement.
    Operation(
        "noticeByGet",
        "notices.notify",
        PAYMENT,
        N_("Receive a channel's notice about an order."),
        (Code.ORDER_NOT_FOUND, Code.PATH_NOT_FOUND),
        sends=PAGE,
        others=(*NOTICE, (404, HTML)),
    ),
    Operation(
        "noticeByPost",
        "notices.notify",
        PAYMENT,
        N_("Receive a channel's notice about an order."),
        (Code.ORDER_NOT_FOUND, Code.PATH_NOT_FOUND),
        method="post",
        others=NOTICE,
    ),
    Operation(
        "health",
        "health.healthz",
        SERVICE,
        N_("Report 200 while requests can be processed, otherwise 50300 with the reason."),
        data=(fields.Nested(openapi_responses.Health),),
    ),
    Operation(
        "ready",
        "health.readyz",
        SERVICE,
        N_("Report 200 while the service should receive requests, otherwise 50300. `data` has each check."),
        data=(fields.Nested(openapi_responses.Readiness),),
    ),
    Operation(
        "metrics",
        "metrics.show",
        SERVICE,
        N_("Return all metrics. Addresses outside `metrics_from` receive 404."),
        (Code.PATH_NOT_FOUND,),
        sends=PAGE,
        others=((200, TEXT), (404, HTML)),
    ),
    Operation(
        "openapi",
        "docs.openapi",
        SERVICE,
        N_("Return the OpenAPI document, its descriptions in English or Chinese by `Accept-Language`."),
        sends=("Access-Control-Allow-Origin", "Vary"),
        others=((200, JSON),),
    ),
    Operation("reference", "docs.reference", SERVICE, N_("Show the API reference."), sends=PAGE, others=((200, HTML),)),
)
