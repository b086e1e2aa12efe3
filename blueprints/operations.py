"""What each endpoint takes and what it can answer with, for the OpenAPI document: one row an endpoint and method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from marshmallow import Schema, fields

from schemas import answers
from schemas.buy import BuyOrder
from schemas.contract import OptionalAuth, signed
from schemas.queries import ChannelListQuery, OrderDetailQuery, OrderListQuery
from schemas.regions import CityQuery, DistrictQuery
from schemas.sell import GatewayASellOrder, SellOrder
from schemas.views import OrderView

JSON, TEXT, HTML = "application/json", "text/plain", "text/html"
FORM = "application/x-www-form-urlencoded"

SIGNED = (40101, 40102, 40103, 40104, 40300, 41500, 42200)
ORDERS, PAYMENT, REGIONS, SERVICE = "Orders", "Payment page and notices", "Regions", "Service"

# Routes that are no part of the interface: the payment page's own files, and demo mode's simulator (docs/sandbox.md).
LEFT_OUT = {"pages.static", "sandbox.pay", "sandbox.receive", "sandbox.inbox"} | {
    "sandbox_sign.ask",
    "sandbox_sign.tell",
}


@dataclass(frozen=True)
class Operation:
    """One endpoint by one method.

    `route` is Flask's name of it. `body` has the schemas of the JSON body, one of which holds, each with an example.
    `data` has the kinds of the success's `data`; `time` says that the envelope has one. `others` are answers without
    an envelope: HTTP status, media type (empty for no body). `codes` are the refusals besides those that any request
    can meet.
    """

    name: str
    route: str
    tag: str
    codes: tuple[int, ...] = ()
    method: str = "get"
    body: dict[type[Schema], dict[str, Any]] = field(default_factory=dict)
    body_required: bool = True
    form: tuple[str, ...] = ()
    query: tuple[type[Schema], ...] = ()
    query_texts: tuple[str, ...] = ()
    headers: dict[str, dict[str, Any]] = field(default_factory=dict)
    data: tuple[fields.Field, ...] = ()
    time: bool = False
    others: tuple[tuple[int, str], ...] = ()


def _signed(schema: type[Schema], **example: Any) -> dict[type[Schema], dict[str, Any]]:
    """A signed body; the example's signature is a stand-in."""
    auth = {"api_key": "demo", "timestamp": 1767225600, "nonce": "d1f0c5a2b7e94c38", "signature": "0" * 64}
    return {signed(schema): example | auth}


_BUY = {"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
_SELL = _BUY | {"order_type": 2, "paychannel_paymethod": "bank"}
_PERSON = {
    "name": "张三",
    "cert_type": "00",
    "cert_no": "110101199003077758",
    "cert_validity_type": "0",
    "cert_begin_date": "20200101",
    "cert_end_date": "20400101",
    "mobile_no": "13800138000",
}
_CARD = {
    "card_type": "2",
    "card_name": "张三",
    "card_no": "6222020000000000017",
    "prov_id": "110000",
    "area_id": "110101",
}
_GATEWAY_A = {"paychannel_id": 1, "gatewaya_personal_data": _PERSON, "gatewaya_card_info": _CARD}
_IDEMPOTENCY_KEY = {"type": "string", "pattern": "^[!-~]{1,255}$"}

OPERATIONS = (
    Operation(
        "createOrder",
        "merchant.create_order",
        ORDERS,
        (*SIGNED, 40403, 40901, 40902, 40903, 42201, 50201),
        method="post",
        body=_signed(BuyOrder, **_BUY, merchant_order_no="A-1001")
        | _signed(SellOrder, **_SELL)
        | _signed(GatewayASellOrder, **_SELL | _GATEWAY_A),
        headers={"Idempotency-Key": _IDEMPOTENCY_KEY},
        data=(fields.Nested(answers.CreatedBuyOrder), fields.Nested(answers.CreatedSellOrder)),
        time=True,
    ),
    Operation(
        "orderQueryDetail",
        "merchant.order_query_detail",
        ORDERS,
        (*SIGNED, 40401),
        method="post",
        body=_signed(OrderDetailQuery, merchant_order_no="A-1001"),
        data=(fields.Nested(OrderView),),
    ),
    Operation(
        "orderQueryList",
        "merchant.order_query_list",
        ORDERS,
        SIGNED,
        method="post",
        body=_signed(OrderListQuery, page=1, limit=20, status="completed"),
        data=(fields.Nested(answers.OrderPage),),
    ),
    Operation(
        "getPayChannels",
        "merchant.get_pay_channels",
        ORDERS,
        SIGNED,
        method="post",
        body={OptionalAuth: {}},
        body_required=False,
        query=(ChannelListQuery, OptionalAuth),
        data=(fields.Nested(answers.ChannelList),),
    ),
    Operation(
        "regionData",
        "regions.region_data",
        REGIONS,
        data=(fields.Dict(values=fields.Nested(answers.Province)),),
        others=((304, ""),),
    ),
    Operation(
        "provinceList",
        "regions.province_list",
        REGIONS,
        data=(fields.List(fields.Nested(answers.Region)),),
        others=((304, ""),),
    ),
    Operation(
        "cityList",
        "regions.city_list",
        REGIONS,
        (40402, 42200),
        query=(CityQuery,),
        data=(fields.List(fields.Nested(answers.Region)),),
        others=((304, ""),),
    ),
    Operation(
        "districtList",
        "regions.district_list",
        REGIONS,
        (40402, 42200),
        query=(DistrictQuery,),
        data=(fields.List(fields.Nested(answers.Region)),),
        others=((304, ""),),
    ),
    Operation(
        "paymentPage", "pages.index", PAYMENT, query_texts=("order_no", "played"), others=((200, HTML), (404, HTML))
    ),
    Operation(
        "paymentState",
        "pages.status",
        PAYMENT,
        (40401,),
        query_texts=("order_no",),
        data=(fields.Nested(answers.PaymentState),),
    ),
    Operation(
        "paymentSent", "pages.claim", PAYMENT, (40401,), method="post", form=("order_no",), others=((303, HTML),)
    ),
    # The acknowledgement is in the words of the channel's driver.
    Operation("noticeByGet", "notices.notify", PAYMENT, (40401, 40404), others=((200, TEXT), (400, TEXT))),
    Operation(
        "noticeByPost", "notices.notify", PAYMENT, (40401, 40404), method="post", others=((200, TEXT), (400, TEXT))
    ),
    Operation("health", "health.healthz", SERVICE, data=(fields.Nested(answers.Health),)),
    Operation("openapi", "docs.openapi", SERVICE, others=((200, JSON),)),
)
