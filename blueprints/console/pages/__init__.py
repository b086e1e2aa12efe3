"""The console's pages and its menu."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import g
from flask_babel import lazy_gettext

from blueprints.console.pages import (
    account_balances,
    audit,
    batches,
    bills,
    callbacks,
    channel_health,
    channels,
    claims,
    confirm,
    dashboard,
    differences,
    earnings,
    ledger,
    merchants,
    new_merchant,
    new_order,
    notifications,
    operators,
    order,
    orders,
    payout_accounts,
    payouts,
    reconciliations,
    refunds,
    search,
    second_factor,
    sign_in,
    statements,
)
from services.console import order_list, record_lists, refund_list

LISTS = (
    batches.BATCHES,
    orders.EXCEPTIONS,
    ledger.ENTRIES,
    differences.DIFFERENCES,
    reconciliations.RECONCILIATIONS,
    merchants.MERCHANTS,
    channels.CHANNELS,
    payout_accounts.PAYOUT_ACCOUNTS,
    audit.AUDIT_LOG,
    audit.FAILED_SIGN_INS,
)
BLUEPRINTS = (
    dashboard.pages,
    orders.orders,
    claims.pages,
    *(each.blueprint() for each in LISTS),
    order.pages,
    payouts.pages,
    batches.pages,
    refunds.pages,
    refunds.one,
    callbacks.every,
    callbacks.pages,
    ledger.pages,
    account_balances.pages,
    earnings.pages,
    statements.pages,
    bills.pages,
    differences.pages,
    reconciliations.pages,
    new_merchant.pages,  # the blueprint of merchants.py, to which the other pages of a merchant are added as well
    channel_health.pages,  # the blueprint of channels.py, to which other pages of a channel are added as well
    notifications.pages,
    new_order.pages,
    operators.pages,
    sign_in.pages,
    second_factor.pages,
    confirm.pages,
    search.pages,
)


@dataclass(frozen=True)
class Item:
    """An item of the menu.

    Args:
        blueprint: the item links to its `index`.
        one: the blueprint of the pages of one row, on which the item is also marked as current.
        to_do: returns the number of rows that need attention.
        icon: its name in `icons.ICONS`.
    """

    blueprint: str
    label: Any
    one: str = ""
    to_do: Callable[[], int] = lambda: 0
    icon: str = "page"


# Groups of items, each with its heading.
MENU = (
    ("", (Item("dashboard", lazy_gettext("Overview"), icon="overview"),)),
    (
        lazy_gettext("Operations"),
        (
            Item("orders", lazy_gettext("Orders"), "order", icon="orders"),
            Item("payouts", lazy_gettext("Payouts"), to_do=order_list.payouts_waiting, icon="payouts"),
            Item("refunds", lazy_gettext("Refunds"), to_do=refund_list.refunds_waiting, icon="refunds"),
            Item("claims", lazy_gettext("Claims"), to_do=order_list.claims_waiting, icon="claims"),
            Item("exceptions", lazy_gettext("Exceptions"), to_do=record_lists.exceptions_open, icon="exceptions"),
            Item("callbacks", lazy_gettext("Callbacks"), "callback", record_lists.callbacks_failing, icon="callbacks"),
        ),
    ),
    (
        lazy_gettext("Money"),
        (
            Item("ledger", lazy_gettext("Balances"), icon="balances"),
            Item("account_balances", lazy_gettext("Account balances"), icon="account_balances"),
            Item("earnings", lazy_gettext("Earnings"), icon="earnings"),
            Item("statements", lazy_gettext("Statements"), icon="statements"),
            Item("bills", lazy_gettext("Bills"), icon="bills"),
            Item(
                "differences",
                lazy_gettext("Differences"),
                "difference",
                record_lists.differences_open,
                icon="differences",
            ),
            Item("reconciliations", lazy_gettext("Reconciliation"), "reconciliation", icon="reconcile"),
            Item("entries", lazy_gettext("Ledger entries"), icon="entries"),
        ),
    ),
    (
        lazy_gettext("Setup"),
        (
            Item("merchants", lazy_gettext("Merchants"), "merchant", icon="merchants"),
            Item("channels", lazy_gettext("Channels"), "channel", icon="channels"),
            Item("accounts", lazy_gettext("Payout accounts"), icon="accounts"),
            Item("notifications", lazy_gettext("Notifications"), icon="notifications"),
            Item("operators", lazy_gettext("Team"), icon="team"),
            Item("audit", lazy_gettext("Audit log"), "failed_sign_ins", icon="audit"),
        ),
    ),
)


def menu_counts() -> dict[str, int]:
    """Return the number of rows that need attention by the menu's blueprints, counted once in a request."""
    if "menu_counts" not in g:
        g.menu_counts = {item.blueprint: item.to_do() for _, items in MENU for item in items}
    counts: dict[str, int] = g.menu_counts
    return counts
