"""The columns of an upstream's downloaded statement."""

from __future__ import annotations

from dataclasses import dataclass, field

DEPOSIT, PAYOUT = 1, 2  # the order types of the API


@dataclass(frozen=True)
class Layout:
    """The names of a statement's columns; of several names, the first one found counts.

    A status in `paid` means that the money moved, in `failed` that it did not, in `refunded` that it was returned, in
    `frozen` that the upstream withholds it. Without a status column, each line is a payment. Times are China's, money
    is in yuan; lines in another `currency` are refused. `refund` is for upstreams whose refunds have lines of their
    own, with the amount in a column of its own, and `refund_number` is this service's number on such a line.
    `refunded_of` is for those that write the refund on the line of the
    payment: the line is then both, and the refund is complete if it is as much as `payer_paid`. Only a value of
    `refund_done` in the column `refund_status` proves a refund. With `created`, the statement lists the orders placed
    in its days. `text` are the columns whose commas are not quoted. `types` are the order types that it lists.
    `settled` is the amount without a discount at the merchant's own expense, which counts as a part of the fee, and
    `refund_settled` the same of a refund with an amount in a column of its own. `fee_sign` is the sign of a payment's
    fee in the file, + or -, if a refund's has the other one; "" if fees have no sign.
    """

    number: tuple[str, ...] = ("order_no", "out_trade_no")
    reference: tuple[str, ...] = ("reference", "trade_no")
    amount: tuple[str, ...] = ("amount", "money")
    refund: tuple[str, ...] = ()
    refund_number: tuple[str, ...] = ("refund_no",)
    refunded_of: tuple[str, ...] = ()
    payer_paid: tuple[str, ...] = ()
    refund_status: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()
    refund_settled: tuple[str, ...] = ()
    fee: tuple[str, ...] = ("fee",)
    status: tuple[str, ...] = ("status",)
    time: tuple[str, ...] = ("time", "endtime")
    created: tuple[str, ...] = ()
    currency: tuple[str, ...] = ("currency", "币种", "货币种类")
    text: tuple[str, ...] = ()
    paid: frozenset[str] = field(default=frozenset({"paid", "success", "completed", "1"}))
    failed: frozenset[str] = field(default=frozenset({"failed", "cancelled", "closed", "0"}))
    refunded: frozenset[str] = field(default=frozenset({"refunded", "refund", "2"}))
    frozen: frozenset[str] = frozenset()
    refund_done: frozenset[str] = frozenset({"SUCCESS"})
    fee_sign: str = ""
    types: tuple[int, ...] = (DEPOSIT, PAYOUT)
