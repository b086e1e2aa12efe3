"""The page of one order: its timeline, its actions, and its sensitive values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import segno
from flask import flash, redirect, render_template, request, url_for
from flask_babel import gettext
from markupsafe import Markup

from blueprints.console import access, action_labels, labels
from blueprints.console.access import current_user
from blueprints.console.columns import same_amount
from blueprints.console.forms import find_or_404, message_of, translate
from blueprints.console.list_page import pages_of_one
from blueprints.console.pages import batches
from models.tables.order import CANCELLED, COMPLETED, CONFIRMED, PAID, PENDING, Order
from models.tables.refund import refunds_of
from runtime import clock
from runtime.clock import in_china
from runtime.money import hundredths
from runtime.state import current
from services.channels.calls import driver_of, pay_url
from services.console import order_list, timeline
from services.epay import queries
from services.errors import OperatorError
from services.operations import actions, notes, perform, refunds
from services.operations.actions import Act, Action, Effect, Given
from services.orders.resolution import Case
from services.orders.verdict import COMPLETE
from services.refunds import approve as approval
from services.security import masking, second_operator

pages = pages_of_one("order", "orders")


def find_order(order_no: str) -> Order:
    """Return the order of this number. Raises NotFound."""
    return find_or_404(timeline.find, order_no)


def given_values() -> Given:
    """Return the values that the form has for an action."""
    names = ("reason", "amount", "reference", "date", "shared", "in_file", "platform", "again")
    return Given(**{name: request.form.get(name, "") for name in names})


def sends_much(order_no: str) -> bool:
    """Return whether the form pays out or refunds more than `confirm_above`. Raises NotFound."""
    limit, key = current().settings.confirm_above, request.form.get("action", "")
    if not limit:
        return False
    order, given = find_order(order_no), given_values()
    fen = perform.refund(order, key, given, access.actor().who) if order.is_buy else perform.payout(order, key, given)
    return fen > limit


def act_on(order: Order) -> None:
    """Perform the form's action and flash the outcome or the refusal."""
    key, seal = request.form.get("action", ""), request.form.get("seal", "")
    try:
        action, result = perform.perform(order, key, seal, given_values(), access.actor())
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
    else:
        kind, text = action_labels.outcome(action, result, timeline.find(order.order_no))
        flash(text, kind)


@pages.get("/<order_no>")
def show(order_no: str) -> str:
    """Show the order with masked sensitive values."""
    order = find_order(order_no)
    return _page(order, timeline.masked(order))


@pages.get("/<order_no>/reveal")
def revealed(order_no: str) -> Any:
    """Redirect to the page without the values: they are shown only once."""
    return redirect(url_for(".show", order_no=order_no))


@pages.post("/<order_no>/reveal")
def reveal(order_no: str) -> str:
    """Show the order with its sensitive values in full, once."""
    order = find_order(order_no)
    return _page(order, timeline.reveal(order, access.actor()), revealed=True)


@pages.post("/<order_no>/act")
def act(order_no: str) -> Any:
    """Perform one of the possible actions."""
    act_on(find_order(order_no))
    return redirect(url_for(".show", order_no=order_no), 303)


@pages.post("/<order_no>/note")
def note(order_no: str) -> Any:
    """Write a note for other operators."""
    order, actor = find_order(order_no), access.actor()
    try:
        notes.write(order, request.form.get("text", ""), actor.who, actor)
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
    else:
        flash(gettext("Note saved."), "good")
    return redirect(url_for(".show", order_no=order_no), 303)


@pages.get("/<order_no>/send")
def sending(order_no: str) -> Any:
    """Redirect to the page without the payee's details: they are shown only once."""
    return redirect(url_for(".show", order_no=order_no))


@pages.post("/<order_no>/send")
def send(order_no: str) -> Any:
    """Approve a withdrawal of a manual channel, then show its payee in full, once, so that it can be sent."""
    act_on(find_order(order_no))
    order = find_order(order_no)
    if order.is_buy or order.status != CONFIRMED or not driver_of(order.channel).by_hand:
        return redirect(url_for(".show", order_no=order_no), 303)
    return _page(order, timeline.reveal(order, access.actor()), revealed=True)


# Acts that lead an order on, the first of which is the next one, unless they have one of these effects.
NEXT = (Act.SECOND_APPROVAL, Act.APPROVE, Act.MARK_PAID, Act.CHECK)
LEADS_NOWHERE = (Effect.PAID_AGAIN, Effect.PAID_LATE, Effect.SENT_AGAIN, Effect.SENT_AFTER_END)
# Resolutions that only close the exception.
CLOSE_ONLY = (Case.IS_COMPLETED, Case.STAYS_CREDITED, Case.IS_CANCELLED)
# The other acts on the whole order, in the order of their buttons.
OTHERS = (
    Act.SECOND_APPROVAL,
    Act.APPROVE,
    Act.MARK_PAID,
    Act.WITHDRAW_REQUEST,
    Act.CHECK,
    Act.REJECT,
    Act.REPORT_RETURNED,
    Act.NOT_RECEIVED,
    Act.REDELIVER_ALL,
)


def _next(order: Order, possible: list[Action]) -> Action | None:
    """Return the action that leads the order on; None if there is none, or an exception must be decided on first."""
    if order.status in (COMPLETED, CANCELLED) or any(action.exception for action in possible):
        return None
    leads = [each for each in possible if each.act in NEXT and each.effect not in LEADS_NOWHERE]
    return min(leads, key=lambda each: NEXT.index(each.act), default=None)


def _decisions(possible: list[Action]) -> list[Action]:
    """Return the actions on exceptions; completing the order comes first, and closing without an effect last."""
    found = (each for each in possible if each.exception)
    return sorted(found, key=lambda each: (each.effect in CLOSE_ONLY, each.resolution != COMPLETE))


def _payment_link(order: Order) -> dict[str, str]:
    """Return the payment page's address and its QR code while the deposit can be paid."""
    if not order.is_buy or order.status != PENDING:
        return {}
    url = pay_url(order.order_no)
    picture = segno.make(url, error="m").svg_inline(scale=4, border=2, dark="#000", light="#fff", omitsize=True)
    return {"url": url, "qr": Markup(picture)}


def _epay(order: Order) -> dict[str, Any]:
    """Return what the shop asked for if the order came through the epay gateway; addresses are masked."""
    asked = queries.request_of(order)
    if asked is None:
        return {}
    urls = {name: masking.address(getattr(asked.payment, name)) for name in ("notify_url", "return_url")}
    return {**vars(asked), **urls}


def _page(order: Order, sensitive: dict[str, str], revealed: bool = False) -> str:
    whole = timeline.order_timeline(order)
    every, driver = actions.possible(order), driver_of(order.channel)
    request_of = second_operator.waiting(order)
    is_own = request_of is not None and request_of.who == current_user.name
    who = access.actor().who
    own = {each.id for each in refunds_of(order) if approval.waits_for_another(each, who)}
    possible = [
        each
        for each in every
        if not (is_own and each.act is Act.SECOND_APPROVAL)
        and not (each.refund and each.act is Act.APPROVE_REFUND and each.refund.id in own)
    ]
    why_not_refund, is_shown = refunds.why_not_refund(order)
    following = _next(order, possible)
    rest = [each for each in possible if each.act in OTHERS and each != following]
    folded = sorted(rest, key=lambda each: OTHERS.index(each.act))
    waits_as_claim = order.is_buy and order.status == PAID and driver.by_hand
    return render_template(
        "console/order.html",
        order=order,
        timeline=whole,
        sensitive=sensitive,
        revealed=revealed,
        account=timeline.account_ending(order),
        actions=possible,
        decisions=_decisions(possible),
        payout_request=request_of,
        refund_action=next((each for each in possible if each.act is Act.REFUND), None),
        why_not_refund=translate(why_not_refund) if is_shown else "",
        own_refunds=own,
        open_refund_exceptions=Counter(each.reference for each in whole.exceptions if each.is_open),
        next_action=following,
        folded=folded,
        payment_link=_payment_link(order),
        refusal=batches.refusal(order),
        same_amount=same_amount(*order_list.add_payers([order])) if waits_as_claim else "",
        epay=_epay(order),
        tried=[(name, labels.known(why)) for name, why in whole.tried],
        by_hand=driver.by_hand,
        checks_status=driver.checks_status,
        plain_amount=hundredths(order.amount),
        today=in_china(clock.now()).date().isoformat(),
    )
