"""Requests and responses of each endpoint for the OpenAPI document: one row per endpoint and method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from marshmallow import Schema, fields

from schemas import openapi_responses
from schemas.new_order import BuyOrder, GatewayASellOrder, SellOrder
from schemas.queries import ChannelListQuery, OrderDetailQuery, OrderListQuery
from schemas.regions import CityQuery, DistrictQuery
from schemas.signature_fields import AUTH, OptionalAuth, signed
from schemas.views import OrderView
from services.errors import Code

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
ORDERS, PAYMENT, REGIONS, SERVICE = "Orders", "Payment page and notices", "Regions", "Service"
CALLBACKS = "Callbacks"
TAGS = {
    ORDERS: "Signed requests of merchants.",
    REGIONS: "Provinces, cities and districts, without a signature.",
    PAYMENT: "For payers' browsers and for channels.",
    SERVICE: "For operators' tools and for developers.",
    CALLBACKS: "Signed requests of the service to merchants.",
}

# How the routes begin that are not part of the API: files of pages, the documentation, and tools of demo mode.
LEFT_OUT = ("pages.static", "guides", "sandbox")


@dataclass(frozen=True)
class Operation:
    """One endpoint by one method.

    `route` is Flask's name of it. `body` has the schemas of the JSON body, one of which holds, each with the optional
    fields that its example shows. `data` has the kinds of the success's `data`; `time` says that
    the envelope has one. `others` are answers without an envelope: HTTP status, media type (empty for no body).
    `codes` are the refusals besides those that any request can meet. `takes` are headers of the request, `sends`
    those of the answers besides those that all have.
    """

    name: str
    route: str
    tag: str
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

OPERATIONS = (
    Operation(
        "createOrder",
        "merchant.create_order",
        ORDERS,
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
        (*SIGNED, Code.ORDER_NOT_FOUND),
        method="post",
        body={signed(OrderDetailQuery): ("merchant_order_no",)},
        data=(fields.Nested(OrderView),),
    ),
    Operation(
        "orderQueryList",
        "merchant.order_query_list",
        ORDERS,
        (*SIGNED, Code.ORDER_NOT_FOUND),
        method="post",
        body={signed(OrderListQuery): ("page", "limit", "status")},
        data=(fields.Nested(openapi_responses.OrderPage),),
    ),
    Operation(
        "getPayChannels",
        "merchant.get_pay_channels",
        ORDERS,
        SIGNED,
        method="post",
        body={OptionalAuth: AUTH},
        body_required=False,
        query=(ChannelListQuery, OptionalAuth),
        data=(fields.Nested(openapi_responses.ChannelList),),
    ),
    Operation(
        "regionData",
        "regions.region_data",
        REGIONS,
        data=(fields.Dict(values=fields.Nested(openapi_responses.Province), metadata={"examples": [_A_TREE]}),),
        takes=("If-None-Match",),
        sends=REGION,
        others=((304, ""),),
    ),
    Operation(
        "provinceList",
        "regions.province_list",
        REGIONS,
        data=(fields.List(fields.Nested(openapi_responses.Region)),),
        takes=("If-None-Match",),
        sends=REGION,
        others=((304, ""),),
    ),
    Operation(
        "cityList",
        "regions.city_list",
        REGIONS,
        (Code.REGION_NOT_FOUND, Code.INVALID_FIELDS),
        query=(CityQuery,),
        data=(fields.List(fields.Nested(openapi_responses.Region)),),
        takes=("If-None-Match",),
        sends=REGION,
        others=((304, ""),),
    ),
    Operation(
        "districtList",
        "regions.district_list",
        REGIONS,
        (Code.REGION_NOT_FOUND, Code.INVALID_FIELDS),
        query=(DistrictQuery,),
        data=(fields.List(fields.Nested(openapi_responses.Region)),),
        takes=("If-None-Match",),
        sends=REGION,
        others=((304, ""),),
    ),
    Operation(
        "paymentPage",
        "pages.index",
        PAYMENT,
        query_texts=("order_no", "played"),
        sends=PAGE,
        others=((200, HTML), (404, HTML), (429, HTML)),
    ),
    Operation(
        "paymentState",
        "pages.status",
        PAYMENT,
        (Code.ORDER_NOT_FOUND,),
        query_texts=("order_no",),
        sends=PAGE,
        data=(fields.Nested(openapi_responses.PaymentState),),
    ),
    Operation(
        "paymentOpened",
        "pages.open_now",
        PAYMENT,
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
        (Code.ORDER_NOT_FOUND,),
        query_texts=("order_no",),
        sends=PAGE,
        others=((200, HTML), (303, HTML), (429, HTML)),
    ),
    Operation(
        "paymentSent",
        "pages.claim",
        PAYMENT,
        (Code.ORDER_NOT_FOUND,),
        method="post",
        form=("order_no",),
        sends=PAGE,
        others=((303, HTML), (429, HTML)),
    ),
    # The acknowledgement is in the words of the channel's driver.
    Operation("noticeByGet", "notices.notify", PAYMENT, (Code.ORDER_NOT_FOUND, Code.PATH_NOT_FOUND), others=NOTICE),
    Operation(
        "noticeByPost",
        "notices.notify",
        PAYMENT,
        (Code.ORDER_NOT_FOUND, Code.PATH_NOT_FOUND),
        method="post",
        others=NOTICE,
    ),
    Operation("health", "health.healthz", SERVICE, data=(fields.Nested(openapi_responses.Health),)),
    Operation("ready", "health.readyz", SERVICE, data=(fields.Nested(openapi_responses.Readiness),)),
    Operation("metrics", "metrics.show", SERVICE, (Code.PATH_NOT_FOUND,), others=((200, TEXT),)),
    Operation("openapi", "docs.openapi", SERVICE, sends=("Access-Control-Allow-Origin",), others=((200, JSON),)),
    Operation("reference", "docs.reference", SERVICE, sends=PAGE, others=((200, HTML),)),
)
