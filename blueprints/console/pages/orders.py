"""The console's lists of orders and payouts, and which lists stand under the heading of daily work."""

from __future__ import annotations

from typing import Any

from flask import g, redirect, request, url_for
from flask_admin import expose
from flask_babel import gettext, lazy_gettext

from blueprints.console import labels
from blueprints.console.cells import Column
from blueprints.console.columns import channel_link, merchant_columns, order_link, status_of
from blueprints.console.filters import CHANNEL, MERCHANT, SINCE, TYPE, UNTIL, Filter, choices
from blueprints.console.layout import List
from blueprints.console.pages.follow_ups import Callbacks, Exceptions
from services.console import order_list
from services.console.order_list import UNDER_WAY, WAITING

STATUS = Filter("status", lazy_gettext("Status"), choices=choices(labels.STATUSES))
METHOD = Filter("method", lazy_gettext("Method"), choices=choices(labels.METHODS))


_ORDER = [
    Column(
        "order_no",
        lazy_gettext("Order number"),
        lambda order: order.order_no,
        link=order_link,
        note=lambda order: order.merchant_order_no,
    ),
    Column("merchant_order_no", lazy_gettext("Merchant's number"), lambda order: order.merchant_order_no, on="export"),
    Column("createtime", lazy_gettext("Created"), lambda order: order.createtime, "time"),
]
_THROUGH = [
    Column(
        "channel",
        lazy_gettext("Channel"),
        lambda order: order.channel.name,
        link=lambda order: channel_link(order.channel),
        note=lambda order: labels.word(labels.METHODS, order.payment_method),
    ),
    Column("channel_id", lazy_gettext("Channel's id"), lambda order: order.channel_id, "number", on="export"),
    Column(
        "method",
        lazy_gettext("Method"),
        lambda order: labels.word(labels.METHODS, order.payment_method),
        on="export",
    ),
]


class Orders(List):
    """All orders."""

    browse = order_list.Orders
    of_one = "order"
    empty = lazy_gettext("No orders yet.")
    filters = (
        Filter("text", lazy_gettext("Order number, or a part of the merchant's"), "search"),
        STATUS,
        TYPE,
        MERCHANT,
        CHANNEL,
        METHOD,
        Filter("least", lazy_gettext("Amount from"), "amount"),
        Filter("most", lazy_gettext("Amount to"), "amount"),
        SINCE,
        UNTIL,
    )
    columns = (
        *_ORDER,
        Column("type", lazy_gettext("Type"), lambda order: labels.word(labels.TYPES, order.order_type)),
        *merchant_columns(),
        *_THROUGH,
        Column("amount", lazy_gettext("Amount (¥)"), lambda order: order.amount, "money"),
        Column(
            "fees",
            lazy_gettext("Fees (¥)"),
            lambda order: order.service_amount + order.passage_amount,
            "money",
        ),
        Column(
            "merchant_amount",
            lazy_gettext("Credited or deducted (¥)"),
            lambda order: order.merchant_actual_amount,
            "money",
            on="export",
        ),
        Column("status", lazy_gettext("Status"), status_of, "state"),
        Column("updatetime", lazy_gettext("Changed"), lambda order: order.updatetime, "time", on="export"),
        Column("reference", lazy_gettext("Channel's number"), lambda order: order.channel_reference, on="export"),
    )

    @expose("/")
    def index_view(self) -> Any:
        """A page of the list; from the search at the top (`jump`) an order's page, where the number is its own."""
        page = super().index_view()
        sought = request.args.get("search", "").strip()
        if "jump" in request.args and [row.order_no for row in g.found.rows] == [sought]:
            return redirect(url_for("order.show", order_no=sought))
        return page


PAYOUT_STATES = {
    WAITING: lazy_gettext("Waiting for a person"),
    UNDER_WAY: lazy_gettext("Under way"),
    "all": lazy_gettext("Both"),
}


def _to_do(order: Any) -> tuple[str, str]:
    texts = {
        "accept": ("bad", gettext("Accept or reject")),
        "send": ("bad", gettext("Send it by hand")),
    }
    under_way = gettext("Sent, not confirmed yet") if order.status == "paid" else gettext("With the channel")
    return texts.get(order.waits, ("under-way", under_way))


class Payouts(List):
    """Withdrawals that are not over: those that wait for a person first of all."""

    browse = order_list.Payouts
    empty = lazy_gettext("No payout is waiting.")
    filters = (
        Filter("state", lazy_gettext("Payouts"), choices=choices(PAYOUT_STATES), default=WAITING),
        MERCHANT,
        CHANNEL,
        SINCE,
        UNTIL,
    )
    columns = (
        *_ORDER,
        *merchant_columns(),
        *_THROUGH,
        Column("amount", lazy_gettext("To pay out (¥)"), lambda order: order.amount, "money"),
        Column("held", lazy_gettext("With fees (¥)"), lambda order: order.merchant_actual_amount, "money"),
        Column("status", lazy_gettext("Status"), status_of, "state", on="export"),
        Column("to_do", lazy_gettext("To do"), _to_do, "state"),
    )

    def waiting(self) -> int:
        """How many wait for a person."""
        return order_list.payouts_waiting()


def daily_work() -> list[Any]:
    """The lists under that heading of the menu."""
    heading = {"category": lazy_gettext("Daily work")}
    return [
        Orders(lazy_gettext("Orders"), "orders", **heading),
        Payouts(lazy_gettext("Payouts"), "payouts", **heading),
        Exceptions(lazy_gettext("Exceptions"), "exceptions", **heading),
        Callbacks(lazy_gettext("Callbacks"), "callbacks", **heading),
    ]
