"""Reasons of an order's events: codes with arguments, as history and exceptions store them, and their texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from models.tables.epay import REPLACED
from models.tables.order import History, PaymentException
from models.tables.refund import RefundHistory
from runtime.money import grouped
from runtime.texts import N_, Coded


class Why(Coded):
    """All codes with their text in English. In the arguments, integers are fen."""

    # Steps of an order
    CREATED = "created", N_("Order created")
    SEEDED = "seeded", N_("Order created")
    ACCEPTED = "accepted", N_("Approved")
    ACCEPTED_BY_RULE = "accepted_by_rule", N_("Approved automatically")
    CLAIMED = "claimed", N_("The payer says they paid")
    MARKED_PAID = "marked_paid", N_("Confirmed by an operator")
    BANK_RESULT = "bank_result", N_("Bank's result of payout %(payout)s")
    BANK_REFUSED = "bank_refused", N_("Refused by the bank, payout %(payout)s: %(text)s")
    BANK_REFUSED_BARE = "bank_refused_bare", N_("Refused by the bank, payout %(payout)s")
    ACCOUNT_CHANGED = (
        "account_changed",
        N_("Payout account ending in %(before)s changed to the one ending in %(after)s"),
    )
    EARLIER_ACCOUNT_PAID = (
        "earlier_account_paid",
        N_(
            "Payout account changed back from the one ending in %(before)s to the one ending in %(after)s, which the "
            "bank paid"
        ),
    )
    NOTICE = "notice", N_("Channel notice")
    CHANNEL_ASKED = "channel_asked", N_("Status check")
    CHANNEL_ASKED_BY = "channel_asked_by", N_("Status check by %(who)s")
    ASKED_FOR_STATEMENT = "asked_for_statement", N_("Status check, because a statement of the channel differs")
    PAYOUT_SHOWN = "payout_shown", N_("The channel has the payout: %(text)s")
    ASK_AFTER_NOTICE = "ask_after_notice", N_("Notice received, checking the status")
    NOTICE_REFUSED = "notice_refused", N_("Notice rejected: %(text)s")
    REFUSED = "refused", N_("Rejected: %(text)s")
    ATTEMPT_OPENED = "attempt_opened", N_("Payment %(number)s created at the channel for a browser: %(browser)s")
    ATTEMPT_REFUSED = "attempt_refused", N_("The channel rejected payment %(number)s: %(text)s")
    MEMBER_LEFT_OUT = "member_left_out", N_("Channel %(channel)s of the group was left out: %(text)s")
    MEMBER_CHANGED = "member_changed", N_("Channel %(channel)s of the group was replaced by %(next)s: %(text)s")
    MEMBER_FAILED = "member_failed", N_("Channel %(channel)s of the group failed, next is %(next)s: %(text)s")
    PAID_AT_MEMBER = "paid_at_member", N_("The money is at channel %(channel)s, which the group had tried before")
    SETTLED = "settled", N_("Settled")
    SETTLEMENT_DELAY_OVER = "settlement_delay_over", N_("Settlement delay ended")
    EXPIRED = "expired", N_("Expired")
    EXPIRED_UNCHECKED = "expired_unchecked", N_("Expired. The channel has no status checks")
    NOT_RECEIVED = "not_received", N_("Payment not received")
    SANDBOX_REMOVED = "sandbox_removed", N_("Sandbox money removed")
    RETURNED_BEFORE_CREDIT = "returned_before_credit", N_("All money was returned before it was credited")
    EPAY_REPLACED = REPLACED, N_("The shop's payment continues with order %(order_no)s")
    CLOSE_REQUESTED = "close_requested", N_("The shop closes the payment")
    TEXT = "text", "%(text)s"
    # Decisions of an operator
    EXCEPTION_SETTLED = "exception_settled", N_("Exception %(kind)s: %(resolution)s")
    WRONG_AMOUNT_ENDED = "wrong_amount_ended", N_("Paid a different amount")
    FOUND_PAID = "found_paid", N_("Confirmed as paid")
    COMPLETED_BY_OPERATOR = "completed_by_operator", N_("Completed by an operator with %(amount)s received")
    # Causes that open an exception
    PAID_OTHER_AMOUNT = "paid_other_amount", N_("Paid a different amount")
    PAID_AFTER_END = "paid_after_end", N_("Paid after cancellation")
    PAID_AGAIN = "paid_again", N_("Paid again with another transaction ID")
    PAID_AFTER_CREDIT = "paid_after_credit", N_("Paid after an operator credited other money")
    MORE_RECEIVED = "more_received", N_("%(reported)s received under this transaction ID, but %(booked)s recorded")
    RETURNED_AFTER_CREDIT = "returned_after_credit", N_("%(amount)s returned, but %(booked)s recorded")
    REFUNDS_NAMED = "refunds_named", N_("Refunded at the channel: %(amount)s")
    RETURNED_UNKNOWN = "returned_unknown", N_("Partly or fully returned. The channel does not report the amount")
    NOT_PAID_THERE = "not_paid_there", N_("Not paid at the channel. Order status: %(status)s")
    PAYOUT_OTHER_AMOUNT = "payout_other_amount", N_("Paid out a different amount")
    PAYOUT_UNEXPECTED = "payout_unexpected", N_("Paid out at the channel. Order status: %(status)s")
    PAYOUT_AGAIN = "payout_again", N_("Paid out again with another transaction ID")
    PAYOUT_RETURNED = "payout_returned", N_("Failed at the channel. Order status: %(status)s")
    PAYOUT_BACK = "payout_back", N_("The payout came back. Order status: %(status)s")
    PAYOUT_CAME_BACK = "payout_came_back", N_("The payout came back to the operator's account: %(text)s")
    PAYOUT_IN_PROGRESS = "payout_in_progress", N_("In progress at the channel. Order status: %(status)s")
    PAYOUT_MISSING = (
        "payout_missing",
        N_("The channel had the payout but no longer shows it. Check there whether it was sent"),
    )
    PAYOUT_NOT_THERE = "payout_not_there", N_("Not found at the channel. Order status: %(status)s")
    NO_ANSWER = "no_answer", "%(text)s"
    SILENT_AT_END = "silent_at_end", N_("No response for a week, status checks stopped: %(text)s")
    SHARED_REFERENCE = (
        "shared_reference",
        N_("Channel transaction ID %(reference)s is already recorded for order %(order_no)s"),
    )
    # Causes that change an exception
    REPORT_CHANGED = "report_changed", N_("Exception %(kind)s: the channel's report has changed since")
    EXCEPTION_CORRECTED = (
        "exception_corrected",
        N_("Exception %(kind)s: %(amount)s under the same transaction ID, not %(before)s"),
    )
    EXCEPTION_UNSIZED = (
        "exception_unsized",
        N_("Exception %(kind)s: %(before)s partly or fully returned at the channel"),
    )
    HELD_AGAIN = "held_again", N_("%(amount)s reserved again until the channel has a final result")
    NOT_HELD_AGAIN = "not_held_again", N_("Balance too low for the payout. Nothing is reserved")
    HOLD_SPENT = "hold_spent", N_("Payout made. The reserved amount is spent")
    HOLD_RETURNED = "hold_returned", N_("Payout failed. The reserved amount was returned")
    # Refunds
    REFUND_REQUESTED = "refund_requested", N_("Refund requested")
    REFUND_APPROVED = "refund_approved", N_("Refund approved")
    REFUND_APPROVED_BY_RULE = "refund_approved_by_rule", N_("Refund approved automatically")
    REFUND_SENT = "refund_sent", N_("Refund sent to the channel")
    REFUND_BY_HAND = "refund_by_hand", N_("Awaiting the operator's transfer")
    REFUND_MARKED = "refund_marked", N_("Refunded by an operator")
    REFUND_REJECTED = "refund_rejected", N_("Refund rejected: %(text)s")
    REFUND_STUCK = "refund_stuck", N_("The refund does not reach the payer: %(text)s")
    REFUND_UNPROVEN = (
        "refund_unproven",
        N_("The channel does not show the refund, and a second request could refund twice. Check there"),
    )
    REFUND_SILENT = "refund_silent", N_("The channel reports no result of the refund: %(text)s")
    REFUND_OTHER_AMOUNT = "refund_other_amount", N_("The channel refunded %(amount)s instead of %(expected)s")
    REFUND_CONTRADICTED = (
        "refund_contradicted",
        N_("The channel contradicts its result. Refund status: %(status)s. Channel: %(text)s"),
    )
    REFUND_ELSEWHERE = (
        "refund_elsewhere",
        N_("%(amount)s refunded at the channel outside this service, refund %(number)s"),
    )
    REFUNDED_BEFORE_CREDIT = "refunded_before_credit", N_("Refunded before it was credited")
    REFUND_OF_ORDER = "refund_of_order", N_("Refund %(number)s of %(amount)s: %(state)s")


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
            name: grouped(value) if isinstance(value, int) else called(name, value) for name, value in self.args.items()
        }
        return (template or self.code.template) % shown


def because(code: Why, **args: str | int) -> Reason:
    """Return a reason of this code."""
    return Reason(code, args)


def own_words(text: str) -> Reason:
    """Return a reason whose text the service did not write: an operator's reason, or a channel's message."""
    return because(Why.TEXT, text=text)


def reason_of(row: History | PaymentException | RefundHistory) -> Reason:
    """Return the reason that a line of history or an exception stores."""
    return Reason(Why(row.code), json.loads(row.args or "{}"))


ASKED = because(Why.CHANNEL_ASKED)


def reported(detail: str, why: Reason) -> Reason:
    """Return the reason for the lines of a report: the channel's message, or `why` without one."""
    return own_words(detail) if detail else why
