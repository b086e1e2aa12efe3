"""Orders, their legal transitions, their history, and the exceptions that need an operator."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from peewee import SQL, BigIntegerField, BooleanField, Check, ForeignKeyField, IntegerField, TextField

from models.db.base import BasisPoints, Fen, Table, Timestamp, database
from models.db.compiled import compiled, compiled_rows
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.payout_account import PayoutAccount
from runtime import clock

BUY, SELL = TYPES = (1, 2)
PENDING, PAID, CONFIRMED, COMPLETED, CANCELLED = STATUSES = ("pending", "paid", "confirmed", "completed", "cancelled")
IS_OPEN = SQL("status IN ('pending', 'paid', 'confirmed')")  # written out, so that both databases use the partial index
PROVEN = (CONFIRMED, COMPLETED)  # of deposits: the channel reported the money, or an operator confirmed it

TRANSITIONS: dict[int, dict[str, set[str]]] = {
    BUY: {
        PENDING: {PAID, CANCELLED},
        PAID: {CONFIRMED, CANCELLED},
        CONFIRMED: {COMPLETED, CANCELLED},
        CANCELLED: {COMPLETED},
    },
    SELL: {PENDING: {CONFIRMED, CANCELLED}, CONFIRMED: {PAID, CANCELLED}, PAID: {COMPLETED}},
}


class Order(Table):
    """One buy or sell order. Amounts in fen, rates in basis points, as stored when it was created.

    - `seq` counts a merchant's orders from 1, without a gap, in the order of `createtime`. Any page of them, and any
    range of time, is found by counting (models/queries/order_range.py).
    - `expires_at` is when an unpaid deposit expires; null for a withdrawal.
    - `opens_on_view`: the deposit is opened at its channel when its payment page is viewed.
    - `shown_from` is the time until which a withdrawal's channel may not show the last payout request yet.
    - `left_alone_until` is set on a withdrawal that an operator wants to reject: it is not sent to the channel before.
    - `due_at` is when the service must next act on the order (check its status, expire it, pay it out, complete it),
    null if no act is due; `asks` counts those acts in the present status. For a confirmed deposit it is the time of
    its credit, null once that has passed while an exception holds it.
    - `received_amount` is the amount that the payer sent, null if it is the order's amount.
    - `cost_amount` is the part of a deposit that its channel is expected to keep.
    - `group` is the group of channels that the merchant named, null if it named `channel` itself.
    - `completedtime` is when it was completed, null before.
    """

    order_no = TextField(unique=True)
    merchant = ForeignKeyField(Merchant, index=False)
    seq = BigIntegerField()
    channel = ForeignKeyField(Channel, index=False)
    account = ForeignKeyField(PayoutAccount, null=True, index=False)
    order_type = IntegerField(constraints=[Check("order_type IN (1, 2)")])
    status = TextField(constraints=[Check("status IN ('pending', 'paid', 'confirmed', 'completed', 'cancelled')")])
    merchant_order_no = TextField(default="")
    customer_name = TextField(default="")
    payment_method = TextField()
    amount = Fen(constraints=[Check("amount > 0")])
    service_rate = BasisPoints()
    service_amount = Fen(constraints=[Check("service_amount >= 0")])
    passage_rate = BasisPoints(default=0)
    passage_amount = Fen(default=0)
    deposit_rate = BasisPoints(default=0)
    deposit_amount = Fen(default=0, constraints=[Check("deposit_amount >= 0")])
    channel_amount = Fen(default=0, constraints=[Check("channel_amount >= 0")])
    merchant_actual_amount = Fen(constraints=[Check("merchant_actual_amount >= 0")])
    opened = TextField(default="")
    channel_reference = TextField(default="")
    expires_at = Timestamp(null=True)
    due_at = Timestamp(null=True)
    asks = IntegerField(default=0)
    createtime = Timestamp()
    updatetime = Timestamp()
    received_amount = Fen(null=True)
    left_alone_until = Timestamp(null=True)
    completedtime = Timestamp(null=True)
    shown_from = Timestamp(null=True)
    opens_on_view = BooleanField(default=False, constraints=[SQL("DEFAULT FALSE")])
    cost_amount = Fen(default=0, constraints=[SQL("DEFAULT 0"), Check("cost_amount >= 0")])
    group = ForeignKeyField(Channel, null=True, index=False, backref="+")

    @property
    def received(self) -> int:
        """The amount received by the channel once it is confirmed, in fen."""
        return self.amount if self.received_amount is None else self.received_amount

    @property
    def is_buy(self) -> bool:
        """True for a deposit, False for a withdrawal."""
        return self.order_type == BUY

    @classmethod
    def newest_deposit(cls, merchant: Merchant, status: str) -> Order | None:
        """Return the merchant's newest deposit with this status, or None."""
        mine = (cls.merchant == merchant) & (cls.order_type == BUY) & (cls.status == status)
        return cls.select().where(mine).order_by(cls.seq.desc()).first()

    @classmethod
    def numbered(cls, order_type: int, numbers: Iterable[str]) -> list[Order]:
        """Return the orders of this type with these numbers, oldest first, with merchant and channel."""
        found = cls.select(cls, Merchant, Channel).join_from(cls, Merchant).join_from(cls, Channel)
        return list(
            found.where(cls.order_no.in_(list(numbers)), cls.order_type == order_type).order_by(cls.createtime, cls.id)
        )

    @classmethod
    def find(cls, order_no: str) -> Order | None:
        """Return the order with this number, or None."""
        return _with_number.first(order_no)

    @classmethod
    def for_update(cls, order_id: int) -> Order:
        """Lock the order until the caller's transaction ends; return it as it is now."""
        (locked,) = _locked(order_id)
        return locked

    def move_to(self, *statuses: str, **facts: Any) -> bool:
        """Move through these statuses to the last one and store `facts`, in one conditional UPDATE.

        Returns False, and changes nothing, if a transition is illegal or the order has changed.
        """
        legal = TRANSITIONS[self.order_type]
        if any(after not in legal.get(before, ()) for before, after in pairwise((self.status, *statuses))):
            return False
        facts = {"due_at": None, "asks": 0, "updatetime": clock.now(), **facts, "status": statuses[-1]}
        if COMPLETED in statuses:
            facts["completedtime"] = facts["updatetime"]
        if _step(self.id, self.status, **facts) != 1:
            return False
        for name, value in facts.items():
            setattr(self, name, value)
        return True

    @transaction
    def claim(self, until: int, **facts: Any) -> bool:
        """Claim the act that is due, until `until`, and store these columns; False if another worker has it."""
        taken = _claim(self.id, self.status, self.due_at, self.asks, due_at=until, **facts) == 1
        if taken:
            self.due_at, self.asks = until, self.asks + 1  # type: ignore[assignment]
        return taken

    def begin_to_hand_over(self, now: int, until: int, shown_from: int | None) -> bool:
        """Extend the claim until `until` to send the payout to the channel, in one conditional UPDATE.

        Args:
            shown_from: Unix time until which the channel may not show it; None if it shows it immediately.

        Returns: False if the order has changed, must be left alone, or the channel may not show the last payout request
        yet.
        """
        renewed: bool = _extend(self.id, self.status, self.due_at, self.asks, now, until, shown_from) == 1
        if renewed:
            self.due_at = until  # type: ignore[assignment]
        return renewed

    @transaction
    def set_due(self, due_at: int | None) -> None:
        """Set the next act to `due_at` (None for never), unless the order or its due time has changed since it was
        read."""
        _set_due(self.id, self.status, self.due_at, due_at)


Order.add_index(Order.merchant, Order.seq, name="order_seq", unique=True)
Order.add_index(Order.merchant, Order.order_type, Order.status, Order.seq, name="order_cell")
Order.add_index(Order.merchant, Order.merchant_order_no, Order.seq, name="order_merchant_order_no")
Order.add_index(
    Order.index(Order.channel, Order.order_type, Order.due_at, where=Order.due_at.is_null(False), name="order_due")
)
Order.add_index(Order.index(Order.createtime, where=Order.due_at.is_null() & IS_OPEN, name="order_waiting"))
Order.add_index(
    Order.index(
        *(Order.merchant, Order.completedtime, Order.id),
        where=Order.completedtime.is_null(False),
        name="order_completed",
    )
)
_numbered = Order.channel_reference != ""
Order.add_index(Order.index(Order.channel, Order.channel_reference, Order.id, where=_numbered, name="order_reference"))
_grouped = Order.group.is_null(False)
Order.add_index(Order.index(Order.group, Order.channel, Order.createtime, where=_grouped, name="order_group"))


@compiled_rows(Order)
def _with_number(order_no: str) -> Any:
    return Order.select().where(Order.order_no == order_no)


@compiled_rows(Order)
def _locked(order_id: int) -> Any:
    return database.for_update(Order.select().where(Order.id == order_id))


@compiled
def _step(order_id: int, before: str, /, **facts: Any) -> Any:
    return Order.update(**facts).where(Order.id == order_id, Order.status == before)


def _unmoved(order_id: int, status: str, due_at: int | None) -> Any:
    return (Order.id == order_id) & (Order.status == status) & (Order.due_at == due_at)


@compiled
def _claim(order_id: int, status: str, due_at: int, asks: int, /, **facts: Any) -> Any:
    return Order.update(asks=Order.asks + 1, **facts).where(_unmoved(order_id, status, due_at), Order.asks == asks)


@compiled
def _extend(order_id: int, status: str, due_at: int, asks: int, now: int, until: int, shown_from: int | None) -> Any:
    passed = [column.is_null() | (column <= now) for column in (Order.left_alone_until, Order.shown_from)]
    facts = {"due_at": until, "shown_from": shown_from, "left_alone_until": None}
    return Order.update(facts).where(_unmoved(order_id, status, due_at), Order.asks == asks, *passed)


@compiled
def _set_due(order_id: int, status: str, before: int | None, due_at: int | None) -> Any:
    return Order.update(due_at=due_at).where(_unmoved(order_id, status, before))


class History(Table):
    """One step of an order: from, to, who, why, when. Append-only.

    The reason is `code` with `args` (services/orders/reasons.py).
    """

    order = ForeignKeyField(Order)
    before = TextField(default="")
    after = TextField()
    who = TextField()
    at = Timestamp()
    code = TextField()
    args = TextField(null=True)


WRONG_AMOUNT = "wrong_amount"
LATE_PAYMENT = "late_payment"
PAID_TWICE = "paid_twice"
AMOUNT_CORRECTED = "amount_corrected"
SHARED_REFERENCE = "shared_reference"
PAYOUT_CONFLICT = "payout_conflict"
PAYOUT_IN_PROGRESS = "payout_in_progress"
PAYOUT_MISSING = "payout_missing"
REVERSED = "reversed"
UNKNOWN_OUTCOME = "unknown_outcome"
REFUND_ABNORMAL = "refund_abnormal"
REFUND_CONFLICT = "refund_conflict"
# Money that the channel received and that the rules did not credit.
MONEY_IN = (WRONG_AMOUNT, LATE_PAYMENT, PAID_TWICE, AMOUNT_CORRECTED, SHARED_REFERENCE)
# Exceptions after which nothing happens until they are closed. Status checks continue during all others.
HOLDING = (*MONEY_IN, REVERSED, PAYOUT_CONFLICT)
# Refunds that do not reach the payer, and final results of refunds that the channel contradicted.
OF_REFUNDS = (REFUND_ABNORMAL, REFUND_CONFLICT)
# Payouts that the channel has, or had, and that do not match the ledger.
AT_CHANNEL = (PAYOUT_CONFLICT, PAYOUT_IN_PROGRESS, PAYOUT_MISSING)


class PaymentException(Table):
    """A difference between channel and ledger that the rules can't settle; open until `resolution` is set.

    `amount` in fen is the money received, or for `reversed` the money returned; 0 if the channel did not report it.
    `returned` is the part that the channel has since sent back. `reference` is the channel's own number for the
    payment. The cause is `code` with `args` (services/orders/reasons.py). `history` is the line that opened it, null if
    an upgrade from before 0.4.0 did not find it. `return_reference` and `returned_on` are the bank's number and day
    (2026-05-01, in China) of the transfer by which a payout came back, or an operator sent the money back; null if
    nobody entered them. `channel` has its money: that of the order, or one that its group tried before.
    """

    order = ForeignKeyField(Order)
    kind = TextField()
    amount = Fen(default=0)
    reference = TextField(default="")
    createtime = Timestamp()
    resolution = TextField(null=True)
    resolved_by = TextField(null=True)
    resolvedtime = Timestamp(null=True)
    code = TextField()
    args = TextField(null=True)
    returned = Fen(null=True)
    history = ForeignKeyField(History, null=True, index=False)
    return_reference = TextField(null=True)
    returned_on = TextField(null=True)
    channel = ForeignKeyField(Channel, null=True, index=False)

    @property
    def is_open(self) -> bool:
        """True until it is resolved."""
        return self.resolution is None

    def resolve(self, resolution: str, who: str, **facts: Any) -> bool:
        """Close it and store these columns, in one conditional UPDATE; False if it was closed already."""
        return self.change(resolution=resolution, resolved_by=who, resolvedtime=clock.now(), **facts)

    def change(self, **facts: Any) -> bool:
        """Store these columns while it is open, in one conditional UPDATE; False if it was closed already."""
        mine = PaymentException.id == self.id
        changed = PaymentException.update(**facts).where(mine, PaymentException.resolution.is_null()).execute()
        if changed:
            for name, value in facts.items():
                setattr(self, name, value)
        return bool(changed == 1)


_is_open = PaymentException.resolution.is_null()
PaymentException.add_index(PaymentException.index(PaymentException.createtime, where=_is_open, name="exception_open"))
# The same money is in one open exception of a kind, whatever the order's status was at the repeated report.
PaymentException.add_index(
    PaymentException.index(
        *(PaymentException.order, PaymentException.reference, PaymentException.kind),
        unique=True,
        where=_is_open,
        name="exception_same_money",
    )
)
PaymentException.add_index(
    PaymentException.index(
        *(PaymentException.reference, PaymentException.order),
        where=PaymentException.reference != "",
        name="exception_reference",
    )
)
PaymentException.add_index(
    PaymentException.index(
        *(PaymentException.return_reference, PaymentException.order),
        where=PaymentException.return_reference.is_null(False),
        name="exception_return_reference",
    )
)


class Attempt(Table):
    """One attempt, for a channel that opens a payment when the page is viewed; `count` starts at 1 for each order.

    `payer` is a hash of the payer's id at the upstream, null if the channel needs none in this browser, and empty if a
    restored database knows the attempt by its notice only. `opened` is what the payer sees, as JSON, and `refusal` the
    channel's message; both are empty until it responds. `triedtime` is the time of the last request. `closed`: the
    channel confirmed that it accepts no money for this attempt. `channel` is the member of a group that was tried;
    `sent` is False if no request reached it. Once a group passes an order on, it has rows for all its channels.
    """

    order = ForeignKeyField(Order, index=False)
    count = IntegerField()
    browser = TextField()
    payer = TextField(null=True)
    opened = TextField(default="")
    refusal = TextField(default="")
    triedtime = Timestamp()
    closed = BooleanField(default=False)
    channel = ForeignKeyField(Channel, null=True, index=False)
    sent = BooleanField(default=True, constraints=[SQL("DEFAULT TRUE")])


Attempt.add_index(Attempt.order, Attempt.count, name="attempt_count", unique=True)


class OrderNote(Table):
    """What an order is for, in an operator's words, for the payer. Erased with the order's personal data."""

    order = ForeignKeyField(Order, unique=True)
    text = TextField()

    @classmethod
    def of(cls, order: Order) -> str:
        """Return the text for an order, or ""."""
        row = _note_of.first(order.id)
        return row.text if row else ""


@compiled
def _note_of(order_id: int) -> Any:
    return OrderNote.select(OrderNote.text).where(OrderNote.order == order_id)


class InternalNote(Table):
    """A note of an operator on an order, for other operators only. Never changed, and erased with the order's personal
    data."""

    order = ForeignKeyField(Order)
    who = TextField()
    text = TextField()
    createtime = Timestamp()
