"""Payouts: approve or reject withdrawals, send them through the channel, or confirm manual ones."""

from __future__ import annotations

from datetime import datetime

from gateways import registry
from gateways.base import ChannelRefused, ChannelUnknown, Report, State
from models.db.writer import transaction
from models.tables.maintenance import paused_since
from models.tables.merchant import Merchant
from models.tables.order import (
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAID,
    PAYOUT_IN_PROGRESS,
    PENDING,
    REVERSED,
    SELL,
    UNKNOWN_OUTCOME,
    Order,
    PaymentException,
)
from models.tables.payout_batch import SENT, PayoutBatchLine
from runtime import clock
from services.channels import payment_numbers
from services.channels.bulkhead import channel_slot
from services.channels.calls import LATE, LEASE, driver_of, lock_account
from services.errors import N_, OperatorError
from services.merchants import cache
from services.orders import lifecycle, positions, settle
from services.orders.reasons import Reason, Why, because, own_words
from services.orders.verdicts import Books
from services.security import sandbox_guard

LONG = 86_400  # seconds of silence after which an operator may decide
LEFT_ALONE = 3_600  # seconds for which a withdrawal that an operator wants to reject is not sent to the channel
# The channel's reports that allow an operator to end the withdrawal as not paid out, or as paid out.
NOT_OUT, OUT = (State.ABSENT, State.FAILED), (State.PAID,)
_OTHERWISE = {
    State.ABSENT: N_("The channel has no record of it."),
    State.FAILED: N_("The channel reports that it failed."),
    State.OPEN: N_("The channel has it in progress."),
    State.PAID: N_("The channel reports it as paid."),
    **dict.fromkeys((State.RETURNED, State.ENDED), N_("The channel reports that the money was returned.")),
}
MISSING = N_(
    "The channel had the payout but no longer shows it. Check there whether it was sent, then "
    "resolve the exception with --complete or --cancel."
)


def may_be(order: Order, exception: PaymentException | None = None) -> bool:
    """Return whether a channel with status checks may have this withdrawal, given an exception about it."""
    if order.is_buy or driver_of(order.channel).by_hand:
        return False
    in_progress = exception is not None and exception.kind == PAYOUT_IN_PROGRESS
    return order.status == CONFIRMED or in_progress or positions.is_held_again(order)


def check(order: Order, wanted: tuple[State, ...], exception: PaymentException | None = None) -> None:
    """Claim the withdrawal and check its status at the channel; `order` is the claimed row.

    Args:
        wanted: the reports that allow the operator's decision.
        exception: the exception to resolve. A day after it was opened, the operator may decide without a response.

    Raises:
        OperatorError: a worker has claimed it, or the channel may not show it yet, does not respond, or reports
            otherwise.
    """
    now, shown_from, due_at = clock.now(), order.expires_at or 0, order.due_at
    # A worker claims it for at most LEASE, so after a longer time no worker has it.
    if due_at is not None and now < due_at <= now + LEASE:
        raise OperatorError(N_("The service is processing this order. Try again in a minute."))
    until, too_soon = max(now, shown_from) + LEFT_ALONE, now < shown_from
    if not _claimed(order, until, **({"left_alone_until": until} if too_soon else {})):
        raise OperatorError(N_("The withdrawal changed just now. Reload and try again."))
    if too_soon:
        at = datetime.fromtimestamp(shown_from).astimezone()
        text = N_(
            "The payout was sent to the channel recently and may not be visible there yet. It is not "
            "sent again for now. Try again between %(at)s and an hour later."
        )
        raise OperatorError(text, at=f"{at:%H:%M:%S}")
    again = now if due_at is not None else None  # an order that awaits an operator continues to do so
    try:
        with channel_slot(order.channel_id):
            report = positions.call_for_payout(driver_of(order.channel).query_payout, order)
    except ChannelUnknown as silence:
        if exception is not None and (exception.kind == UNKNOWN_OUTCOME or exception.createtime <= now - LONG):
            return
        order.put_off(again)
        raise OperatorError(
            N_("The channel cannot confirm whether it has the payout: %(why)s"), why=str(silence)
        ) from silence
    is_missing = report.state is State.ABSENT and positions.was_shown(order)
    if is_missing and exception is not None and exception.kind in settle.OPEN_ENDED:
        return  # the operator has checked it at the channel
    if is_missing or report.state not in wanted:
        order.put_off(again)
        # The report is applied, whatever the operator wanted.
        settle.apply_report(order, report, "channel", settle.ASKED)
        raise OperatorError(MISSING if is_missing else _OTHERWISE[report.state])


@transaction
def _claimed(order: Order, until: int, **facts: int) -> bool:
    return order.claim(until, **facts)


def is_as_checked(now: Order, order: Order) -> bool:
    """Return whether the order is unchanged since it was claimed."""
    return (now.status, now.due_at, now.asks) == (order.status, order.due_at, order.asks)


ACCEPTED = because(Why.ACCEPTED)
LONGEST_UNSEEN = max(driver.shows_payouts_after for driver in registry.DRIVERS.values())


def why_not_accept(order: Order) -> str:
    """Return the reason not to approve it, or ""."""
    if order.is_buy:
        return N_("Only a withdrawal can be approved.")
    if sandbox_guard.is_barred(order.channel):
        return sandbox_guard.DEMO_ONLY
    return "" if order.status == PENDING else N_("Only a withdrawal that needs review can be approved.")


def why_not_reject(order: Order) -> str:
    """Return the reason not to reject it, apart from the channel's status, or ""."""
    if order.is_buy:
        return N_("Only a withdrawal can be rejected.")
    rejectable = order.status in (PENDING, CONFIRMED)
    return "" if rejectable else N_("This withdrawal can no longer be rejected.")


def why_not_mark_paid(order: Order) -> str:
    """Return the reason not to accept an operator's confirmation that money was received or sent, or ""."""
    driver = driver_of(order.channel)
    if driver.checks_status or not (order.is_buy or driver.by_hand):
        return N_("The channel reports payments itself. Check the status instead.")
    if order.is_buy:
        return ""
    refused = {
        PENDING: N_("Approve the withdrawal first."),
        PAID: N_("The payout is already recorded."),
    }
    return refused.get(order.status, "")


@transaction
def accept(order: Order, who: str = "operator", why: Reason = ACCEPTED) -> None:
    """Approve a pending withdrawal; the next sweep sends it to the channel.

    Raises:
        OperatorError: it is not a withdrawal, or not pending.
    """
    _unless(why_not_accept(order))
    sandbox_guard.refuse_payout(order)
    lock_account(order.channel_id)
    if not lifecycle.transition(order, CONFIRMED, who, why, due_at=clock.now()):
        raise OperatorError(N_("The withdrawal changed just now. Reload and try again."))


def _unless(why: str) -> None:
    if why:
        raise OperatorError(why)


def unless_in_file(order: Order, is_confirmed: bool) -> None:
    """Refuse to decide about a payout that a bank may still pay by a file, unless the operator confirms to know that.

    Call it in the transaction that decides, on the locked order.

    Raises:
        OperatorError: it is in a bank file that was downloaded and has no result.
    """
    line = None if is_confirmed else PayoutBatchLine.in_file(order)
    if line is not None:
        text = N_(
            "The payout is in bank file %(batch)s, which was downloaded and has no result yet. The bank may still pay "
            "it. Check at the bank first, then confirm that (--in-bank-file)."
        )
        raise OperatorError(text, batch=str(line.batch_id))


def reject(order: Order, reason: str, who: str = "operator", in_file: bool = False) -> None:
    """Reject a withdrawal and return its reserve: a pending one, or an approved one that the channel does not have.

    If the channel supports status checks, one is made first, while the sweep is kept away from the order. Checks
    continue afterwards: a payout that was sent after all becomes an exception.

    Args:
        in_file: the operator knows that it is in a bank file.

    Raises:
        OperatorError: it is not a withdrawal, or its money may have been sent.
    """
    _unless(why_not_reject(order))
    if not reason.strip():
        raise OperatorError(N_("Enter a reason for the rejection."))
    at_a_channel = may_be(order)
    if at_a_channel:
        check(order, NOT_OUT)
    if not _cancelled(order, who, reason, clock.now() + LATE[0] if at_a_channel else None, in_file):
        raise OperatorError(N_("The withdrawal changed just now. Reload and try again."))


@transaction
def _cancelled(order: Order, who: str, reason: str, ask_again: int | None, in_file: bool) -> bool:
    if not is_as_checked(Order.for_update(order.id), order):
        return False
    unless_in_file(order, in_file)
    if ask_again is not None:
        lifecycle.outcome_known(order)  # the channel responded just now
    return settle.cancel_withdrawal(order, who, own_words(reason), due_at=ask_again)


@transaction
def mark_paid(
    order: Order,
    *,
    amount: int | None = None,
    reference: str = "",
    who: str = "operator",
    shared: bool = False,
    in_file: bool = False,
) -> bool:
    """Record an operator's confirmation that money was received (deposit) or sent (withdrawal) on a manual channel, or
    received on one without status checks.

    Args:
        amount: received or sent, in fen; None means the order's amount, 0 that the bank took back a recorded deposit.
        reference: the bank's or wallet's number of the transfer; surrounding blanks are removed. Statements recognize
            the payment by it, so for a deposit a placeholder such as - is refused.
        shared: the transfer also covers other orders.
        in_file: the operator knows that it is in a bank file.

    Returns: False if this was recorded already.

    Raises:
        OperatorError: the channel reports payments itself, the withdrawal is not approved yet or in a bank file, the
            reference of a deposit is no transaction ID, the reference is recorded for another order of the channel, or
            the merchant of a withdrawal has money of a sandbox channel.
    """
    order, reference = Order.for_update(order.id), reference.strip()
    _unless(why_not_mark_paid(order))
    sandbox_guard.refuse_payout(order)
    unless_in_file(order, in_file)
    if order.is_buy and reference and not payment_numbers.transaction_id(reference):
        raise OperatorError(
            N_(
                "%(reference)s is not a transaction ID. Enter the number that the bank's statement has for this "
                "payment, or leave it empty."
            ),
            reference=reference,
        )
    if amount == 0 and not (order.is_buy and reference and payment_numbers.is_on_record(order, reference)):
        raise OperatorError(
            N_("An amount of 0 means that the bank took a deposit's payment back. Enter its recorded transaction ID.")
        )
    taken_back = State.FAILED if amount == 0 else State.PAID
    report = Report(taken_back, order.amount if amount is None else amount, reference, by_operator=True)
    if order.is_buy and not reference and _is_other_money(order, report.amount):
        raise OperatorError(
            N_(
                "A payment without a transaction ID is already recorded. Enter a transaction ID for this one "
                "(--reference)."
            )
        )
    if order.is_buy and not reference and order.status not in (PENDING, PAID) and _without_number(order):
        return False
    if not shared and not payment_numbers.is_on_record(order, reference):
        _counts_once(order, reference)
    changed = settle.apply_report(order, report, who, because(Why.MARKED_PAID))
    line = PayoutBatchLine.in_file(order)
    if line is not None and line.reference == reference:
        line.end(SENT)  # the bank's result, which needed this approval
    return changed


def _counts_once(order: Order, reference: str) -> None:
    if first := payment_numbers.first_with(order, reference):
        text = N_(
            "Transaction ID %(reference)s is already recorded for order %(order_no)s. Check it. If the "
            "transfer pays for both orders, confirm that (--shared-reference)."
        )
        raise OperatorError(text, reference=reference, order_no=first.order_no)


def _is_other_money(order: Order, amount: int) -> bool:
    """Return whether money without a reference is recorded that this neither repeats nor corrects."""
    if earlier := _without_number(order):
        return earlier[-1].resolution is not None or amount not in (earlier[-1].amount, order.amount)
    return order.status in (CONFIRMED, COMPLETED) and not order.channel_reference and amount != order.amount


def _without_number(order: Order) -> list[PaymentException]:
    """Return the recorded money of a deposit that has no reference."""
    ended = (positions.CORRECTED, positions.RETURNED)
    money = [each for each in positions.exceptions_of(order) if each.kind in MONEY_IN and not each.reference]
    return [each for each in money if each.resolution not in ended]


def why_not_return(order: Order) -> str:
    """Return the reason not to accept an operator's report that the money of a payout came back, or ""."""
    if order.is_buy:
        return N_("Only a withdrawal can be reported as returned.")
    if not driver_of(order.channel).by_hand:
        return N_("The channel reports payments itself. Check the status instead.")
    if order.status != COMPLETED:
        return N_("Only a completed withdrawal can be reported as returned.")
    if any(each.kind == REVERSED and each.is_open for each in positions.exceptions_of(order)):
        return N_("The return is already recorded. Resolve its exception.")
    given_back = positions.place_of(order) is not Books.SPENT
    return N_("The money was already returned to the merchant.") if given_back else ""


@transaction
def report_returned(order: Order, *, reference: str = "", reason: str = "", who: str = "operator") -> None:
    """Record an operator's report that the money of a paid withdrawal came back to the operator's account.

    It is a report like a channel's, and opens the exception `reversed`. No money moves before that is resolved.

    Args:
        reference: the bank's number of the return, or "".
        reason: the bank's reason, or "".

    Raises:
        OperatorError: the channel is not manual, or the withdrawal is not completed or was returned already.
    """
    order = Order.for_update(order.id)
    _unless(why_not_return(order))
    for each in positions.exceptions_of(order):
        if (each.kind, each.resolution) == (REVERSED, positions.COMPLETE):  # this is a new return
            lifecycle.note_once(order, who, because(Why.REPORT_CHANGED, kind=each.kind, exception=str(each.id)))
    told = because(Why.PAYOUT_CAME_BACK, text=", ".join(filter(None, (reference.strip(), reason.strip()))) or "-")
    lifecycle.note(order, who, told)
    settle.apply_report(order, Report(State.FAILED, reference=order.channel_reference), who, told)


def hand_over(order: Order) -> tuple[Report, Reason]:
    """Send an approved withdrawal through its channel, or check its status; outside any transaction.

    Returns: the channel's report, and the reason for its line of history.

    Raises:
        ChannelUnknown: no usable response.
    """
    driver = driver_of(order.channel)
    paused = not driver.by_hand and paused_since() is not None
    is_known = positions.was_shown(order)
    # After a restore it may have been sent already, although its row does not show it.
    asks_first = order.asks > 1 or paused or is_known
    report = positions.call_for_payout(driver.query_payout, order) if asks_first else Report(State.ABSENT)
    if is_known or report.state is not State.ABSENT:
        # A payout that the channel had before is not sent again: an operator checks it there.
        return report, settle.ASKED
    if paused or cache.by_id(order.merchant_id).sandbox_money:
        return Report(State.OPEN, proven=False), settle.ASKED
    if not _extends_claim(order, driver.shows_payouts_after):
        # It is left alone, its last payout request may still be in progress, or another worker has it.
        return Report(State.OPEN, proven=False), settle.ASKED
    try:
        # Repeating the order number refers to the same payout upstream, so a crash here pays nothing twice.
        return positions.call_for_payout(driver.pay_out, order), settle.ASKED
    except ChannelRefused as refusal:
        return Report(State.FAILED), because(Why.REFUSED, text=str(refusal))


@transaction
def _extends_claim(order: Order, shown_after: int) -> bool:
    """Extend the claim, since the next call may pay; store the time until which the channel may not show it."""
    if not clock.seen().is_handled():
        return False  # the clock was set just now: `adjust_to_clock` must adjust the times first
    now = clock.now()
    return order.begin_to_hand_over(now, now + LEASE, now + shown_after if shown_after else None)


@transaction
def adjust_to_clock(ahead: int = 0) -> None:
    """Adjust, after a clock change, the times until which withdrawals are left alone or not shown by their channel.

    A clock that was set back, or was wrong before a restart, leaves times that are too far ahead: they are shortened to
    the longest possible time from now.

    Args:
        ahead: seconds by which the clock was set ahead; times that had not passed before are moved by as much.
    """
    now = clock.now()
    # By merchant, so that an index finds them.
    open_payouts = (
        Order.merchant.in_(Merchant.select(Merchant.id)),
        Order.order_type == SELL,
        Order.status == CONFIRMED,
    )
    for column, longest in (
        (Order.expires_at, LONGEST_UNSEEN),
        (Order.left_alone_until, LONGEST_UNSEEN + LEFT_ALONE),
    ):
        if ahead:
            Order.update({column: column + ahead}).where(*open_payouts, column > now - ahead).execute()
        Order.update({column: now + longest}).where(*open_payouts, column > now + longest).execute()
