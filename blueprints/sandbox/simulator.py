"""`/sandbox`: the demo's clock, its orders and their outcomes, its channels."""

from __future__ import annotations

from typing import Any

from flask import Response, render_template, request
from flask_babel import gettext

from blueprints.api.envelope import ok
from blueprints.checkout.payment_page import OUTCOMES
from blueprints.sandbox.access import done, form_of, sandbox, wants_page
from blueprints.sandbox.inbox import LABELS
from gateways.sandbox.driver import PAYOUT_OUTCOMES, SandboxDriver
from models.tables.order import Order
from runtime import clock
from runtime.money import grouped, hundredths
from schemas.sandbox.forms import OPEN, ChannelForm, ClockForm, MerchantForm, OrderForm, PlayForm, RefundForm
from schemas.views import STATUS_TEXTS
from services.channels import channel_setup
from services.channels.calls import driver_of
from services.console.timeline import order_timeline
from services.errors import N_, ApiError, Code, OperatorError
from services.ledger import accounts
from services.merchants import merchant_setup
from services.sandbox import adjustable_clock, simulator
from services.sandbox.inbox import inbox
from services.sandbox.seeding import INBOX
from services.withdrawals import approve

SHOWN = 30
MOVES = (
    (60, N_("1 minute")),
    (300, N_("5 minutes")),
    (1_800, N_("30 minutes")),
    (3_600, N_("1 hour")),
    (86_400, N_("1 day")),
)
# Outcomes of refunds: label, effect.
REFUNDS = {
    "success": (N_("Refund"), N_("The payer gets the money at once.")),
    "processing": (N_("Refund in 3 seconds"), N_("The channel accepts the refund and sends a notice when it is done.")),
    "fail": (N_("Fail"), N_("The channel rejects the refund.")),
    "silent": (N_("Stay in progress"), N_("The channel accepts the refund and never finishes it.")),
    "timeout": (N_("Channel timeout"), N_("The channel does not respond for a while.")),
    "abnormal": (
        N_("Payer's account closed"),
        N_("The money does not reach the payer. An operator must act at the channel."),
    ),
    "not_enough": (N_("Low balance"), N_("The channel's balance is too low until you choose another outcome.")),
    "late_fail": (N_("Fail after success"), N_("The channel reports a success, and 5 seconds later a failure.")),
}
MOVE_TO = {"next": adjustable_clock.move_to_next, "callback": adjustable_clock.move_to_callback}


sandbox.add_app_template_filter(clock.rfc3339)


@sandbox.get("")
def index() -> str:
    """Show the simulator."""
    return _page()


def _page(wrong: str = "") -> str:
    chosen = {value: (gettext(label), gettext(what)) for value, label, what in OUTCOMES}
    now = inbox().behaviour
    return render_template(
        "sandbox/simulator.html",
        now=clock.now(),
        ahead=clock.ahead(),
        next_due=adjustable_clock.next_due(),
        next_callback=adjustable_clock.next_callback(),
        moves=[(seconds, gettext(text)) for seconds, text in MOVES],
        delays=[(0, gettext("immediately")), *((seconds, gettext(text)) for seconds, text in MOVES)],
        orders=[(order, grouped(order.amount)) for order in simulator.open_orders(SHOWN)],
        planned={plan.order_no: plan for plan in simulator.planned()},
        outcomes=chosen,
        payouts=PAYOUT_OUTCOMES,
        refunds=[(each, grouped(each.amount)) for each in simulator.refunds(SHOWN)],
        next_refunds=simulator.next_refunds(),
        refund_outcomes={value: (gettext(label), gettext(what)) for value, (label, what) in REFUNDS.items()},
        opens=OPEN,
        merchants=simulator.merchants(),
        inbox=INBOX,
        wrong=wrong,
        channels=[(channel, channel_setup.config_of(channel)) for channel in simulator.channels()],
        failing=gettext(LABELS[now.answer]) if now.answer != "200" else "",
        statuses=STATUS_TEXTS,
    )


@sandbox.get("/clock")
def show_clock() -> Response:
    """Return the demo's time, its lead over the machine's clock in seconds, and when work is next due."""
    return ok({"now": clock.now(), "ahead": clock.ahead(), "next": adjustable_clock.next_due()})


@sandbox.post("/clock")
def move_clock() -> Any:
    """Move the clock ahead by `seconds`, or `to` the next due work or callback. The response reports the work done."""
    form = form_of(ClockForm())
    moved = adjustable_clock.move(form["seconds"]) if "seconds" in form else MOVE_TO[form["to"]]()
    return done(vars(moved))


def _order(order_no: str) -> Order:
    order = Order.find(order_no)
    if order is None:
        raise ApiError(Code.ORDER_NOT_FOUND)
    return order


def _own(order_no: str) -> tuple[Order, SandboxDriver]:
    """Return an order on a sandbox channel, with its driver.

    Raises:
        ApiError: ORDER_NOT_FOUND.
        OperatorError: it is on another channel, which might move real money.
    """
    order = _order(order_no)
    driver, channel = driver_of(order.channel), order.channel
    if isinstance(driver, SandboxDriver):
        return order, driver
    if not driver.by_hand:
        text = N_("The channel %(channel)s has the provider %(driver)s. The simulator plays sandbox channels only.")
        raise OperatorError(text, "order_no", channel=channel.name, driver=channel.driver)
    steps = ("paid",) if order.is_buy else ("approve", "paid")
    commands = " && ".join(f"tillbook order {step} {order.order_no}" for step in steps)
    text = N_("The channel %(channel)s is manual: confirm the order on the console, or run %(commands)s")
    raise OperatorError(text, "order_no", channel=channel.name, commands=commands)


@sandbox.post("/pay")
def pay() -> Any:
    """Play an outcome for an order, now or later.

    A browser returns to the payment page or the simulator; a script receives the order's status.
    """
    form = form_of(PlayForm())
    outcome, seconds = form["outcome"], form["after"]
    order, driver = _own(form["order_no"])
    if seconds:
        simulator.plan(order, outcome, seconds)
    else:
        simulator.play(order, driver, outcome)
    said = {"order_no": order.order_no, "outcome": outcome, "status": Order.get_by_id(order.id).status}
    if request.form.get("from") == "simulator":
        return done(said)
    return done(said, "pages.index", order_no=order.order_no, played=outcome) if order.is_buy else ok(said)


@sandbox.post("/refund")
def refund() -> Any:
    """Choose the outcome of a deposit's open refund; if it has none, of its next one: `order_no`, `outcome`."""
    form = form_of(RefundForm())
    order, _ = _own(form["order_no"])
    simulator.play_refund(order, form["outcome"])
    return done({"order_no": order.order_no, "outcome": form["outcome"]})


@sandbox.post("/accept")
def accept() -> Any:
    """Approve a sandbox withdrawal, as an operator would."""
    order, _ = _own(form_of(OrderForm())["order_no"])
    approve.approve(order)
    return done({"order_no": order.order_no, "status": Order.get_by_id(order.id).status})


@sandbox.post("/channel")
def set_channel() -> Any:
    """Set how a sandbox channel behaves: `open`, `payout`, `refund`."""
    form = form_of(ChannelForm())
    channel = next((each for each in simulator.channels() if each.id == form["channel"]), None)
    if channel is None:
        raise ApiError(Code.CHANNEL_NOT_FOUND)
    wanted: dict[str, Any] = {name: form[name] for name in ("open", "payout", "refund") if name in form}
    channel_setup.set_channel(channel, wanted)
    return done({"channel": channel.id, **wanted})


@sandbox.post("/merchant")
def set_merchant() -> Any:
    """Set a demo merchant's callback URL: `key`, `callback_url`; empty for the inbox."""
    form = form_of(MerchantForm())
    merchant = merchant_setup.find_merchant(form["key"])
    if not merchant.demo:
        raise ApiError(Code.PATH_NOT_FOUND)
    before = merchant.callback_url
    try:
        merchant_setup.set_merchant(merchant, callback_url=form["callback_url"])
    except OperatorError as error:
        if not wants_page():
            raise
        (said,) = error.wrong["callback_url"]
        return _page(gettext(said)), 422
    return done({"key": merchant.key, "callback_url": form["callback_url"], "before": before})


@sandbox.get("/orders/<order_no>")
def order_story(order_no: str) -> Response:
    """Return an order's status, the kinds of its open exceptions, and its callbacks by type, for tests."""
    whole = order_timeline(_order(order_no))
    callbacks = {
        each.type: {"id": each.webhook_id, "state": each.state, "attempts": each.attempts} for each in whole.callbacks
    }
    open_kinds = sorted(each.kind for each in whole.exceptions if each.resolution is None)
    return ok({"order_no": order_no, "status": whole.order.status, "exceptions": open_kinds, "callbacks": callbacks})


@sandbox.get("/balances")
def balances() -> Response:
    """Return the available and the held balance of each merchant by key, in yuan."""
    found = accounts.balances()
    return ok({key: {name: hundredths(row[name]) for name in ("available", "held")} for key, row in found.items()})
