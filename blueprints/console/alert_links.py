"""The alerts of the overview: for each kind of finding, a sentence and the address of the matching list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import url_for

from blueprints.console.locale import language, local_time
from models.tables.bill import LATE
from models.tables.order import BUY, SELL
from services.console.refund_list import UNDER_WAY
from services.operations import alert_texts
from services.operations.alerts import Finding
from services.platform.language import language_of

TYPES = {BUY: "buy", SELL: "sell"}  # as in the addresses of the order list
Facts = dict[str, Any]


@dataclass(frozen=True)
class Alert:
    """An alert on the overview: a sentence and its link; `channel` is the id of a channel that is off, or else None."""

    severity: str
    kind: str
    text: str
    url: str
    channel: int | None = None


def ago(at: int | None) -> str:
    """Return the time since then in words: "3 hours"."""
    return language_of(language().language).ago(at)


def dead_link(merchants: list[str], since: int) -> str:
    """Return the address of the callbacks that failed permanently since then."""
    one: dict[str, Any] = {"flt_merchant": merchants[0]} if len(merchants) == 1 else {}
    return url_for("callbacks.index", flt_state="dead", flt_since=f"{local_time(since):%Y-%m-%dT%H:%M:%S}", **one)


# The address by kind of finding; kinds without one have no page.
LINKS: dict[str, Callable[[Facts], str]] = {
    "restored": lambda facts: url_for("audit.index"),
    "stuck": lambda facts: url_for("order.show", order_no=facts["orders"][0]),
    "stuck_refunds": lambda facts: url_for("refund.show", refund_no=facts["refunds"][0]),
    "refunds": lambda facts: url_for("refunds.index"),
    "refund_late": lambda facts: url_for("refunds.index", flt_state=UNDER_WAY),
    "ledger_off": lambda facts: url_for("ledger.index"),
    "ledger_overdue": lambda facts: url_for("ledger.index"),
    "ledger_failed": lambda facts: url_for("ledger.index"),
    "exceptions": lambda facts: url_for("exceptions.index", flt_state="open"),
    "differences": lambda facts: url_for("differences.index"),
    "payouts": lambda facts: url_for("payouts.index", flt_state="waiting"),
    "requests": lambda facts: url_for("payouts.index", flt_state="waiting"),
    "claims": lambda facts: url_for("claims.index"),
    "dead": lambda facts: dead_link(facts["merchants"], facts["since"]),
    "retried": lambda facts: url_for("callbacks.index", flt_state="pending"),
    "silent": lambda facts: url_for(
        "exceptions.index", flt_state="open", flt_kind="unknown_outcome", flt_channel=facts["channel"]
    ),
    "failing": lambda facts: url_for(
        "orders.index",
        flt_channel=facts["channel"],
        flt_type=TYPES[facts["order_type"]],
        flt_since=f"{local_time(facts['since']):%Y-%m-%dT%H:%M:%S}",
    ),
    "channel_off": lambda facts: url_for("channel.show", channel_id=facts["channel"], _anchor="health"),
    "low_balance": lambda facts: url_for("channel.show", channel_id=facts["channel"]),
    "unusable": lambda facts: url_for("channel.show", channel_id=facts["channel"], _anchor="pictures"),
    "bills": lambda facts: url_for("bills.index", flt_channel=facts["channel"], flt_state=LATE),
    "unreachable": lambda facts: url_for("notifications.show", destination_id=facts["destination"]),
}


def alert(finding: Finding) -> Alert:
    """Return the alert for a finding."""
    text = alert_texts.sentence(finding, language_of(language().language))
    link = LINKS.get(finding.kind)
    channel = finding.facts["channel"] if finding.kind == "channel_off" else None
    return Alert(finding.severity, finding.kind, text, link(finding.facts) if link else "#", channel)
