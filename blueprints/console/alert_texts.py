"""The alerts of the overview: for each kind of finding, a sentence and the address of the matching list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import url_for
from flask_babel import format_timedelta, gettext, lazy_gettext, ngettext

import business_clock
from blueprints.console.forms import translate
from blueprints.console.locale import local_time, sentences
from models.tables.channel import Channel
from models.tables.order import BUY, SELL
from services.console.alerts import Finding

TYPES = {BUY: "buy", SELL: "sell"}  # as in the addresses of the order list
Facts = dict[str, Any]
Sentence = tuple[str, str]  # a sentence and its link


@dataclass(frozen=True)
class Alert:
    """An alert on the overview: a sentence and its link."""

    severity: str
    kind: str
    text: str
    url: str


def ago(at: int | None) -> str:
    """Return the time since then in words: "3 hours"."""
    now = business_clock.now()
    return format_timedelta(max(0, now - (at or now)), granularity="second", threshold=1.2)


def claims_link(channels: list[int]) -> str:
    """Return the address of the claimed deposits, of one channel if there is only one."""
    one: dict[str, Any] = {"flt_channel": channels[0]} if len(channels) == 1 else {}
    return url_for("orders.index", flt_type=TYPES[BUY], flt_status="paid", **one)


def dead_link(merchants: list[str], since: int) -> str:
    """Return the address of the callbacks that failed permanently since then."""
    one: dict[str, Any] = {"flt_merchant": merchants[0]} if len(merchants) == 1 else {}
    return url_for("callbacks.index", flt_state="dead", flt_since=f"{local_time(since):%Y-%m-%dT%H:%M:%S}", **one)


def _channel(number: int) -> str:
    return str(Channel.select(Channel.name).where(Channel.id == number).scalar() or number)


def _restored(facts: Facts, said: Facts) -> Sentence:
    text = gettext(
        "Restored from a backup %(time)s ago. Payouts and the expiry of manual deposits are paused. "
        "Reconcile with your channels and merchants, then run `orders db resume`.",
        time=ago(facts["at"]),
    )
    return text, url_for("audit.index")


def _ledger_off(facts: Facts, said: Facts) -> Sentence:
    checks = "; ".join(gettext(name) for name in facts["checks"])
    return gettext("Ledger integrity check failed. Failed checks: %(checks)s.", checks=checks), url_for("ledger.index")


def _ledger_overdue(facts: Facts, said: Facts) -> Sentence:
    if facts["at"] is None:
        return gettext("The ledger has never been checked."), url_for("ledger.index")
    return gettext("The ledger has not been checked for %(time)s.", time=ago(facts["at"])), url_for("ledger.index")


def _exceptions(facts: Facts, said: Facts) -> Sentence:
    text = gettext("Open exceptions: %(count)s (oldest: %(time)s).", **said)
    if facts["silent"]:
        silent = gettext("%(count)s of them may resolve when the channel responds.", count=facts["silent"])
        text = sentences(text, silent)
    return text, url_for("exceptions.index", flt_state="open")


def _silent(facts: Facts, said: Facts) -> Sentence:
    text = ngettext(
        "%(name)s has not responded about %(count)s order for %(time)s.",
        "%(name)s has not responded about %(count)s orders for %(time)s.",
        name=_channel(facts["channel"]),
        **said,
    )
    filters = {"flt_state": "open", "flt_kind": "unknown_outcome", "flt_channel": facts["channel"]}
    return text, url_for("exceptions.index", **filters)


def _failing(facts: Facts, said: Facts) -> Sentence:
    rates = {name: f"{facts[name]:.0%}" for name in ("recent", "usual")}
    about = {"name": _channel(facts["channel"])} | rates
    if facts["order_type"] == BUY:
        text = gettext("%(name)s: deposit success rate since yesterday %(recent)s, usually %(usual)s.", **about)
    else:
        text = gettext("%(name)s: withdrawal success rate since yesterday %(recent)s, usually %(usual)s.", **about)
    filters = {"flt_channel": facts["channel"], "flt_type": TYPES[facts["order_type"]]}
    return text, url_for("orders.index", **filters, flt_since=f"{facts['since']}T00:00")


def _counted(text: Any, url: Callable[[Facts], str]) -> Callable[[Facts, Facts], Sentence]:
    """Return a function that fills in the sentence and returns it with its link."""
    return lambda facts, said: (str(text) % said, url(facts))


# By kind of finding. `said` has the values of most texts: `num`, `count` (formatted), `time` since the oldest.
SENTENCES: dict[str, Callable[[Facts, Facts], Sentence]] = {
    "storage": lambda facts, said: (
        translate(facts["fault"].text),
        "#",
    ),
    "restored": _restored,
    "unknown_notices": lambda facts, said: (
        ngettext(
            "%(count)s verified notice refers to an unknown order. Run `orders order unknown` to list it.",
            "%(count)s verified notices refer to unknown orders. Run `orders order unknown` to list them.",
            **said,
        ),
        "#",
    ),
    "sandbox_money": lambda facts, said: (
        gettext(
            "%(keys)s: withdrawals are blocked because the balance includes sandbox money. "
            "Run `orders ledger remove-sandbox` to reverse it.",
            keys=", ".join(facts["merchants"]),
        ),
        url_for("merchants.index"),
    ),
    "ledger_off": _ledger_off,
    "ledger_overdue": _ledger_overdue,
    "ledger_failed": lambda facts, said: (
        gettext("The last ledger check did not finish: %(why)s.", why=facts["why"].rstrip(".")),
        url_for("ledger.index"),
    ),
    "exceptions": _exceptions,
    "payouts": _counted(
        lazy_gettext("Withdrawals to review or send: %(count)s (oldest: %(time)s)."),
        lambda facts: url_for("payouts.index", flt_state="waiting"),
    ),
    "requests": _counted(
        lazy_gettext("Payouts waiting for a second operator: %(count)s (oldest: %(time)s)."),
        lambda facts: url_for("payouts.index", flt_state="waiting"),
    ),
    "claims": _counted(
        lazy_gettext("Customers who say they have paid: %(count)s (oldest: %(time)s). Check your account."),
        lambda facts: claims_link(facts["channels"]),
    ),
    "dead": _counted(
        lazy_gettext("Callbacks that failed after all retries, last 7 days: %(count)s."),
        lambda facts: dead_link(facts["merchants"], facts["since"]),
    ),
    "retried": _counted(
        lazy_gettext("Callbacks being retried: %(count)s."),
        lambda facts: url_for("callbacks.index", flt_state="pending"),
    ),
    "silent": _silent,
    "failing": _failing,
}


def alert(finding: Finding) -> Alert:
    """Return the alert for a finding."""
    facts, count = finding.facts, finding.facts.get("count", 0)
    said = {"num": count, "count": f"{count:,}", "time": ago(facts.get("oldest"))}
    return Alert(finding.severity, finding.kind, *SENTENCES[finding.kind](facts, said))
