"""Differences between statements and orders as texts: what differs, the remarks, and the next step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from flask import url_for
from flask_babel import gettext, lazy_gettext

from blueprints.console import labels
from blueprints.console.access import current_user
from blueprints.console.locale import html_text, time_tag
from models.tables.bill import CHECKING, CLOSED, EXPECTED, EXPLAINED, OPEN, StatementDifference
from models.tables.order import Order
from services.statements import reconcile, subjects
from services.statements.reconcile import Difference, Remark

KINDS = {
    reconcile.AMOUNT: lazy_gettext("Amount differs"),
    reconcile.STATUS: lazy_gettext("Status differs"),
    reconcile.MISSING_HERE: lazy_gettext("Only in the statement"),
    reconcile.MISSING_THERE: lazy_gettext("Missing in the statement"),
    reconcile.FEE: lazy_gettext("Fee differs"),
}
AFTER_SUBJECT = {
    reconcile.AMOUNT: lazy_gettext("amount differs"),
    reconcile.STATUS: lazy_gettext("status differs"),
    reconcile.MISSING_HERE: lazy_gettext("only in the statement"),
    reconcile.MISSING_THERE: lazy_gettext("missing in the statement"),
}
SUBJECTS = {
    subjects.DEPOSIT: lazy_gettext("Deposit"),
    subjects.REFUND: lazy_gettext("Refund"),
    subjects.PAYOUT: lazy_gettext("Payout"),
    subjects.OTHER: lazy_gettext("Other lines"),
}
THERE = {
    "paid": lazy_gettext("paid"),
    "failed": lazy_gettext("failed"),
    "refunded": lazy_gettext("refunded"),
}
STATES = {
    OPEN: lazy_gettext("To do"),
    EXPECTED: lazy_gettext("Expected later"),
    CHECKING: lazy_gettext("Being checked"),
    EXPLAINED: lazy_gettext("Explained"),
    CLOSED: lazy_gettext("Closed"),
}
COLOURS = {OPEN: "bad", EXPECTED: "under-way", CHECKING: "under-way", EXPLAINED: "good", CLOSED: "good"}


@dataclass(frozen=True)
class Step:
    """The next step for a difference: a sentence, and the label and address of the page, if the console has it."""

    text: str
    label: str = ""
    url: str = ""


@dataclass(frozen=True)
class Row:
    """A difference as texts."""

    kind: str
    line: int | None
    name: str
    url: str
    here: str
    there: str
    notes: list[str]
    step: Step


def state(row: StatementDifference) -> tuple[str, str]:
    """Return the state of a difference, which selects its colour, and its label."""
    return COLOURS[row.state], labels.name_of(STATES, row.state)


def row_of(each: Difference, channel_id: int, result_id: int, order: Order | None, is_open: bool) -> Row:
    """Return a difference as texts.

    Args:
        channel_id, result_id: the channel of the statement, and the result of its comparison.
        order: the order that the difference is about, if there is one, with its merchant.
        is_open: whether an exception of this order is open now.
    """
    notes: list[str] = []
    for note in each.notes:
        values: dict[str, Any] = note.values | ({"time": time_tag(note.at)} if note.at else {})
        if "kind" in values:
            values["kind"] = labels.name_of(labels.EXCEPTIONS, values["kind"])
        notes.append(html_text(note.code.template, **values))
    for kind, resolution in each.exceptions:
        ended = gettext("Open") if resolution == reconcile.OPEN else labels.name_of(labels.RESOLUTIONS, resolution)
        name = labels.name_of(labels.EXCEPTIONS, kind)
        notes.append(gettext("%(exception)s: %(state)s", exception=name, state=ended))
    return Row(
        kind=_kind(each, order),
        line=each.line,
        name=each.order_no or each.reference,
        url=url_for("order.show", order_no=each.order_no) if order else "",
        here=_side(each.here, lambda name: labels.status(order.order_type, name) if order else name),
        there=_side(each.there, lambda name: labels.name_of(THERE, name)),
        notes=notes,
        step=_step(each, channel_id, result_id, order, is_open),
    )


def _kind(each: Difference, order: Order | None) -> str:
    """Return what differs, such as "Refund: only in the statement"."""
    codes = {note.code for note in each.notes}
    if Remark.RATE in codes:
        return gettext("Fees differ from the rates")
    if each.kind == reconcile.FEE:
        return labels.name_of(KINDS, each.kind)
    subject = labels.name_of(SUBJECTS, subjects.subject_of(each, order))
    kind = gettext("twice in the statement") if Remark.REPEATED in codes else labels.name_of(AFTER_SUBJECT, each.kind)
    return gettext("%(subject)s: %(kind)s", subject=subject, kind=kind)


def _side(facts: dict[str, str], status: Callable[[str], str]) -> str:
    """Return one side of a difference: status and amount, or the fee."""
    if "fee" in facts:
        return f"¥{Decimal(facts['fee']):,}"
    return f"{status(facts['status'])} ¥{Decimal(facts['amount']):,}" if facts else ""


def _step(each: Difference, channel_id: int, result_id: int, order: Order | None, is_open: bool) -> Step:
    codes = {note.code: note.values for note in each.notes}
    if Remark.OTHERS in codes:
        return Step(
            gettext(
                "Check these lines. If the account has another use, explain the difference. "
                "Later sums of such lines are then explained, too."
            ),
            gettext("View the lines"),
            url_for("reconciliation.show", row_id=result_id, kind=reconcile.MISSING_HERE),
        )
    if Remark.REPEATED in codes:
        return Step(gettext("Ask the channel whether it counted the money twice. Then explain the difference."))
    if Remark.RATE in codes:
        return Step(
            gettext(
                "Compare the channel's rates with your contract and correct them for future orders. "
                "Otherwise ask the channel."
            ),
            gettext("Check the channel's costs"),
            url_for("channel.show", channel_id=channel_id),
        )
    if Remark.OTHER_CHANNEL in codes:
        other = codes[Remark.OTHER_CHANNEL]["channel"]
        return Step(
            gettext("Check which account each of the two channels has in its config. One of them is wrong."),
            gettext("Check channel %(channel)s", channel=other),
            url_for("channel.show", channel_id=other),
        )
    if order is None:
        return Step(
            gettext(
                "Find out what the line is about at the channel. After a restore, the backup may lack the order. "
                "Otherwise explain the difference."
            )
        )
    page = url_for("order.show", order_no=order.order_no)
    if each.kind == reconcile.FEE:
        return Step(
            gettext("Ask the channel. If it is right, correct its rates for future orders and explain the difference."),
            gettext("Check the channel's fees"),
            url_for("channel.show", channel_id=channel_id),
        )
    if is_open:
        return Step(
            gettext("Resolve the exception of the order. The difference then closes."),
            gettext("Resolve exception"),
            page,
        )
    if Remark.NOT_BOOKED in codes:
        return Step(
            gettext("Check the status of the order, or record the payment. The difference then closes."),
            gettext("Check the payment"),
            page,
        )
    if Remark.AT_EDGE in codes:
        day = codes[Remark.AT_EDGE]["day"]
        return Step(
            gettext("If the statement of %(day)s has it, the difference closes. Otherwise ask the channel.", day=day),
            gettext("Compare the statement of %(day)s", day=day),
            url_for("reconciliation.upload", channel=channel_id),
        )
    if each.kind == reconcile.MISSING_THERE and Remark.REFUNDED not in codes:
        text = gettext("Ask the channel. If the money never moved, correct the balance and explain the difference.")
        if current_user.may_administer:
            adjust = url_for("merchant.adjust", key=order.merchant.key, order_no=order.order_no)
            return Step(text, gettext("Adjust balance"), adjust)
        return Step(text, gettext("Check the order"), page)
    return Step(
        gettext("Check the order and its refunds at the channel. Correct what is wrong, or explain the difference."),
        gettext("Check the order"),
        page,
    )
