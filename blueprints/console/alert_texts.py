"""The alerts of the first page: for each kind of finding a sentence, and the address of the list behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import url_for
from flask_babel import format_timedelta, gettext, ngettext

import business_clock
from blueprints.console.forms import translate
from blueprints.console.locale import local_time, sentences
from models.tables.channel import Channel
from models.tables.order import BUY, SELL
from services.console.alerts import Finding

TYPES = {BUY: "buy", SELL: "sell"}  # as lists of orders have them in their addresses
Sentence = tuple[str, str]  # a sentence, and the address behind it


@dataclass(frozen=True)
class Alert:
    """A line of the page: a sentence, and the address behind it."""

    severity: str
    kind: str
    text: str
    url: str


def ago(at: int | None) -> str:
    """The time since then, in words: "3 hours"."""
    now = business_clock.now()
    return format_timedelta(max(0, now - (at or now)), granularity="second", threshold=1.2)


def claims_link(channels: list[int]) -> str:
    """The list of manual deposits that are claimed to be paid."""
    one: dict[str, Any] = {"flt_channel": channels[0]} if len(channels) == 1 else {}
    return url_for("orders.index", flt_type=TYPES[BUY], flt_status="paid", **one)


def dead_link(merchants: list[str], since: int) -> str:
    """The list of callbacks that failed for good since then."""
    one: dict[str, Any] = {"flt_merchant": merchants[0]} if len(merchants) == 1 else {}
    return url_for("callbacks.index", flt_state="dead", flt_since=f"{local_time(since):%Y-%m-%dT%H:%M:%S}", **one)


def _channel(number: int) -> str:
    return str(Channel.select(Channel.name).where(Channel.id == number).scalar() or number)


def _storage(facts: dict[str, Any]) -> Sentence:
    return gettext("The database: %(what)s.", what=translate(facts["fault"].text)), "#"


def _restored(facts: dict[str, Any]) -> Sentence:
    text = gettext(
        "Restored from a backup %(time)s ago. Payouts and the expiry of manual deposits are paused. "
        "Compare with your channels and merchants, then run `flask db resume`.",
        time=ago(facts["at"]),
    )
    return text, url_for("audit.index")


def _unknown_notices(facts: dict[str, Any]) -> Sentence:
    text = ngettext(
        "%(count)s verified notice about an order that is not in the database. `flask order unknown` lists it.",
        "%(count)s verified notices about orders that are not in the database. `flask order unknown` lists them.",
        facts["count"],
        count=f"{facts['count']:,}",
    )
    return text, "#"


def _sandbox_money(facts: dict[str, Any]) -> Sentence:
    text = gettext(
        "%(keys)s cannot withdraw: part of the balance is test money of a sandbox channel. "
        "`flask ledger remove-sandbox` reverses it.",
        keys=", ".join(facts["merchants"]),
    )
    return text, url_for("merchants.index")


def _ledger_off(facts: dict[str, Any]) -> Sentence:
    checks = "; ".join(gettext(name) for name in facts["checks"])
    return gettext("The ledger is off. Not true any more: %(checks)s.", checks=checks), url_for("ledger.index")


def _ledger_overdue(facts: dict[str, Any]) -> Sentence:
    if facts["at"] is None:
        return gettext("The ledger was never verified."), url_for("ledger.index")
    return gettext("The ledger was not verified for %(time)s.", time=ago(facts["at"])), url_for("ledger.index")


def _ledger_failed(facts: dict[str, Any]) -> Sentence:
    text = gettext("The last verification of the ledger came to no end: %(why)s.", why=facts["why"].rstrip("."))
    return text, url_for("ledger.index")


def _exceptions(facts: dict[str, Any]) -> Sentence:
    text = ngettext(
        "%(count)s exception is open: money that the rules can't settle.",
        "%(count)s exceptions are open: money that the rules can't settle.",
        facts["count"],
        count=f"{facts['count']:,}",
    )
    if facts["silent"]:
        silent = gettext("Of these, %(count)s may settle once the channel answers.", count=facts["silent"])
        text = sentences(text, silent)
    return text, url_for("exceptions.index", flt_state="open")


def _payouts(facts: dict[str, Any]) -> Sentence:
    text = ngettext(
        "%(count)s withdrawal waits for you, for %(time)s.",
        "%(count)s withdrawals wait for you, the oldest for %(time)s.",
        facts["count"],
        count=f"{facts['count']:,}",
        time=ago(facts["oldest"]),
    )
    return text, url_for("payouts.index", flt_state="waiting")


def _requests(facts: dict[str, Any]) -> Sentence:
    text = ngettext(
        "%(count)s payout awaits a second operator, for %(time)s.",
        "%(count)s payouts await a second operator, the oldest for %(time)s.",
        facts["count"],
        count=f"{facts['count']:,}",
        time=ago(facts["oldest"]),
    )
    return text, url_for("payouts.index", flt_state="waiting")


def _claims(facts: dict[str, Any]) -> Sentence:
    text = ngettext(
        "%(count)s deposit by hand is said to be paid, for %(time)s: look whether the money came.",
        "%(count)s deposits by hand are said to be paid, the oldest for %(time)s: look whether the money came.",
        facts["count"],
        count=f"{facts['count']:,}",
        time=ago(facts["oldest"]),
    )
    return text, claims_link(facts["channels"])


def _dead(facts: dict[str, Any]) -> Sentence:
    text = ngettext(
        "%(count)s callback was given up in the last 7 days: its merchant was not told.",
        "%(count)s callbacks were given up in the last 7 days: their merchants were not told.",
        facts["count"],
        count=f"{facts['count']:,}",
    )
    return text, dead_link(facts["merchants"], facts["since"])


def _retried(facts: dict[str, Any]) -> Sentence:
    text = ngettext(
        "%(count)s callback failed, and is tried again.",
        "%(count)s callbacks failed, and are tried again.",
        facts["count"],
        count=f"{facts['count']:,}",
    )
    return text, url_for("callbacks.index", flt_state="pending")


def _silent(facts: dict[str, Any]) -> Sentence:
    text = ngettext(
        "The channel %(name)s does not answer about %(count)s order, for %(time)s.",
        "The channel %(name)s does not answer about %(count)s orders, for %(time)s.",
        facts["count"],
        count=f"{facts['count']:,}",
        name=_channel(facts["channel"]),
        time=ago(facts["oldest"]),
    )
    filters = {"flt_state": "open", "flt_kind": "unknown_outcome", "flt_channel": facts["channel"]}
    return text, url_for("exceptions.index", **filters)


def _failing(facts: dict[str, Any]) -> Sentence:
    about = {
        "name": _channel(facts["channel"]),
        "recent": f"{facts['recent']:.0%}",
        "usual": f"{facts['usual']:.0%}",
    }
    deposits = facts["order_type"] == BUY
    if deposits:
        text = gettext("%(name)s: %(recent)s of the deposits since yesterday succeeded, %(usual)s do usually.", **about)
    else:
        text = gettext(
            "%(name)s: %(recent)s of the withdrawals since yesterday succeeded, %(usual)s do usually.", **about
        )
    filters = {
        "flt_channel": facts["channel"],
        "flt_type": TYPES[facts["order_type"]],
        "flt_since": f"{facts['since']}T00:00",
    }
    return text, url_for("orders.index", **filters)


SENTENCES: dict[str, Callable[[dict[str, Any]], Sentence]] = {
    "storage": _storage,
    "restored": _restored,
    "unknown_notices": _unknown_notices,
    "sandbox_money": _sandbox_money,
    "ledger_off": _ledger_off,
    "ledger_overdue": _ledger_overdue,
    "ledger_failed": _ledger_failed,
    "exceptions": _exceptions,
    "payouts": _payouts,
    "requests": _requests,
    "claims": _claims,
    "dead": _dead,
    "retried": _retried,
    "silent": _silent,
    "failing": _failing,
}


def alert(finding: Finding) -> Alert:
    """The alert of a finding."""
    return Alert(finding.severity, finding.kind, *SENTENCES[finding.kind](finding.facts))
