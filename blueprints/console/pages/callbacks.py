"""The list of callbacks, their redelivery, and the page of one: its body and its attempts."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from flask import abort, flash, redirect, render_template, request, url_for
from flask_babel import gettext, lazy_gettext

from blueprints.console import access, filters, labels
from blueprints.console.access import current_user
from blueprints.console.columns import Column, merchant_columns, order_link
from blueprints.console.filters import MERCHANT, SINCE, UNTIL, Filter, choices
from blueprints.console.forms import find_or_404, message_of, row_id, translate
from blueprints.console.list_page import BulkAction, ListPage, pages_of_one
from blueprints.console.locale import ngettext, sentences
from blueprints.console.pages.order import act_on, find_order
from models.tables.outbox import CALLBACK_STATES
from services.callbacks import delivery, epay_notices
from services.console import record_lists, timeline
from services.errors import OperatorError
from services.operations import actions, redelivery
from services.security import masking


def _last_answer(row: Any) -> str:
    if row.last is None:
        return ""
    if delivery.is_redirect(row.last.status):
        return gettext("HTTP %(status)s: redirect, not followed", status=row.last.status)
    return f"HTTP {row.last.status}" if row.last.status is not None else row.last.answer


def _facts(rows: list[Any]) -> dict[str, Any]:
    """Return how many callbacks *Resend all* would send, for accounts that may press it."""
    wanted = filters.read(CALLBACKS.filters)
    offers = rows and current_user.may_act and not wanted.wrong
    return {"resendable": redelivery.count(wanted.values) if offers else 0, "most": redelivery.MOST}


CALLBACKS = ListPage(
    "callbacks",
    lazy_gettext("Callbacks"),
    browse=record_lists.Callbacks,
    empty=lazy_gettext("No callbacks yet."),
    hint=lazy_gettext("Merchants with a callback URL are notified of the result of each order."),
    filters=(
        Filter("state", lazy_gettext("Status"), "tab", choices=choices(labels.CALLBACKS)),
        Filter("event", lazy_gettext("Event"), choices=choices({name: name for name in redelivery.EVENTS})),
        MERCHANT,
        Filter("order", lazy_gettext("Order number"), "text"),
        SINCE,
        UNTIL,
    ),
    columns=(
        Column("webhook_id", lazy_gettext("Callback"), lambda row: row.webhook_id, on="export"),
        Column(
            "createtime",
            lazy_gettext("Created"),
            lambda row: row.createtime,
            "time",
            link=lambda row: url_for("callback.show", webhook_id=row.webhook_id),
        ),
        *merchant_columns(),
        Column(
            "order_no",
            lazy_gettext("Order number"),
            lambda row: row.order.order_no,
            link=lambda row: order_link(row.order),
        ),
        Column("event", lazy_gettext("Event"), lambda row: row.type),
        Column(
            "state",
            lazy_gettext("Status"),
            lambda row: (row.state, labels.name_of(labels.CALLBACKS, row.state)),
            "state",
        ),
        Column("attempts", lazy_gettext("Attempts"), lambda row: row.attempts, "number", note=_last_answer),
        Column("last", lazy_gettext("Last response"), _last_answer, on="export"),
        Column("due_at", lazy_gettext("Next attempt"), lambda row: row.due_at, "time"),
    ),
    template="console/callbacks/list.html",
    facts=_facts,
    bulk=(BulkAction("callbacks.resend", lazy_gettext("Resend")),),
    number="webhook_id",
)
every = CALLBACKS.blueprint()


@every.get("/resend-all")
def resend_all() -> Any:
    """Show what the redelivery of all callbacks that match the filters would send."""
    access.must_act()
    wanted = filters.read(CALLBACKS.filters)
    if wanted.wrong:
        return redirect(CALLBACKS.list_url())
    return _confirmation(redelivery.of_filter(wanted.values))


@every.get("/resend")
def resend() -> Any:
    """Show what the redelivery of the selected callbacks would send."""
    access.must_act()
    selected = request.args.getlist("webhook_id")
    if not selected:
        flash(gettext("Select at least one callback."), "bad")
        return redirect(CALLBACKS.list_url())
    return _confirmation(redelivery.of_selection(selected))


def _confirmation(preview: redelivery.Preview) -> str:
    return render_template(
        "console/callbacks/resend.html",
        preview=preview,
        most=redelivery.MOST,
        list_url=CALLBACKS.list_url,
        translate=translate,
    )


@every.post("/resend")
def resend_confirmed() -> Any:
    """Queue the callbacks of the confirmation page, apart from those that changed since."""
    shown = {
        state: [row_id(text) for text in request.form.get(state, "").split(".")[: redelivery.MOST] if text]
        for state in CALLBACK_STATES
    }
    try:
        count = redelivery.resend(shown, access.actor())
    except OperatorError as refusal:
        flash(message_of(refusal), "bad")
    else:
        resent = ngettext("%(num)s callback will be resent.", "%(num)s callbacks will be resent.", count)
        left = sum(map(len, shown.values())) - count
        changed = ngettext(
            "%(num)s callback changed meanwhile and was not resent.",
            "%(num)s callbacks changed meanwhile and were not resent.",
            left,
        )
        flash(sentences(resent, changed if left else ""), "good")
    if redelivery.count(filters.read(CALLBACKS.filters).values):
        return redirect(CALLBACKS.list_url(), 303)
    return redirect(CALLBACKS.list_url(flt_state=None), 303)  # the list without that filter has them all


pages = pages_of_one("callback", "callbacks")


@pages.get("/<webhook_id>")
def show(webhook_id: str) -> str:
    """Show the callback and its attempts."""
    shown = find_or_404(timeline.callback_timeline, webhook_id)
    callback, is_notice = shown.callback, shown.callback.type == epay_notices.TYPE
    if is_notice:
        body = epay_notices.readable(callback.body)
    else:
        body = json.dumps(json.loads(callback.body), ensure_ascii=False, indent=2)
    return render_template(
        "console/callback.html",
        timeline=shown,
        callback=callback,
        order=find_order(callback.order.order_no),
        actions=actions.of_callback(callback),
        pretty=body,
        error=masking.error,
        is_notice=is_notice,
        is_good=partial(delivery.is_delivered, callback),
        problem=lambda status, answer: translate(delivery.redirect_problem(status, answer)),
    )


@pages.post("/<webhook_id>/act")
def act(webhook_id: str) -> Any:
    """Redeliver the callback."""
    callback = find_or_404(timeline.callback_timeline, webhook_id).callback
    # Refuse the order's other actions: they may need a confirmation, which only the order's page requests.
    if request.form.get("action") != f"redeliver-{callback.id}":
        abort(404)
    act_on(find_order(callback.order.order_no))
    return redirect(url_for(".show", webhook_id=webhook_id), 303)
