"""Match the received payments of a statement with the open deposits of a manual channel; nothing is changed."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import BUY, PAID, PENDING, Order, PaymentException
from services.console.bulk import MOST
from services.errors import N_
from services.orders.exceptions import open_exceptions
from services.statements.received import Kind, Movement

AT_ONCE = 500  # values of one query
_TOKEN = re.compile(r"[A-Za-z0-9_\-]{6,64}", re.ASCII)

SEVERAL = N_("Several open deposits have this amount. The note names none of them.")
SAME_AMOUNT = N_("Several payments in the file have this amount, and their notes name no order.")
OTHER_AMOUNT = N_("The note names this order, whose amount is different.")
NOT_CLAIMED = N_("Only an unclaimed deposit has this amount, and the note does not name it.")
TOO_EARLY = N_("The payment is older than the only deposit with this amount.")
PAID_BEFORE = N_("Another payment in the file is for the same order.")
ENDED = N_("The note names this order, which no longer waits for a payment.")
IN_QUESTION = N_("An exception of this order is open.")
NOTHING = N_("No open deposit has this order number or amount.")
REPEATED = N_("The transaction ID is in the file twice.")
TOO_MANY = N_("More payments match than can be confirmed at once. Confirm these, then upload the file again.")


@dataclass(frozen=True)
class Match:
    """A payment with its order, found by a number in the note or by the amount."""

    line: Movement
    order: Order
    by_number: bool


@dataclass(frozen=True)
class Unmatched:
    """A payment that is not matched: why, and the orders that it may be for."""

    line: Movement
    why: str
    orders: list[Order] = field(default_factory=list)


@dataclass
class Matches:
    """The result: payments with their orders, those that need a person, and those that are recorded already."""

    matched: list[Match] = field(default_factory=list)
    ambiguous: list[Unmatched] = field(default_factory=list)
    unmatched: list[Unmatched] = field(default_factory=list)
    recorded: list[Movement] = field(default_factory=list)


def match(channel: Channel, lines: list[Movement]) -> Matches:
    """Match payments by an order number in the note, otherwise by an amount that only one claim and one payment has.

    An order's number is its own or the merchant's. A payment whose transaction ID the channel has on record counts as
    recorded. Deposits that are not claimed are matched by number only.
    """
    found, known = Matches(), _recorded(channel, {line.reference for line in lines if line.kind is Kind.RECEIVED})
    fresh, seen = [], set[str]()
    for line in lines:
        if line.why is not None or line.reference in seen:
            found.unmatched.append(Unmatched(line, str(line.why or REPEATED)))
        elif line.reference in known:
            found.recorded.append(line)
        else:
            fresh.append(line)
        seen.add(line.reference)
    _Matching(channel, fresh, found).run()
    return found


class _Matching:
    """One run of the matching."""

    def __init__(self, channel: Channel, lines: list[Movement], found: Matches):
        self.found, self.lines, self.taken = found, lines, set[int]()
        self.tokens = {line.at: set(_TOKEN.findall(line.note)) for line in lines}
        every = {token for tokens in self.tokens.values() for token in tokens}
        self.by_number: dict[str, list[Order]] = defaultdict(list)
        self.by_amount: dict[int, list[Order]] = defaultdict(list)
        for order in _open_deposits(channel, {line.amount or 0 for line in lines}, every):
            self.by_amount[order.amount].append(order)
            for number in {order.order_no, order.merchant_order_no}:
                self.by_number[number].append(order)
        numbers = every - self.by_number.keys()
        self.ended = {order.order_no: order for order in _by_numbers(channel, numbers)}

    def run(self) -> None:
        """Match by number first. Orders that were matched still count as candidates by amount."""
        rest = [line for line in self.lines if not self._by_number(line)]
        payments = Counter(line.amount for line in rest)
        for line in rest:
            self._by_amount(line, alone=payments[line.amount] == 1)

    def _by_number(self, line: Movement) -> bool:
        """Match a payment whose note names an order; False if it names none."""
        tokens = self.tokens[line.at]
        named = list({order.id: order for token in tokens for order in self.by_number.get(token, ())}.values())
        if not named:
            ended = [self.ended[token] for token in tokens if token in self.ended]
            if ended:
                self.found.unmatched.append(Unmatched(line, ENDED, ended))
            return bool(ended)
        fitting = [order for order in named if order.amount == line.amount]
        if len(fitting) == 1:
            self._take(Match(line, fitting[0], by_number=True))
        else:
            self.found.ambiguous.append(Unmatched(line, SEVERAL if fitting else OTHER_AMOUNT, fitting or named))
        return True

    def _by_amount(self, line: Movement, alone: bool) -> None:
        orders = self.by_amount[line.amount or 0]
        if not orders:
            self.found.unmatched.append(Unmatched(line, NOTHING))
        elif len(orders) > 1:
            self.found.ambiguous.append(Unmatched(line, SEVERAL, orders))
        elif why := self._doubt(line, orders[0], alone):
            self.found.ambiguous.append(Unmatched(line, why, orders))
        else:
            self._take(Match(line, orders[0], by_number=False))

    def _doubt(self, line: Movement, order: Order, alone: bool) -> str:
        if not alone:
            return SAME_AMOUNT
        if order.status != PAID:
            return NOT_CLAIMED
        return TOO_EARLY if line.until is not None and line.until < order.createtime else ""

    def _take(self, match: Match) -> None:
        order = match.order
        why = PAID_BEFORE if order.id in self.taken else IN_QUESTION if open_exceptions(order) else ""
        if not why and len(self.found.matched) == MOST:
            why = TOO_MANY
        if why:
            self.found.ambiguous.append(Unmatched(match.line, why, [order]))
        else:
            self.found.matched.append(match)
        self.taken.add(order.id)


def _in_parts(values: Iterable[Any]) -> Iterator[list[Any]]:
    every = list(values)
    return (every[start : start + AT_ONCE] for start in range(0, len(every), AT_ONCE))


def _is_order_no(token: str) -> bool:
    return len(token) == 24 and token.isdecimal()


def _open_deposits(channel: Channel, amounts: set[int], tokens: set[str]) -> list[Order]:
    """Return the channel's open deposits with one of these amounts or numbers, oldest first."""
    every = Order.merchant.in_(Merchant.select(Merchant.id))  # the index begins with the merchant
    mine = (every, Order.order_type == BUY, Order.status.in_((PENDING, PAID)), Order.channel == channel)
    found: dict[int, Order] = {}
    for column, values in (
        (Order.amount, amounts),
        (Order.order_no, filter(_is_order_no, tokens)),
        (Order.merchant_order_no, tokens),
    ):
        for part in _in_parts(values):
            found |= {order.id: order for order in Order.select().where(*mine, column.in_(part))}
    return sorted(found.values(), key=lambda order: int(order.id))


def _by_numbers(channel: Channel, numbers: set[str]) -> Iterator[Order]:
    """Yield the channel's orders with these numbers."""
    for part in _in_parts(filter(_is_order_no, numbers)):
        yield from Order.select().where(Order.order_no.in_(part), Order.channel == channel)


def _recorded(channel: Channel, references: set[str]) -> set[str]:
    """Return those of the transaction IDs that an order or an exception of the channel has."""
    known: set[str] = set()
    for part in _in_parts(references):
        numbered = Order.channel_reference != ""
        own = Order.select(Order.channel_reference).where(
            Order.channel == channel, Order.channel_reference.in_(part), numbered
        )
        reported = (
            PaymentException.select(PaymentException.reference)
            .join(Order)
            .where(PaymentException.reference.in_(part), PaymentException.reference != "", Order.channel == channel)
        )
        known |= {reference for (reference,) in (*own.tuples(), *reported.tuples())}
    return known
