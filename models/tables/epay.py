"""The epay gateway of merchants: their accounts, and the orders that came through it."""

from __future__ import annotations

from typing import Any

from peewee import BooleanField, Check, ForeignKeyField, IntegerField, TextField

from models.db.base import Fen, Table, Timestamp
from models.db.compiled import compiled_rows
from models.db.writer import transaction
from models.tables.merchant import Merchant
from models.tables.order import History, Order

MD5, RSA = 1, 2  # the versions of the protocol
REPLACED = "epay_replaced"  # code of a line in the history of an order whose payment continues with another one


class EpayAccount(Table):
    """A merchant's account at the gateway. The keys are encrypted, except public ones.

    - `pid` is the merchant number in its shop's plug-in.
    - `key` signs by MD5. `public_key` verifies the shop's RSA signatures; empty without RSA keys. The previous one of
    each stays valid until its time.
    - `platform_key` is the private RSA key of the responses and notices; empty without RSA keys.
    - `types` maps epay's `type` to channels, as JSON: `{"alipay": [[3, "alipay"]]}`, pairs of channel id and payment
    method; empty for all linked channels by their payment methods.
    - `hosts` are allowed in `notify_url` and `return_url`, separated by commas; `*.` before a name allows subdomains.
    - `webhooks`: epay orders also send the merchant's callbacks.
    """

    merchant = ForeignKeyField(Merchant, unique=True)
    pid = IntegerField(unique=True, constraints=[Check("pid > 0")])
    key = TextField()
    previous_key = TextField(null=True)
    previous_key_until = Timestamp(null=True)
    public_key = TextField(default="")
    previous_public_key = TextField(null=True)
    previous_public_key_until = Timestamp(null=True)
    platform_key = TextField(default="")
    types = TextField(default="")
    hosts = TextField()
    webhooks = BooleanField(default=False)
    enabled = BooleanField(default=True)
    createtime = Timestamp()
    updatetime = Timestamp()


class EpayOrder(Table):
    """A payment that a shop asked for. `order` is null until the payer has chosen a channel.

    `trade_no` is the number that the shop gets, and the number of its first order. `type` is empty if the shop did not
    name one. `amount` is in fen. `name` and `param` are erased with the order's personal data.
    """

    merchant = ForeignKeyField(Merchant, index=False)
    out_trade_no = TextField()
    trade_no = TextField()
    order = ForeignKeyField(Order, null=True, index=False)
    version = IntegerField(constraints=[Check("version IN (1, 2)")])
    type = TextField()
    amount = Fen(constraints=[Check("amount > 0")])
    name = TextField()
    notify_url = TextField()
    return_url = TextField()
    param = TextField()
    createtime = Timestamp()

    @property
    def page_no(self) -> str:
        """The number in the address of its payment page: that of its order or, without one, its own."""
        number: str = self.trade_no if self.order is None else self.order.order_no
        return number

    @classmethod
    def of_order(cls, order_id: int) -> EpayOrder | None:
        """Return the payment that this order is for, or None."""
        return _of_order.first(order_id)

    @classmethod
    def of_replaced(cls, order: Order) -> EpayOrder | None:
        """Return the payment of an order that was replaced by another one, or None."""
        payment = cls.of_shop(order.merchant_id, order.merchant_order_no) if order.merchant_order_no else None
        if payment is None or payment.order_id in (None, order.id):
            return None
        is_replaced = History.select().where(History.order == order.id, History.code == REPLACED).exists()
        return payment if is_replaced else None

    @classmethod
    def of_shop(cls, merchant_id: int, out_trade_no: str) -> EpayOrder | None:
        """Return the payment with the shop's number, or None."""
        return _of_shop.first(merchant_id, out_trade_no)

    @classmethod
    def without_order(cls, trade_no: str) -> EpayOrder | None:
        """Return the payment with this number if its payer has not chosen a channel yet, or None."""
        return _without_order.first(trade_no)

    @classmethod
    def delete_open(cls, below: str, until: int, limit: int) -> list[str]:
        """Delete payments without an order, in the caller's transaction; return their numbers.

        Args:
            below: the number that theirs are less than. Numbers start with the date, so the index finds old ones.
            until: the latest time of the shop's last request, in Unix seconds.
        """
        is_open = cls.order.is_null()
        old = cls.select(cls.id, cls.trade_no).where(is_open, cls.trade_no < below, cls.createtime <= until)
        rows = list(old.order_by(cls.trade_no).limit(limit))
        cls.delete().where(is_open, cls.id.in_([row.id for row in rows])).execute()
        return [row.trade_no for row in rows]

    def bind(self, order_id: int, before: int | None, kind: str) -> bool:
        """Make this its order instead of `before`, in one conditional UPDATE; False if another request did."""
        now = EpayOrder.order.is_null() if before is None else EpayOrder.order == before
        return bool(EpayOrder.update(order=order_id, type=kind).where(EpayOrder.id == self.id, now).execute() == 1)

    @transaction
    def renew(self, kind: str, now: int) -> bool:
        """Store the type and the time of a repeated request, unless an order was created meanwhile."""
        unmoved = EpayOrder.order.is_null() if self.order_id is None else EpayOrder.order == self.order_id
        return bool(EpayOrder.update(type=kind, createtime=now).where(EpayOrder.id == self.id, unmoved).execute() == 1)

    @transaction
    def renumber(self, trade_no: str, now: int) -> bool:
        """Give a payment without an order another number, unless another request changed it meanwhile."""
        unmoved = EpayOrder.order.is_null() & (EpayOrder.trade_no == self.trade_no)
        columns = {"trade_no": trade_no, "createtime": now}
        self.__data__ |= columns
        return bool(EpayOrder.update(columns).where(EpayOrder.id == self.id, unmoved).execute() == 1)


EpayOrder.add_index(EpayOrder.merchant, EpayOrder.out_trade_no, name="epay_order_number", unique=True)
EpayOrder.add_index(EpayOrder.merchant, EpayOrder.id, name="epay_order_page")
EpayOrder.add_index(  # without nulls: SQLite would look up those by this index, instead of by `epay_order_open`
    EpayOrder.index(EpayOrder.order, unique=True, where=EpayOrder.order.is_null(False), name="epay_order_order_id")
)
EpayOrder.add_index(
    EpayOrder.index(EpayOrder.trade_no, unique=True, where=EpayOrder.order.is_null(), name="epay_order_open")
)


@compiled_rows(EpayOrder)
def _of_order(order_id: int) -> Any:
    return EpayOrder.select().where(EpayOrder.order == order_id)


@compiled_rows(EpayOrder)
def _of_shop(merchant_id: int, out_trade_no: str) -> Any:
    return EpayOrder.select().where(EpayOrder.merchant == merchant_id, EpayOrder.out_trade_no == out_trade_no)


@compiled_rows(EpayOrder)
def _without_order(trade_no: str) -> Any:
    return EpayOrder.select().where(EpayOrder.trade_no == trade_no, EpayOrder.order.is_null())
