"""Who views the payment page: the address, the kind of browser and, where a channel needs it, the sign-in."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from dataclasses import replace
from urllib.parse import urlencode

from flask import make_response, redirect, render_template, request, url_for
from werkzeug import Response

from blueprints.api.rate_limits import caller
from gateways.base import ChannelError, Payer
from models.tables.order import Order
from models.tables.outbox import webhook_key
from runtime.state import Part, current
from services.channels.bulkhead import channel_slot
from services.channels.calls import driver_for
from services.deposits import attempts
from services.platform.rate_limits import Rate

log = logging.getLogger(__name__)

# Words in the User-Agent by kind of browser; the first match counts. Without a match the kind is `pc`.
BROWSERS = (
    # WeChat on a computer shows codes as any browser there. WeCom calls itself WeChat, too, but its sign-in is another.
    ("pc", ("WindowsWechat", "MacWechat", "LinuxWechat", "wxwork", "(PC;")),
    ("wechat", ("MicroMessenger",)),
    ("alipay", ("AlipayClient",)),
    ("qq", (" QQ/",)),
    ("mobile", ("Mobile", "Android", "iPhone", "iPad", "HarmonyOS", "(Phone;", "(Tablet;")),
)
PAYER, STATE, TOUCH = "payer", "sign_in", "touch"  # the cookies; checkout_ipad.js sets the last one
HOUR = 3_600

# Calls to a channel: for one payer of an order, and for the sign-ins of all its payers, whose number anybody can raise.
_openings = Part(lambda: Rate(10, seconds=60))
_sign_ins = Part(lambda: Rate(10, seconds=60))


def payer() -> Payer:
    """Return the payer who views the page."""
    agent = request.user_agent.string
    browser = next((kind for kind, words in BROWSERS if any(word in agent for word in words)), "pc")
    if browser == "pc" and is_ipad():
        browser = "mobile"
    return Payer(request.remote_addr or "", browser, token=request.cookies.get(PAYER, ""))


def calls_itself_mac() -> bool:
    """Return whether the browser calls itself that of a Mac, as an iPad's does, too."""
    return "Macintosh" in request.user_agent.string


def is_ipad() -> bool:
    """Return whether the browser is an iPad's: it has a touch screen, as checkout_ipad.js found out."""
    return calls_itself_mac() and TOUCH in request.cookies


def too_many_openings(order: Order) -> Response | None:
    """Count a request that opens the payment; return the page to show if this payer makes too many."""
    return _counted(_openings(), f"{order.order_no} {caller(request.remote_addr or '')}", order)


def _counted(rate: Rate, who: str, order: Order) -> Response | None:
    return None if rate.hit(who) else busy(rate.retry_after(who), url_for("pages.index", order_no=order.order_no))


def busy(seconds: int, page: str = "") -> Response:
    """Return the page that asks to wait for these seconds; `page` is the address to try again."""
    response = make_response(render_template("checkout/busy.html", page=page, seconds=seconds), 429)
    response.headers["Retry-After"] = str(seconds)
    return response


def sign_in(order: Order) -> Response | None:
    """Return the redirect to the upstream's sign-in, if the order can't be paid in this browser without one.

    The upstream then sends the payer to `finish`. With `again` in the request, also after a refusal.
    """
    who, driver = payer(), driver_for(order)
    if not attempts.is_payable(order) or not driver.needs_sign_in(who.browser):
        return None
    if attempts.leave_closed_member(order):
        return sign_in(order)
    shown = attempts.shown_to(order, who)
    if shown.is_waiting or (shown.is_ready and not (shown.refusal and "again" in request.args)):
        return None
    state = _state(order, secrets.token_hex(16))
    query = {"order_no": order.order_no, **_retried()}
    back = f"{current().settings.public_url}{url_for('pages.signed_in')}?{urlencode(query)}"
    return set_cookie(redirect(driver.sign_in_url(back, state), 303), STATE, state, HOUR)


def finish(order: Order) -> Response:
    """Open the payment for the payer who comes back from the upstream's sign-in, and show its page."""
    page, who, driver = url_for("pages.index", order_no=order.order_no), payer(), driver_for(order)
    is_due = attempts.is_payable(order) and driver.needs_sign_in(who.browser)
    if not is_due or attempts.shown_to(order, who).opened:  # it is open for this payer: the code was used before
        return redirect(page, 303)
    given, expected = request.args.get("state", ""), request.cookies.get(STATE, "")
    is_ours = hmac.compare_digest(given.encode(), _state(order, given[:32]).encode())
    if not is_ours or not hmac.compare_digest(given.encode(), expected.encode()):
        return _failed(page)  # the cookie was not kept, or another page made this link
    if refused := _counted(_sign_ins(), order.order_no, order):
        return refused
    try:
        with channel_slot(order.channel_id):
            identity = driver.payer_id(request.args.get("code", ""))
    except ChannelError as error:
        log.warning("Order %s: the payer's sign-in at the channel failed: %s", order.order_no, error)
        if _retried():
            return redirect(page, 303) if attempts.pass_on(order, str(error)) else _failed(page)
        # Once, without a question: WeChat on Android may load this address twice, and a code is valid once.
        return redirect(url_for("pages.index", order_no=order.order_no, retried=1), 303)
    who = replace(who, id=identity, token=hashlib.sha256(identity.encode()).hexdigest())
    attempts.open_for(order, who, again=True)
    return set_cookie(redirect(page, 303), PAYER, who.token, HOUR)


def _state(order: Order, random: str) -> str:
    """Return the `state` of a sign-in, which only this service can make: WeChat documents letters and digits only."""
    text = f"payer's sign-in:{order.order_no}:{random}"
    return random + hmac.digest(webhook_key(), text.encode(), "sha256").hex()[:32]


def _retried() -> dict[str, str]:
    """Return the mark of a sign-in that follows a failed one, or nothing."""
    return {"retried": "1"} if "retried" in request.args else {}


def _failed(page: str) -> Response:
    return make_response(render_template("checkout/sign_in.html", page=page), 502)


def set_cookie(response: Response, name: str, value: str, seconds: int) -> Response:
    """Return the response with a cookie that only the pages for payers receive."""
    path, secure = url_for("pages.index").rpartition("/")[0], current().settings.public_url.startswith("https:")
    response.set_cookie(name, value, seconds, path=path, secure=secure, httponly=True, samesite="Lax")
    return response
