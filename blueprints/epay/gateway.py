"""The handlers of the epay gateway: version 1 (MD5) and version 2 (RSA)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from flask import Blueprint, Response, g, redirect, request
from flask_babel import gettext
from marshmallow import ValidationError
from werkzeug.exceptions import HTTPException

from blueprints.api.rate_limits import caller
from blueprints.checkout.payment_page import strict
from blueprints.epay import requests, responses
from models.tables.epay import MD5, RSA, EpayAccount, EpayOrder
from models.tables.order import CANCELLED, COMPLETED
from models.tables.refund import Refund
from runtime.clock import in_china
from runtime.money import hundredths
from runtime.state import Part, current
from schemas.epay import MOST_LISTED, EpayList
from services.callbacks import epay_notices
from services.channels.calls import pay_url
from services.epay import payments, queries, refunds
from services.epay.refusals import Refusal, Refused
from services.errors import N_, ApiError
from services.merchants.cache import Known
from services.platform.rate_limits import Rate

epay = Blueprint("epay", __name__)
METHODS = ["GET", "POST"]
TIME = "%Y-%m-%d %H:%M:%S"  # of China, as on other platforms
UNPAID, PAID, REFUNDED = 0, 1, 2  # the status of a payment
FAILED, DONE, IN_PROGRESS = 0, 1, 2  # the status of a refund; other platforms have the first two
Fields = dict[str, str]
_list = EpayList()
_payers = Part(lambda: Rate(current().settings.pages_per_address, seconds=1))

epay.register_error_handler(Refused, responses.refused)
epay.register_error_handler(ValidationError, responses.invalid)
epay.register_error_handler(ApiError, responses.failed)
epay.register_error_handler(HTTPException, responses.too_large)
epay.register_error_handler(Exception, responses.unexpected)


def _facts(payments: list[EpayOrder], account: EpayAccount) -> list[dict[str, Any]]:
    """Return payments as the queries show them."""
    refunded = refunds.refunded([payment.order for payment in payments if payment.order is not None])
    return [_facts_of(payment, account, refunded.get(payment.order_id, 0)) for payment in payments]


def _facts_of(payment: EpayOrder, account: EpayAccount, refunded: int) -> dict[str, Any]:
    order, paid = payment.order, queries.is_paid(payment)
    is_refunded = order is not None and 0 < order.received <= refunded
    facts = {
        "trade_no": payment.trade_no,
        "out_trade_no": payment.out_trade_no,
        "api_trade_no": order.channel_reference if order is not None else "",
        "type": payment.type if order is None else epay_notices.type_of(account, payment, order),
        "pid": account.pid,
        "addtime": in_china(payment.createtime).strftime(TIME),
        "endtime": in_china(order.completedtime).strftime(TIME) if paid else "",
        "name": payment.name,
        "money": hundredths(payment.amount),
        "param": payment.param,
        "buyer": "",
        "status": REFUNDED if is_refunded else PAID if paid else UNPAID,
        "refundmoney": hundredths(refunded),
    }
    return facts | {"trade_status": "TRADE_SUCCESS"} if facts["status"] == PAID else facts


# Payments


def _submitted(version: int) -> EpayOrder:
    if who := caller(request.remote_addr or ""):
        _payers().count(who)
    known, fields = requests.signed(version, from_payer=True)
    return payments.place(requests.payment_in(known, version, fields))


@epay.route("/submit.php", methods=METHODS)
def submit() -> Any:
    """Place a payment for a payer's browser, which the shop sent here, and show its page.

    Some shops' servers call this and read the page's address in the script that other platforms return. Browsers accept
    `text/html`, and those servers any type.
    """
    page = pay_url(_submitted(MD5).page_no)
    if "text/html" in request.headers.get("Accept", "").lower():
        return redirect(page, 303)
    g.script = f"window.location.href='.{page.removeprefix(current().settings.public_url)}';"
    return f"<script>{g.script}</script>"


@epay.route("/api/pay/submit", methods=METHODS)
def submit_v2() -> Any:
    """Place a payment for a payer's browser by version 2."""
    return redirect(pay_url(_submitted(RSA).page_no), 303)


@epay.get("/qrcode.php")
def qrcode() -> Any:
    """Lead a payer to the payment page, from the address of the QR code on other platforms."""
    return redirect(pay_url(quote(request.args.get("trade_no", ""), safe="")), 303)


@epay.after_request
def _strict(response: Response) -> Response:
    return strict(response) if request.endpoint in responses.PAYERS else response


@epay.route("/mapi.php", methods=METHODS)
def mapi() -> Response:
    """Place a payment for a shop's server. The shop shows the code itself, if there is one, or our page."""
    known, fields = requests.signed(MD5)
    payment = payments.place(requests.payment_in(known, MD5, fields))
    shown = {"trade_no": payment.trade_no, "payurl": pay_url(payment.page_no)}
    code = _code_for(payment, fields)
    return responses.ok(shown | ({"qrcode": code} if code else {}))


def _code_for(payment: EpayOrder, fields: Fields) -> str:
    """Return the QR code for a payer at a desktop; empty for a phone, which cannot scan its own screen."""
    return queries.code_of(payment) if fields.get("device") in (None, "", "pc") else ""


@epay.route("/api/pay/create", methods=METHODS)
def create() -> Response:
    """Do the same by version 2."""
    known, fields = requests.signed(RSA)
    payment = payments.place(requests.payment_in(known, RSA, fields))
    code = "" if fields.get("method") == "jump" else _code_for(payment, fields)
    shown = (
        {"pay_type": "qrcode", "pay_info": code} if code else {"pay_type": "jump", "pay_info": pay_url(payment.page_no)}
    )
    return responses.ok_signed(known, {"trade_no": payment.trade_no} | shown)


# Queries


def _found(known: Known, fields: Fields) -> EpayOrder:
    """Return the payment that the fields name. Raises Refused."""
    trade_no, out_trade_no = fields.get("trade_no", ""), fields.get("out_trade_no", "")
    if not (trade_no or out_trade_no):
        raise Refused(Refusal.NO_NUMBER)
    return queries.find(known, trade_no, out_trade_no)


def _page(known: Known, fields: Fields) -> list[dict[str, Any]]:
    wanted = _list.load(fields)
    rows = queries.page(known, min(wanted["limit"], MOST_LISTED), wanted["offset"])
    return _facts(rows, known.account)


# Refunds


def _refunded(known: Known, fields: Fields) -> dict[str, Any]:
    """Refund a payment; return the refund and what will happen with it. Raises Refused."""
    amount, number = requests.refund_in(fields)
    payment = _found(known, fields)
    if fields.get("out_trade_no", payment.out_trade_no) not in ("", payment.out_trade_no):
        raise Refused(Refusal.NO_ORDER)  # the two numbers are of different payments
    refund = refunds.place(payment, amount, number)
    if refund.status == COMPLETED:
        said = "success"
    else:
        is_waiting = not refund.approved_by
        said = gettext(N_("Refund accepted. It awaits approval") if is_waiting else N_("Refund accepted. In progress"))
    return {"msg": said} | _refund_facts(refund, payment)


def _refund_facts(refund: Refund, payment: EpayOrder) -> dict[str, Any]:
    status = {COMPLETED: DONE, CANCELLED: FAILED}.get(refund.status, IN_PROGRESS)
    return {
        "refund_no": refund.refund_no,
        "out_refund_no": refund.merchant_refund_no or "",
        "trade_no": payment.trade_no,
        "out_trade_no": payment.out_trade_no,
        "money": hundredths(refund.amount),
        "reducemoney": hundredths(refund.merchant_actual_amount),
        "status": status,
    }


def _refuse(reason: Refusal) -> Callable[[Known, Fields], Response]:
    def refuse(known: Known, fields: Fields) -> Response:
        raise Refused(reason)

    return refuse


def _act_order(known: Known, fields: Fields) -> Response:
    (facts,) = _facts([_found(known, fields)], known.account)
    return responses.ok(facts)


def _act_orders(known: Known, fields: Fields) -> Response:
    page = _page(known, fields)
    return responses.ok({"count": len(page), "data": page})


def _act_query(known: Known, fields: Fields) -> Response:
    summary = queries.summary(known)
    return responses.ok(
        {
            "pid": known.account.pid,
            "active": 1,
            "money": hundredths(summary.available),
            "type": 0,
            "account": "",
            "username": known.merchant.name,
            "orders": summary.orders,
            "order_today": summary.today,
            "order_lastday": summary.yesterday,
        }
    )


def _act_refund(known: Known, fields: Fields) -> Response:
    return responses.ok(_refunded(known, fields))


ACTS = {
    "order": _act_order,
    "orders": _act_orders,
    "query": _act_query,
    "refund": _act_refund,
    "settle": _refuse(Refusal.NO_SETTLEMENTS),
    "transfer": _refuse(Refusal.NO_TRANSFERS),
}


@epay.route("/api.php", methods=METHODS)
def api() -> Response:
    """Do what `act` names, in the query or the form: query or refund an order, list orders, show the balance."""
    known, fields = requests.with_key()
    act = ACTS.get(fields.get("act") or request.args.get("act", ""))
    if act is None:
        raise Refused(Refusal.UNKNOWN_ACT)
    return act(known, fields)


def _query(known: Known, fields: Fields) -> Response:
    (facts,) = _facts([_found(known, fields)], known.account)
    return responses.ok_signed(known, facts)


def _close(known: Known, fields: Fields) -> Response:
    payments.close(_found(known, fields))
    return responses.ok_signed(known, {})


def _refund(known: Known, fields: Fields) -> Response:
    return responses.ok_signed(known, _refunded(known, fields))


def _refund_query(known: Known, fields: Fields) -> Response:
    refund_no, number = fields.get("refund_no", ""), fields.get("out_refund_no", "")
    if not (refund_no or number):
        raise Refused(Refusal.NO_REFUND_NUMBER)
    refund, payment = refunds.find(known, refund_no, number)
    times = {
        "addtime": in_china(refund.createtime).strftime(TIME),
        "endtime": in_china(refund.completedtime).strftime(TIME) if refund.completedtime else "",
    }
    return responses.ok_signed(known, _refund_facts(refund, payment) | times)


def _info(known: Known, fields: Fields) -> Response:
    summary = queries.summary(known)
    return responses.ok_signed(
        known,
        {
            "pid": known.account.pid,
            "status": 1,
            "pay_status": 1,
            "settle_status": 0,
            "money": hundredths(summary.available),
            "settle_name": known.merchant.name,
            "order_num": summary.orders,
            "order_num_today": summary.today,
            "order_num_lastday": summary.yesterday,
        },
    )


def _orders(known: Known, fields: Fields) -> Response:
    return responses.ok_signed(known, {"data": _page(known, fields)})


V2 = {
    "pay/query": _query,
    "pay/close": _close,
    "pay/refund": _refund,
    "pay/refundquery": _refund_query,
    "merchant/info": _info,
    "merchant/orders": _orders,
    "transfer/submit": _refuse(Refusal.NO_TRANSFERS),
    "transfer/query": _refuse(Refusal.NO_TRANSFERS),
    "transfer/balance": _refuse(Refusal.NO_TRANSFERS),
    "transfer/proof": _refuse(Refusal.NO_TRANSFERS),
}


def _v2(call: Callable[[Known, Fields], Response]) -> Callable[[], Response]:
    return lambda: call(*requests.query())


for _path, _call in V2.items():
    epay.add_url_rule(f"/api/{_path}", _path.replace("/", "_"), _v2(_call), methods=METHODS)
