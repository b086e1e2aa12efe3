"""An upstream's downloaded statement: which of its columns says what."""

from __future__ import annotations

from dataclasses import dataclass, field

DEPOSIT, PAYOUT = 1, 2  # as the order types of the interface


@dataclass(frozen=True)
class Layout:
    """The names of a statement's columns; of several, the first one found counts.

    A status in `paid` means that the money moved, one in `failed` that it did not, one in `refunded` that it went
    back, one in `frozen` that the upstream holds it back; without a column for it, each line is a payment. Times are
    China's. Money is in yuan. `refund` is for upstreams whose refunds have lines of their own, with the amount in a
    column of its own; `refunded_of` for those that write it on the line of the payment, which is then both: a payment,
    and a refund of that, all of it if it is as much as `payer_paid`. With `created`, the statement is of the orders
    placed in its days. `text` is a column whose commas are not quoted. `types` are the orders that it has at all.
    """

    number: tuple[str, ...] = ("order_no", "out_trade_no")
    reference: tuple[str, ...] = ("reference", "trade_no")
    amount: tuple[str, ...] = ("amount", "money")
    refund: tuple[str, ...] = ()
    refunded_of: tuple[str, ...] = ()
    payer_paid: tuple[str, ...] = ()
    fee: tuple[str, ...] = ("fee",)
    status: tuple[str, ...] = ("status",)
    time: tuple[str, ...] = ("time", "endtime")
    created: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    paid: frozenset[str] = field(default=frozenset({"paid", "success", "completed", "1"}))
    failed: frozenset[str] = field(default=frozenset({"failed", "cancelled", "closed", "0"}))
    refunded: frozenset[str] = field(default=frozenset({"refunded", "refund", "2"}))
    frozen: frozenset[str] = frozenset()
    types: tuple[int, ...] = (DEPOSIT, PAYOUT)
