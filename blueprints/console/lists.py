"""The console's lists of daily work: orders, payouts, exceptions, callbacks."""

from __future__ import annotations

from typing import Any

from flask_babel import gettext, lazy_gettext

from blueprints.console import words
from blueprints.console.cells import Column, address
from blueprints.console.filters import CHANNEL, MERCHANT, SINCE, UNTIL, Choice, Filter, choices
from blueprints.console.frame import List
from services import browse_money, browse_orders
from services.browse_orders import UNDER_WAY, WAITING

STATUS = Filter("status", lazy_gettext("Status"), choices=choices(words.STATUSES))
TYPE = Filter(
    "type", lazy_gettext("Type"), choices=lambda: [Choice("buy", words.TYPES[1], 1), Choice("sell", words.TYPES[2], 2)]
)
METHOD = Filter("method", lazy_gettext("Method"), choices=choices(words.METHODS))


def order_link(order: Any) -> str:
    """The page of an order."""
    return address("order.show", order_no=order.order_no)


def merchant_link(merchant: Any) -> str:
    """The page of a merchant."""
    return address("merchant.show", key=merchant.key)


def channel_link(channel: Any) -> str:
    """The page of a channel."""
    return address("channel.show", channel_id=channel.id)


def status_of(order: Any) -> tuple[str, Any]:
    """The state of an order, as a tag."""
    return order.status, words.word(words.STATUSES, order.status)


def merchant_columns(of: Any = lambda row: row) -> list[Column]:
    """Whose a row is: its name, in a file also its key. `of(row)` has the merchant."""
    return [
        Column(
            "merchant",
            lazy_gettext("Merchant"),
            lambda row: of(row).merchant.name,
            link=lambda row: merchant_link(of(row).merchant),
        ),
        Column("merchant_key", lazy_gettext("Merchant's key"), lambda row: of(row).merchant.key, on="export"),
    ]


def _number(order: Any) -> Any:
    return order.order_no


_ORDER = [
    Column(
        "order_no",
        lazy_gettext("Order number"),
        _number,
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
        note=lambda order: words.word(words.METHODS, order.payment_method),
    ),
    Column("channel_id", lazy_gettext("Channel's id"), lambda order: order.channel_id, "number", on="export"),
    Column(
        "method",
        lazy_gettext("Method"),
        lambda order: words.word(words.METHODS, order.payment_method),
        on="export",
    ),
]


class Orders(List):
    """All orders."""

    browse = browse_orders.Orders
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
        Column("type", lazy_gettext("Type"), lambda order: words.word(words.TYPES, order.order_type)),
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

    browse = browse_orders.Payouts
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
        return browse_orders.payouts_waiting()


EXCEPTION_STATES = {
    browse_money.OPEN: lazy_gettext("Open"),
    browse_money.SETTLED: lazy_gettext("Settled"),
    "all": lazy_gettext("Both"),
}


def _resolution(row: Any) -> tuple[str, Any]:
    if row.resolution is None:
        return "bad", gettext("Open")
    return "good", words.word(words.RESOLUTIONS, row.resolution)


class Exceptions(List):
    """Exceptions: the open ones, unless others are asked for."""

    browse = browse_money.Exceptions
    empty = lazy_gettext("No exception is open.")
    filters = (
        Filter("state", lazy_gettext("Exceptions"), choices=choices(EXCEPTION_STATES), default=browse_money.OPEN),
        Filter("kind", lazy_gettext("Kind"), choices=choices(words.EXCEPTIONS)),
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
            lambda row: words.word(words.EXCEPTIONS, row.kind),
            note=lambda row: words.word(words.DETAILS, row.detail),
        ),
        Column("detail", lazy_gettext("Detail"), lambda row: words.word(words.DETAILS, row.detail), on="export"),
        Column("type", lazy_gettext("Type"), lambda row: words.word(words.TYPES, row.order.order_type), on="export"),
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
            note=lambda row: words.who(row.resolved_by or ""),
        ),
        Column("resolved_by", lazy_gettext("Settled by"), lambda row: words.who(row.resolved_by or ""), on="export"),
        Column("resolvedtime", lazy_gettext("Settled at"), lambda row: row.resolvedtime, "time", on="export"),
    )

    def waiting(self) -> int:
        """How many are open."""
        return browse_money.exceptions_open()


def _last_answer(row: Any) -> str:
    if row.last is None:
        return ""
    return f"HTTP {row.last.status}" if row.last.status is not None else row.last.answer


class Callbacks(List):
    """Callbacks to merchants; the attempts are on the page of each."""

    browse = browse_money.Callbacks
    empty = lazy_gettext("No callbacks yet.")
    filters = (
        Filter("state", lazy_gettext("State"), choices=choices(words.CALLBACKS)),
        Filter("event", lazy_gettext("Order became"), choices=choices(words.EVENTS)),
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
            link=lambda row: address("callback.show", webhook_id=row.webhook_id),
        ),
        *merchant_columns(),
        Column(
            "order_no",
            lazy_gettext("Order number"),
            lambda row: row.order.order_no,
            link=lambda row: order_link(row.order),
        ),
        Column("event", lazy_gettext("Order became"), lambda row: words.word(words.EVENTS, row.type)),
        Column(
            "state", lazy_gettext("State"), lambda row: (row.state, words.word(words.CALLBACKS, row.state)), "state"
        ),
        Column("attempts", lazy_gettext("Attempts"), lambda row: row.attempts, "number", note=_last_answer),
        Column("last", lazy_gettext("Last answer"), _last_answer, on="export"),
        Column("due_at", lazy_gettext("Next attempt"), lambda row: row.due_at, "time"),
    )

    def waiting(self) -> int:
        """How many were given up in the last days."""
        return browse_money.callbacks_failing()


def daily_work() -> list[Any]:
    """The lists under that heading of the menu."""
    heading = {"category": lazy_gettext("Daily work")}
    return [
        Orders(lazy_gettext("Orders"), "orders", **heading),
        Payouts(lazy_gettext("Payouts"), "payouts", **heading),
        Exceptions(lazy_gettext("Exceptions"), "exceptions", **heading),
        Callbacks(lazy_gettext("Callbacks"), "callbacks", **heading),
    ]
