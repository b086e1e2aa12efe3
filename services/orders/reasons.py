"""Why something happened to an order: codes with arguments, as history and exceptions store them, and their texts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from schemas.views import hundredths
from services.errors import N_

# By code. In the arguments, whole numbers are fen.
TEXTS = {
    # Steps of an order
    "created": N_("created"),
    "seeded": N_("seeded"),
    "accepted": N_("accepted"),
    "accepted_by_rule": N_("accepted by rule"),
    "claimed": N_("the payer says that it is paid"),
    "marked_paid": N_("marked paid"),
    "notice": N_("a notice of the channel"),
    "channel_asked": N_("the channel was asked"),
    "channel_asked_by": N_("the channel was asked, by %(who)s"),
    "payout_shown": N_("the channel has the payout: %(text)s"),
    "ask_after_notice": N_("a notice came: the channel is asked"),
    "notice_refused": N_("refused a notice: %(text)s"),
    "refused": N_("refused: %(text)s"),
    "attempt_opened": N_("opened at the channel as %(number)s for a browser: %(browser)s"),
    "attempt_refused": N_("the channel refused to open %(number)s: %(text)s"),
    "settled": N_("settled"),
    "settlement_delay_over": N_("the settlement delay is over"),
    "expired": N_("expired"),
    "not_received": N_("the payment was not received"),
    "sandbox_removed": N_("the sandbox was removed: no real money"),
    "returned_before_credit": N_("all money was returned before it was credited"),
    "text": "%(text)s",
    # What an operator decided
    "exception_settled": N_("exception %(kind)s: %(resolution)s"),
    "wrong_amount_ended": N_("paid an amount that does not match"),
    "found_paid": N_("found to be paid after all"),
    "completed_by_operator": N_("completed by an operator with %(amount)s received"),
    # What opens an exception
    "paid_other_amount": N_("paid an amount that does not match"),
    "paid_after_end": N_("paid after it was cancelled"),
    "paid_again": N_("paid once more, under another number"),
    "paid_after_credit": N_("paid after an operator had credited other money"),
    "more_received": N_("%(reported)s received under this number, %(booked)s are on record"),
    "returned_after_credit": N_("%(amount)s went back, %(booked)s are on record"),
    "returned_unknown": N_("some or all of it went back, the channel does not say how much"),
    "not_paid_there": N_("the channel reports it as not paid, although %(status)s"),
    "payout_other_amount": N_("paid out an amount that does not match"),
    "payout_unexpected": N_("paid out although %(status)s"),
    "payout_again": N_("paid out once more, under another number"),
    "payout_returned": N_("failed although %(status)s"),
    "payout_in_progress": N_("in progress at the channel although %(status)s"),
    "payout_missing": N_("the channel had the payout and no longer shows it: check there whether the money is out"),
    "payout_not_there": N_("the channel does not have it, although %(status)s"),
    "no_answer": "%(text)s",
    "silent_at_end": N_("no answer for a week, the service no longer asks: %(text)s"),
    "shared_reference": N_("the channel's number %(reference)s is on record for order %(order_no)s"),
    # What changes one
    "exception_corrected": N_("exception %(kind)s: %(amount)s under the same number, not %(before)s"),
    "exception_unsized": N_("exception %(kind)s: some or all of %(before)s went back at the channel"),
    "held_again": N_("%(amount)s held again until the channel has a final result"),
    "not_held_again": N_("the balance does not cover the payout: nothing is held"),
    "hold_spent": N_("the payout was made: the hold is spent"),
    "hold_returned": N_("the payout failed: the hold is returned"),
}


@dataclass(frozen=True)
class Reason:
    """One reason: a code of TEXTS and its arguments, texts or amounts in fen."""

    code: str
    args: dict[str, str | int] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns that store it."""
        args = json.dumps(self.args, ensure_ascii=False, separators=(",", ":")) if self.args else None
        return {"code": self.code, "args": args}

    def text(self, template: str | None = None) -> str:
        """It in English, or by the translation of its text."""
        shown = {name: hundredths(value) if isinstance(value, int) else value for name, value in self.args.items()}
        told = (template or TEXTS[self.code]) % shown
        # A line of history about an exception that was opened has its cause, its kind and its id.
        return f"exception {self.args['kind']}: {told}" if "opened" in self.args else told


def because(code: str, **args: str | int) -> Reason:
    """A reason in short."""
    return Reason(code, args)


def said(text: str) -> Reason:
    """A text by somebody else: an operator's reason, or a channel's own words."""
    return Reason("text", {"text": text})


def of(row: Any) -> Reason:
    """The reason of a line of history or of an exception; its text, if it was stored before there were codes."""
    if row.code is None:
        return said(str(getattr(row, "why", "") or getattr(row, "detail", "")))
    return Reason(row.code, json.loads(row.args or "{}"))
