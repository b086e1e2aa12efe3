"""Settle a withdrawal by its channel's reports: `money.py` decides what each does, and here it is done, in one
transaction."""

from __future__ import annotations

from dataclasses import replace

from gateways.base import Notice, Report, State
from models.db.base import database
from models.db.writer import transaction
from models.tables.order import (
    AT_CHANNEL,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    PAID,
    PAYOUT_CONFLICT,
    PAYOUT_IN_PROGRESS,
    PAYOUT_MISSING,
    Order,
    PaymentException,
)
from runtime import clock
from services.channels.calls import LATE, driver_for
from services.errors import ApiError
from services.ledger import accounts, postings
from services.ledger.postings import HOLD_AGAIN, RELEASE_AGAIN, SPEND_AGAIN
from services.orders import lifecycle, next_step
from services.orders.lifecycle import change_exception, close_exception, exceptions_of, raise_exception, transition
from services.orders.reasons import ASKED, Reason, Why, because, reported
from services.orders.verdict import ADJUST, CLOSE, FAILED, NONE, PAID_OUT, Judged, Proof
from services.withdrawals import change_account, money
from services.withdrawals.money import WithdrawalMoney

MOST_SHOWN = 5  # lines of history, each with a different message
OPEN_ENDED = (PAYOUT_IN_PROGRESS, PAYOUT_MISSING)  # the status is checked until there is a final result
AGAIN = {
    HOLD_AGAIN: (postings.hold, Why.HELD_AGAIN),
    SPEND_AGAIN: (postings.spend, Why.HOLD_SPENT),
    RELEASE_AGAIN: (postings.release, Why.HOLD_RETURNED),
}
CAUSES = {
    Proof.AS_ORDERED: Why.PAYOUT_UNEXPECTED,
    Proof.MORE: Why.PAYOUT_UNEXPECTED,
    Proof.LESS: Why.PAYOUT_UNEXPECTED,
    Proof.UNKNOWN: Why.RETURNED_UNKNOWN,
    Proof.GONE: Why.PAYOUT_RETURNED,
    Proof.UNDER_WAY: Why.PAYOUT_IN_PROGRESS,
    Proof.ABSENT: Why.PAYOUT_NOT_THERE,
    Proof.MISSING: Why.PAYOUT_MISSING,
}


@transaction
def apply_report(order: Order, report: Report, who: str = "channel", why: Reason = ASKED) -> bool:
    """Apply a channel's, a bank's or an operator's report on a withdrawal.

    A repeated report, or one that agrees with the ledger, changes nothing.

    Args:
        report: `amount` in fen.
        who: channel or operator; it is in the history with `why`.

    Returns: True if anything changed.
    """
    asked, order = order, Order.for_update(order.id)
    exceptions = exceptions_of(order)
    if not lifecycle.heard(order, asked, report, exceptions):
        return False
    why = reported(report.detail, why)
    changed = False
    if report.state is State.OPEN and who == "channel" and report.proven and not driver_for(order).by_hand:
        changed = note_shown(order, report.reference, report.detail)
    if report.state is State.ABSENT:
        report = replace(report, reference=money.shown_reference(order) or "")
    if not report.by_operator:
        changed |= _note_changed(order, report, exceptions)
    for judged in money.judge_each(order, report, exceptions):
        verdict = judged.verdict
        if verdict == NONE:
            continue
        recorded = _record(order, judged, report, who, exceptions)
        changed |= recorded
        if recorded and judged.position.money is WithdrawalMoney.SPENT_TWICE and verdict.exception == CLOSE:
            continue  # the second payout is gone; the report may also be about the first one
        if verdict.status == COMPLETED:
            changed |= complete(order, who, why, report.reference)
        elif verdict.status == CANCELLED:
            changed |= cancel(order, who, why)
        else:
            if verdict.posting:
                changed |= _post_again(order, verdict.posting, report, who)
            if verdict.exception in OPEN_ENDED:
                order.set_due(clock.now() + LATE[1])
            elif order.status != CANCELLED:
                order.set_due(None)
    return changed


def resume(order: Order) -> None:
    """Make an approved withdrawal due again after the last decision about its money, in that decision's transaction."""
    if order.status == CONFIRMED:
        order = Order.for_update(order.id)
        if order.due_at is None and not next_step.is_held(order):
            order.set_due(clock.now())


def take_notice(order: Order, notice: Notice) -> None:
    """Apply a genuine notice about a withdrawal."""
    assert notice.report is not None  # a notice about a refund alone is applied elsewhere
    apply_report(order, notice.report, "channel", because(Why.NOTICE))


@transaction
def note_shown(order: Order, reference: str, detail: str) -> bool:
    """Record that the channel has the payout; return True if this is new.

    Args:
        reference: the channel's number for it, or "".
        detail: the channel's message about it, or "".
    """
    text = ", ".join(filter(None, (reference, detail))) or "-"
    return lifecycle.note_once(order, "channel", because(Why.PAYOUT_SHOWN, text=text, reference=reference), MOST_SHOWN)


def _note_changed(order: Order, report: Report, exceptions: list[PaymentException]) -> bool:
    """Record which resolved exceptions no longer count, because the channel's report about the payout has changed."""
    changed = [each for each in exceptions if money.is_changed(each, report)]
    causes = [because(Why.REPORT_CHANGED, kind=each.kind, exception=str(each.id)) for each in changed]
    noted = [lifecycle.note_once(order, "channel", cause) for cause in causes]
    return any(noted)


def _record(order: Order, judged: Judged, report: Report, who: str, exceptions: list[PaymentException]) -> bool:
    """Open, change or close exceptions about a withdrawal's payout; True if anything changed."""
    position, proof, what = judged.position, judged.proof, judged.verdict.exception
    every = [each for each in exceptions if each.is_open]
    if what == CLOSE:
        end = PAID_OUT if proof is Proof.AS_ORDERED else FAILED
        # No payout remains at the channel. A bank reports about each transfer on its own.
        is_second = position.money is WithdrawalMoney.SPENT_TWICE
        whole = proof is Proof.GONE and not is_second and not driver_for(order).by_hand
        about = [each for each in every if whole or each in position.open or each.kind in OPEN_ENDED]
        closed = [close_exception(each, end, who) for each in about if each.kind in AT_CHANNEL]
        return any(closed)
    if what == PAYOUT_CONFLICT:
        for each in [each for each in every if each.kind in OPEN_ENDED]:
            close_exception(each, PAID_OUT, who)
    kind = PAYOUT_CONFLICT if what == ADJUST else what
    same = [each for each in position.open if each.kind == kind]
    amount = 0 if report.is_unsized else report.amount if report.state is State.PAID else order.amount
    if same:
        return change_exception(same[0], amount, report, who)
    if proof is Proof.AS_ORDERED and position.money in (WithdrawalMoney.SPENT, WithdrawalMoney.SPENT_TWICE):
        cause = because(Why.PAYOUT_AGAIN)
    elif proof is Proof.SHARED:
        cause = lifecycle.shared_by(order, report.reference)
    elif proof in (Proof.MORE, Proof.LESS) and order.status == CONFIRMED:
        cause = because(Why.PAYOUT_OTHER_AMOUNT)
    elif proof is Proof.GONE and driver_for(order).by_hand:
        cause = because(Why.PAYOUT_BACK, status=order.status)
    else:
        cause = because(CAUSES[proof], status=order.status)
    return raise_exception(order, kind, cause, amount, report.reference)


def _post_again(order: Order, posting: str, report: Report, who: str) -> bool:
    """Reserve, spend or release the money of a cancelled withdrawal that its channel has after all."""
    lines, note = AGAIN[posting]
    try:
        with database.atomic():
            accounts.post(accounts.numbered(order, posting), lines(order), who=who, order=order)
    except ApiError:
        return lifecycle.note_once(order, "service", because(Why.NOT_HELD_AGAIN))
    if posting == SPEND_AGAIN:
        Order.update(channel_reference=report.reference).where(Order.id == order.id).execute()
    lifecycle.note(order, who, because(note, amount=order.merchant_actual_amount + order.deposit_amount))
    return True


def complete(order: Order, who: str, why: Reason, reference: str) -> bool:
    """Complete a paid-out withdrawal: spend the reserve and return the deposit, in the caller's transaction.

    If the bank paid the account that the order had earlier, the order gets that one back.
    """
    steps = [(PAID, who, why), (COMPLETED, "service", because(Why.SETTLED))]
    facts: dict[str, object] = {"channel_reference": reference}
    earlier = change_account.paid_earlier(order, reference) if driver_for(order).by_hand else None
    if earlier is not None:
        endings = {"before": change_account.ending(order.account), "after": change_account.ending(earlier)}
        facts["account"] = earlier.id
    if not lifecycle.transitions(order, steps, **facts):
        return False
    if earlier is not None:
        lifecycle.note(order, who, because(Why.EARLIER_ACCOUNT_PAID, **endings))
    accounts.post("spend", postings.spend(order), who=who, order=order)
    return True


def cancel(order: Order, who: str, why: Reason, **facts: object) -> bool:
    """Cancel a withdrawal and return its whole reserve, in the caller's transaction. `facts` are stored with it."""
    if not transition(order, CANCELLED, who, why, **facts):
        return False
    accounts.post("release", postings.release(order), who=who, order=order)
    return True
