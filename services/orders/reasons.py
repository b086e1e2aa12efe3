"""Reasons of an order's events: codes with arguments, as history and exceptions store them, and their texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from models.tables.order import History, PaymentException
from schemas.views import hundredths
from services.errors import N_


class Why(StrEnum):
    """All codes with their text in English. In the arguments, integers are fen."""

    template: str

    def __new__(cls, code: str, template: str = "") -> Self:
        """Make the member of this code."""
        member = str.__new__(cls, code)
        member._value_, member.template = code, template
        return member

    # Steps of an order
    CREATED = "created", N_("created")
    SEEDED = "seeded", N_("seeded")
    ACCEPTED = "accepted", N_("accepted")
    ACCEPTED_BY_RULE = "accepted_by_rule", N_("accepted by rule")
    CLAIMED = "claimed", N_("the payer says that it is paid")
    MARKED_PAID = "marked_paid", N_("marked paid")
    NOTICE = "notice", N_("a notice of the channel")
    CHANNEL_ASKED = "channel_asked", N_("the channel was asked")
    CHANNEL_ASKED_BY = "channel_asked_by", N_("the channel was asked, by %(who)s")
    PAYOUT_SHOWN = "payout_shown", N_("the channel has the payout: %(text)s")
    ASK_AFTER_NOTICE = "ask_after_notice", N_("a notice came: the channel is asked")
    NOTICE_REFUSED = "notice_refused", N_("refused a notice: %(text)s")
    REFUSED = "refused", N_("refused: %(text)s")
    ATTEMPT_OPENED = "attempt_opened", N_("opened at the channel as %(number)s for a browser: %(browser)s")
    ATTEMPT_REFUSED = "attempt_refused", N_("the channel refused to open %(number)s: %(text)s")
    SETTLED = "settled", N_("settled")
    SETTLEMENT_DELAY_OVER = "settlement_delay_over", N_("the settlement delay is over")
    EXPIRED = "expired", N_("expired")
    NOT_RECEIVED = "not_received", N_("the payment was not received")
    SANDBOX_REMOVED = "sandbox_removed", N_("the sandbox was removed: no real money")
    RETURNED_BEFORE_CREDIT = "returned_before_credit", N_("all money was returned before it was credited")
    TEXT = "text", "%(text)s"
    # Decisions of an operator
    EXCEPTION_SETTLED = "exception_settled", N_("exception %(kind)s: %(resolution)s")
    WRONG_AMOUNT_ENDED = "wrong_amount_ended", N_("paid an amount that does not match")
    FOUND_PAID = "found_paid", N_("found to be paid after all")
    COMPLETED_BY_OPERATOR = "completed_by_operator", N_("completed by an operator with %(amount)s received")
    # Causes that open an exception
    PAID_OTHER_AMOUNT = "paid_other_amount", N_("paid an amount that does not match")
    PAID_AFTER_END = "paid_after_end", N_("paid after it was cancelled")
    PAID_AGAIN = "paid_again", N_("paid once more, under another number")
    PAID_AFTER_CREDIT = "paid_after_credit", N_("paid after an operator had credited other money")
    MORE_RECEIVED = "more_received", N_("%(reported)s received under this number, %(booked)s are on record")
    RETURNED_AFTER_CREDIT = "returned_after_credit", N_("%(amount)s went back, %(booked)s are on record")
    RETURNED_UNKNOWN = "returned_unknown", N_("some or all of it went back, the channel does not say how much")
    NOT_PAID_THERE = "not_paid_there", N_("the channel reports it as not paid, although %(status)s")
    PAYOUT_OTHER_AMOUNT = "payout_other_amount", N_("paid out an amount that does not match")
    PAYOUT_UNEXPECTED = "payout_unexpected", N_("paid out although %(status)s")
    PAYOUT_AGAIN = "payout_again", N_("paid out once more, under another number")
    PAYOUT_RETURNED = "payout_returned", N_("failed although %(status)s")
    PAYOUT_IN_PROGRESS = "payout_in_progress", N_("in progress at the channel although %(status)s")
    PAYOUT_MISSING = (
        "payout_missing",
        N_("the channel had the payout and no longer shows it: check there whether the money is out"),
    )
    PAYOUT_NOT_THERE = "payout_not_there", N_("the channel does not have it, although %(status)s")
    NO_ANSWER = "no_answer", "%(text)s"
    SILENT_AT_END = "silent_at_end", N_("no answer for a week, the service no longer asks: %(text)s")
    SHARED_REFERENCE = "shared_reference", N_("the channel's number %(reference)s is on record for order %(order_no)s")
    # Causes that change an exception
    EXCEPTION_CORRECTED = (
        "exception_corrected",
        N_("exception %(kind)s: %(amount)s under the same number, not %(before)s"),
    )
    EXCEPTION_UNSIZED = (
        "exception_unsized",
        N_("exception %(kind)s: some or all of %(before)s went back at the channel"),
    )
    HELD_AGAIN = "held_again", N_("%(amount)s held again until the channel has a final result")
    NOT_HELD_AGAIN = "not_held_again", N_("the balance does not cover the payout: nothing is held")
    HOLD_SPENT = "hold_spent", N_("the payout was made: the hold is spent")
    HOLD_RETURNED = "hold_returned", N_("the payout failed: the hold is returned")


@dataclass(frozen=True)
class Reason:
    """One reason: a code and its arguments, texts or amounts in fen."""

    code: Why
    args: dict[str, str | int] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns that store it."""
        args = json.dumps(self.args, ensure_ascii=False, separators=(",", ":")) if self.args else None
        return {"code": self.code.value, "args": args}

    def text(self, template: str = "", called: Callable[[str, str], str] = lambda name, value: value) -> str:
        """Return the sentence in English, or in the language of a translated template.

        Args:
            called: returns the displayed form of a value, by the argument's name and the value.
        """
        shown = {
            name: hundredths(value) if isinstance(value, int) else called(name, value)
            for name, value in self.args.items()
        }
        return (template or self.code.template) % shown


def because(code: Why, **args: str | int) -> Reason:
    """Return a reason of this code."""
    return Reason(code, args)


def own_words(text: str) -> Reason:
    """Return a reason whose text the service did not write: an operator's reason, or a channel's message."""
    return because(Why.TEXT, text=text)


def reason_of(row: History | PaymentException) -> Reason:
    """Return the reason that a line of history or an exception stores."""
    return Reason(Why(row.code), json.loads(row.args or "{}"))
