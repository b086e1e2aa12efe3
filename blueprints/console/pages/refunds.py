"""The list of refunds, their approval in bulk, and the form that refunds a deposit."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext

from blueprints.console import access, action_labels, labels
from blueprints.console.access import current_user
from blueprints.console.columns import Column, channel_link, marked, merchant_columns, order_link, refund_link
from blueprints.console.filters import CHANNEL, MERCHANT, SINCE, UNTIL, Filter, choices
from blueprints.console.forms import find_or_404, message_of, translate
from blueprints.console.list_page import BulkAction, ListPage, pages_of_one
from blueprints.console.pages.order import find_order, given_values
from blueprints.console.pages.order import pages as order_pages
from models.tables.order import Order
from runtime.money import hundredths
from runtime.state import current
from services.channels.calls import driver_of
from services.console import refund_list
from services.console.refund_list import REFUNDED, REJECTED, REVIEW, SEND, UNDER_WAY
from services.errors import OperatorError
from services.operations import actions, bulk, perform, refund_reviews, refunds
from services.operations.actions import Act, Given

STATES = {
    REVIEW: lazy_gettext("To approve"),
    SEND: lazy_gettext("To send"),
    UNDER_WAY: lazy_gettext("In progress"),
    REFUNDED: lazy_gettext("Refunded"),
    REJECTED: lazy_gettext("Cancelled"),
}
PATHS = {"approve": Act.APPROVE_REFUND, "reject": Act.REJECT_REFUND}


def _facts(rows: list[Any]) -> dict[str, Any]:
    """Return the actions on selected refunds, which only the tab with those to approve has."""
    is_review = request.args.get("flt_state") == REVIEW and current_user.may_act
    approve = BulkAction("refunds.approve", lazy_gettext("Approve"), "primary")
    return {"bulk": (approve, BulkAction("refunds.reject", lazy_gettext("Reject"), "danger")) if is_review else ()}


REFUNDS = ListPage(
    "refunds",
    lazy_gettext("Refunds"),
    browse=refund_list.Refunds,
    empty=lazy_gettext("No refunds yet."),
    hint=lazy_gettext("Refund a deposit on its order's page. Merchants refund by the API if you allow it."),
    filters=(
        Filter("text", lazy_gettext("Number of the refund, the order, the merchant or the channel"), "search"),
        Filter("state", lazy_gettext("Refunds"), "tab", choices=choices(STATES)),
        MERCHANT,
        CHANNEL,
        SINCE,
        UNTIL,
    ),
    columns=(
        Column(
            "order_no",  # so that the page lays it out as a list of orders
            lazy_gettext("Refund number"),
            lambda row: row.refund_no,
            link=refund_link,
            note=lambda row: row.merchant_refund_no,
        ),
        Column(
            "merchant_refund_no",
            lazy_gettext("Merchant refund number"),
            lambda row: row.merchant_refund_no or "",
            on="export",
        ),
        Column("createtime", lazy_gettext("Created"), lambda row: row.createtime, "time"),
        Column("order", lazy_gettext("Order"), lambda row: row.order.order_no, link=lambda row: order_link(row.order)),
        *merchant_columns(),
        Column(
            "channel",
            lazy_gettext("Channel"),
            lambda row: row.channel.name,
            link=lambda row: channel_link(row.channel),
        ),
        Column("amount", lazy_gettext("Amount (¥)"), lambda row: row.amount, "money"),
        Column("fees", lazy_gettext("Fee returned (¥)"), lambda row: row.service_amount, "money"),
        Column(
            "deducted",
            lazy_gettext("Deducted from the merchant (¥)"),
            lambda row: row.merchant_actual_amount,
            "money",
            on="export",
        ),
        Column(
            "paid_from",
            lazy_gettext("Paid from"),
            lambda row: labels.name_of(labels.REFUNDS_PAID_FROM, row.paid_from),
            on="export",
        ),
        Column("status", lazy_gettext("Status"), lambda row: marked(row, labels.refund_status(row)), "states"),
        Column("who", lazy_gettext("Requested by"), lambda row: labels.who(row.who)),
        Column("approved_by", lazy_gettext("Approved by"), lambda row: labels.who(row.approved_by), on="export"),
        Column("reason", lazy_gettext("Reason"), lambda row: row.reason, on="export"),
        Column("reference", lazy_gettext("Channel refund ID"), lambda row: row.channel_reference, on="export"),
        Column("returned_on", lazy_gettext("Returned on"), lambda row: row.returned_on, on="export"),
        Column("updatetime", lazy_gettext("Updated"), lambda row: row.updatetime, "time", on="export"),
    ),
    number="refund_no",
    counts=refund_list.counts_by_state,
    facts=_facts,
    unindexed=("merchant", "channel"),
)
pages = REFUNDS.blueprint()
one = pages_of_one("refund", "refunds")


@one.get("/<refund_no>")
def show(refund_no: str) -> Any:
    """Redirect to the refund on its order's page."""
    return redirect(refund_link(find_or_404(refunds.find, refund_no)))


# --- several refunds at once


def _shown() -> dict[str, str]:
    """Return the seals of the form's refunds by number."""
    pairs = (each.partition(".") for each in request.form.getlist("row"))
    return {refund_no: seal for refund_no, _, seal in list(pairs)[: bulk.MOST]}


def is_large(endpoint: str) -> bool:
    """Return whether the form of this endpoint approves refunds of more than `confirm_above` in total."""
    limit = current().settings.confirm_above
    if not limit or endpoint != "refunds.approve":
        return False
    return bulk.total(refund_reviews.numbered(_shown())) > limit


def _confirmation(kind: str) -> Any:
    """Show what a bulk action would do."""
    access.must_act()
    selected = list(dict.fromkeys(request.args.getlist("refund_no")))
    if not selected:
        flash(gettext("Select at least one refund."), "bad")
        return redirect(url_for("refunds.index", flt_state=REVIEW))
    rows = refund_reviews.preview(PATHS[kind], selected[: bulk.MOST], access.actor().who)
    possible = [row.refund for row in rows if row.action is not None]
    return render_template(
        "console/refunds/confirm.html",
        kind=kind,
        rows=[row for row in rows if row.action is not None],
        others=[row for row in rows if row.action is None],
        total=bulk.total(possible),
        deducted=sum(each.merchant_actual_amount for each in possible),
        message_of=message_of,
        merchants=bulk.subtotals(possible, "merchant"),
        channels=bulk.subtotals(possible, "channel"),
        is_cut=len(selected) > bulk.MOST,
        most=bulk.MOST,
    )


def _do(kind: str) -> Any:
    """Perform a bulk action that was confirmed, and show the outcome of each refund."""
    shown, actor = _shown(), access.actor()
    try:
        if kind == "approve":
            outcomes = refund_reviews.approve(shown, actor)
        else:
            outcomes = refund_reviews.reject(shown, Given(reason=request.form.get("reason", "")).text("reason"), actor)
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
        return redirect(url_for(f"refunds.{kind}", refund_no=list(shown)), 303)
    by_state = {
        state: [each for each in outcomes if each.state == state] for state in (bulk.DONE, bulk.REFUSED, bulk.LEFT)
    }
    return render_template(
        "console/refunds/outcome.html",
        kind=kind,
        found=by_state,
        message_of=message_of,
        total=bulk.total(each.refund for each in by_state[bulk.DONE]),
    )


def _bulk(kind: str) -> Any:
    return _do(kind) if request.method == "POST" else _confirmation(kind)


for _kind in PATHS:
    pages.add_url_rule(f"/{_kind}", _kind, _bulk, defaults={"kind": _kind}, methods=["GET", "POST"])


# --- the refund of a deposit


@order_pages.route("/<order_no>/refund", methods=["GET", "POST"])
def refund(order_no: str) -> Any:
    """Show the form of a refund, then what it does, then request it."""
    access.must_act()
    order = find_order(order_no)
    why_not, _ = refunds.why_not_refund(order)
    if why_not:
        flash(translate(why_not), "bad")
        return redirect(url_for("order.show", order_no=order_no), 303)
    if request.method == "GET":
        return _form(order)
    given = given_values()
    if request.form.get("sure") != "yes":
        return _confirm(order, given)
    try:
        action, result = perform.perform(order, Act.REFUND, request.form.get("seal", ""), given, access.actor())
    except OperatorError as refusal:
        return _form(order, given, refusal)
    flash(action_labels.refund_outcome(action, result), "good")
    return redirect(url_for("order.show", order_no=order_no), 303)


def _form(order: Order, given: Given | None = None, refusal: OperatorError | None = None) -> Any:
    """Show the fields, with the reason of a refusal; return to the order if nothing is left to refund by now."""
    try:
        whole = refunds.terms(order, None, access.actor().who, by_platform=False)
    except OperatorError as gone:
        flash(message_of(gone), "bad")
        return redirect(url_for("order.show", order_no=order.order_no), 303)
    page = render_template(
        "console/refunds/form.html",
        order=order,
        terms=whole,
        refunded=refunds.refunded_of(order),
        given=given or Given(amount=hundredths(whole.quote.left)),
        problem=message_of(refusal) if refusal else "",
        wrong=set(refusal.wrong) if refusal else set(),
        fees=labels.name_of(labels.REFUND_FEES, order.merchant.refund_fees),
    )
    return page, 422 if refusal else 200


def _confirm(order: Order, given: Given) -> Any:
    """Show what the refund does, or why it is not possible."""
    try:
        given.text("reason")
        terms = refunds.terms(order, given.fen(), access.actor().who, by_platform=bool(given.platform))
        refunds.check_reason(given.reason.strip())
        if terms.available_after < 0:
            raise OperatorError(refunds.NOT_COVERED, "amount")
    except OperatorError as refusal:
        return _form(order, given, refusal)
    return render_template(
        "console/refunds/sure.html",
        order=order,
        terms=terms,
        given=given,
        amount=hundredths(terms.quote.amount),
        action=next(each for each in actions.possible(order) if each.act is Act.REFUND),
        paid_from=labels.name_of(labels.REFUNDS_PAID_FROM, terms.quote.paid_from),
        by_hand=driver_of(order.channel).by_hand,
        back=url_for(".refund", order_no=order.order_no),
    )
