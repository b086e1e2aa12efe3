"""The state of an order's money in the ledger: the input of the table of verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from peewee import fn

from gateways.base import ChannelError, ChannelUnknown, Payout, Report, State
from models.db.writer import transaction
from models.tables.ledger import AVAILABLE, HELD, Entry, LedgerAccount, Posting
from models.tables.order import (
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAID,
    PAYOUT_CONFLICT,
    PAYOUT_MISSING,
    PENDING,
    REVERSED,
    History,
    Order,
    PaymentException,
)
from runtime import clock
from services.channels.calls import call_driver, payout_of
from services.orders import lifecycle
from services.orders.lifecycle import ANSWERED
from services.orders.reasons import Why, because, reason_of
from services.orders.verdicts import Books, Proof
from services.security import masking

MOST_SHOWN = 5  # lines of history, each with a different message


def call_for_payout(verb: Callable[[Payout], Report], order: Order) -> Report:
    """Call the channel for a payout, and record an unusable response that shows that the channel has it.

    The payout account in the channel's message is masked, because history stores the message and is append-only.

    Raises:
        ChannelError.
    """
    payout = payout_of(order)
    try:
        report: Report = call_driver(verb, payout)
    except ChannelError as error:
        error.args = (masking.without(str(error), payout.account),)
        if isinstance(error, ChannelUnknown) and error.has_it:
            note_shown(order, "", str(error))
        raise
    return replace(report, detail=masking.without(report.detail, payout.account))


@transaction
def note_shown(order: Order, reference: str, detail: str) -> bool:
    """Record that the channel has the payout; return True if this is new.

    Args:
        reference: the channel's number for it, or "".
        detail: the channel's message about it, or "".
    """
    text = ", ".join(filter(None, (reference, detail))) or "-"
    return lifecycle.note_once(order, "channel", because(Why.PAYOUT_SHOWN, text=text, reference=reference), MOST_SHOWN)


def shown_reference(order: Order) -> str | None:
    """Return the channel's number for a payout that it has shown, "" without a number; None if it never showed one."""
    mine = (History.order == order, History.code == Why.PAYOUT_SHOWN)
    lines = History.select().where(*mine).order_by(History.id.desc())
    numbers = [str(reason_of(line).args["reference"]) for line in lines]
    return next(filter(None, numbers), "") if numbers else None


def was_shown(order: Order) -> bool:
    """Return whether the channel has ever shown this payout."""
    return shown_reference(order) is not None


def note_changed(order: Order, report: Report) -> bool:
    """Record which exceptions about a payout no longer count once resolved, because its channel's report has changed.

    Call it in a transaction. Returns: True if there are any new ones.
    """
    changed = [each for each in exceptions_of(order) if _is_changed(each, report)]
    causes = [because(Why.REPORT_CHANGED, kind=each.kind, exception=str(each.id)) for each in changed]
    noted = [lifecycle.note_once(order, "channel", cause) for cause in causes]
    return any(noted)


def _is_changed(exception: PaymentException, report: Report) -> bool:
    """Return whether a report about a payout differs from the one that this exception is about."""
    if exception.reference != report.reference and "" not in (exception.reference, report.reference):
        return False
    end = (exception.kind, exception.resolution)
    if end == (PAYOUT_CONFLICT, CANCEL):
        return bool(exception.amount != (report.amount if report.state is State.PAID else 0))
    if end not in NOT_PAID or exception.code in NOT_FAILED or report.is_unsized:
        return False
    return report.state is not NOT_PAID[end]


def counted_exceptions(order: Order, report: Report) -> list[PaymentException]:
    """Return a withdrawal's exceptions, oldest first, without resolved ones whose report has changed.

    If the channel repeats the report that such an exception is about, this is a new difference.
    """
    lines = History.select().where(History.order == order, History.code == Why.REPORT_CHANGED)
    changed = {reason_of(line).args["exception"] for line in lines}
    every = exceptions_of(order)
    if not report.by_operator:
        changed |= {str(each.id) for each in every if _is_changed(each, report)}
    return [each for each in every if each.is_open or str(each.id) not in changed]


# The ends of exceptions. An operator decides the first four, the channel's reports prove the others.
CREDIT, REFUND, COMPLETE, CANCEL = RESOLUTIONS = ("credit", "refund", "complete", "cancel")
CORRECTED, RETURNED, PAID_OUT, FAILED = ("corrected", "returned", "paid_out", "failed")
# The codes of exceptions that a report other than a failure opened.
NOT_FAILED = (Why.PAYOUT_IN_PROGRESS, Why.PAYOUT_NOT_THERE)
# The kinds and ends of exceptions about a payout that the channel reported as not made, and that report.
NOT_PAID = {
    (REVERSED, None): State.FAILED,
    (REVERSED, COMPLETE): State.FAILED,
    (PAYOUT_CONFLICT, FAILED): State.FAILED,
    (PAYOUT_MISSING, COMPLETE): State.ABSENT,
}


@dataclass(frozen=True)
class Position:
    """The state of one payment in the ledger, and the limits of its amount at the channel, in fen.

    The limits differ by refunds that were made or are possible. `exceptions` are those about the payment.
    """

    books: Books
    least: int
    most: int
    exceptions: list[PaymentException]

    @property
    def open(self) -> list[PaymentException]:
        """The open exceptions."""
        return [each for each in self.exceptions if each.is_open]

    @property
    def is_unsized(self) -> bool:
        """True if an exception about a refund of unknown amount is open, or was resolved without an amount."""
        unknown = [each for each in self.exceptions if each.code == Why.RETURNED_UNKNOWN]
        return any(each.is_open or not each.amount for each in unknown)


def exceptions_of(order: Order) -> list[PaymentException]:
    """Return all exceptions of an order, oldest first."""
    return list(PaymentException.select().where(PaymentException.order == order).order_by(PaymentException.id))


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


def of_deposit(order: Order, reference: str, exceptions: list[PaymentException]) -> Position:
    """Return the position of the deposit's payment with this number of the channel."""
    about = [each for each in exceptions if each.reference == reference and each.kind in (*MONEY_IN, REVERSED)]
    money = [each for each in about if each.kind in MONEY_IN]
    is_own = order.status in (CONFIRMED, COMPLETED) and order.channel_reference == reference
    is_open = any(each.is_open for each in money)
    went_back = [each for each in about if each.kind == REVERSED and each.resolution != ANSWERED]
    least = int(order.received) if is_own else 0
    least += sum(int(each.amount) for each in money if each.resolution in (None, CREDIT))
    sent = sum(each.amount for each in money if each.resolution == REFUND)
    known = sum(each.returned for each in money if each.is_open and each.returned)
    unknown = any(not each.amount and not each.is_open for each in went_back)  # an open exception will get its amount
    gone = least if unknown else sum(each.amount for each in went_back)
    waits = order.status in (PENDING, PAID) and not credited_by_hand(exceptions)
    if is_own:
        books = Books.TO_CREDIT if order.status == CONFIRMED else Books.CREDITED
    elif is_open:
        books = Books.QUESTIONED if waits else Books.OPEN
    elif any(each.resolution == CREDIT for each in money):
        books = Books.CREDITED
    elif sent:
        books = Books.SENT_BACK
    elif waits:
        books = Books.AWAITED
    else:
        books = Books.LATE if order.status == CANCELLED else Books.ANOTHER
    return Position(books, least - gone, least + sent + known, about)


def is_gone(order: Order, report: Report, exceptions: list[PaymentException]) -> bool:
    """Return whether a full payment is recorded here, and a later refund of some or all of it."""
    about = [each for each in exceptions if each.reference == report.reference]
    if order.status == CANCELLED and order.channel_reference == report.reference:
        return report.amount <= order.received  # it was returned before it was credited
    if any(each.code == Why.RETURNED_UNKNOWN for each in about):
        return True
    if not any(each.kind == REVERSED or each.returned or each.resolution in (REFUND, RETURNED) for each in about):
        return False
    return report.amount <= received(order, report.reference, exceptions)


def received(order: Order, reference: str, exceptions: list[PaymentException]) -> int:
    """Return the total recorded as received under this number, in fen, before refunds."""
    money = [each for each in exceptions if each.reference == reference and each.kind in MONEY_IN]
    is_own = order.status in (CONFIRMED, COMPLETED) and order.channel_reference == reference
    counted = [each.amount for each in money if each.resolution in (None, CREDIT, REFUND, RETURNED)]
    known_back = sum(each.returned for each in money if each.returned and each.resolution != CORRECTED)
    return (int(order.received) if is_own else 0) + int(sum(counted)) + known_back


def proof_of_deposit(order: Order, report: Report, position: Position) -> Proof:
    """Return the proof in a report on this payment, given its position."""
    if not report.proven:
        return Proof.CLAIMED
    if report.is_unsized:
        unsized = Proof.ENDED if report.state is State.ENDED else Proof.UNKNOWN
        return Proof.AS_BOOKED if position.is_unsized else unsized
    if report.state is not State.PAID:
        nothing = {State.OPEN: Proof.UNDER_WAY, State.ABSENT: Proof.ABSENT, State.FAILED: Proof.GONE}[report.state]
        is_booked = position.books is Books.CREDITED or (
            position.books is Books.TO_CREDIT and nothing is not Proof.GONE
        )
        reversed_whole = position.least <= 0 and all(each.kind == REVERSED for each in position.open)
        return Proof.AS_BOOKED if is_booked and reversed_whole else nothing
    if position.books in (Books.AWAITED, Books.QUESTIONED) and report.amount == order.amount:
        return Proof.AS_ORDERED
    if report.amount < position.least:
        return Proof.LESS
    return Proof.MORE if report.amount > position.most else Proof.AS_BOOKED


def moved(order: Order, *kinds: str) -> int:
    """Return the sum of the order's postings on these accounts of its merchant, in fen."""
    total = (
        Entry.select(fn.COALESCE(fn.SUM(Entry.amount), 0))
        .join(Posting)
        .switch(Entry)
        .join(LedgerAccount)
        .where(Posting.order == order, LedgerAccount.kind.in_(kinds), LedgerAccount.owner == order.merchant_id)
    )
    return int(total.scalar())


def place_of(order: Order) -> Books:
    """Return the state of a withdrawal's money in the ledger, regardless of exceptions."""
    return of_payout(order, "", [], partial(moved, order)).books


def is_held_again(order: Order) -> bool:
    """Return whether a cancelled withdrawal's money is reserved again because the channel is paying it out."""
    return not order.is_buy and order.status in (CANCELLED, COMPLETED) and place_of(order) is Books.HELD_AGAIN


def of_withdrawal(order: Order, report: Report, exceptions: list[PaymentException]) -> Position:
    """Return the position of a withdrawal's money by its ledger entries."""
    return of_payout(order, report.reference, exceptions, partial(moved, order))


def of_payout(
    order: Order, reference: str, exceptions: list[PaymentException], left_on: Callable[..., int]
) -> Position:
    """Return the position of the payout with this number of the channel.

    Args:
        left_on: returns the sum of the order's postings on accounts of these kinds, in fen, as `moved` does.
    """
    about = [each for each in exceptions if each.reference == reference]
    doubled = [each for each in about if each.kind == PAYOUT_CONFLICT and each.is_open]
    if order.status in (PENDING, CONFIRMED):
        books = Books.HELD if order.status == PENDING else Books.IN_FLIGHT
    elif order.status != PAID and left_on(HELD) > 0:
        books = Books.HELD_AGAIN
    elif order.status == PAID or left_on(AVAILABLE, HELD) < 0:
        books = Books.SPENT_TWICE if doubled else Books.SPENT
    else:
        books = Books.FREE
    return Position(books, order.amount, order.amount, about)


def proof_of_withdrawal(order: Order, report: Report, position: Position) -> Proof:
    """Return the proof in a report, given the position of the money."""
    if report.is_unsized:
        return Proof.AS_BOOKED if position.is_unsized else Proof.UNKNOWN
    if report.state is State.FAILED:
        ends = {(REVERSED, COMPLETE)} | (
            {(PAYOUT_CONFLICT, FAILED)} if report.reference != order.channel_reference else set()
        )
        failed = [each for each in position.exceptions if each.code not in NOT_FAILED]
        known = any((each.kind, each.resolution) in ends for each in failed)
        return Proof.AS_BOOKED if known and position.books is Books.SPENT else Proof.GONE
    if report.state is State.OPEN:
        return Proof.UNDER_WAY
    if report.state is State.ABSENT:
        return _proof_of_absence(order, position)
    if _is_on_record(order, report, position):
        return Proof.AS_BOOKED
    if report.amount == order.amount:
        return Proof.AS_ORDERED
    return Proof.MORE if report.amount > order.amount else Proof.LESS


def _proof_of_absence(order: Order, position: Position) -> Proof:
    """Return the proof in a report that a payout is unknown: one that the channel has shown must not be sent again."""
    ended = [each.resolution for each in position.exceptions if each.kind == PAYOUT_MISSING]
    if position.books is Books.SPENT and COMPLETE in ended:
        return Proof.AS_BOOKED
    shows_all = (order.expires_at or 0) <= clock.now()
    is_missing = position.books is Books.IN_FLIGHT and shows_all and was_shown(order)
    return Proof.MISSING if is_missing else Proof.ABSENT


def _is_on_record(order: Order, report: Report, position: Position) -> bool:
    """Return whether this payout is recorded: as the order's own, or in an open or accordingly resolved exception."""
    spent = position.books in (Books.SPENT, Books.SPENT_TWICE)
    if spent and (report.reference, report.amount) == (order.channel_reference, order.amount):
        return True
    ends = {None, COMPLETE} if spent else {None, CANCEL}
    conflicts = [each for each in position.exceptions if each.kind == PAYOUT_CONFLICT and each.resolution in ends]
    mended = position.books is Books.IN_FLIGHT and report.amount == order.amount
    return any(each.amount == report.amount for each in conflicts) and not mended
