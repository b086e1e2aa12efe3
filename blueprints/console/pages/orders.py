"""The lists of orders and exceptions."""

from __future__ import annotations

from typing import Any

from flask_babel import gettext, lazy_gettext

from blueprints.console import labels
from blueprints.console.columns import Column, channel_link, marked, merchant_columns, order_link, status_of
from blueprints.console.filters import CHANNEL, MERCHANT, SINCE, TYPE, UNTIL, Choice, Filter, choices
from blueprints.console.list_page import ListPage
from blueprints.console.pages import new_order
from models.tables.order import BUY, CANCELLED, SELL, STATUSES
from services.console import order_list, record_lists
from services.orders.reasons import reason_of


def _statuses() -> list[Choice]:
    """Return the statuses, labelled for both types or for the one that is shown."""
    kinds = [choice.value for choice in PART.choices() if PART.given() in ("", choice.text)]
    return [
        Choice(each, " / ".join(dict.fromkeys(labels.status(kind, each) for kind in kinds)), each) for each in STATUSES
    ]


PART = Filter(
    "type",
    lazy_gettext("Type"),
    "part",
    lambda: [Choice("buy", gettext("Deposits"), BUY), Choice("sell", gettext("Withdrawals"), SELL)],
)
STATUS = Filter("status", lazy_gettext("Status"), "tab", choices=_statuses)
# The orders of the rows that an index has.
SORT = Filter(
    "sort",
    lazy_gettext("Sort by"),
    "sort",
    lambda: [Choice(name, name, name) for name in ("created", "-created", "completed", "-completed")],
    default="created",
)
METHOD = Filter("method", lazy_gettext("Method"), choices=choices(labels.METHODS))


def _fees(order: Any) -> int | None:
    """Return an order's fees in fen; None for a cancelled one, which has none."""
    return None if order.status == CANCELLED else order.service_amount + order.passage_amount


ORDER_COLUMNS = [
    Column(
        "order_no",
        lazy_gettext("Order number"),
        lambda order: order.order_no,
        link=order_link,
        note=lambda order: order.merchant_order_no,
    ),
    Column(
        "merchant_order_no", lazy_gettext("Merchant order number"), lambda order: order.merchant_order_no, on="export"
    ),
    Column("createtime", lazy_gettext("Created"), lambda order: order.createtime, "time", sort="created"),
]
CHANNEL_COLUMNS = [
    Column(
        "channel",
        lazy_gettext("Channel"),
        lambda order: order.channel.name,
        link=lambda order: channel_link(order.channel),
        note=lambda order: labels.name_of(labels.METHODS, order.payment_method),
    ),
    Column("channel_id", lazy_gettext("Channel ID"), lambda order: order.channel_id, "number", on="export"),
    Column(
        "method",
        lazy_gettext("Method"),
        lambda order: labels.name_of(labels.METHODS, order.payment_method),
        on="export",
    ),
]
ORDERS = ListPage(
    "orders",
    lazy_gettext("Orders"),
    browse=order_list.orders,
    new=new_order.NEW,
    empty=lazy_gettext("No orders yet."),
    hint=lazy_gettext("Merchants create orders by the API."),
    filters=(
        Filter("text", lazy_gettext("Order number, or part of the merchant order number"), "search"),
        PART,
        STATUS,
        MERCHANT,
        CHANNEL,
        METHOD,
        Filter("least", lazy_gettext("Minimum amount"), "amount"),
        Filter("most", lazy_gettext("Maximum amount"), "amount"),
        SINCE,
        UNTIL,
        Filter("completed_since", lazy_gettext("Completed from"), "since"),
        Filter("completed_until", lazy_gettext("Completed to"), "until"),
        Filter("note", lazy_gettext("Note"), choices=choices({"yes": lazy_gettext("With a note")})),
        SORT,
    ),
    columns=(
        *ORDER_COLUMNS,
        Column("type", lazy_gettext("Type"), lambda order: labels.name_of(labels.TYPES, order.order_type)),
        *merchant_columns(),
        *CHANNEL_COLUMNS,
        Column("amount", lazy_gettext("Amount (¥)"), lambda order: order.amount, "money"),
        Column("fees", lazy_gettext("Fees (¥)"), _fees, "money"),
        Column(
            "merchant_amount",
            lazy_gettext("Credited or deducted (¥)"),
            lambda order: order.moved,
            "money",
            on="export",
        ),
        Column("status", lazy_gettext("Status"), lambda order: marked(order, status_of(order)), "states"),
        Column("completedtime", lazy_gettext("Completed at"), lambda row: row.completedtime, "time", sort="completed"),
        Column("updatetime", lazy_gettext("Updated"), lambda order: order.updatetime, "time", on="export"),
        Column("reference", lazy_gettext("Channel transaction ID"), lambda order: order.channel_reference, on="export"),
    ),
    counts=order_list.counts_by_status,
    unindexed=("channel", "method", "least", "most"),
)

orders = ORDERS.blueprint()


EXCEPTION_STATES = {
    record_lists.OPEN: lazy_gettext("Open"),
    record_lists.SETTLED: lazy_gettext("Resolved"),
    "all": lazy_gettext("All"),
}


def _resolution(row: Any) -> tuple[str, Any]:
    if row.resolution is None:
        return "bad", gettext("Open")
    return "good", labels.resolution(row)


EXCEPTIONS = ListPage(
    "exceptions",
    lazy_gettext("Exceptions"),
    browse=record_lists.Exceptions,
    empty=lazy_gettext("No open exceptions."),
    hint=lazy_gettext("Differences between channels and the ledger appear here."),
    filters=(
        Filter("text", lazy_gettext("Order number, or part of the bank transaction ID"), "search"),
        Filter("amount", lazy_gettext("Amount"), "amount"),
        Filter(
            "state",
            lazy_gettext("Exceptions"),
            "tab",
            choices=choices(EXCEPTION_STATES),
            default=record_lists.OPEN,
        ),
        Filter("kind", lazy_gettext("Kind"), choices=choices(labels.EXCEPTIONS)),
        TYPE,
        MERCHANT,
        CHANNEL,
        SINCE,
        UNTIL,
    ),
    template="console/exceptions.html",
    groups=record_lists.frequent_causes,
    columns=(
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
            lambda row: labels.name_of(labels.EXCEPTIONS, row.kind),
            note=lambda row: labels.reason(reason_of(row)),
        ),
        Column("detail", lazy_gettext("Details"), lambda row: labels.reason(reason_of(row)), on="export"),
        Column(
            "type", lazy_gettext("Type"), lambda row: labels.name_of(labels.TYPES, row.order.order_type), on="export"
        ),
        *merchant_columns(lambda row: row.order),
        Column(
            "channel",
            lazy_gettext("Channel"),
            lambda row: row.channel.name,
            link=lambda row: channel_link(row.channel),
        ),
        Column("order_amount", lazy_gettext("Order amount (¥)"), lambda row: row.order.amount, "money"),
        Column(
            "amount",
            lazy_gettext("Actual amount (¥)"),
            lambda row: row.amount or None,
            "money",
        ),
        Column("reference", lazy_gettext("Channel transaction ID"), lambda row: row.reference, on="export"),
        Column("returned_by", lazy_gettext("Return transaction ID"), lambda row: row.return_reference, on="export"),
        Column("returned_on", lazy_gettext("Returned on"), lambda row: row.returned_on, on="export"),
        Column(
            "resolution",
            lazy_gettext("Status"),
            _resolution,
            "state",
            note=lambda row: labels.who(row.resolved_by or ""),
        ),
        Column("resolved_by", lazy_gettext("Resolved by"), lambda row: labels.who(row.resolved_by or ""), on="export"),
        Column("resolvedtime", lazy_gettext("Resolved at"), lambda row: row.resolvedtime, "time", on="export"),
    ),
)
