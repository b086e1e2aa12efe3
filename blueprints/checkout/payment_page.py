"""The payment page behind `pay_url`, its live status, and the payer's claim that the money was sent."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Any

from flask import Blueprint, Response, g, redirect, render_template, request, url_for
from flask_babel import gettext

from blueprints.api import view_share
from blueprints.api.envelope import ok
from blueprints.api.rate_limits import STRANGERS_FORM, caller
from blueprints.checkout import choice, parts
from blueprints.checkout.payer import (
    busy,
    calls_itself_mac,
    finish,
    is_ipad,
    payer,
    set_cookie,
    sign_in,
    too_many_openings,
)
from gateways.base import ChannelError, Driver, Opened, Report, State
from models.tables.order import BUY, CANCELLED, PENDING, Order
from runtime.clock import in_china
from runtime.money import hundredths
from runtime.state import Part, current
from schemas.views import PAY_METHOD_TEXTS
from services.callbacks import returns
from services.channels import calls, pictures
from services.channels.calls import driver_for, pay_url
from services.deposits import attempts, settle
from services.deposits.attempts import Shown
from services.deposits.progress import of_deposit
from services.errors import N_, ApiError, Code
from services.merchants import cache, payment_page
from services.orders.new import note_of
from services.orders.reasons import Why, because
from services.platform import images
from services.platform.images import Picture
from services.platform.rate_limits import Rate

pages = Blueprint("pages", __name__, static_folder="../static", static_url_path="/addons/paychannel/static")

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

YEAR = 365 * 86_400

# Outcomes in the sandbox: value, label, effect.
OUTCOMES = (
    ("success", N_("Pay"), N_("The payment arrives and the channel sends a notice.")),
    ("fail", N_("Fail"), N_("The channel rejects the payment.")),
    (
        "silent",
        N_("Pay without notice"),
        N_("The payment arrives, but no notice is sent. The service finds it by checking the status."),
    ),
    ("duplicate", N_("Pay with duplicate notice"), N_("The same notice is sent twice and counted once.")),
    ("late", N_("Pay after expiry"), N_("The order expires before the payment arrives.")),
    (
        "wrong_amount",
        N_("Pay a different amount"),
        N_("The payer sends one yuan too much. Nothing is credited until the exception is resolved."),
    ),
    ("timeout", N_("Channel timeout"), N_("The channel does not respond for a while.")),
)


_rate = Part(lambda: Rate(current().settings.pages_per_address, seconds=1))
pages.teardown_request(view_share.end_view)


@pages.before_request
def _limit() -> Any:
    """Choose the language, and limit the pages per address, without the cheap status checks and static files.

    The views and status checks of all addresses together have a share of the threads.
    """
    request.max_content_length = STRANGERS_FORM
    if (chosen := request.cookies.get(parts.LANGUAGE_COOKIE)) in parts.LANGUAGES:
        request.environ["HTTP_ACCEPT_LANGUAGE"] = chosen
    who, endpoint = caller(request.remote_addr or ""), request.endpoint
    seconds = 0
    if who and endpoint not in ("pages.status", "pages.static") and not _rate().hit(who):
        seconds = _rate().retry_after(who)
    # The other requests may call a channel, and have limits of their own.
    elif request.method != "POST" and endpoint not in ("pages.static", "pages.signed_in"):
        seconds = 0 if view_share.begin_view() else 1
    if not seconds:
        return None
    if endpoint == "pages.status":
        raise ApiError(Code.SERVICE_UNAVAILABLE)
    return busy(seconds)


@pages.after_request
def strict(response: Response) -> Response:
    """Add the headers of a page for payers."""
    policy = POLICY
    if "style_nonce" in g:
        policy = policy.replace("style-src 'self'", f"style-src 'self' 'nonce-{g.style_nonce}'")
    if "script" in g:  # the page is this script
        digest = b64encode(sha256(g.script.encode()).digest()).decode()
        policy = policy.replace("script-src 'self'", f"script-src 'sha256-{digest}'")
    if "forms_lead_away" in g:
        policy = policy.replace("form-action 'self'", "form-action https: http:")
    if "has_bridge" in g:
        policy += "; frame-src weixin:"  # older WeChat for iOS sends its own messages by frames
    response.headers["Content-Security-Policy"] = policy
    response.headers["Referrer-Policy"] = "strict-origin"  # WeChat's H5 payment requires the origin
    response.headers["Vary"] = "Accept-Language, Cookie"
    return response


def _deposit_or_none(order_no: str) -> Order | None:
    found = Order.find(order_no)
    return found if found is not None and found.order_type == BUY else None


def _deposit(order_no: str | None) -> Order:
    """Return the deposit with this number. Raises ApiError ORDER_NOT_FOUND."""
    order = _deposit_or_none(order_no or "")
    if order is None:
        raise ApiError(Code.ORDER_NOT_FOUND)
    return order


def _shown(order: Order) -> Shown:
    """Return the payment details; empty if the order is not pending or the channel does not respond."""
    try:
        return attempts.shown_to(order, payer()) if order.status == PENDING else Shown(Opened())
    except ChannelError:
        return Shown(Opened())


@pages.get("/addons/paychannel/pay/index")
def index() -> Any:
    """Show the payment page, or the choice of a payment method before there is an order."""
    number = request.args.get("order_no", "")
    order = _deposit_or_none(number)
    if (order is None or order.status == CANCELLED) and (chooser := choice.page(number)):
        return chooser
    if order is None:
        return render_template("checkout/missing.html"), 404
    if later := choice.later_page(order):
        return redirect(later, 303)
    if leaving := sign_in(order):
        return leaving
    shown, progress, driver = _shown(order), of_deposit(order), driver_for(order)
    live = parts.live(order, progress)
    facts = live | {
        "order_no": number,
        "amount": hundredths(order.amount),
        "merchant": cache.by_id(order.merchant_id).merchant.name,
        "look": parts.look_of(order),
        "note": note_of(order),
        "method": order.payment_method,
        "method_text": gettext(PAY_METHOD_TEXTS[order.payment_method]),
        "refunds": parts.shown_refunds(progress.refunds),
        "received": f"{in_china(live['received_at']):%Y-%m-%d %H:%M:%S}" if live["received_at"] else "",
    }
    links = {
        "pay_url": pay_url(number),
        "here_url": url_for("pages.index", order_no=number),
        "open_url": url_for("pages.open_now"),
        "claim_url": url_for("pages.claim"),
        "status_url": url_for("pages.status", order_no=number),
        "save_url": url_for("pages.qr_image", order_no=number, save=1),
        "back_url": url_for("pages.back", order_no=number) if returns.has_address(order) else "",
        "stay_url": url_for("pages.index", order_no=number, stay=1),
        "stays": "stay" in request.args,
        "other_language": parts.other_language(number),
    }
    test = {
        "sandbox": driver.simulated,
        "no_real_money": choice.moves_no_money(cache.channel_of(order)),
        "sandbox_url": "/sandbox/pay",
        "played": next((what for value, _, what in OUTCOMES if value == request.args.get("played")), ""),
        "outcomes": OUTCOMES if driver.simulated else (),
    }
    ways = _ways_to_pay(order, shown, driver)
    html = render_template("checkout/payment_page.html", ready=shown.is_ready, **facts, **links, **ways, **test)
    return "\n".join(filter(None, map(str.strip, html.split("\n"))))  # without indentation, it has a fifth of its size


def _ways_to_pay(order: Order, shown: Shown, driver: Driver) -> dict[str, Any]:
    """Return how the payer can pay in this browser: the channel's details, and what the browser can do with them."""
    number, browser = order.order_no, payer().browser
    opened, signs_in = shown.opened or Opened(), driver.needs_sign_in(browser)
    # A manual channel shows the image of the payee's QR code for this order, if it has one.
    digest = pictures.digests(cache.channel_of(order)).get(order.payment_method) if driver.by_hand else None
    picture = url_for("pages.qr_image", order_no=number, v=digest) if digest else ""
    # Downloads there are not among the photos that apps read.
    is_apple_phone = is_ipad() or any(word in request.user_agent.string for word in ("iPhone", "iPad"))
    only_an_app = opened.scheme and not (opened.qr or opened.redirect)
    if opened.bridge:
        g.has_bridge = True
    return {
        "picture": picture,
        "qr": "" if picture else parts.inline_code(opened.qr),
        "page_qr": parts.inline_code(pay_url(number)) if only_an_app else "",
        "downloads": browser not in parts.APPS,
        "may_be_ipad": calls_itself_mac() and browser == "pc",
        "presses": browser in parts.APPS or is_apple_phone,
        "elsewhere": "" if driver.simulated else parts.app_closed_to(order.payment_method, browser),
        "redirect": url_for("pages.go", order_no=number) if opened.fields or opened.seconds else opened.redirect,
        "bridge": opened.bridge,
        "scheme": opened.scheme,
        "lines": parts.transfer_lines(opened.lines),
        "instructions": opened.instructions,
        "opens": attempts.is_opened_on_view(order, driver) and not shown.is_ready and not signs_in,
        "retry_url": url_for("pages.index", order_no=number, again=1) if signs_in else "",
        "refusal": shown.refusal,
        "can_claim": driver.by_hand,
        "opens_in_wechat": driver.needs_sign_in("wechat"),
    }


@pages.get("/addons/paychannel/pay/logo/<digest>")
def logo(digest: str) -> Response:
    """Return a merchant's logo. Another image has another address."""
    found = payment_page.logo_with(digest)
    if found is None:
        raise ApiError(Code.PATH_NOT_FOUND)
    response = Response(found.content, content_type=found.content_type)
    response.headers["Cache-Control"] = f"public, max-age={YEAR}, immutable"
    return response


@pages.get("/addons/paychannel/pay/index/<order_no>")
def returned(order_no: str) -> Any:
    """Show the page to a payer who comes back from the channel; the channel's fields in the address don't count."""
    return redirect(url_for("pages.index", order_no=order_no), 303)


@pages.get("/addons/paychannel/pay/language")
def language() -> Any:
    """Store the language that the payer chose, and return to the page."""
    order_no, chosen = request.args.get("order_no", ""), request.args.get("to")
    response = redirect(url_for("pages.index", order_no=order_no), 303)
    if chosen in parts.LANGUAGES:
        set_cookie(response, parts.LANGUAGE_COOKIE, chosen, YEAR)
    return response


@pages.get("/addons/paychannel/pay/qr-image")
def qr_image() -> Response:
    """Return the QR code of a payment: the payee's image on a manual channel, otherwise a drawn one.

    With `save`, as a file to download.
    """
    order = _deposit(request.args.get("order_no"))
    found = pictures.find(order.channel, order.payment_method) if driver_for(order).by_hand else None
    text = (_shown(order).opened or Opened()).qr if found is None else ""
    if found is None and not text:
        raise ApiError(Code.ORDER_NOT_FOUND)
    shown = found or Picture(images.PNG, parts.code_image(text), "")
    response = Response(shown.content, content_type=shown.content_type)
    response.headers["X-Content-Type-Options"] = "nosniff"
    if found:
        response.headers["Cache-Control"] = "private, max-age=86400"  # another image has another address
    if "save" in request.args:
        name = f"{order.order_no}.{shown.content_type.partition('/')[2]}"
        response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@pages.post("/addons/paychannel/pay/open")
def open_now() -> Any:
    """Open the payment at the channel for this browser. With `again`, also after a refusal."""
    order = _deposit(request.form.get("order_no"))
    if _shown(order).opened is None and (refused := too_many_openings(order)):
        return refused
    attempts.open_for(order, payer(), again=bool(request.form.get("again")))
    return redirect(url_for("pages.index", order_no=order.order_no), 303)


pages.post("/addons/paychannel/pay/choose")(choice.choose)


@pages.get("/addons/paychannel/pay/return")
def back() -> Any:
    """Send the payer back to the shop, with a signature that it can verify, once the payment is proven."""
    order = _deposit(request.args.get("order_no"))
    return redirect(returns.address(order) or url_for("pages.index", order_no=order.order_no), 303)


@pages.get("/addons/paychannel/pay/go")
def go() -> Any:
    """Send the payer to the channel's own page: to a link, or with a freshly signed form."""
    order = _deposit(request.args.get("order_no"))
    try:
        opened = attempts.signed_again(order, payer()) if attempts.is_payable(order) else None
    except ChannelError:
        opened = None
    if opened is None or not opened.fields:
        address = opened.redirect if opened and opened.seconds else ""
        return redirect(address or url_for("pages.index", order_no=order.order_no), 303)
    g.forms_lead_away = True
    return render_template("checkout/go.html", address=opened.redirect, fields=opened.fields)


@pages.get("/MP_verify_<token>.txt")
def domain_file(token: str) -> Response:
    """Return the file with which WeChat verifies the domain of a channel's sign-in."""
    text = calls.domain_file(f"MP_verify_{token}.txt")
    return Response(text or "Not found", 200 if text else 404, content_type="text/plain")


@pages.get("/addons/paychannel/pay/signed-in")
def signed_in() -> Any:
    """Take the payer back from the channel's sign-in, and open the payment."""
    return finish(_deposit(request.args.get("order_no")))


@pages.get("/addons/paychannel/pay/status")
def status() -> Response:
    """Return the order's state, with which the page updates itself."""
    order = _deposit(request.args.get("order_no"))
    shown = Shown(Opened()) if driver_for(order).opens_locally else _shown(order)
    return ok({"ready": shown.is_ready, "moved": shown.moved} | parts.live(order))


@pages.post("/addons/paychannel/pay/paid")
def claim() -> Any:
    """Record the payer's claim that the money was sent. It credits nothing until an operator confirms the payment."""
    order = _deposit(request.form.get("order_no"))
    if not driver_for(order).by_hand:
        raise ApiError(Code.ORDER_NOT_FOUND)
    settle.apply_report(order, Report(State.PAID, order.amount, proven=False), "payer", because(Why.CLAIMED))
    return redirect(url_for("pages.index", order_no=order.order_no), 303)
