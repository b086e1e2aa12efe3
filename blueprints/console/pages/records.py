"""The console's lists of the books and of what was set up: ledger entries, merchants, channels, accounts, audit log."""

from __future__ import annotations

from typing import Any

from flask import url_for
from flask_babel import gettext, lazy_gettext

from blueprints.console import labels
from blueprints.console.cells import Column
from blueprints.console.columns import channel_link, merchant_columns, merchant_link, order_link
from blueprints.console.filters import CHANNEL, MERCHANT, SINCE, UNTIL, Choice, Filter, choices
from blueprints.console.layout import List
from services.console import record_lists, setup_lists
from services.security import masking


def _owner(row: Any) -> str:
    return row.owner.name if row.owner else gettext("The operator")


def _owner_link(row: Any) -> str:
    if row.owner is None:
        return ""
    return (channel_link if row.account.kind == "clearing" else merchant_link)(row.owner)


def _order_of(row: Any) -> Any:
    return row.posting.of_order if row.posting.order_id else None


class Entries(List):
    """Ledger entries: the lines of all postings."""

    browse = record_lists.Entries
    empty = lazy_gettext("No entries yet.")
    filters = (
        Filter("account", lazy_gettext("Account"), choices=choices(labels.ACCOUNTS)),
        MERCHANT,
        CHANNEL,
        Filter(
            "purpose",
            lazy_gettext("Purpose"),
            choices=choices(labels.PURPOSES | {"exception": lazy_gettext("Exception")}),
        ),
        Filter("order", lazy_gettext("Order number"), "text"),
        SINCE,
        UNTIL,
    )
    columns = (
        Column("id", lazy_gettext("Entry"), lambda row: row.id, "number"),
        Column("createtime", lazy_gettext("Posted"), lambda row: row.posting.createtime, "time"),
        Column("account", lazy_gettext("Account"), lambda row: labels.word(labels.ACCOUNTS, row.account.kind)),
        Column("owner", lazy_gettext("Whose"), _owner, link=_owner_link),
        Column("amount", lazy_gettext("Amount (¥)"), lambda row: row.amount, "money"),
        Column(
            "purpose",
            lazy_gettext("Purpose"),
            lambda row: labels.purpose_of(row.posting.purpose),
            note=lambda row: labels.word(labels.EXCEPTIONS, row.posting.memo),
        ),
        Column("memo", lazy_gettext("Memo"), lambda row: labels.word(labels.EXCEPTIONS, row.posting.memo), on="export"),
        Column(
            "order_no",
            lazy_gettext("Order number"),
            lambda row: _order_of(row).order_no if _order_of(row) else None,
            link=lambda row: order_link(_order_of(row)),
        ),
        Column("who", lazy_gettext("By"), lambda row: labels.who(row.posting.who)),
        Column("number", lazy_gettext("Number in its account"), lambda row: row.number, "number", on="export"),
        Column("posting", lazy_gettext("Posting"), lambda row: row.posting_id, "number", on="export"),
    )


ENABLED = Filter(
    "enabled",
    lazy_gettext("State"),
    choices=lambda: [Choice("yes", gettext("Enabled"), True), Choice("no", gettext("Disabled"), False)],
)


def _enabled(row: Any) -> tuple[str, str]:
    return ("good", gettext("Enabled")) if row.enabled else ("off", gettext("Disabled"))


class Merchants(List):
    """Merchants."""

    browse = setup_lists.Merchants
    of_one, new = "merchant", ("merchant.new", lazy_gettext("New merchant"))
    empty = lazy_gettext("No merchants yet.")
    filters = (Filter("text", lazy_gettext("Name or key"), "search"), ENABLED)
    columns = (
        Column("name", lazy_gettext("Merchant"), lambda row: row.name, link=merchant_link, note=lambda row: row.key),
        Column("key", lazy_gettext("Merchant's key"), lambda row: row.key, on="export"),
        Column("available", lazy_gettext("Available (¥)"), lambda row: row.available, "money"),
        Column("held", lazy_gettext("Held (¥)"), lambda row: row.held, "money"),
        Column("buy_rate", lazy_gettext("Fee on deposits (%)"), lambda row: row.buy_rate, "percent"),
        Column("sell_rate", lazy_gettext("Fee on withdrawals (%)"), lambda row: row.sell_rate, "percent"),
        Column("linked", lazy_gettext("Channels"), lambda row: row.linked, "number"),
        Column("callback_url", lazy_gettext("Callbacks go to"), lambda row: masking.address(row.callback_url)),
        Column("enabled", lazy_gettext("State"), _enabled, "state"),
        Column("createtime", lazy_gettext("Created"), lambda row: row.createtime, "time", on="export"),
    )


def _methods(row: Any) -> str:
    return ", ".join(labels.word(labels.METHODS, method) for method in row.pay_methods)


class Channels(List):
    """Channels."""

    browse = setup_lists.Channels
    of_one, new = "channel", ("channel.new", lazy_gettext("New channel"))
    empty = lazy_gettext("No channels yet.")
    filters = (
        Filter("text", lazy_gettext("Name"), "search"),
        Filter("driver", lazy_gettext("Driver"), choices=choices(labels.DRIVERS)),
        Filter("category", lazy_gettext("Category"), choices=choices(labels.CATEGORIES)),
        ENABLED,
    )
    columns = (
        Column("id", lazy_gettext("Id"), lambda row: row.id, "number", link=channel_link),
        Column("name", lazy_gettext("Channel"), lambda row: row.name, link=channel_link),
        Column("category", lazy_gettext("Category"), lambda row: labels.word(labels.CATEGORIES, row.category)),
        Column("driver", lazy_gettext("Driver"), lambda row: labels.word(labels.DRIVERS, row.driver)),
        Column("methods", lazy_gettext("Methods"), _methods),
        Column("least", lazy_gettext("Least (¥)"), lambda row: row.min_amount, "money"),
        Column("most", lazy_gettext("Most (¥)"), lambda row: row.max_amount, "money"),
        Column("clearing", lazy_gettext("Clearing (¥)"), lambda row: row.clearing, "money"),
        Column("linked", lazy_gettext("Merchants"), lambda row: row.linked, "number"),
        Column("enabled", lazy_gettext("State"), _enabled, "state"),
    )


class Accounts(List):
    """Receiving accounts on file."""

    browse = setup_lists.Accounts
    empty = lazy_gettext("No receiving account is on file.")
    filters = (MERCHANT,)
    columns = (
        Column("id", lazy_gettext("Id"), lambda row: row.id, "number"),
        *merchant_columns(),
        Column("bank", lazy_gettext("Bank"), lambda row: row.masked["bank"]),
        Column("sub_bank", lazy_gettext("Branch"), lambda row: row.masked["sub_bank"]),
        Column("card_number", lazy_gettext("Account number"), lambda row: row.masked["card_number"]),
        Column("real_name", lazy_gettext("Holder"), lambda row: row.masked["real_name"]),
        Column("createtime", lazy_gettext("Put on file"), lambda row: row.createtime, "time"),
        Column(
            "present",
            lazy_gettext("State"),
            lambda row: ("good", gettext("Withdrawals go here")) if row.present else ("off", gettext("Replaced")),
            "state",
        ),
    )


ABOUT = {"order": "order.show", "callback": "callback.show", "merchant": "merchant.show", "channel": "channel.show"}
NAMED_BY = {"order": "order_no", "callback": "webhook_id", "merchant": "key", "channel": "channel_id"}


def _subject(row: Any) -> str:
    return f"{labels.word(labels.ABOUT, row.about)} {row.key}".strip()


def _subject_link(row: Any) -> str:
    known = row.about in ABOUT and (row.about != "channel" or row.key.isdecimal())
    return url_for(ABOUT[row.about], **{NAMED_BY[row.about]: row.key}) if known and row.key else ""


class Audit(List):
    """Who did what in the console. Nobody can change it."""

    browse = setup_lists.Audit
    empty = lazy_gettext("Nobody has done anything yet.")
    filters = (
        Filter("who", lazy_gettext("Who"), "text"),
        Filter("action", lazy_gettext("What"), choices=choices(labels.ACTIONS)),
        Filter("about", lazy_gettext("About"), choices=choices(labels.ABOUT)),
        Filter("key", lazy_gettext("Its number or name"), "text"),
        SINCE,
        UNTIL,
    )
    columns = (
        Column("at", lazy_gettext("When"), lambda row: row.at, "time"),
        Column("who", lazy_gettext("Who"), lambda row: row.who),
        Column("action", lazy_gettext("What"), lambda row: labels.word(labels.ACTIONS, row.action)),
        Column("about", lazy_gettext("About"), _subject, link=_subject_link),
        Column("detail", lazy_gettext("Detail"), lambda row: row.detail),
        Column("address", lazy_gettext("From address"), lambda row: row.address),
    )


def money() -> list[Any]:
    """The lists under that heading of the menu."""
    return [Entries(lazy_gettext("Ledger entries"), "entries", category=lazy_gettext("Money"))]


def set_up() -> list[Any]:
    """The lists of what an operator sets up."""
    heading = {"category": lazy_gettext("Set up")}
    return [
        Merchants(lazy_gettext("Merchants"), "merchants", **heading),
        Channels(lazy_gettext("Channels"), "channels", **heading),
        Accounts(lazy_gettext("Receiving accounts"), "accounts", **heading),
    ]


def log() -> list[Any]:
    """The audit log."""
    return [Audit(lazy_gettext("Audit log"), "audit", category=lazy_gettext("Set up"))]
