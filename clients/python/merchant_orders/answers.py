"""What the service answers, as frozen dataclasses with the field names of its documentation (docs/orders.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from typing import Any, TypeVar

T = TypeVar("T")


def read(kind: type[T], data: Mapping[str, Any], **more: Any) -> T:
    """`data` as a `kind`: decimal text as `Decimal`; fields that this version doesn't know are left out."""
    values = {each.name: _value(each.type, data[each.name]) for each in fields(kind) if each.name in data}  # type: ignore[arg-type]
    return kind(**values, **more)


def _value(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        return read(kind, value)
    return Decimal(value) if kind is Decimal else value


@dataclass(frozen=True)
class Order:
    """An order, as queries and callbacks tell it."""

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


@dataclass(frozen=True)
class OrderPage:
    """A page of orders, newest first; `total` counts all that match."""

    list: tuple[Order, ...]
    total: int
    page: int
    limit: int


@dataclass(frozen=True)
class BuyOrder:
    """A deposit that was just created: send the payer to `pay_url`."""

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
    idempotency_key: str  # the one that this order was asked for with


@dataclass(frozen=True)
class Account:
    """A receiving account. `full_info` is all of it in one text, where the service gives that."""

    bank: str
    sub_bank: str
    card_number: str = field(repr=False)
    real_name: str
    full_info: str = field(default="", repr=False)


@dataclass(frozen=True)
class SellOrder:
    """A withdrawal that was just created."""

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
    idempotency_key: str  # the one that this order was asked for with


@dataclass(frozen=True)
class Channel:
    """A payment channel that is linked to you; its `id` is the `paychannel_id` of an order."""

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
        """`pay_method`, taken apart."""
        return tuple(self.pay_method.split(","))


@dataclass(frozen=True)
class Region:
    """A province, city or district."""

    name: str
    code: str
