"""Bulk actions on payouts: one confirmation page with count, total and subtotals, then the outcome of each payout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask_babel import gettext

from blueprints.console import access
from blueprints.console.forms import message_of
from blueprints.console.locale import sentences
from models.tables.order import SELL, Order
from runtime.state import current
from services.errors import OperatorError
from services.operations import bulk, payouts
from services.operations.actions import Act, Given
from services.orders.next_step import manual_channels
from services.withdrawals import bank_files

PATHS = {"approve": Act.APPROVE, "reject": Act.REJECT, "sent": Act.MARK_PAID}


def _shown() -> dict[str, str]:
    """Return the seals of the form's payouts by order number."""
    pairs = (each.partition(".") for each in request.form.getlist("row"))
    return {order_no: seal for order_no, _, seal in list(pairs)[: bulk.MOST]}


def is_large(endpoint: str) -> bool:
    """Return whether the form of this endpoint pays out more than `confirm_above` in total."""
    limit = current().settings.confirm_above
    if not limit or endpoint not in ("payouts.approve", "payouts.sent"):
        return False
    return bulk.total(Order.numbered(SELL, _shown())) > limit


def _of_manual_channels(orders: list[Order]) -> list[Order]:
    manual = manual_channels()
    return [order for order in orders if order.channel_id in manual]


def _confirmation(kind: str) -> Any:
    """Show what a bulk action would do."""
    access.must_act()
    selected = list(dict.fromkeys(request.args.getlist("order_no")))
    numbers = selected[: bulk.MOST]
    if not numbers:
        flash(gettext("Select at least one payout."), "bad")
        return redirect(url_for("payouts.index"))
    rows = payouts.preview(PATHS[kind], numbers, access.actor().name)
    possible = [row for row in rows if row.action is not None]
    orders = [row.order for row in possible]
    return render_template(
        "console/payouts/confirm.html",
        kind=kind,
        rows=possible,
        others=[row for row in rows if row.action is None],
        total=bulk.total(orders),
        message_of=message_of,
        sentences=sentences,
        to_send=_of_manual_channels(orders),
        merchants=bulk.subtotals(orders, "merchant"),
        channels=bulk.subtotals(orders, "channel"),
        requests=[row for row in possible if row.is_requested],
        in_files=[row for row in possible if row.action and "in_file" in row.action.fields],
        is_cut=len(selected) > bulk.MOST,
    )


def _do(kind: str) -> Any:
    """Perform a bulk action that was confirmed, and show the outcome of each payout."""
    shown, actor = _shown(), access.actor()
    try:
        if PATHS[kind] is Act.APPROVE:
            outcomes = payouts.approve(shown, actor)
        else:
            typed = Given(reason=request.form.get("reason", ""), in_file=request.form.get("in_file", ""))
            given = {each: replace(typed, reference=request.form.get(f"reference-{each}", "")) for each in shown}
            outcomes = payouts.each(PATHS[kind], shown, given, actor)
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return redirect(url_for(f"payouts.{kind}", order_no=list(shown)), 303)
    by_state = {
        state: [each for each in outcomes if each.state == state]
        for state in (bulk.DONE, bulk.REQUESTED, bulk.REFUSED, bulk.LEFT)
    }
    done = Order.numbered(SELL, [each.order.order_no for each in by_state[bulk.DONE]])
    left_out = bank_files.why_not(done)
    return render_template(
        "console/payouts/outcome.html",
        kind=kind,
        found=by_state,
        message_of=message_of,
        total=bulk.total(done),
        to_send=_of_manual_channels(done),
        for_bank_file=[order.order_no for order in done if order.id not in left_out],
    )


def add_to(pages: Blueprint) -> None:
    """Add the pages of the bulk actions to the blueprint of the list."""
    for kind in PATHS:
        pages.add_url_rule(f"/{kind}", kind, _page, defaults={"kind": kind}, methods=["GET", "POST"])


def _page(kind: str) -> Any:
    return _do(kind) if request.method == "POST" else _confirmation(kind)
