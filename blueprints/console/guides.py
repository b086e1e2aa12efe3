"""The page of the documentation that explains each page of the console."""

from __future__ import annotations

from flask import request

from blueprints.console import locale

# By blueprint: the page below docs/, and the anchor of its English heading, which translations have too.
GUIDES = {
    "dashboard": "console#overview",
    "search": "console#search-and-keys",
    "orders": "console#pages",
    "order": "console#order-page",
    "new_order": "console#payment-links",
    "payouts": "guides/withdrawals",
    "batches": "guides/withdrawals#bank-files",
    "batch": "guides/withdrawals#bank-files",
    "refunds": "guides/refunds#approve-or-reject",
    "refund": "guides/refunds#refund-a-deposit",
    "claims": "console#claims",
    "exceptions": "guides/exceptions",
    "callbacks": "callbacks#retry-schedule",
    "callback": "callbacks#response",
    "ledger": "guides/ledger",
    "account_balances": "guides/account-balances",
    "entries": "guides/ledger",
    "earnings": "guides/accounting#earnings",
    "statements": "guides/accounting#monthly-statements",
    "bills": "reconciling#bills-every-morning",
    "differences": "reconciling#differences-until-they-are-settled",
    "difference": "reconciling#differences-and-what-to-do",
    "reconciliations": "reconciling#in-the-console",
    "reconciliation": "reconciling#differences-and-what-to-do",
    "merchants": "console#channels-and-merchants",
    "merchant": "console#channels-and-merchants",
    "channels": "drivers#drivers",
    "channel": "drivers#channel-check",
    "accounts": "console#channels-and-merchants",
    "notifications": "guides/notifications",
    "operators": "console#accounts",
    "audit": "console#audit-log",
    "failed_sign_ins": "console#sign-in-limits",
    "sign_in": "console#sessions",
    "second_factor": "console#two-factor-authentication",
    "confirm": "console#confirmation",
}
# Pages with a guide of their own, by endpoint.
PAGES = {
    "channel.add_member": "guides/groups#limits",
    "channel.member": "guides/groups#limits",
    "merchant.new": "guides/merchants#add-a-merchant",
    "merchant.epay": "epay-inbound#enable-it",
    "merchant.page": "payment-page",
    "merchant.adjust": "guides/ledger#correct-a-balance",
    "merchant.account": "guides/merchants#add-a-payout-account",
    "order.refund": "guides/refunds#refund-a-deposit",
}


def guide() -> str:
    """Return the address of this page's guide in the language of the console."""
    found = PAGES.get(request.endpoint or "") or GUIDES.get(request.blueprint or "", "console")
    return f"/docs/{locale.language().language}/{found}"
