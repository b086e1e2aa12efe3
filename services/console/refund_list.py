"""The list of refunds, and the numbers of those that await an operator."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from gateways.registry import DRIVERS
from models.queries.keyset import Key, Line
from models.tables.order import CANCELLED, COMPLETED, CONFIRMED, PENDING, Order, PaymentException
from models.tables.refund import REFUND_STATUSES, Refund
from services.console.lists import Browse, add_owners, capped, merchants
from services.orders.next_step import manual_channels

# States of refunds: to approve, to send manually, sent or to be sent by the service, and the two results.
REVIEW, SEND, UNDER_WAY, REFUNDED, REJECTED = STATES = ("review", "send", "under_way", "refunded", "cancelled")
_STATUSES = {
    REVIEW: (PENDING,),
    SEND: (CONFIRMED,),
    UNDER_WAY: (PENDING, CONFIRMED),
    REFUNDED: (COMPLETED,),
    REJECTED: (CANCELLED,),
}
MOST_COUNTED = 10_000  # refunds of one state


def _in_state(state: str | None) -> list[Any]:
    """Return the conditions of a state besides the status."""
    manual = Refund.channel.in_(manual_channels())
    if state == REVIEW:
        return [Refund.approved_by == ""]
    if state == SEND:
        return [manual]
    if state == UNDER_WAY:
        return [Refund.approved_by != "", (Refund.status == PENDING) | ~manual]
    return []


class Refunds(Browse):
    """Refunds, by `state` (one of STATES), `status`, `merchant`, `channel`, `order` (its number), `text`, times.

    `text` is a whole number: of the refund, the merchant, the order, or the channel.
    """

    table = Refund
    summed = {"amount": Refund.amount}

    @property
    def _wanted_statuses(self) -> tuple[str, ...]:
        if "status" in self.wanted:
            return (self.wanted["status"],)
        return _STATUSES.get(self.wanted.get("state", ""), REFUND_STATUSES)

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """One line for each status."""
        bounds = self.in_time(above, below)
        return [self.line([Refund.status == status], *bounds) for status in self._wanted_statuses]

    def conditions(self) -> list[Any]:
        """The state, the merchant and the channel."""
        owners = self.equal(merchant=Refund.merchant, channel=Refund.channel)
        return [*owners, *_in_state(self.wanted.get("state"))]

    def few(self) -> list[Key] | None:
        """The refunds with this number, or of this order."""
        if not self.wanted.keys() & {"text", "order"}:
            return None
        found = []
        if "text" in self.wanted:
            found.append(with_number(self.wanted["text"]))
        if "order" in self.wanted:
            found.append(Refund.order.in_(Order.select(Order.id).where(Order.order_no == self.wanted["order"])))
        rest = [Refund.status.in_(self._wanted_statuses), *self.conditions(), *self.within(Refund.createtime)]
        return list(Refund.select(*self.columns).where(*found, *rest).tuples())

    def query(self) -> Any:
        """The query with the orders."""
        return Refund.select(Refund, Order).join(Order)

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with order, merchant and channel, each with `needs_review` and `waits`.

        `waits` is the operator's action, REVIEW or SEND, or empty.
        """
        rows = add_owners(super().rows(ids))
        add_owners([row.order for row in rows])
        numbers, is_open = [row.refund_no for row in rows], PaymentException.resolution.is_null()
        found = PaymentException.select(PaymentException.reference).where(
            PaymentException.order.in_([row.order_id for row in rows]), PaymentException.reference.in_(numbers), is_open
        )
        marked = {reference for (reference,) in found.tuples()} if rows else set()
        for row in rows:
            sends = row.status == CONFIRMED and DRIVERS[row.channel.driver].by_hand
            row.waits = REVIEW if row.status == PENDING and not row.approved_by else SEND if sends else ""
            row.needs_review = row.refund_no in marked
        return rows


def with_number(text: str, *, of_order: bool = True) -> Any:
    """Return the condition that a refund's number is this text, or the merchant's, the channel's, or the order's."""
    by_merchant = Refund.merchant.in_(merchants({})) & (Refund.merchant_refund_no == text)
    by_channel = (Refund.channel_reference != "") & (Refund.channel_reference == text)
    by_order = Refund.order.in_(Order.select(Order.id).where(Order.order_no == text))
    return reduce(or_, [Refund.refund_no == text, by_merchant, by_channel, *([by_order] if of_order else [])])


def _query(state: str) -> Any:
    return Refund.select(Refund.createtime).where(Refund.status.in_(_STATUSES[state]), *_in_state(state))


def counts_by_state(wanted: dict[str, Any]) -> dict[str, int]:
    """Return the number of refunds in each state, without those of which there are too many to count.

    Args:
        wanted: the filters of the list; with others than the state, nothing is counted.
    """
    if wanted.keys() - {"state"}:
        return {}
    counts = {state: int(_query(state).limit(MOST_COUNTED).count()) for state in STATES}
    return {state: count for state, count in counts.items() if count < MOST_COUNTED}


def refunds_waiting() -> int:
    """Return the number of refunds that an operator must approve or send, counted up to 100."""
    return min(capped(_query(REVIEW)) + capped(_query(SEND)), 100)
