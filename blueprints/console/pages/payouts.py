"""The list of payouts: what to approve, what to send, and the payees' details."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from flask import flash, g, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext
from markupsafe import Markup

from blueprints.console import access
from blueprints.console.access import current_user
from blueprints.console.columns import Column, marked, merchant_columns, status_of
from blueprints.console.filters import CHANNEL, MERCHANT, SINCE, UNTIL, Filter, choices
from blueprints.console.list_page import BulkAction, ListPage
from blueprints.console.pages import batches, bulk_payouts
from blueprints.console.pages.orders import CHANNEL_COLUMNS, ORDER_COLUMNS
from runtime.money import hundredths
from services.console import order_list, timeline
from services.console.order_list import APPROVE, SEND, UNDER_WAY, WAITING
from services.platform.safe_text import cells, neutral

STATES = {
    APPROVE: lazy_gettext("To approve"),
    SEND: lazy_gettext("To send"),
    WAITING: lazy_gettext("To do"),
    UNDER_WAY: lazy_gettext("In progress"),
    "all": lazy_gettext("All open"),
}
TABS = (APPROVE, SEND, UNDER_WAY, "all")


@dataclass(frozen=True)
class _StateFilter(Filter):
    """The tabs. Without a choice, those to approve are shown, or those to send if there are none."""

    def given(self) -> str:
        if self.argument in request.args:
            return super().given()
        if "payouts_tab" not in g:  # the page asks several times
            is_sending = not order_list.payouts_to_approve() and order_list.payouts_to_send()
            g.payouts_tab = SEND if is_sending else APPROVE
        return str(g.payouts_tab)


BATCH = Filter("batch", lazy_gettext("Bank file"), "text")
STATE = _StateFilter("state", lazy_gettext("Payouts"), "tab", choices=choices(STATES), default=APPROVE)


def _account_changed(order: Any) -> bool:
    """Return whether the bank refused another account than the one that the payout goes to now."""
    return bool(order.refused) and order.refused.account_id != order.account_id


def _to_do(order: Any) -> tuple[str, str]:
    if order.is_requested:
        return "pending", gettext("Needs a second operator")
    if order.refused and not _account_changed(order):
        return "bad", gettext("Refused by the bank")
    texts = {APPROVE: ("pending", gettext("Review")), SEND: ("pending", gettext("Send manually"))}
    under_way = gettext("Sent, not confirmed yet") if order.status == "paid" else gettext("At the channel")
    return texts.get(order.waits, ("under-way", under_way))


def _bank(order: Any) -> str:
    if order.refused:
        return gettext("Account changed") if _account_changed(order) else order.refused.reason
    return gettext("Batch %(batch)s", batch=order.batch) if order.batch and order.waits else ""


class _ToDoColumn(Column):
    """What to do with a payout, with a link to the actions on one that the bank refused."""

    def html(self, row: Any) -> Any:
        """Return the cell of a row on the page."""
        if not row.refused or _account_changed(row) or not current_user.may_act:
            return super().html(row)
        url, text = url_for("order.show", order_no=row.order_no, _anchor="refused"), gettext("Reject or change account")
        return Markup('{} <small><a href="{}">{}</a></small>').format(super().html(row), url, text)


class _PayeeColumn(Column):
    """The payee of a payout that waits, masked; in full with buttons to copy it after *Reveal payees*."""

    def html(self, row: Any) -> Any:
        """Return the cell of a row on the page."""
        if not row.waits or row.account is None:
            return ""
        payee = g.get("payees", {}).get(row.id)
        facts = {"order": row, "payee": payee or timeline.masked(row), "revealed": payee is not None}
        facts["neutral"] = neutral
        return Markup(render_template("console/payouts/payee.html", **facts, amount=hundredths(row.amount)))


# By tab: the actions on selected payouts.
BULK = {
    APPROVE: (
        BulkAction("payouts.approve", lazy_gettext("Approve"), "primary"),
        BulkAction("payouts.reject", lazy_gettext("Reject"), "danger"),
    ),
    SEND: (
        BulkAction("payouts.sent", lazy_gettext("Mark as paid out"), "primary"),
        BulkAction("payouts.batch", lazy_gettext("Create bank file")),
        BulkAction("payouts.reject", lazy_gettext("Reject"), "danger"),
    ),
}


def _copied(order: Any) -> list[str]:
    """Return what *Copy all payees* copies of a payout: a row for a spreadsheet."""
    name, account, bank, branch = (
        g.payees[order.id].get(field, "") for field in ("real_name", "card_number", "bank", "sub_bank")
    )
    return [order.order_no, name, account, f"{bank} {branch}".strip(), hundredths(order.amount)]


def _facts(rows: list[Any]) -> dict[str, Any]:
    state = STATE.given() or "all"
    to_send = [row for row in rows if row.waits == SEND and row.account is not None]
    if g.get("reveals_payees"):
        timeline.record_reveals(to_send, access.actor())
        g.payees = {row.id: timeline.personal_values(row) for row in to_send}
    return {
        "tabs": [(name, STATES[name]) for name in TABS],
        "tab": state,
        "counts": {APPROVE: order_list.payouts_to_approve(), SEND: order_list.payouts_to_send()},
        "bulk": BULK.get(state, ()) if current_user.may_act else (),
        "to_send": to_send,
        "in_batches": sorted(Counter(row.batch for row in to_send if row.batch).items()),
        "copied": cells(map(_copied, to_send), "excel-tab") if "payees" in g else "",
    }


PAYOUTS = ListPage(
    "payouts",
    lazy_gettext("Payouts"),
    browse=order_list.Payouts,
    empty=lazy_gettext("No payouts waiting."),
    hint=lazy_gettext("Withdrawals that you must approve or send appear here."),
    filters=(STATE, MERCHANT, CHANNEL, BATCH, SINCE, UNTIL),
    columns=(
        *ORDER_COLUMNS,
        *merchant_columns(),
        *CHANNEL_COLUMNS,
        Column("amount", lazy_gettext("Payout amount (¥)"), lambda order: order.amount, "money"),
        Column(
            "held",
            lazy_gettext("Including fees (¥)"),
            lambda order: order.merchant_actual_amount,
            "money",
            on="export",
        ),
        _PayeeColumn("payee", lazy_gettext("Payee"), lambda order: "", on="page"),
        Column("status", lazy_gettext("Status"), status_of, "state", on="export"),
        _ToDoColumn("to_do", lazy_gettext("To do"), lambda order: marked(order, _to_do(order)), "states", note=_bank),
    ),
    template="console/payouts/list.html",
    facts=_facts,
    limit=100,
    oldest_first=True,
)

pages = PAYOUTS.blueprint()


@pages.post("/reveal")
def reveal() -> Any:
    """Show the list with the details of the payees to send to, once, after recording it for each order."""
    g.reveals_payees = True
    return PAYOUTS.index()


@pages.get("/reveal")
def revealed() -> Any:
    """Redirect to the list without the details: they are shown only once."""
    return redirect(f"{url_for('.index')}?{request.query_string.decode()}")


@pages.get("/next")
def following() -> Any:
    """Redirect to the next payout that needs an operator, or to the list if there is none."""
    order = order_list.next_payout(request.args.get("after", ""))
    if order is None:
        flash(gettext("No more payouts waiting."), "good")
        return redirect(url_for(".index"))
    return redirect(url_for("order.show", order_no=order.order_no))


bulk_payouts.add_to(pages)
pages.add_url_rule("/batch", "batch", batches.new, methods=["GET", "POST"])
