"""The cashier: the page behind `pay_url`, its live status, and the payer's word that the money was sent."""

from __future__ import annotations

from typing import Any

import segno
from flask import Blueprint, Response, redirect, render_template, request, url_for
from flask_babel import gettext
from markupsafe import Markup

import business_clock
import settings
from blueprints.envelope import ok
from gateways.base import ChannelError, Opened, Report, State
from models.order import BUY, PENDING, Order
from schemas.views import PAY_METHOD_TEXTS, hundredths
from services import ordering, settlement, simulation
from services.channels import driver_of, pay_url
from services.errors import N_, Refused
from services.reasons import because
from services.resolution import open_exceptions

pages = Blueprint("pages", __name__, static_folder="static", static_url_path="/addons/paychannel/static")

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


# What the sandbox offers: outcome, label, what it does.
OUTCOMES = (
    ("success", N_("Pay"), N_("The money comes and the channel says so.")),
    ("fail", N_("Fail"), N_("The channel refuses the payment.")),
    ("silent", N_("Pay, no notice"), N_("The money comes, but no notice does: the service finds it when it asks.")),
    ("duplicate", N_("Pay, notice twice"), N_("The same notice comes twice: it counts once.")),
    ("late", N_("Pay too late"), N_("The order expires first, then the money comes.")),
    ("wrong_amount", N_("Pay a wrong amount"), N_("One yuan too much comes: nothing is credited.")),
    ("timeout", N_("Channel times out"), N_("The channel does not answer for a while.")),
)


@pages.after_request
def _strict(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "strict-origin"  # WeChat's H5 payment wants the origin
    response.headers["Vary"] = "Accept-Language"
    return response


def _deposit(order_no: str | None) -> Order:
    """The deposit with this number. Raises Refused 40401."""
    order = Order.get_or_none(Order.order_no == (order_no or ""), Order.order_type == BUY)
    if order is None:
        raise Refused(40401)
    return order


def _live(order: Order) -> dict[str, Any]:
    """What changes while the payer looks at the page."""
    return {
        "status": order.status,
        "ready": _is_ready(order),
        "checking": any(exception.amount for exception in open_exceptions(order)),
        "seconds_left": max(0, (order.expires_at or 0) - business_clock.now()),
    }


def _is_ready(order: Order) -> bool:
    """Is there anything to be shown to the payer: has the channel opened the payment?"""
    return bool(order.opened) or driver_of(order.channel).opens_locally


def _opened(order: Order) -> Opened:
    """What the payer is to be shown; nothing where the order is over or the channel does not answer."""
    try:
        return ordering.opened_of(order) if order.status == PENDING else Opened()
    except ChannelError:
        return Opened()


def _qr(text: str) -> Markup | str:
    """A QR code as an inline SVG. segno's output is made of numbers and names of its own."""
    if not text:
        return ""
    return Markup(segno.make(text, error="m").svg_inline(scale=6, border=2, dark="#000", light="#fff", omitsize=True))


@pages.get("/addons/paychannel/pay/index")
def index() -> Response | tuple[str, int] | str:
    """The page."""
    try:
        order = _deposit(request.args.get("order_no"))
    except Refused:
        return render_template("cashier_missing.html"), 404
    opened, by_hand = _opened(order), driver_of(order.channel).by_hand
    sandbox = simulation.sandbox_driver(order) is not None
    only_an_app = opened.scheme and not (opened.qr or opened.redirect)
    return render_template(
        "cashier.html",
        order_no=order.order_no,
        amount=hundredths(order.amount),
        merchant=order.merchant.name,
        method=order.payment_method,
        method_text=gettext(PAY_METHOD_TEXTS[order.payment_method]),
        expires_at=order.expires_at,
        qr=_qr(opened.qr),
        page_qr=_qr(pay_url(order.order_no)) if only_an_app else "",
        redirect=opened.redirect,
        scheme=opened.scheme,
        lines=[(gettext(label), value) for label, value in opened.lines],
        can_claim=by_hand,
        claim_url=url_for("pages.claim"),
        status_url=url_for("pages.status", order_no=order.order_no),
        sandbox=sandbox,
        no_real_money=sandbox or (settings.active().demo and by_hand),
        sandbox_url="/sandbox/pay",
        played=next((gettext(what) for value, _, what in OUTCOMES if value == request.args.get("played")), ""),
        outcomes=[(value, gettext(label), gettext(what)) for value, label, what in OUTCOMES] if sandbox else [],
        **_live(order),
    )


@pages.get("/addons/paychannel/pay/status")
def status() -> Response:
    """The order's state, for the page to show without reloading."""
    return ok(_live(_deposit(request.args.get("order_no"))))


@pages.post("/addons/paychannel/pay/paid")
def claim() -> Any:
    """The payer says that the money was sent; believed only so far as to tell the operator."""
    order = _deposit(request.form.get("order_no"))
    if not driver_of(order.channel).by_hand:
        raise Refused(40401)
    settlement.settle(order, Report(State.PAID, order.amount, proven=False), "payer", because("claimed"))
    return redirect(url_for("pages.index", order_no=order.order_no), 303)
