"""The console's lists of what went wrong or may go wrong: exceptions, callbacks."""

from __future__ import annotations

from typing import Any

from flask import url_for
from flask_babel import gettext, lazy_gettext

from blueprints.console import labels
from blueprints.console.cells import Column
from blueprints.console.columns import channel_link, merchant_columns, order_link
from blueprints.console.filters import CHANNEL, MERCHANT, SINCE, TYPE, UNTIL, Filter, choices
from blueprints.console.layout import List
from services.console import record_lists
from services.orders.reasons import reason_of

EXCEPTION_STATES = {
    record_lists.OPEN: lazy_gettext("Open"),
    record_lists.SETTLED: lazy_gettext("Settled"),
    "all": lazy_gettext("Both"),
}


def _resolution(row: Any) -> tuple[str, Any]:
    if row.resolution is None:
        return "bad", gettext("Open")
    return "good", labels.word(labels.RESOLUTIONS, row.resolution)


class Exceptions(List):
    """Exceptions: the open ones, unless others are asked for."""

    browse = record_lists.Exceptions
    empty = lazy_gettext("No exception is open.")
    filters = (
        Filter("state", lazy_gettext("Exceptions"), choices=choices(EXCEPTION_STATES), default=record_lists.OPEN),
        Filter("kind", lazy_gettext("Kind"), choices=choices(labels.EXCEPTIONS)),
        TYPE,
        MERCHANT,
        CHANNEL,
        SINCE,
        UNTIL,
    )
    columns = (
        Column("id", lazy_gettext("Exception"), lambda row: row.id, "number", on="export"),
        Column(
            "order_no",
            lazy_gettext("Order number"),
            lambda row: row.order.order_no,
            link=lambda row: order_link(row.order),
            note=lambda row: row.order.merchant_order_no,
        ),
        Column("createtime", lazy_gettext("Since"), lambda row: row.createtime, "time"),
        Column(
            "kind",
            lazy_gettext("Kind"),
            lambda row: labels.word(labels.EXCEPTIONS, row.kind),
            note=lambda row: labels.reason(reason_of(row)),
        ),
        Column("detail", lazy_gettext("Detail"), lambda row: labels.reason(reason_of(row)), on="export"),
        Column("type", lazy_gettext("Type"), lambda row: labels.word(labels.TYPES, row.order.order_type), on="export"),
        *merchant_columns(lambda row: row.order),
        Column(
            "channel",
            lazy_gettext("Channel"),
            lambda row: row.order.channel.name,
            link=lambda row: channel_link(row.order.channel),
        ),
        Column("order_amount", lazy_gettext("Ordered (¥)"), lambda row: row.order.amount, "money"),
        Column("amount", lazy_gettext("Reported (¥)"), lambda row: row.amount or None, "money"),
        Column("reference", lazy_gettext("Channel's number"), lambda row: row.reference, on="export"),
        Column(
            "resolution",
            lazy_gettext("State"),
            _resolution,
            "state",
            note=lambda row: labels.who(row.resolved_by or ""),
        ),
        Column("resolved_by", lazy_gettext("Settled by"), lambda row: labels.who(row.resolved_by or ""), on="export"),
        Column("resolvedtime", lazy_gettext("Settled at"), lambda row: row.resolvedtime, "time", on="export"),
    )

    def waiting(self) -> int:
        """How many are open."""
        return record_lists.exceptions_open()


def _last_answer(row: Any) -> str:
    if row.last is None:
        return ""
    return f"HTTP {row.last.status}" if row.last.status is not None else row.last.answer


class Callbacks(List):
    """Callbacks to merchants; the attempts are on the page of each."""

    browse = record_lists.Callbacks
    of_one = "callback"
    empty = lazy_gettext("No callbacks yet.")
    filters = (
        Filter("state", lazy_gettext("State"), choices=choices(labels.CALLBACKS)),
        Filter("event", lazy_gettext("Order became"), choices=choices(labels.EVENTS)),
        MERCHANT,
        Filter("order", lazy_gettext("Order number"), "text"),
        SINCE,
        UNTIL,
    )
    columns = (
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
        Column("event", lazy_gettext("Order became"), lambda row: labels.word(labels.EVENTS, row.type)),
        Column(
            "state", lazy_gettext("State"), lambda row: (row.state, labels.word(labels.CALLBACKS, row.state)), "state"
        ),
        Column("attempts", lazy_gettext("Attempts"), lambda row: row.attempts, "number", note=_last_answer),
        Column("last", lazy_gettext("Last answer"), _last_answer, on="export"),
        Column("due_at", lazy_gettext("Next attempt"), lambda row: row.due_at, "time"),
    )

    def waiting(self) -> int:
        """How many were given up in the last days."""
        return record_lists.callbacks_failing()
