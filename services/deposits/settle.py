"""Settle a deposit by its channel's reports: `money.py` decides what each does, and here it is done in one commit."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from itertools import chain

from gateways.base import BadNotice, ChannelUnknown, Driver, Notice, Report, State
from models.db.writer import transaction
from models.tables.order import (
    AMOUNT_CORRECTED,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    LATE_PAYMENT,
    MONEY_IN,
    OF_REFUNDS,
    PAID,
    PAID_TWICE,
    PENDING,
    PROVEN,
    REVERSED,
    SHARED_REFERENCE,
    WRONG_AMOUNT,
    Order,
    PaymentException,
)
from models.tables.refund import UNCREDITED, lives, refunds_of
from runtime import clock
from services.callbacks import outbox
from services.channels import groups
from services.channels.bulkhead import channel_slot
from services.channels.calls import driver_of
from services.channels.order_numbers import attempt_of
from services.deposits import attempts, money
from services.deposits.money import DepositMoney
from services.ledger import accounts, postings
from services.merchants import cache
from services.orders import lifecycle, next_step
from services.orders.lifecycle import change_exception, close_exception, exceptions_of, raise_exception, transition
from services.orders.reasons import ASKED, Reason, Why, because, reported
from services.orders.verdict import ADJUST, CLOSE, CORRECTED, NONE, RETURNED, Judged, Position, Proof

DAY = 86_400


class OnNotice(Enum):
    """What a genuine notice does."""

    APPLY = auto()
    CHECK = auto()  # the status is checked, and that report counts
    IGNORE = auto()


def on_notice(
    order: Order, driver: Driver, report: Report, judged: Judged, exceptions: list[PaymentException]
) -> OnNotice:
    """Decide what a genuine notice does, given the verdict on its report.

    A notice stays valid forever. With some channels the payer's return address contains the signed parts of a notice,
    so every payer can send it again. So a notice of money that was returned since may be an old one.
    """
    reports_money = judged.verdict.status == CONFIRMED or judged.verdict.exception in MONEY_IN
    reports_money = reports_money or judged.proof in (Proof.MORE, Proof.SHARED)
    may_be_old = report.state is State.PAID and reports_money and money.is_gone(order, report, exceptions)
    if driver.checks_status and (driver.asks_again or may_be_old or attempts.are_several(order)):
        return OnNotice.CHECK
    if may_be_old or report.state is State.OPEN:
        return OnNotice.IGNORE  # it contains nothing new, and may be older than the recorded state
    return OnNotice.APPLY


def take_notice(order: Order, notice: Notice) -> None:
    """Apply a genuine notice about a deposit.

    Raises:
        BadNotice: the channel, which must confirm it, does not respond.
    """
    if _take_notice(order, notice):
        try:
            with channel_slot(order.channel_id):
                reports = attempts.reports_of(order)
        except ChannelUnknown:
            raise BadNotice("the channel, asked about it, gave no answer") from None
        for report in reports:
            apply_report(order, report)


@transaction
def _take_notice(order: Order, notice: Notice) -> bool:
    """Do what `on_notice` says; return whether to check the status at once."""
    report, locked = notice.report, Order.for_update(order.id)
    assert report is not None  # a notice about a refund alone is applied elsewhere
    channel = report.channel or locked.channel_id
    driver = driver_of(cache.channel_with(channel))
    exceptions = exceptions_of(locked)
    payments = money.judge(locked, report, exceptions)
    first = next(payments)
    does = on_notice(locked, driver, report, first, exceptions)
    if does is OnNotice.CHECK:
        attempts.reopen(locked, channel, attempt_of(notice.order_no))
        if order.status not in (PENDING, CANCELLED):
            return True  # no sweep checks it any more
        locked.set_due(clock.now())
        lifecycle.note_once(locked, "channel", because(Why.ASK_AFTER_NOTICE))
    elif does is OnNotice.APPLY and lifecycle.heard(locked, order, report, exceptions):
        _apply(locked, report, chain([first], payments), "channel", because(Why.NOTICE))
    return False


@transaction
def apply_report(order: Order, report: Report, who: str = "channel", why: Reason = ASKED) -> bool:
    """Apply a channel's or an operator's report on a deposit.

    A repeated report, or one that agrees with the ledger, changes nothing.

    Args:
        report: `amount` in fen.
        who: channel, payer or operator; it is in the history with `why`.

    Returns: True if anything changed.
    """
    locked = Order.for_update(order.id)
    exceptions = exceptions_of(locked)
    if not lifecycle.heard(locked, order, report, exceptions):
        return False
    return _apply(locked, report, money.judge(locked, report, exceptions), who, why)


def _apply(order: Order, report: Report, payments: Iterable[Judged], who: str, why: Reason) -> bool:
    """Carry out the verdict on each payment of a report, in the caller's transaction."""
    changed, why = False, reported(report.detail, why)
    for payment in payments:
        position, verdict = payment.position, payment.verdict
        came_and_went = report.state is State.FAILED and report.returned
        if came_and_went and position.money in (DepositMoney.AWAITED, DepositMoney.LATE):
            _follow_money(order, report)
            # Its notice may arrive later.
            Order.update(channel_reference=payment.reference).where(Order.id == order.id).execute()
        if verdict == NONE:
            continue
        if verdict.exception:
            changed |= _record(order, verdict.exception, report, payment.reference, position, who)
        if verdict.status == PAID:
            changed |= transition(order, PAID, who, why, due_at=clock.now())
        elif verdict.status == CANCELLED:
            went_back = position.money is DepositMoney.TO_CREDIT and not report.detail
            changed |= transition(order, CANCELLED, who, because(Why.RETURNED_BEFORE_CREDIT) if went_back else why)
        elif verdict.status == CONFIRMED:
            _follow_money(order, report)
            changed |= _confirm(order, payment.reference, who, why)
    hold_or_resume(order)
    return changed


def _follow_money(order: Order, report: Report) -> None:
    """Give an order without proven money the channel that reports some: a member that its group had tried before."""
    if report.channel in (0, order.channel_id) or order.status in PROVEN:
        return
    move_to_money(order, report.channel)
    lifecycle.note(order, "channel", because(Why.PAID_AT_MEMBER, channel=cache.channel_of(order).name))


def move_to_money(order: Order, channel: int) -> None:
    """Give an order the channel with its money, and count it there, in the caller's transaction."""
    is_counted = order.group_id and order.status != CANCELLED
    if is_counted:
        groups.give_back(order)
    attempts.change_channel(order, cache.channel_with(channel))
    if is_counted:
        groups.count_again(order)


def _confirm(order: Order, reference: str, who: str, why: Reason) -> bool:
    """Record that the money was received; credit it, unless that follows after the channel's settlement delay."""
    days = cache.channel_of(order).settlement_days
    steps = [(status, who, why) for status in ([PAID, CONFIRMED] if order.status == PENDING else [CONFIRMED])]
    if days:
        due_at = clock.now() + days * DAY
        return lifecycle.transitions(order, steps, channel_reference=reference, due_at=due_at)
    return complete(order, "service", because(Why.SETTLED), steps, channel_reference=reference)


@transaction
def complete(
    order: Order, who: str, why: Reason, steps: Iterable[tuple[str, str, Reason]] = (), **facts: object
) -> bool:
    """Credit a deposit whose money is proven, after `steps` of the same moment. `facts` are stored with them."""
    may_be_refunded = order.status == CONFIRMED
    due_at = attempts.checked_again_at(order)
    if not lifecycle.transitions(order, [*steps, (COMPLETED, who, why)], due_at=due_at, **facts):
        return False
    waited = [each for each in lives(refunds_of(order)) if each.paid_from == UNCREDITED] if may_be_refunded else []
    for refund in waited:  # rows are locked before accounts
        refund.store(**refund.charged_to_balance(order))
    accounts.post("credit", postings.credit(order), who=who, order=order)
    for refund in waited:
        lines = postings.refund(refund, order, "", refund.status)
        accounts.post(accounts.numbered(order, "refund"), lines, who=who, order=order)
    return True


@transaction
def cancel_unpaid(order: Order, ask_again: int | None, why: Reason, who: str = "service") -> bool:
    """Cancel a deposit that is unpaid at its channel; False if it changed meanwhile, or has an open exception about
    money.

    Args:
        ask_again: when to check for late money, if the channel may still accept it.
    """
    status, channel, order = order.status, order.channel_id, Order.for_update(order.id)
    exceptions = exceptions_of(order)
    lifecycle.outcome_known(exceptions)
    if order.status != status or order.channel_id != channel or status not in (PENDING, PAID):
        return False
    if any(each.kind in MONEY_IN and each.is_open for each in exceptions):
        order.set_due(None)
        return False
    return transition(order, CANCELLED, who, why, due_at=ask_again)


def is_held(order: Order) -> bool:
    """Return whether the deposit waits for a decision about its money.

    Only an exception about a confirmed deposit's own payment delays its credit: a second payment does not. An open
    refund, and an open exception about a refund, delay it too.
    """
    if order.status == CONFIRMED and (
        next_step.has_open_refund(order) or any(each.kind in OF_REFUNDS for each in lifecycle.open_exceptions(order))
    ):
        return True
    return next_step.is_held(order, order.channel_reference if order.status == CONFIRMED else None)


def hold_or_resume(order: Order) -> None:
    """Stop what is due for an unpaid deposit that waits for a decision; make a held one due again after the last one.

    Call it in the transaction that opened or closed an exception. A confirmed deposit keeps the time of its credit as
    its due time, and is held when that comes (`expire`). So a held one without a due time is due at once.
    """
    if order.status not in (PENDING, PAID, CONFIRMED):
        return
    order = Order.for_update(order.id)
    held = is_held(order)
    if held and order.status != CONFIRMED:
        order.set_due(None)
    elif not held and order.due_at is None:
        order.set_due(clock.now())


# --- exceptions: a report opens, changes or closes them by its difference to the ledger


def _record(order: Order, what: str, report: Report, reference: str, position: Position, who: str) -> bool:
    """Open, change or close the exception about one payment; True if anything changed.

    Args:
        what: the kind to open, ADJUST or CLOSE.
        reference: the channel's number for the payment.
    """
    if what == CLOSE:
        end = CORRECTED if report.state is State.PAID else RETURNED
        # If money was credited, `reversed` stays open until an operator has deducted it.
        ended = [each for each in position.open if each.kind in MONEY_IN or position.money is DepositMoney.TO_CREDIT]
        closed = [each for each in ended if close_exception(each, end, who)]
        for each in closed:
            if end == RETURNED and each.kind in MONEY_IN:
                outbox.enqueue(order, "order.refunded", each.id)
        return bool(closed)
    received = [each for each in position.open if each.kind in MONEY_IN]
    if report.is_unsized:
        # A repeated report of unknown size does not undo the amount that such an exception got since.
        sized = [each for each in position.open if each.kind == what and each.code != Why.RETURNED_UNKNOWN]
        if same := received if what == ADJUST else sized:
            return change_exception(same[0], 0, report, who)
        return raise_exception(order, what, because(Why.RETURNED_UNKNOWN), 0, reference, channel=report.channel)
    there = report.amount if report.state is State.PAID else 0
    if there < position.least:
        return record_less(order, position.least - there, report, reference, position, who)
    more = max(there - position.most, 0)
    same = [each for each in received if what in (ADJUST, each.kind)]
    if same:
        return change_exception(same[0], same[0].amount + more, report, who)
    if what == PAID_TWICE:
        paid_again = order.status != PENDING and order.channel_reference
        cause = because(Why.PAID_AGAIN if paid_again else Why.PAID_AFTER_CREDIT)
    elif what == AMOUNT_CORRECTED:
        cause = because(Why.MORE_RECEIVED, reported=position.most + more, booked=position.most)
    elif what == SHARED_REFERENCE:
        cause = lifecycle.shared_by(order, reference, report.channel)
    else:
        cause = because({WRONG_AMOUNT: Why.PAID_OTHER_AMOUNT, LATE_PAYMENT: Why.PAID_AFTER_END}[what])
    returned = report.returned if report.returned and not position.most else None  # the refund of this payment
    return raise_exception(order, what, cause, more, reference, returned, report.channel)


def record_less(order: Order, fen: int, report: Report, reference: str, position: Position, who: str) -> bool:
    """Record that the channel has `fen` less than the ledger: reduce open exceptions first, and reverse the rest.

    Call it on the locked order, in the caller's transaction. Returns True if anything changed.
    """
    changed = False
    for each in position.open:
        if each.kind in MONEY_IN:
            taken = min(int(each.amount), fen)
            changed |= change_exception(each, each.amount - taken, report, who)
            fen -= taken
    if not fen:
        return changed
    earlier = [each for each in position.open if each.kind == REVERSED]
    if earlier:
        return change_exception(earlier[0], earlier[0].amount + fen, report, who) or changed
    if report.state in (State.OPEN, State.ABSENT):
        cause = because(Why.NOT_PAID_THERE, status=order.status)
    else:
        cause = because(Why.RETURNED_AFTER_CREDIT, amount=fen, booked=position.least)
    return raise_exception(order, REVERSED, cause, fen, reference, channel=report.channel) or changed
