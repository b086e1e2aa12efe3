"""Send refunds to their channels, and check their status.

A refund is sent again only under its own number, and only if its channel takes that for the same refund. Otherwise an
operator decides.
"""

from __future__ import annotations

from typing import Any

from gateways.base import ChannelRefused, ChannelUnknown, RefundRequest, Report, State
from models.db.writer import transaction
from models.tables.maintenance import paused_since
from models.tables.order import CANCELLED, COMPLETED, CONFIRMED, PENDING, REFUND_ABNORMAL, REVERSED, Order
from models.tables.refund import Refund, refunds_of
from runtime import clock
from runtime.money import hundredths
from runtime.state import current
from services.channels.bulkhead import channel_slot
from services.channels.calls import LATE, LEASE, LONGEST_PAUSE, call_driver, driver_of, pause
from services.deposits import attempts
from services.deposits import settle as settle_deposit
from services.errors import N_, OperatorError, refuse
from services.orders.lifecycle import exceptions_of
from services.orders.reasons import Reason, Why, because
from services.refunds import settle
from services.refunds.settle import transition

APART = 60  # seconds between two refunds of a payment, and before the status of one is first checked
LONG = 86_400  # seconds without a result after which an operator may decide


def request_of(refund: Refund) -> RefundRequest:
    """Return a refund in the form that drivers need."""
    order_no = refund.order.order_no
    return RefundRequest(
        refund_no=refund.refund_no,
        order_no=order_no,
        reference=refund.reference,
        amount=refund.amount,
        total=refund.total,
        reason=refund.reason,
        notify_url=f"{current().settings.public_url}/addons/paychannel/notify/{order_no}",
        refunded_before=refund.refunded_before,
    )


def advance(refund: Refund) -> bool:
    """Do what is due for a claimed refund; return False if its channel gave no usable response."""
    try:
        if not refund.is_open:
            _check_ended(refund)
        else:
            send(refund)
    except ChannelUnknown as silence:
        again_at = clock.now() + pause(refund.asks, APART) if refund.is_open else _next_late(refund)
        repeats = driver_of(refund.channel).repeats_refund(request_of(refund))
        is_long = clock.now() - refund.updatetime > (LONG if repeats else LATE[1])
        settle.outcome_unknown(refund, str(silence), again_at, is_long)
        return False
    return True


def send_now(refund: Refund) -> Refund:
    """Send a refund that its request has claimed, and return it as it is then. The sweep sends it if this fails."""
    try:
        with channel_slot(refund.channel_id):
            advance(refund)
    except ChannelUnknown:  # too many calls to the channel are in progress
        _again(refund, 0)
    refund, order = Refund.get_by_id(refund.id), refund.order
    refund.order = order
    return refund


def send(refund: Refund) -> None:
    """Send an approved refund that is claimed, or check its status; outside any transaction.

    Raises:
        ChannelUnknown: no usable response.
    """
    driver, request = driver_of(refund.channel), request_of(refund)
    paused, first = not driver.by_hand and paused_since() is not None, refund.status == PENDING
    if paused or not first:
        # After a restore it may have been sent, although its row does not show it.
        report = ask(refund)
        if report.state is not State.ABSENT or paused:
            settle.apply_report(refund, report)
            _again(refund, LONGEST_PAUSE if paused else pause(refund.asks, APART))
            return
        if not driver.repeats_refund(request):
            _not_repeated(refund)
            return
    repeats = driver.by_hand or driver.repeats_refund(request)
    seen = _state_of(refund)
    before = None if repeats else call_driver(driver.refunded_sum, request)
    if not repeats and (unknown := _unrecorded(refund, before)):
        settle.apply_report(refund, Report(State.STUCK, detail=unknown))
        return
    begun = _begin(refund, before, seen) if first else _send_again(refund)
    if begun is None:
        return
    if driver.by_hand:
        return  # an operator sends the money
    try:
        report = call_driver(driver.refund, request_of(begun))
    except ChannelRefused as refusal:
        if first:
            settle.apply_report(begun, Report(State.FAILED), "channel", because(Why.REFUSED, text=str(refusal)))
        else:  # it proves nothing about the request before, but the channel may know the refund now
            report = ask(begun)
            stuck = Report(State.STUCK, detail=str(refusal))
            settle.apply_report(begun, stuck if report.state is State.ABSENT else report)
        return
    except ChannelUnknown as silence:
        # The same request follows under the same number, after a status check.
        settle.outcome_unknown(begun, str(silence), clock.now() + APART, clock.now() - begun.updatetime > LONG)
        raise
    settle.apply_report(begun, report)
    _again(begun, APART)


def _unrecorded(refund: Refund, refunded: int | None) -> str:
    """Return how the channel's refunds of the payment exceed those recorded here, or "".

    After a restore, the excess can be this refund. If the channel can't identify it, an operator decides.

    Args:
        refunded: the sum at the channel, in fen; None if it does not tell.
    """
    sent = [each for each in refunds_of(refund.order) if each.status in (CONFIRMED, COMPLETED)]
    amounts = [int(each.amount) for each in sent if each.reference == refund.reference]
    for each in exceptions_of(refund.order):
        if each.reference == refund.reference:
            amounts.append(int(each.amount if each.kind == REVERSED else each.returned or 0))
    recorded = sum(amounts)
    if refunded is None:
        return "" if recorded else "the channel does not report that nothing of this payment was refunded"
    if refunded <= recorded:
        return ""
    return f"the channel has refunded {hundredths(refunded)} of this payment, and {hundredths(recorded)} is recorded"


def _state_of(refund: Refund) -> list[tuple[str, str]]:
    """Return the sent refunds of the same payment, with their statuses."""
    same = [each for each in refunds_of(refund.order) if each.reference == refund.reference]
    return [(each.refund_no, each.status) for each in same if each.id != refund.id and each.status != PENDING]


@transaction
def _begin(seen: Refund, refunded_before: int | None, state: object) -> Refund | None:
    """Hand a refund over to its channel, if it is its turn, before the call; return it, or None."""
    refund, now = settle.lock(seen), clock.now()
    if not refund.is_as(seen):
        return None  # another worker has it, or an operator decided
    if refunded_before is not None and _state_of(refund) != state:
        refund.set_due(now + APART)  # another refund of the payment ended meanwhile: ask for the sum again
        return None
    others = [each for each in refunds_of(refund.order) if each.reference == refund.reference and each.id != refund.id]
    if any(
        each.status == CONFIRMED or (each.status == PENDING and each.approved_by != "" and each.id < refund.id)
        for each in others
    ):
        refund.set_due(now + APART)
        return None
    last = max((each.senttime or 0 for each in others), default=0)
    if now < last + APART <= now + APART:
        refund.set_due(last + APART)
        return None
    by_hand = driver_of(refund.channel).by_hand
    # The claim is extended, since the next call may refund.
    facts = {"senttime": now, "refunded_before": refunded_before, "due_at": None if by_hand else now + LEASE}
    why = because(Why.REFUND_BY_HAND if by_hand else Why.REFUND_SENT)
    return refund if transition(refund, CONFIRMED, "service", why, **facts, asks=1) else None


@transaction
def _send_again(seen: Refund) -> Refund | None:
    """Extend the claim before the request is repeated; return the refund, or None if it has changed."""
    refund = settle.lock(seen)
    if not refund.is_as(seen):
        return None
    now = clock.now()
    refund.store(due_at=now + LEASE, senttime=now)
    return refund


@transaction
def _not_repeated(seen: Refund) -> None:
    """Open an exception about a refund that the channel does not show and that must not be sent twice."""
    refund = settle.lock(seen)
    if refund.status == CONFIRMED:
        settle.raise_exception(refund, REFUND_ABNORMAL, because(Why.REFUND_UNPROVEN))
        refund.set_due(clock.now() + LATE[1])


@transaction
def _again(refund: Refund, seconds: int) -> None:
    """Set the next check of a refund that is still open, unless something has changed its time."""
    refund.set_due(clock.now() + seconds)


def ask(refund: Refund) -> Report:
    """Check the status of a refund at its channel, outside any transaction. Raises ChannelUnknown."""
    report: Report = call_driver(driver_of(refund.channel).query_refund, request_of(refund))
    return report


def why_not_ask(refund: Refund) -> str:
    """Return the reason not to check the refund's status at its channel, or ""."""
    if driver_of(refund.channel).by_hand:
        return N_("This channel is manual, so it has no status checks.")
    return "" if refund.senttime else N_("The refund has not been sent to the channel.")


def ask_now(refund: Refund, why: Reason) -> Report:
    """Check a refund's status at its channel, apply the report, and return it.

    Raises:
        OperatorError: it is not at a channel, or the channel gave no usable response.
    """
    refuse(why_not_ask(refund))
    try:
        with channel_slot(refund.channel_id):
            report = ask(refund)
    except ChannelUnknown as silence:
        raise OperatorError(N_("No valid response: %(why)s"), why=str(silence)) from silence
    settle.apply_report(refund, report, "channel", why)
    return report


def _check_ended(refund: Refund) -> None:
    """Check whether the channel still confirms the result of an ended refund: it may contradict it.

    A report that money is missing seemed to be explained by a refund that was cancelled since, so it is repeated.
    """
    driver, silence = driver_of(refund.channel), None
    later = [each for each in refunds_of(refund.order) if each.reference == refund.reference and each.id > refund.id]
    # A channel that only reports sums can't tell this refund from a later one.
    if driver.repeats_refund(request_of(refund)) or not any(each.senttime for each in later):
        try:
            settle.apply_report(refund, ask(refund))
        except ChannelUnknown as error:
            silence = error
    is_disputed = any(each.is_open for each in settle.exceptions_about(refund))
    if refund.status == CANCELLED and driver.checks_status and not is_disputed:
        for report in attempts.reports_of(refund.order):
            settle_deposit.apply_report(refund.order, report)
    if silence:
        raise silence
    refund.set_due(_next_late(refund))


def _next_late(refund: Refund) -> int | None:
    """Return the time of the next check of an ended refund, None after the last."""
    passed = clock.now() - refund.updatetime
    return next((refund.updatetime + late for late in LATE if late > passed), None)


def due_of(channel_id: int, now: int, limit: int) -> list[Refund]:
    """Return a channel's due refunds with their orders, longest due first."""
    due: Any = Refund.select(Refund, Order).join(Order)
    return list(due.where(Refund.channel == channel_id, Refund.due_at <= now).order_by(Refund.due_at).limit(limit))
