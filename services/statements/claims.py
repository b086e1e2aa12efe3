"""Match the rows of a statement with the open deposits of a manual channel; nothing is changed.

Text that a payer or merchant wrote never identifies a payment alone: the amount must match too, and no other order may
be meant. What is not certain is left to an operator.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import (
    BUY,
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAID,
    PENDING,
    REVERSED,
    Order,
    PaymentException,
)
from models.tables.refund import Refund
from runtime import clock
from services.channels.payment_numbers import transaction_id
from services.deposits import money
from services.errors import N_, OperatorError
from services.orders import next_step
from services.orders.lifecycle import open_exceptions
from services.orders.verdict import RETURNED
from services.statements import received, values
from services.statements.book_side import chunks
from services.statements.names import Names, is_whole, without
from services.statements.received import Kind, Movement

A_DAY = 86_400
BOOKED_LATE = 3 * A_DAY  # seconds by which a bank may date a payment later than an operator confirmed it
MOST_AT_ONCE = 200  # payments that one confirmation takes
LEAST_OF_ID = 4  # characters that two transaction IDs of one payment have in common
MOST_EXCEPTIONS = 10_000  # newest exceptions that are searched for payments without a transaction ID

SEVERAL = N_("Several open deposits have this amount. The note names none of them.")
SAME_AMOUNT = N_("Several payments in the file have this amount, and their notes name no order.")
OTHER_AMOUNT = N_("The note names this order, whose amount is different.")
NOT_CLAIMED = N_("Only an unclaimed deposit has this amount, and the note does not name it.")
TOO_EARLY = N_("The payment is older than this order.")
IN_THE_FUTURE = N_("The time of the payment is in the future.")
PAID_BEFORE = N_("Another payment in the file is for the same order.")
ENDED = N_("The note names this order, which no longer waits for a payment.")
ELSEWHERE = N_("The note names this order of another channel.")
A_PAYOUT = N_("The note names this withdrawal. The payout may have been returned.")
IN_QUESTION = N_("An exception of this order is open.")
NOTHING = N_("No open deposit has this order number or amount.")
REPEATED = N_("The transaction ID is in the file twice.")
TOO_MANY = N_("More payments match than can be confirmed at once. Confirm these, then upload the file again.")
OTHER_RECORD = N_("This transaction ID is recorded with another amount.")
NAMES_SEVERAL = N_("The note names several orders.")
NOT_UNIQUE = N_("Several orders of the channel have the number in the note.")
MAY_NAME = N_("The note may name another order.")
DAMAGED_NOTE = N_("The note has damaged characters.")
ONLY_DAY = N_("The file has only the day of the payment, which may be older than this order.")
NO_TIME = N_("The time of the payment is unknown, so the amount alone does not identify it.")
UNNUMBERED = N_(
    "This order of the same amount was confirmed without a transaction ID, so this payment may be recorded already."
)
SIMILAR = N_("This order of the same amount is recorded with a similar transaction ID.")
OTHER_ORDER = N_("This transaction ID is recorded for another order than the note names.")
LATER = N_("This transaction ID is recorded for an earlier payment. Some banks use a number again.")
OTHER_CHANNEL = N_("This transaction ID is recorded for this order of another channel.")
AMOUNT_TAKEN_BACK = N_("A line of the file takes back a payment of this amount.")
TAKES_BACK_RECORDED = N_(
    "Takes back a payment that is recorded. On the order's page, record the amount that is left under the same "
    "transaction ID, or 0."
)
CONTRADICTED = N_("The payment of this order is recorded under this transaction ID, but the file contradicts it.")
RETURNED_MONEY = N_("This transaction ID is recorded for returned money of this order.")
# The reasons that leave the choice between orders to an operator. The others speak against a confirmation.
CHOICES = {SEVERAL, SAME_AMOUNT, NOT_CLAIMED, NAMES_SEVERAL, NOT_UNIQUE, MAY_NAME, DAMAGED_NOTE, ONLY_DAY}


class Outcome(Enum):
    """What a row is: each row is exactly one of these."""

    MATCHED = auto()
    RECORDED = auto()
    NOT_MONEY_IN = auto()
    TO_DECIDE = auto()


@dataclass(frozen=True)
class Found:
    """A row with its outcome: why, with the values of the text, and the orders that it is or may be about."""

    line: Movement
    outcome: Outcome
    why: str = ""
    orders: list[Order] = field(default_factory=list)
    by_number: bool = False
    values: dict[str, str] = field(default_factory=dict)

    def may_be_for(self, order: Order, channel: Channel) -> bool:
        """Return whether an operator can choose this order for the payment on the channel.

        The order is open and has the amount, and the payment is new and not older. That is a possibility and no match.
        """
        is_open = order.is_buy and order.status in (PENDING, PAID) and order.channel_id == channel.id
        is_early = self.line.until is None or self.line.until < order.createtime
        return self.why in CHOICES and is_open and order.amount == self.line.amount and not is_early


class Sums(NamedTuple):
    """The number of some rows, and the sums of money in and out that they state, in fen."""

    rows: int
    money_in: int
    money_out: int


class Known(NamedTuple):
    """A payment on record: the amount that was received, and what the bank took back of it, in fen."""

    received: int
    returned: int


@dataclass(frozen=True)
class Matches:
    """The result: all rows of the file, in its order."""

    rows: list[Found]

    def of(self, outcome: Outcome) -> list[Found]:
        """Return the rows with this outcome."""
        return [row for row in self.rows if row.outcome is outcome]

    def sums(self, outcome: Outcome | None = None) -> Sums:
        """Return the sums of the rows with this outcome, or of all."""
        amounts = [row.line.amount or 0 for row in self.rows if outcome in (None, row.outcome)]
        return Sums(len(amounts), sum(max(each, 0) for each in amounts), -sum(min(each, 0) for each in amounts))


def match(channel: Channel, lines: list[Movement]) -> Matches:
    """Match payments by an order number in the note, otherwise by an amount that only one claim and one payment has.

    An order number of this service decides, also if the order has ended or is of another channel. A merchant's number
    identifies only if one order of the channel ever had it. A note that names any order never falls back to the amount.
    """
    return _Matching(channel, lines).run()


class _Matching:
    """One run of the matching: the outcome of each row by its line."""

    def __init__(self, channel: Channel, lines: list[Movement]):
        self.channel, self.lines = channel, lines
        self.found: dict[int, Found] = {}
        self.names = Names(channel, (line.note for line in lines))
        numbers = {number for line in lines for number in (line.reference, line.original)}
        self.recorded = _recorded(channel, numbers - {""})
        self.elsewhere = _of_other_channels(channel, numbers - {""})
        self.returns = _returns(numbers - {""})
        self.by_amount: dict[int, list[Order]] = defaultdict(list)
        for order in self.names.open:
            self.by_amount[order.amount].append(order)
        self.maybe_taken_back: dict[str, list[Movement]] = defaultdict(list)  # by the line that may take them back
        for line in lines:
            if _is(line, received.MAYBE_TAKEN_BACK) and line.why:
                self.maybe_taken_back[line.why.values["line"]].append(line)
        self.matched = 0
        self.taken: set[int] = set()  # the orders that a row is for
        takes_back = [each for each in lines if each.kind is Kind.TAKEN_BACK or _is(each, received.TAKES_BACK)]
        self.reversed = {abs(line.amount or 0) for line in takes_back}
        times = [line.since for line in lines if line.since is not None]
        numbers_of: dict[int, str] = defaultdict(str)  # the transaction IDs of each amount that is waited for
        for line in lines:
            if line.amount and line.amount in self.by_amount:
                numbers_of[line.amount] += f"{line.reference.casefold()}\n"
        self.unrecognized = _unrecognized(channel, numbers_of, min(times) - BOOKED_LATE) if times else {}

    def run(self) -> Matches:
        """Decide on rows that are no payments first, then on recorded ones, match by number, and the rest by amount."""
        for line in self.lines:
            if line.kind is not Kind.RECEIVED:
                self._other(line)
        self._find_recorded()
        fresh = [line for line in self.lines if line.at not in self.found]
        rest = [line for line in fresh if not self._match_number(line)]
        unsure = [each.line for each in self.found.values() if each.line.kind is Kind.UNCLEAR or each.why == REPEATED]
        payments = Counter(line.amount for line in (*rest, *unsure))
        for line in rest:
            self._match_amount(line, alone=payments[line.amount] == 1)
        return Matches([self.found[line.at] for line in self.lines])

    def _other(self, line: Movement) -> None:
        """Set the outcome of a row that is no received payment: to decide if it may be about a deposit."""
        recorded = {
            order: known
            for number in sorted({line.reference, line.original} - {""})
            for order, known in self.recorded.get(number, {}).items()
            if order.is_buy
        }
        total = sum(known.received for known in recorded.values())
        is_whole = bool(recorded) and total == abs(line.amount or 0)
        awaited = self._named(line) or self.by_amount[line.amount or 0]
        if is_whole and (_is(line, received.TAKEN_BACK) or _is(line, received.MAYBE_TAKEN_BACK)):
            self._set(line, Outcome.RECORDED, orders=list(recorded))  # the row that takes it back is to decide
        elif recorded and (
            line.kind is Kind.TAKEN_BACK or ((is_whole or _is(line, received.SENT)) and (line.amount or 0) < 0)
        ):
            if sum(known.returned for known in recorded.values()) >= total:
                self._set(line, Outcome.RECORDED, line.why, list(recorded))
            else:  # also if a part is recorded, because another part may be taken back
                self._leave(line, TAKES_BACK_RECORDED, list(recorded))
        elif is_whole:
            self._leave(line, CONTRADICTED, list(recorded))
        elif line.kind is Kind.NOT_MONEY_IN and not (_is(line, received.TAKEN_BACK) and awaited):
            self._set(line, Outcome.NOT_MONEY_IN, line.why)
        else:  # it may take recorded payments back, by their amount
            payments = _unique(self.recorded.get(each.reference, {}) for each in self.maybe_taken_back[str(line.at)])
            self._leave(line, line.why, list(self.returns[line.reference]) or awaited or payments)

    def _find_recorded(self) -> None:
        """Find the payments that are recorded, and those that no transaction ID tells from others."""
        seen: set[str] = set()
        payments = [line for line in self.lines if line.at not in self.found]
        amounts: dict[str, set[int | None]] = defaultdict(set)
        for line in payments:
            amounts[line.reference].add(line.amount)
        for line in payments:
            orders, returns = self.recorded.get(line.reference, {}), self.returns[line.reference]
            amount = sum(known.received for known in orders.values())
            waiting = [each for each in self._named(line) if each.status in (PENDING, PAID) and each not in orders]
            if (orders or returns) and waiting:
                self._leave(line, OTHER_ORDER, _unique([orders or returns, waiting]))
            elif orders and _is_later(line, orders):
                self._leave(line, LATER, list(orders))
            elif orders and amount == line.amount and all(order.is_buy for order in orders):
                self._set(line, Outcome.RECORDED, orders=list(orders))
            elif orders:
                self._leave(line, OTHER_RECORD, list(orders))
            elif returns and sum(returns.values()) == line.amount and not _is_later(line, returns):
                self._set(line, Outcome.RECORDED, orders=list(returns))
            elif returns:
                self._leave(line, RETURNED_MONEY, list(returns))
            elif alike := [each for each in self.elsewhere[line.reference] if each.received == line.amount]:
                self._leave(line, OTHER_CHANNEL, alike)
            elif line.reference in seen or len(amounts[line.reference]) > 1:
                self._leave(line, REPEATED, self._named(line))
            seen.add(line.reference)

    def _match_number(self, line: Movement) -> bool:
        """Match a payment whose note names an order, or leave it to an operator; False if it names none."""
        if values.is_damaged(line.note):
            self._leave(line, DAMAGED_NOTE, self._named(line) or self.by_amount[line.amount or 0])
            return True
        ours = self.names.ours(line.note)
        if ours:
            self._about(line, ours)
            return True
        theirs = self.names.theirs(line.note)
        named = _unique(theirs.values())
        if not named:
            return False
        word = next((word for word in theirs if is_whole(word, line.note)), "")
        same = self.names.with_number(word) if word else []
        if len(named) > 1 or same is None or len(same) > 1:
            several = NAMES_SEVERAL if len(theirs) > 1 else NOT_UNIQUE
            self._leave(line, several, _unique([named, same or []]))
        elif not word:
            self._leave(line, MAY_NAME, named)
        else:  # the rest of the note may name other orders, or a bank may have cut off a longer number
            rest = [self.names.possible(part) for part in without(line.note, word)]
            if None in rest:
                self._leave(line, MAY_NAME, named)
            elif others := _unique([*filter(None, rest), self.names.longer(word, line.amount or 0)]):
                self._leave(line, MAY_NAME, _unique([named, others]))
            else:
                self._about(line, named)
        return True

    def _about(self, line: Movement, orders: list[Order]) -> None:
        """Match a payment with the order that it is about, if the order waits for this amount."""
        order = orders[0]
        if len(orders) > 1:
            why = NAMES_SEVERAL
        elif not order.is_buy:
            why = A_PAYOUT
        elif order.channel_id != self.channel.id:
            why = ELSEWHERE
        elif order.status not in (PENDING, PAID):
            why = ENDED
        elif order.amount != line.amount:
            why = OTHER_AMOUNT
        else:
            self._take(line, order, by_number=True)
            return
        self._leave(line, why, orders)

    def _match_amount(self, line: Movement, alone: bool) -> None:
        """Match a payment with the only claim of its amount, unless anything else is possible."""
        orders = self.by_amount[line.amount or 0]
        if not orders:
            self._leave(line, NOTHING, [])
            return
        why, about = "", orders
        if len(orders) > 1:
            why = SEVERAL
        elif not alone:
            why = SAME_AMOUNT
        elif orders[0].status != PAID:
            why = NOT_CLAIMED
        elif line.since is None or line.until is None:
            why = NO_TIME
        elif line.until - line.since > 3_600 and line.since < orders[0].createtime <= line.until:
            why = ONLY_DAY
        elif objection := self._objection(line):
            why, about = objection
        elif len(line.note) >= received.LONGEST_NOTE:
            why = MAY_NAME  # the rest of the note was not read
        elif (possible := self.names.possible(line.note)) is None or possible:
            why, about = MAY_NAME, possible or orders
        if why:
            self._leave(line, why, about)
        else:
            self._take(line, orders[0], by_number=False)

    def _take(self, line: Movement, order: Order, by_number: bool) -> None:
        why = PAID_BEFORE if order.id in self.taken else IN_QUESTION if open_exceptions(order) else ""
        if line.until is not None and line.until < order.createtime:
            why = TOO_EARLY
        if _is_in_the_future(line):
            why = IN_THE_FUTURE
        if not why and self.matched == MOST_AT_ONCE:
            why = TOO_MANY
        if why:
            self._leave(line, why, [order])
        else:
            self.found[line.at] = Found(line, Outcome.MATCHED, orders=[order], by_number=by_number)
            self.matched += 1
        self.taken.add(order.id)

    def _named(self, line: Movement) -> list[Order]:
        """Return the orders that the note certainly names."""
        return self.names.ours(line.note) or _unique(self.names.theirs(line.note).values())

    def _objection(self, line: Movement) -> tuple[str, list[Order]] | None:
        """Return why the amount of a row may be no new payment, and the orders that show it; None if nothing does."""
        awaited = self.by_amount[line.amount or 0]
        if _is_in_the_future(line):
            return IN_THE_FUTURE, awaited
        if line.amount in self.reversed:
            return AMOUNT_TAKEN_BACK, awaited
        alike = [each for each in self.unrecognized.get(line.amount or 0, []) if each[0] in line.reference.casefold()]
        if not alike:
            return None
        return UNNUMBERED if any(not part for part, _ in alike) else SIMILAR, _unique([[order for _, order in alike]])

    def _leave(self, row: Movement, why: str | OperatorError | None, orders: list[Order]) -> None:
        """Leave a row to an operator. Orders can be chosen only if there is no objection to the payment."""
        if why in CHOICES and (objection := self._objection(row)):
            why, orders = objection
        self._set(row, Outcome.TO_DECIDE, why, orders)

    def _set(
        self, row: Movement, outcome: Outcome, why: str | OperatorError | None = "", orders: list[Order] | None = None
    ) -> None:
        text, values = (why.text, why.values) if isinstance(why, OperatorError) else (why or "", {})
        self.found[row.at] = Found(row, outcome, text, orders or [], values=values)


def _is(line: Movement, why: str) -> bool:
    """Return whether the reader set this reason for the row."""
    return line.why is not None and line.why.text == why


def _is_in_the_future(line: Movement) -> bool:
    return line.since is not None and line.since > clock.now() + A_DAY


def _is_later(line: Movement, orders: Iterable[Order]) -> bool:
    """Return whether a payment is later than anything that is recorded of these orders."""
    return (line.since or 0) > max(order.updatetime for order in orders) + BOOKED_LATE


def _unique(groups: Iterable[Iterable[Order]]) -> list[Order]:
    return list({order.id: order for orders in groups for order in orders}.values())


def _recorded(channel: Channel, references: set[str]) -> dict[str, dict[Order, Known]]:
    """Return the channel's orders with these transaction IDs, each with what is recorded under it."""
    found: dict[str, dict[int, Order]] = defaultdict(dict)
    for part in chunks(references):
        own = Order.select().where(
            Order.channel == channel, Order.channel_reference.in_(part), Order.channel_reference != ""
        )
        for order in own:
            found[order.channel_reference][order.id] = order
        reported = PaymentException.select(PaymentException, Order).join(Order)
        numbered = (PaymentException.reference.in_(part), PaymentException.reference != "")
        for exception in reported.where(*numbered, Order.channel == channel):
            found[exception.reference][exception.order_id] = exception.order
    exceptions: dict[int, list[PaymentException]] = defaultdict(list)
    for part in chunks({order for orders in found.values() for order in orders}):
        for exception in PaymentException.select().where(PaymentException.order.in_(part)):
            exceptions[exception.order_id].append(exception)
    return {
        reference: {order: _on_record(order, reference, exceptions[order.id]) for order in orders.values()}
        for reference, orders in found.items()
    }


def _on_record(order: Order, reference: str, exceptions: list[PaymentException]) -> Known:
    """Return what is recorded of an order's payment with this transaction ID."""
    whole = order.received if order.status == CANCELLED and order.channel_reference == reference else 0
    about = [each for each in exceptions if each.reference == reference]
    parts = [int(each.amount) for each in about if each.kind == REVERSED]
    for each in about:
        if each.kind in MONEY_IN:
            parts.append(int((each.amount if each.resolution == RETURNED else each.returned) or 0))
    return Known(money.received(order, reference, exceptions) + whole, sum(parts) + whole)


def _returns(references: set[str]) -> dict[str, dict[Order, int]]:
    """Return the orders of manual channels whose money the transfers with these transaction IDs returned.

    Each is with the amount in fen as the account's statement has it: negative if an operator sent it to the payer. Two
    channels may be of one account.
    """
    found: dict[str, dict[Order, int]] = defaultdict(lambda: defaultdict(int))
    manual = next_step.manual_channels()
    for part in chunks(references):
        reported = PaymentException.select(PaymentException, Order).join(Order)
        numbered = (PaymentException.return_reference.in_(part), PaymentException.return_reference.is_null(False))
        for each in reported.where(*numbered, Order.channel.in_(manual)):
            found[each.return_reference][each.order] += -each.amount if each.order.is_buy else each.amount
        by_hand = (Refund.channel_reference.in_(part), Refund.channel_reference != "", Refund.channel.in_(manual))
        for refund in Refund.select(Refund, Order).join(Order).where(*by_hand):
            found[refund.channel_reference][refund.order] -= refund.amount
    return found


def _of_other_channels(channel: Channel, references: set[str]) -> dict[str, list[Order]]:
    """Return the deposits of other manual channels with these transaction IDs: they may be of the same account."""
    found: dict[str, list[Order]] = defaultdict(list)
    others = [each for each in next_step.manual_channels() if each != channel.id]
    for part in chunks(references):
        numbered = (Order.channel_reference.in_(part), Order.channel_reference != "")
        for order in Order.select().where(Order.channel.in_(others), Order.order_type == BUY, *numbered):
            found[order.channel_reference].append(order)
    return found


def may_be_recorded_since(order: Order, reference: str, uploaded: int, together: Collection[str]) -> bool:
    """Return whether the payment that a file has for a deposit may have been recorded since the file was uploaded.

    It may if the channel recorded money of this amount since then without a transaction ID, or with a part of this one.

    Args:
        together: the numbers of the orders that are confirmed by the same file; their IDs are those of other rows.
    """
    alike = _unrecognized(order.channel, {order.amount: reference.casefold()}, uploaded).get(order.amount, [])
    return any(not part or other.order_no not in together for part, other in alike)


def _unrecognized(channel: Channel, numbers_of: dict[int, str], since: int) -> dict[int, list[tuple[str, Order]]]:
    """Return the channel's orders whose payments a file may have, although no line has their transaction IDs.

    They were recorded since then without an ID, or with one that may be a part of a line's: typed manually, or without
    the zeros before it. What an operator typed in place of one, such as a dash, is none.

    Args:
        numbers_of: the transaction IDs of the file's lines in lower case, by amount.

    Returns: by amount, each order with what its payment's number has in common with a line's, or "".
    """
    found: dict[int, list[tuple[str, Order]]] = defaultdict(list)

    def keep(number: str, amount: int, order: Order) -> None:
        part = transaction_id(number).casefold().lstrip("0")
        if not part or (len(part) >= LEAST_OF_ID and part in numbers_of.get(amount, "")):
            found[amount].append((part, order))

    every = Order.merchant.in_(Merchant.select(Merchant.id))
    mine = (every, Order.order_type == BUY, Order.channel == channel)
    not_settled = (Order.updatetime >= since) & (Order.status == CONFIRMED)
    for recent in (not_settled, (Order.completedtime >= since) & (Order.status == COMPLETED)):
        for amounts in chunks(list(numbers_of)):
            alike = Order.amount.in_(amounts) | Order.received_amount.in_(amounts)
            for order in Order.select().where(*mine, recent, alike):
                keep(order.channel_reference, order.received, order)
    newest = PaymentException.select().order_by(PaymentException.id.desc()).limit(MOST_EXCEPTIONS)
    for exception in newest.iterator():
        if exception.createtime < since:
            break
        is_awaited = exception.kind in MONEY_IN and exception.amount in numbers_of
        if is_awaited and exception.order.channel_id == channel.id:
            keep(exception.reference, exception.amount, exception.order)
    return found
