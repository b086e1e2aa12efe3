"""The /merchant handlers (docs/orders.md)."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from flask import Blueprint, Response
from flask_babel import gettext

from blueprints.api import view_share
from blueprints.api.auth import signed, signed_order
from blueprints.api.envelope import ok, translated
from models.queries import order_page
from models.tables.merchant import Merchant
from models.tables.order import CANCELLED
from schemas.new_order import channel_id, load_new_order
from schemas.queries import (
    BY,
    BalanceQuery,
    ChannelListQuery,
    NewRefund,
    OrderDetailQuery,
    OrderListQuery,
    RefundDetailQuery,
    RefundListQuery,
    StatementQuery,
)
from schemas.views import (
    balance_view,
    buy_view,
    channel_view,
    order_view,
    refund_view,
    sell_view,
    statement_day_view,
    statement_line_view,
    statement_view,
)
from services import kinds
from services.channels import groups
from services.channels.calls import account_of, driver_of, pay_url
from services.errors import N_, ApiError, Code, OperatorError
from services.ledger import balance, monthly_statement, statement_files
from services.merchants import cache, order_search
from services.orders import new
from services.orders.new import Placed
from services.platform.safe_text import cells
from services.refunds import place, search, send
from services.security import replay
from services.security.replay import Call

DISABLED = N_("disabled")
PREPARING = 60  # seconds after which a statement that is being prepared is probably ready

merchant_api = Blueprint("merchant", __name__, url_prefix="/merchant")
merchant_api.before_request(view_share.begin_order)
merchant_api.teardown_request(view_share.end_order)


def _place(call: Call) -> Placed:
    wanted_channel, known = channel_id(call.payload), cache.by_id(call.merchant.id)
    channel = known.channels.get(wanted_channel) if wanted_channel else None
    if wanted_channel in known.disabled:
        raise ApiError(Code.CHANNEL_NOT_FOUND, detail=DISABLED)
    if wanted_channel and channel is None:  # it does not exist, or is not the merchant's
        raise ApiError(Code.CHANNEL_NOT_FOUND)
    able = (groups.accepted(channel), driver_of(channel).payout_methods) if channel else ()
    wanted = load_new_order(call.payload, channel, *able)
    assert channel is not None  # load_new_order refuses a payload without a channel
    if closed := groups.why_closed(channel):
        raise ApiError(Code.SERVICE_UNAVAILABLE, detail=closed, retry_after=groups.LATER)
    return kinds.KINDS[wanted["order_type"]].place(call, channel, wanted)


@merchant_api.post("/createOrder")
@signed_order
def create_order(call: Call) -> Response:
    """Create a deposit or a withdrawal, as `order_type` says."""
    placed = new.placed_before(call) or _place(call)
    order = placed.order
    view = buy_view(order, pay_url(order.order_no)) if order.is_buy else sell_view(order, account_of(order))
    response = ok(view, N_("order created"), time=str(order.createtime))
    if placed.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


@merchant_api.post("/orderQueryDetail")
@signed(OrderDetailQuery())
def order_query_detail(merchant: Merchant, query: dict[str, Any]) -> Response:
    """Return one order by its id, its order number, or the oldest with its merchant number, in this precedence."""
    name = next(name for name in BY if name in query)
    order = order_page.oldest(merchant.id, name, query[name])
    if order is None:
        raise ApiError(Code.ORDER_NOT_FOUND)
    return ok(order_view.of(order))


@merchant_api.post("/orderQueryList")
@signed(OrderListQuery())
def order_query_list(merchant: Merchant, query: dict[str, Any]) -> Response:
    """Return a page of the merchant's orders, newest first."""
    page = order_search.page(merchant, query)
    orders = [order_view.of(order) for order in page.orders]
    return ok({"list": orders, "total": page.total, "page": query["page"], "limit": query["limit"]})


@merchant_api.post("/createRefund")
@signed_order
def create_refund(call: Call) -> Response:
    """Refund a deposit, whole or in part; the same merchant_refund_no is the same refund."""
    call = replace(call, idempotency_key="")  # merchant_refund_no is the key
    refund, replayed = place.for_merchant(call, NewRefund().load(call.payload))
    if replayed:
        replay.keep(call)
    elif refund.approved_by:
        refund = send.send_now(refund)
        if refund.status == CANCELLED:
            raise ApiError(Code.CHANNEL_FAILED, {"refund_no": refund.refund_no})
    response = ok(refund_view.of(refund))
    if replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


@merchant_api.post("/refundQueryDetail")
@signed(RefundDetailQuery())
def refund_query_detail(merchant: Merchant, query: dict[str, Any]) -> Response:
    """Return one refund by its number, or by the merchant's number, in this precedence."""
    return ok(refund_view.of(search.find(merchant, query)))


@merchant_api.post("/refundQueryList")
@signed(RefundListQuery())
def refund_query_list(merchant: Merchant, query: dict[str, Any]) -> Response:
    """Return a page of the merchant's refunds, newest first."""
    page = search.page(merchant, query)
    refunds = [refund_view.of(refund) for refund in page.refunds]
    return ok({"list": refunds, "total": page.total, "page": query["page"], "limit": query["limit"]})


@merchant_api.post("/getPayChannels")
@signed(ChannelListQuery(), in_query=True)
def get_pay_channels(merchant: Merchant, query: dict[str, Any]) -> Response:
    """Return the channels that the merchant may use."""
    channels = cache.by_id(merchant.id).channels.values()
    found = [channel_view(each, gettext) for each in channels if query.get("category") in (None, each.category)]
    return ok({"list": found, "total": len(found)})


@merchant_api.post("/balanceQuery")
@signed(BalanceQuery())
def balance_query(merchant: Merchant, query: dict[str, Any]) -> Response:
    """Return the merchant's balance: available, held, and not credited yet."""
    return ok(balance_view.of(balance.balance_of(merchant)))


@merchant_api.post("/statementQuery")
@signed(StatementQuery())
def statement_query(merchant: Merchant, query: dict[str, Any]) -> Response:
    """Return the merchant's statement of a month with a page of its lines, oldest first, as JSON or as CSV."""
    try:
        month = monthly_statement.month_of(query["month"])
    except OperatorError as refusal:
        raise ApiError(Code.INVALID_FIELDS, {"month": [translated(refusal.text)]}) from None
    try:
        statement = monthly_statement.of(merchant, month)
    except OperatorError as refusal:  # the sums of many new entries are not complete yet
        raise ApiError(Code.SERVICE_UNAVAILABLE, detail=refusal.text, retry_after=PREPARING) from None
    after, limit = query.get("after"), query["limit"]
    rest = monthly_statement.lines_after(statement, after) if after else monthly_statement.lines(statement)
    page = list(islice(rest, limit + 1))
    lines, more = page[:limit], len(page) > limit
    shown = statement_view.of(statement) | {"days": [statement_day_view.of(day) for day in statement.days]}
    if query["format"] == "csv":
        heading = "" if after else cells([statement_files.COLUMNS])
        shown["csv"] = heading + "".join(statement_files.lines_csv(lines))
    else:
        shown["list"] = [statement_line_view.of(line) for line in lines]
    return ok(shown | {"limit": limit, "next": lines[-1].number if more else ""})
