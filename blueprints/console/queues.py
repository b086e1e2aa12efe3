"""The queues of the overview: what awaits an operator, each with its list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import url_for
from flask_babel import lazy_gettext

from blueprints.console import alert_links
from blueprints.console.alert_links import Alert
from runtime import clock
from runtime.state import current
from services.console import refund_list
from services.console.order_list import APPROVE, SEND, WAITING
from services.operations import alerts
from services.operations.to_do import Queue, Waiting

LATE, BAD = "late", "bad"
LEDGER = "ledger"
LEDGER_KINDS = ("ledger_off", "ledger_overdue", "ledger_failed")
# Findings that the cards show; the others are a list above them.
KINDS = ("payouts", "requests", "refunds", "claims", "exceptions", "differences", "dead", *LEDGER_KINDS)

HIDDEN = ("requests", "in_files", "refund_approve", "refund_send")  # queues that are shown only if they are used


@dataclass(frozen=True)
class CardText:
    """The heading of a card, the label of its button, and its icon."""

    label: Any
    button: Any
    icon: str


TEXTS = {
    "approve": CardText(lazy_gettext("Payouts to approve"), lazy_gettext("Approve payouts"), "payouts"),
    "send": CardText(lazy_gettext("Payouts to send"), lazy_gettext("Send payouts"), "send"),
    "requests": CardText(lazy_gettext("Payouts for a second operator"), lazy_gettext("Review requests"), "team"),
    "in_files": CardText(
        lazy_gettext("Payouts in bank files without a result"), lazy_gettext("View bank files"), "payouts"
    ),
    "refund_approve": CardText(lazy_gettext("Refunds to approve"), lazy_gettext("Approve refunds"), "refunds"),
    "refund_send": CardText(lazy_gettext("Refunds to send"), lazy_gettext("Send refunds"), "send"),
    "claims": CardText(lazy_gettext("Claims to confirm"), lazy_gettext("Confirm claims"), "balances"),
    "exceptions": CardText(lazy_gettext("Exceptions"), lazy_gettext("Resolve exceptions"), "exceptions"),
    "differences": CardText(
        lazy_gettext("Differences to statements"), lazy_gettext("Check differences"), "differences"
    ),
    "failed": CardText(lazy_gettext("Failed callbacks"), lazy_gettext("View callbacks"), "callbacks"),
    LEDGER: CardText(lazy_gettext("Ledger integrity"), lazy_gettext("Check ledger"), "entries"),
}


@dataclass(frozen=True)
class Card:
    """A queue on the overview. `state` is LATE, BAD or empty; `text` stands for the count of a queue without one."""

    name: str
    queue: Queue
    url: str
    state: str = ""
    text: str = ""

    @property
    def words(self) -> CardText:
        """The labels and the icon."""
        return TEXTS[self.name]

    @property
    def is_empty(self) -> bool:
        """Whether no item waits."""
        return not self.queue.count and not self.text


def cards(waits: Waiting, found: list[Alert]) -> list[Card]:
    """Return a card for each queue, also for empty ones; those of a second operator and of files only if needed."""
    urls = {
        "approve": url_for("payouts.index", flt_state=APPROVE),
        "send": url_for("payouts.index", flt_state=SEND),
        "requests": url_for("payouts.index", flt_state=WAITING),
        "in_files": url_for("batches.index"),
        "refund_approve": url_for("refunds.index", flt_state=refund_list.REVIEW),
        "refund_send": url_for("refunds.index", flt_state=refund_list.SEND),
        "claims": url_for("claims.index"),
        "exceptions": url_for("exceptions.index", flt_state="open"),
        "differences": url_for("differences.index"),
        "failed": alert_links.dead_link(list(waits.dead), waits.dead_since),
    }
    needed = {"requests"} if current().settings.second_operator_above else set()
    shown = []
    for name, queue in waits.queues.items():
        if name in HIDDEN and name not in needed and not queue.count:
            continue
        state = ""
        if queue.count and name == "failed":
            state = BAD
        elif queue.count and (queue.oldest or 0) < clock.now() - alerts.LONG:
            state = LATE
        shown.append(Card(name, queue, urls[name], state))
    ledger = next((each for each in found if each.kind in LEDGER_KINDS), None)
    ledger_state = "" if ledger is None else BAD if ledger.kind == "ledger_off" else LATE
    text = "" if ledger is None else ledger.text
    return [*shown, Card(LEDGER, Queue(), url_for("ledger.index"), ledger_state, text)]
