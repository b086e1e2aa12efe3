"""Responses as frozen dataclasses, with the field names of docs/orders.md."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from typing import Any, TypeVar

T = TypeVar("T")

# The statuses by order type, in the order of the service's steps. A completed order may have been cancelled before.
RANKS = {
    1: ("pending", "paid", "confirmed", "cancelled", "completed"),
    2: ("pending", "confirmed", "paid", "cancelled", "completed"),
}


def read(kind: type[T], data: Mapping[str, Any], **more: Any) -> T:
    """Return `data` as a `kind`, with decimal text as `Decimal`. Unknown fields are omitted."""
    values = {each.name: _value(each.type, data[each.name]) for each in fields(kind) if each.name in data}  # type: ignore[arg-type]
    return kind(**values, **more)


def _value(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        return read(kind, value)
    return Decimal(value) if kind is Decimal else value


@dataclass(frozen=True)
class Order:
    """An order in queries and callbacks."""

    order_no: str
    merchant_order_no: str
    order_type: int  # 1 deposit, 2 withdrawal
    cny_amount: Decimal  # yuan
    merchant_actual_amount: int  # fen; credited or deducted
    service_rate: Decimal  # percent
    service_amount: int  # fen
    status: str  # pending, paid, confirmed, completed, cancelled
    createtime: int
    updatetime: int

    @property
    def rank(self) -> int:
        """The position of the status, from 1. Of two callbacks of an order, the one with the higher rank is later."""
        return RANKS[self.order_type].index(self.status) + 1


@dataclass(frozen=True)
class OrderPage:
    """A page of orders, newest first; `total` counts all matching orders."""

    list: tuple[Order, ...]
    total: int
    page: int
    limit: int


@dataclass(frozen=True)
class BuyOrder:
    """A new deposit; send the payer to `pay_url`."""

    order_no: str
    merchant_order_no: str
    status: str
    order_type: int
    cny_amount: Decimal  # yuan
    payment_method: str | None
    merchant_amount: Decimal  # yuan
    deposit_amount: int  # fen
    service_amount: int  # fen
    merchant_actual_amount: int  # fen; what will be credited
    pay_url: str
    createtime: int
    idempotency_key: str  # the key of the request


@dataclass(frozen=True)
class Account:
    """A payout account. `full_info` has all of it in one text, if the service sends it."""

    bank: str
    sub_bank: str
    card_number: str = field(repr=False)
    real_name: str
    full_info: str = field(default="", repr=False)


@dataclass(frozen=True)
class SellOrder:
    """A new withdrawal."""

    order_id: str
    order_no: str
    merchant_order_no: str
    status: str
    order_type: int
    cny_amount: Decimal  # yuan
    payment_method_id: int
    payment_method_snapshot: Account
    merchant_amount: Decimal  # yuan
    passage_rate: Decimal  # percent; negative is a rebate
    passage_amount: int  # fen
    deposit_rate: int  # basis points
    deposit_amount: int  # fen
    service_amount: int  # fen
    channel_amount: int  # fen
    merchant_actual_amount: int  # fen; what is deducted, fees included
    base_rate: int  # basis points
    customer_payment_method: Account
    createtime: int
    idempotency_key: str  # the key of the request


@dataclass(frozen=True)
class Refund:
    """A refund of a deposit, in responses and callbacks."""

    refund_no: str
    order_no: str
    merchant_refund_no: str  # empty if the operator made it
    cny_amount: Decimal  # yuan; what the payer receives
    service_amount: int  # fen; the fee that you get back
    merchant_actual_amount: int  # fen; what is deducted
    status: str  # pending, confirmed, completed, cancelled
    reason: str
    createtime: int
    updatetime: int


@dataclass(frozen=True)
class RefundPage:
    """A page of refunds, newest first; `total` counts all matching refunds."""

    list: tuple[Refund, ...]
    total: int
    page: int
    limit: int


@dataclass(frozen=True)
class Channel:
    """A payment channel that you may use; its `id` is the `paychannel_id` of an order."""

    id: int
    category: str  # gateway_a, gateway_b, gateway_c
    name: str
    pay_method: str  # some of wxpay, alipay, bank, joined by commas
    category_text: str
    pay_method_text: str
    createtime: int
    updatetime: int

    @property
    def pay_methods(self) -> tuple[str, ...]:
        """The methods in `pay_method`."""
        return tuple(self.pay_method.split(","))


@dataclass(frozen=True)
class Balance:
    """Your balance at one moment: a `Decimal` is in yuan, an `int` the same amount in fen."""

    available_cny_amount: Decimal
    available_amount: int
    held_cny_amount: Decimal  # reserved for open withdrawals and refunds
    held_amount: int
    unsettled_cny_amount: Decimal  # confirmed deposits that are not credited yet, after fees
    unsettled_amount: int


@dataclass(frozen=True)
class Movements:
    """Numbers of lines and sums of a day or month: counts, and fen before fees."""

    deposits_count: int
    deposits_amount: int
    withdrawals_count: int
    withdrawals_amount: int
    refunds_count: int
    refunds_amount: int
    exceptions_count: int
    exceptions_amount: int
    adjustments_count: int
    adjustments_amount: int
    fees_amount: int  # fen; negative if you paid them
    change_amount: int  # fen


@dataclass(frozen=True)
class StatementDay(Movements):
    """A day of a statement, in China."""

    day: str  # YYYY-MM-DD
    balance_amount: int  # fen; at its end


@dataclass(frozen=True)
class StatementLine:
    """A line of a statement; `line_no` is unique and never changes."""

    line_no: str
    createtime: int
    kind: str  # credit, spend, spend_again, refund, refund_return, exception, return, adjustment, sandbox_removal
    order_no: str
    merchant_order_no: str
    cny_amount: Decimal  # yuan before fees; negative if it was deducted
    fees_amount: int  # fen
    change_amount: int  # fen
    balance_amount: int  # fen; after it
    memo: str


@dataclass(frozen=True)
class Statement(Movements):
    """A statement of a month with a page of its lines, oldest first; `total` counts all lines."""

    month: str  # YYYY-MM
    is_over: bool  # otherwise it ends now
    opening_cny_amount: Decimal
    opening_amount: int
    closing_cny_amount: Decimal
    closing_amount: int
    held_cny_amount: Decimal  # the reserved part of the closing balance
    held_amount: int
    days: tuple[StatementDay, ...]
    list: tuple[StatementLine, ...]
    total: int
    limit: int
    next: str  # the `after` of the next page; empty on the last one


@dataclass(frozen=True)
class Region:
    """A province, city or district."""

    name: str
    code: str
