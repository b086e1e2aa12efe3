"""Apply a channel's report to an order: transitions, ledger entries and exceptions, each in one transaction."""

from __future__ import annotations

from dataclasses import replace

from gateways.base import BadNotice, ChannelUnknown, Incoming, Report, State
from models.db.base import database
from models.db.writer import transaction
from models.tables.order import (
    AT_CHANNEL,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAID,
    PAYOUT_CONFLICT,
    PAYOUT_IN_PROGRESS,
    PAYOUT_MISSING,
    PENDING,
    Order,
)
from runtime import clock
from services.channels import payment_numbers
from services.channels.bulkhead import channel_slot
from services.channels.calls import LATE, driver_of
from services.channels.order_numbers import attempt_of, order_no_of
from services.errors import ApiError
from services.ledger import accounts, postings
from services.ledger.postings import HOLD_AGAIN, RELEASE_AGAIN, SPEND_AGAIN
from services.orders import attempts, differences, lifecycle, next_step, positions
from services.orders.lifecycle import close_exception, raise_exception, transition
from services.orders.positions import FAILED, PAID_OUT, Position
from services.orders.reasons import Reason, Why, because, own_words
from services.orders.verdicts import (
    ADJUST,
    CLOSE,
    NONE,
    TABLE,
    Books,
    Proof,
    Verdict,
)

DAY = 86_400
MOST_REFUSED = 10  # such lines in an order's history, because anybody can send notices
ASKED = because(Why.CHANNEL_ASKED)


@transaction
def apply_report(order: Order, report: Report, who: str, why: Reason) -> bool:
    """Apply a channel's or an operator's report on an order, in one transaction.

    A repeated report, or one that agrees with the ledger, changes nothing.

    Args:
        report: `amount` in fen.
        who: channel, payer or operator; it is in the history with `why`.

    Returns: True if anything changed.
    """
    asked_about, order = order.status, Order.for_update(order.id)  # the current row, locked against other writers
    if report.proven:
        lifecycle.outcome_known(order)
    if report.state in (State.OPEN, State.ABSENT, State.ENDED) and order.status != asked_about:
        return False  # the order changed since the status check: the report is outdated
    why = own_words(report.detail) if report.detail else why
    return (_settle_deposit if order.is_buy else _settle_withdrawal)(order, report, who, why)


def apply_reports(order: Order, reports: list[Report], why: Reason = ASKED) -> bool:
    """Apply the reports of a status check on an order; return True if anything changed."""
    changed = [apply_report(order, report, "channel", why) for report in reports]
    return any(changed)


def take_notice(order: Order, incoming: Incoming) -> bool:
    """Verify a notice over its raw bytes and apply its report; return True if anything changed.

    Raises:
        BadNotice: the order's channel can't have sent it.
    """
    driver = driver_of(order.channel)
    notice = driver.read_notice(incoming)
    if order_no_of(notice.order_no) != order.order_no:
        raise BadNotice("it is about another order")
    is_old = order.is_buy and _may_be_old(order, notice.report)
    if order.is_buy and driver.checks_status and (driver.asks_again or is_old or attempts.are_several(order)):
        attempts.check_again(order, attempt_of(notice.order_no))
        return _check_soon(order) if order.status in (PENDING, CANCELLED) else _check_now(order)
    if is_old or (order.is_buy and notice.report.state is State.OPEN):
        return False  # it contains nothing new, and may be older than the recorded state
    return apply_report(order, notice.report, "channel", because(Why.NOTICE))


def _may_be_old(order: Order, report: Report) -> bool:
    """Return whether a notice may be outdated: it would credit, or report, money that was returned since.

    A notice stays valid forever. With some channels the payer's return address contains the signed parts of a notice,
    so every payer can send it again.
    """
    exceptions = positions.exceptions_of(order)
    if report.state is not State.PAID or not positions.is_gone(order, report, exceptions):
        return False
    position = positions.of_deposit(order, report.reference, exceptions)
    proof = positions.proof_of_deposit(order, report, position)
    verdict = TABLE[position.books][proof]
    return verdict.status == CONFIRMED or verdict.exception in MONEY_IN or proof is Proof.MORE


@transaction
def _check_soon(order: Order) -> bool:
    """Check the status at the next sweep, because a notice suggests a change."""
    order = Order.for_update(order.id)
    order.put_off(clock.now())
    return lifecycle.note_once(order, "channel", because(Why.ASK_AFTER_NOTICE))


def _check_now(order: Order) -> bool:
    """Check the status now, because no sweep checks this order any more. Raises BadNotice without a response."""
    try:
        with channel_slot(order.channel_id):
            reports = attempts.reports_of(order)
    except ChannelUnknown:
        raise BadNotice("the channel, asked about it, gave no answer") from None
    return apply_reports(order, reports)


def note_refused_notice(order: Order, reason: str) -> None:
    """Record in the order's history that a notice was not genuine; each reason once, and a limited number."""
    why = because(Why.NOTICE_REFUSED, text=reason)
    if lifecycle.is_new(order, why, MOST_REFUSED):  # otherwise anybody could keep the writer busy
        _note_refused(order, why)


@transaction
def _note_refused(order: Order, why: Reason) -> None:
    lifecycle.note_once(order, "channel", why, MOST_REFUSED)


def _unless_shared(order: Order, proof: Proof, report: Report) -> Proof:
    """Return SHARED if another order has the channel's number: one payment is neither credited nor deducted twice."""
    if proof is Proof.AS_ORDERED and not report.by_operator and payment_numbers.first_with(order, report.reference):
        return Proof.SHARED
    return proof


# --- deposits


def _settle_deposit(order: Order, report: Report, who: str, why: Reason) -> bool:
    """Apply a report to the payment that it names, or to all recorded payments if it names no payment."""
    changed, exceptions = False, positions.exceptions_of(order)
    for reference in positions.references_of(order, report, exceptions):
        again = True
        while again:  # after the open exceptions are closed, check the money credited under the same number
            position = positions.of_deposit(order, reference, exceptions)
            proof = positions.proof_of_deposit(order, report, position)
            verdict = TABLE[position.books][_unless_shared(order, proof, report)]
            moved = _deposit(order, verdict, report, reference, position, who, why)
            changed |= moved
            again = moved and position.books is Books.OPEN and verdict.exception == CLOSE
    next_step.hold_or_resume(order)
    return changed


def _deposit(
    order: Order, verdict: Verdict, report: Report, reference: str, position: Position, who: str, why: Reason
) -> bool:
    """Apply the verdict on one payment; True if anything changed."""
    if report.state is State.FAILED and report.returned and position.books in (Books.AWAITED, Books.LATE):
        Order.update(channel_reference=reference).where(Order.id == order.id).execute()  # its notice may arrive later
    if verdict == NONE:
        return False
    what = verdict.exception
    changed = bool(what) and differences.record(order, what, report, reference, position, who)
    if verdict.status == PAID:
        return transition(order, PAID, who, why, due_at=clock.now())
    if verdict.status == CANCELLED:
        went_back = position.books is Books.TO_CREDIT and not report.detail
        return transition(order, CANCELLED, who, because(Why.RETURNED_BEFORE_CREDIT) if went_back else why) or changed
    if verdict.status == CONFIRMED:
        return _confirm(order, reference, who, why)
    return changed


def _confirm(order: Order, reference: str, who: str, why: Reason) -> bool:
    days = order.channel.settlement_days
    due_at = clock.now() + days * DAY if days else None
    if order.status == PENDING:
        transition(order, PAID, who, why)
    if not transition(order, CONFIRMED, who, why, channel_reference=reference, due_at=due_at):
        return False
    return complete_deposit(order, because(Why.SETTLED)) if not days else True


@transaction
def complete_deposit(order: Order, why: Reason, who: str = "service", **facts: object) -> bool:
    """Credit a deposit whose money is proven. `facts` are stored with the step."""
    if not transition(order, COMPLETED, who, why, due_at=attempts.checked_again_at(order), **facts):
        return False
    accounts.post("credit", postings.credit(order), who=who, order=order)
    return True


@transaction
def cancel_unpaid(order: Order, ask_again: int | None, why: Reason, who: str = "service") -> bool:
    """Cancel a deposit that is unpaid at its channel; False if it changed meanwhile, or has an open exception about
    money.

    Args:
        ask_again: when to check for late money, if the channel may still accept it.
    """
    status, order = order.status, Order.for_update(order.id)
    lifecycle.outcome_known(order)
    money = [each for each in positions.exceptions_of(order) if each.kind in MONEY_IN and each.is_open]
    if order.status != status or status not in (PENDING, PAID):
        return False
    if money:
        order.put_off(None)
        return False
    return transition(order, CANCELLED, who, why, due_at=ask_again)


# --- withdrawals


def _settle_withdrawal(order: Order, report: Report, who: str, why: Reason) -> bool:
    noted = report.state is State.OPEN and _remember(order, report, who)
    if report.state is State.ABSENT:
        report = replace(report, reference=positions.shown_reference(order) or "")
    noted |= not report.by_operator and positions.note_changed(order, report)
    position, proof, verdict = judge_payout(order, report)
    if verdict == NONE:
        return noted
    changed = _withdrawal_exception(order, verdict.exception, proof, report, position, who)
    if changed and position.books is Books.SPENT_TWICE and verdict.exception == CLOSE:
        return _settle_withdrawal(order, report, who, why) or changed  # the report may also be about the first payout
    if verdict.status == COMPLETED:
        return complete_withdrawal(order, who, why, report.reference)
    if verdict.status == CANCELLED:
        return cancel_withdrawal(order, who, why)
    if verdict.posting:
        changed |= _post_again(order, verdict.posting, report, who)
    if verdict.exception in OPEN_ENDED:
        order.put_off(clock.now() + LATE[1])  # the status is checked until there is a final result
        return changed
    if order.status != CANCELLED:
        order.put_off(None)
    return changed


def judge_payout(order: Order, report: Report) -> tuple[Position, Proof, Verdict]:
    """Return the position of a withdrawal's money, what a report proves about it, and the verdict; change nothing."""
    position = positions.of_withdrawal(order, report, positions.counted_exceptions(order, report))
    proof = _unless_shared(order, positions.proof_of_withdrawal(order, report, position), report)
    return position, proof, TABLE[position.books][proof]


def _remember(order: Order, report: Report, who: str) -> bool:
    """Record that the channel has the payout, if the report is its own; True if this is new."""
    if who != "channel" or not report.proven or driver_of(order.channel).by_hand:
        return False
    return positions.note_shown(order, report.reference, report.detail)


def _withdrawal_exception(order: Order, what: str, proof: Proof, report: Report, position: Position, who: str) -> bool:
    """Open, adjust or close exceptions about a withdrawal's payout; True if anything changed."""
    every = [each for each in positions.exceptions_of(order) if each.is_open]
    if what == CLOSE:
        end = PAID_OUT if proof is Proof.AS_ORDERED else FAILED
        # No payout remains at the channel. A bank reports about each transfer on its own.
        whole = proof is Proof.GONE and position.books is not Books.SPENT_TWICE and not driver_of(order.channel).by_hand
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
        return differences.change(same[0], amount, report, who)
    return raise_exception(order, kind, _cause(order, proof, position, report), amount, report.reference)


def _cause(order: Order, proof: Proof, position: Position, report: Report) -> Reason:
    if proof is Proof.AS_ORDERED and position.books in (Books.SPENT, Books.SPENT_TWICE):
        return because(Why.PAYOUT_AGAIN)
    if proof is Proof.SHARED:
        return differences.shared(order, report.reference)
    if proof in (Proof.MORE, Proof.LESS) and order.status == CONFIRMED:
        return because(Why.PAYOUT_OTHER_AMOUNT)
    return because(CAUSES[proof], status=order.status)


CAUSES = {
    Proof.AS_ORDERED: Why.PAYOUT_UNEXPECTED,
    Proof.SHARED: Why.PAYOUT_UNEXPECTED,
    Proof.MORE: Why.PAYOUT_UNEXPECTED,
    Proof.LESS: Why.PAYOUT_UNEXPECTED,
    Proof.UNKNOWN: Why.RETURNED_UNKNOWN,
    Proof.GONE: Why.PAYOUT_RETURNED,
    Proof.UNDER_WAY: Why.PAYOUT_IN_PROGRESS,
    Proof.ABSENT: Why.PAYOUT_NOT_THERE,
    Proof.MISSING: Why.PAYOUT_MISSING,
}
OPEN_ENDED = (PAYOUT_IN_PROGRESS, PAYOUT_MISSING)  # the status is checked until there is a final result


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


AGAIN = {
    HOLD_AGAIN: (postings.hold, Why.HELD_AGAIN),
    SPEND_AGAIN: (postings.spend, Why.HOLD_SPENT),
    RELEASE_AGAIN: (postings.release, Why.HOLD_RETURNED),
}


def complete_withdrawal(order: Order, who: str, why: Reason, reference: str) -> bool:
    """Complete a paid-out withdrawal: spend the reserve and return the deposit, in the caller's transaction."""
    if not (
        transition(order, PAID, who, why, channel_reference=reference)
        and transition(order, COMPLETED, "service", because(Why.SETTLED))
    ):
        return False
    accounts.post("spend", postings.spend(order), who=who, order=order)
    return True


def cancel_withdrawal(order: Order, who: str, why: Reason, **facts: object) -> bool:
    """Cancel a withdrawal and return its whole reserve, in the caller's transaction. `facts` are stored with it."""
    if not transition(order, CANCELLED, who, why, **facts):
        return False
    accounts.post("release", postings.release(order), who=who, order=order)
    return True
