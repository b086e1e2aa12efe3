"""The page on which a payer chooses the channel of an epay payment, before there is an order."""

from __future__ import annotations

from collections import Counter
from typing import Any

from flask import g, redirect, render_template, request, url_for
from flask_babel import gettext

from blueprints.checkout import parts
from blueprints.checkout.payer import payer
from models.tables.channel import Channel
from models.tables.order import CANCELLED, Order
from runtime.money import hundredths
from runtime.state import current
from schemas.views import PAY_METHOD_TEXTS
from services.channels import groups
from services.channels.calls import driver_of, pay_url
from services.epay import payments
from services.epay.refusals import Refusal, Refused
from services.merchants import cache


def moves_no_money(channel: Channel) -> bool:
    """Return whether payments by this channel are tests: in the sandbox, or manual in demo mode."""
    drivers = [driver_of(each) for each in groups.channels_in(channel)]
    return all(each.simulated or (current().settings.demo and each.by_hand) for each in drivers)


def page(number: str) -> str | None:
    """Return the page of a payment whose payer can choose a channel now, or None."""
    payment = payments.find_open(number)
    if payment is None:
        return None
    known, over = cache.by_id(payment.merchant_id), payments.is_over(payment)
    if over and payment.order is not None:
        return None  # the page of its last order says more
    choices = [] if over else payments.choices_of(known, payment.type, payment.amount)
    repeated = Counter(method for _, method in choices)
    closed_to = {method: parts.app_closed_to(method, payer().browser) for method in repeated}
    every = [each for channel, _ in choices for each in groups.channels_in(channel)]
    if any(driver_of(each).needs_sign_in(payer().browser) for each in every):
        g.forms_lead_away = True  # browsers apply the policy to the redirects after the form, too
    return render_template(
        "checkout/choice.html",
        order_no=number,
        amount=hundredths(payment.amount),
        merchant=known.merchant.name,
        note=payment.name,
        refused="refused" in request.args,
        no_real_money=bool(choices) and all(moves_no_money(channel) for channel, _ in choices),
        choose_url=url_for("pages.choose"),
        other_language=parts.other_language(number),
        look=parts.look_of(
            Order(merchant=payment.merchant_id, order_no=number, merchant_order_no=payment.out_trade_no)
        ),
        choices=[
            {
                "value": f"{channel.id}-{method}",
                "method": method,
                "text": gettext(PAY_METHOD_TEXTS[method]),
                "channel": channel.name if repeated[method] > 1 else "",
                "closed_to": closed_to[method],
            }
            for channel, method in sorted(choices, key=lambda each: bool(closed_to[each[1]]))
        ],
    )


def later_page(order: Order) -> str:
    """Return the address of the order that replaced an epay payment's cancelled one; empty without one."""
    later = payments.replacement(order) if order.status == CANCELLED else None
    return pay_url(later.order_no) if later is not None else ""


def choose() -> Any:
    """Create the order at the chosen channel, and show its page."""
    number, (channel, _, method) = request.form.get("order_no", ""), request.form.get("choice", "").partition("-")
    try:
        payment = payments.choose(number, int(channel) if channel.isascii() and channel.isdigit() else 0, method)
    except Refused as refusal:
        refused = "" if refusal.reason is Refusal.CHANNEL_REFUSED else None
        return redirect(url_for("pages.index", order_no=refusal.page or number, refused=refused), 303)
    return redirect(url_for("pages.index", order_no=payment.page_no), 303)
