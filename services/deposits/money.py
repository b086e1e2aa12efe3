"""The money of a deposit: the states of one payment in the ledger, and what a channel's report does to each.

A channel that refunds, corrects or repeats a payment reports the same number again. So a payment is identified by the
channel's number for it, and a deposit can have several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto

from gateways.base import Report, State
from models.tables.order import (
    AMOUNT_CORRECTED,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    LATE_PAYMENT,
    MONEY_IN,
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
from models.tables.refund import EXCEPTION, Refund, lives, refunds_of
from services.orders.lifecycle import unless_shared
from services.orders.reasons import Why
from services.orders.verdict import (
    ADJUST,
    CLOSE,
    CORRECTED,
    CREDIT,
    NONE,
    REFUND,
    RETURNED,
    Judged,
    Position,
    Proof,
    Table,
    Verdict,
    opens,
    row,
)


class DepositMoney(Enum):
    """The state in the ledger of one payment of a deposit."""

    AWAITED = auto()  # not recorded, and the order waits for it
    QUESTIONED = auto()  # in an open exception, and the order waits for its amount
    LATE = auto()  # not recorded, and the order is cancelled
    ANOTHER = auto()  # not recorded, and the order has other money
    OPEN = auto()  # in an open exception of an order that waits for no payment
    TO_CREDIT = auto()  # the order's own, confirmed and not credited yet
    CREDITED = auto()  # credited, with its order or by an exception
    SENT_BACK = auto()  # returned by an operator, or by a refund of this service


_adjusted, _closed, _reversed = opens(ADJUST), opens(CLOSE), opens(REVERSED)
_wrong, _late, _twice, _more = opens(WRONG_AMOUNT), opens(LATE_PAYMENT), opens(PAID_TWICE), opens(AMOUNT_CORRECTED)
_cancelled, _cancelled_and_closed = Verdict(CANCELLED), Verdict(CANCELLED, exception=CLOSE)

TABLE: Table = {
    DepositMoney.AWAITED: row(
        claimed=Verdict(PAID),
        ordered=Verdict(CONFIRMED),
        shared=opens(SHARED_REFERENCE),
        paid=_wrong,
        unknown=_wrong,
        ended=NONE,
        gone=_cancelled,
    ),
    DepositMoney.QUESTIONED: row(
        ordered=Verdict(CONFIRMED, exception=CLOSE),
        paid=_adjusted,
        unknown=_adjusted,
        gone=_cancelled_and_closed,
    ),
    DepositMoney.LATE: row(paid=_late, unknown=_late, ended=NONE, gone=NONE),
    DepositMoney.ANOTHER: row(paid=_twice, unknown=_twice, ended=NONE, gone=NONE),
    DepositMoney.OPEN: row(paid=_adjusted, unknown=_adjusted, gone=_closed),
    DepositMoney.TO_CREDIT: row(
        more=_more,
        paid=_reversed,
        unknown=_reversed,
        gone=_cancelled_and_closed,
        under_way=_reversed,
    ),
    DepositMoney.CREDITED: row(more=_more, paid=_reversed, unknown=_reversed, gone=_reversed, under_way=_reversed),
    DepositMoney.SENT_BACK: row(more=_more, paid=NONE, unknown=NONE, gone=NONE),
}


def verdict_on(order: Order, report: Report, position: Position) -> Verdict:
    """Return what a report does to a payment in this position, if the channel's number is of no other order."""
    return TABLE[position.money][proof_of(order, report, position)]


def judge(order: Order, report: Report, exceptions: list[PaymentException]) -> Iterator[Judged]:
    """Judge a report on the payment that it names, or on all recorded payments if it names none.

    Each payment is judged when it is reached, after the effects on the one before. Call it in a transaction.
    """
    refunds = _refunds_of(order, exceptions)
    for reference in references_of(order, report, exceptions):
        judged = _judge(order, report, reference, exceptions, refunds)
        yield judged
        if judged.position.money is DepositMoney.OPEN and judged.verdict.exception == CLOSE:
            # Its open exceptions are closed now. The report is also about money credited under the same number.
            yield _judge(order, report, reference, exceptions, refunds)


def _refunds_of(order: Order, exceptions: list[PaymentException]) -> list[Refund]:
    """Return the order's refunds, without a query for one that waits for its first payment."""
    return refunds_of(order) if exceptions or order.status not in (PENDING, PAID) else []


def _judge(
    order: Order, report: Report, reference: str, exceptions: list[PaymentException], refunds: list[Refund]
) -> Judged:
    position = position_of(order, reference, exceptions, refunds, report.channel)
    proof = unless_shared(order, proof_of(order, report, position), report)
    return Judged(reference, position, proof, TABLE[position.money][proof])


def references_of(order: Order, report: Report, exceptions: list[PaymentException]) -> list[str]:
    """Return the channel's numbers of the deposit's payments that a report is about: the one that it names, or all.

    A failure that names a payment which is not recorded says nothing about those with another number.
    """
    money = [each for each in exceptions if each.kind in MONEY_IN]
    if report.state in (State.PAID, State.RETURNED, State.ENDED) or (
        report.reference and report.reference in {order.channel_reference, *(each.reference for each in money)}
    ):
        return [report.reference]
    own = [order.channel_reference] if order.status in (CONFIRMED, COMPLETED) else []
    numbers = [each.reference for each in money if each.resolution != RETURNED]
    if report.state is State.FAILED and report.reference:
        own, numbers = ([each for each in found if not each] for found in (own, numbers))
    return list(dict.fromkeys(own + numbers)) or [report.reference]


def credited_by_hand(exceptions: list[PaymentException]) -> bool:
    """Return whether an operator has credited money of this deposit."""
    return any(each.kind in MONEY_IN and each.resolution == CREDIT for each in exceptions)


def position_of(
    order: Order, reference: str, exceptions: list[PaymentException], refunds: list[Refund], channel: int = 0
) -> Position:
    """Return the position of the deposit's payment with this number of the channel, 0 for the order's own.

    The channel may have the refunds of this service or not: one that is not sent yet may have been, before a restore.
    """
    channel = channel or order.channel_id
    about = [each for each in exceptions if each.reference == reference and each.channel_id == channel]
    about = [each for each in about if each.kind in (*MONEY_IN, REVERSED)]
    money = [each for each in about if each.kind in MONEY_IN]
    is_own = (order.channel_reference, order.channel_id) == (reference, channel) and order.status in PROVEN
    is_open = any(each.is_open for each in money)
    went_back = [each for each in about if each.kind == REVERSED and each.resolution != CORRECTED]
    least = int(order.received) if is_own else 0
    least += sum(int(each.amount) for each in money if each.resolution in (None, CREDIT))
    own = [each for each in lives(refunds) if each.reference == reference]
    done = _sent_back_by(own)
    by_operators = [each for each in money if each.resolution == REFUND and each.id not in done]
    sent = sum(each.amount for each in by_operators) + sum(done.values())
    known = sum(each.returned for each in money if each.is_open and each.returned)
    unknown = any(not each.amount and not each.is_open for each in went_back)  # an open exception will get its amount
    gone = least if unknown else sum(each.amount for each in went_back)
    undecided = {each.id for each in money if each.is_open}
    # The amounts of open exceptions include what is going back, and that of an order all that was refunded of it.
    going = sum(each.amount for each in own if each.is_open and each.exception_id in undecided)
    of_order = sum(each.amount for each in own if each.paid_from != EXCEPTION)
    counted, ended = (going + of_order, 0) if is_own else (going, of_order)
    waits = order.status in (PENDING, PAID) and not credited_by_hand(exceptions)
    if is_own:
        state = DepositMoney.TO_CREDIT if order.status == CONFIRMED else DepositMoney.CREDITED
    elif is_open:
        state = DepositMoney.QUESTIONED if waits else DepositMoney.OPEN
    elif any(each.resolution == CREDIT for each in money):
        state = DepositMoney.CREDITED
    elif sent:
        state = DepositMoney.SENT_BACK
    elif waits:
        state = DepositMoney.AWAITED
    else:
        state = DepositMoney.LATE if order.status == CANCELLED else DepositMoney.ANOTHER
    refunded = sum(each.amount for each in own)
    return Position(state, least - gone - counted, least + sent + known + ended, about, refunded)


def _sent_back_by(refunds: list[Refund]) -> dict[int, int]:
    """Return the money of exceptions that completed refunds sent back, in fen, by the exception's id."""
    sums: dict[int, int] = {}
    for each in refunds:
        if each.paid_from == EXCEPTION and each.status == COMPLETED:
            sums[each.exception_id] = sums.get(each.exception_id, 0) + each.amount
    return sums


def is_gone(order: Order, report: Report, exceptions: list[PaymentException]) -> bool:
    """Return whether a full payment is recorded here, and a later refund of some or all of it."""
    about = [each for each in exceptions if each.reference == report.reference]
    if order.status == CANCELLED and order.channel_reference == report.reference:
        return report.amount <= order.received  # it was returned before it was credited
    if any(each.code == Why.RETURNED_UNKNOWN for each in about):
        return True
    refunds = [each for each in lives(_refunds_of(order, exceptions)) if each.reference == report.reference]
    if not refunds and not any(
        each.kind == REVERSED or each.returned or each.resolution in (REFUND, RETURNED) for each in about
    ):
        return False
    return report.amount <= received(order, report.reference, exceptions, refunds)


def received(order: Order, reference: str, exceptions: list[PaymentException], refunds: Sequence[Refund] = ()) -> int:
    """Return the total recorded as received under this number, in fen, before refunds."""
    done = _sent_back_by([each for each in refunds if each.reference == reference])
    money = [each for each in exceptions if each.reference == reference and each.kind in MONEY_IN]
    is_own = order.status in (CONFIRMED, COMPLETED) and order.channel_reference == reference
    counted = [each.amount for each in money if each.resolution in (None, CREDIT, RETURNED)]
    counted += [each.amount for each in money if each.resolution == REFUND and each.id not in done]
    known_back = sum(each.returned for each in money if each.returned and each.resolution != CORRECTED)
    return (int(order.received) if is_own else 0) + int(sum(counted)) + known_back + sum(done.values())


# By the channel's state: the proof in a report without money.
_NOTHING = {
    State.OPEN: Proof.UNDER_WAY,
    State.ABSENT: Proof.ABSENT,
    State.FAILED: Proof.GONE,
    State.STUCK: Proof.STUCK,  # it is about a refund, and proves nothing about the payment
}


def proof_of(order: Order, report: Report, position: Position) -> Proof:
    """Return the proof in a report on this payment, given its position."""
    if not report.proven:
        return Proof.CLAIMED
    if position.refunded and (report.is_unsized or (report.state is not State.PAID and position.least <= 0)):
        return Proof.AS_BOOKED  # the refund of this service explains it
    if report.is_unsized and any(
        each.kind == REVERSED and each.code == Why.REFUNDS_NAMED and each.resolution != CORRECTED
        for each in position.exceptions
    ):
        return Proof.AS_BOOKED  # the channel named the refunds, so their sum is known, and it would name others
    if report.is_unsized:
        unsized = Proof.ENDED if report.state is State.ENDED else Proof.UNKNOWN
        return Proof.AS_BOOKED if position.is_unsized else unsized
    if report.state is not State.PAID:
        nothing = _NOTHING[report.state]
        is_booked = position.money is DepositMoney.CREDITED or (
            position.money is DepositMoney.TO_CREDIT and nothing is not Proof.GONE
        )
        reversed_whole = position.least <= 0 and all(each.kind == REVERSED for each in position.open)
        return Proof.AS_BOOKED if is_booked and reversed_whole else nothing
    waits = position.money in (DepositMoney.AWAITED, DepositMoney.QUESTIONED)
    if waits and report.amount == order.amount and not position.refunded:  # money that goes back pays for no order
        return Proof.AS_ORDERED
    if report.amount < position.least:
        return Proof.LESS
    return Proof.MORE if report.amount > position.most else Proof.AS_BOOKED
