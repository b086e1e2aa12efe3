"""Refunds of deposits, their legal transitions, and their history."""

from __future__ import annotations

from typing import Any

from peewee import Check, ForeignKeyField, IntegerField, TextField

from models.db.base import Fen, Table, Timestamp, database
from models.db.compiled import compiled, compiled_rows
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import CANCELLED, COMPLETED, CONFIRMED, PENDING, Order, PaymentException
from runtime import clock

REFUND_STATUSES = (PENDING, CONFIRMED, COMPLETED, CANCELLED)
OPEN = (PENDING, CONFIRMED)
# The last two only by an operator's decision, after the channel contradicted its final result.
REFUND_TRANSITIONS = {
    PENDING: {CONFIRMED, CANCELLED},
    CONFIRMED: {COMPLETED, CANCELLED},
    COMPLETED: {CANCELLED},
    CANCELLED: {COMPLETED},
}
BALANCE, UNCREDITED, PLATFORM, EXCEPTION = PAID_FROM = ("balance", "uncredited", "platform", "exception")


class Refund(Table):
    """One refund of a deposit's payment, whole or in part. Amounts in fen.

    - `reference` is the channel's number for the payment, `total` the amount of that payment as received.
    - `merchant_refund_no` is the merchant's number; null if an operator or the service requested it.
    - `paid_from`: the merchant's balance, the deposit that is not credited yet (the balance once it is), the operator's
    fees, or the money of an open `exception`, which was never credited.
    - `service_amount` is the fee that the merchant gets back, `merchant_actual_amount` what the merchant pays.
    - `who` requested it, `approved_by` is empty until it is approved.
    - `refunded_before` is what the channel had refunded of the payment before, if it must be known (gateways/base.py).
    - `senttime` is the time of the last request to the channel, null before.
    - `due_at` is when the service must next act on it, null if an operator must; `asks` counts those acts in the
    present status.
    - `channel_reference` is the channel's own number for the refund, or an operator's for the transfer.
    - `returned_on` is the day (2026-05-01, in China) on which an operator sent the money; null if nobody entered it.
    """

    refund_no = TextField(unique=True)
    order = ForeignKeyField(Order)
    merchant = ForeignKeyField(Merchant, index=False)
    channel = ForeignKeyField(Channel, index=False)
    exception = ForeignKeyField(PaymentException, null=True, index=False)
    merchant_refund_no = TextField(null=True)
    reference = TextField()
    amount = Fen(constraints=[Check("amount > 0")])
    total = Fen(constraints=[Check("total > 0")])
    service_amount = Fen(constraints=[Check("service_amount >= 0")])
    merchant_actual_amount = Fen(constraints=[Check("merchant_actual_amount >= 0")])
    paid_from = TextField(constraints=[Check("paid_from IN ('balance', 'uncredited', 'platform', 'exception')")])
    status = TextField(constraints=[Check("status IN ('pending', 'confirmed', 'completed', 'cancelled')")])
    reason = TextField()
    who = TextField()
    approved_by = TextField()
    refunded_before = Fen(null=True)
    channel_reference = TextField()
    senttime = Timestamp(null=True)
    due_at = Timestamp(null=True)
    asks = IntegerField()
    createtime = Timestamp()
    updatetime = Timestamp()
    completedtime = Timestamp(null=True)
    returned_on = TextField(null=True)

    class Meta:
        constraints = [Check("amount <= total"), Check("(paid_from = 'exception') = (exception_id IS NOT NULL)")]

    @property
    def is_open(self) -> bool:
        """True until it has ended."""
        return self.status in OPEN

    @classmethod
    def find(cls, refund_no: str) -> Refund | None:
        """Return the refund with this number, or None."""
        return _with_number.first(refund_no)

    @classmethod
    def for_update(cls, refund_id: int) -> Refund:
        """Lock the refund until the caller's transaction ends; return it as it is now. Lock its order first."""
        (locked,) = _locked(refund_id)
        return locked

    def move_to(self, new: str, **facts: Any) -> bool:
        """Move to `new` and store `facts`, in one conditional UPDATE.

        Returns False, and changes nothing, if the transition is illegal or the refund has changed.
        """
        if new not in REFUND_TRANSITIONS[self.status]:
            return False
        facts = {"due_at": None, "asks": 0, "updatetime": clock.now(), **facts, "status": new}
        facts["completedtime"] = facts["updatetime"] if new == COMPLETED else None
        if _step(self.id, self.status, **facts) != 1:
            return False
        for name, value in facts.items():
            setattr(self, name, value)
        return True

    def is_as(self, seen: Refund) -> bool:
        """Return whether nobody has acted on it since it was read as `seen`."""
        return (self.status, self.due_at, self.asks) == (seen.status, seen.due_at, seen.asks)

    def charged_to_balance(self, order: Order) -> dict[str, Any]:
        """Return the columns of a refund whose deposit is credited after all, so that the balance pays for it.

        A full one was to prevent the credit: it has no fee yet, and gets back what is left of the order's.
        """
        fee = int(self.service_amount)
        if fee + self.merchant_actual_amount != self.amount:
            others = sum(each.service_amount for each in lives(refunds_of(order)) if each.id != self.id)
            fee = min(int(self.amount), max(int(order.service_amount) - others, 0))
        return {"paid_from": BALANCE, "service_amount": fee, "merchant_actual_amount": self.amount - fee}

    def store(self, **facts: Any) -> None:
        """Store these columns of the locked refund, in the caller's transaction."""
        Refund.update(facts).where(Refund.id == self.id).execute()
        for name, value in facts.items():
            setattr(self, name, value)

    @transaction
    def claim(self, until: int) -> bool:
        """Claim the act that is due, until `until`; False if another worker has it."""
        taken = _claim(self.id, self.status, self.due_at, self.asks, until) == 1
        if taken:
            self.due_at, self.asks = until, self.asks + 1  # type: ignore[assignment]
        return taken

    @transaction
    def set_due(self, due_at: int | None) -> None:
        """Set the next act to `due_at` (None for never), unless the refund or its due time has changed since it was
        read."""
        _set_due(self.id, self.status, self.due_at, due_at)


Refund.add_index(Refund.merchant, Refund.id, name="refund_merchant")
Refund.add_index(
    Refund.index(
        *(Refund.merchant, Refund.merchant_refund_no),
        unique=True,
        where=Refund.merchant_refund_no.is_null(False),
        name="refund_merchant_number",
    )
)
Refund.add_index(Refund.index(Refund.channel, Refund.due_at, where=Refund.due_at.is_null(False), name="refund_due"))
Refund.add_index(Refund.status, Refund.createtime, name="refund_status")
_numbered = Refund.channel_reference != ""
Refund.add_index(Refund.index(Refund.channel, Refund.channel_reference, where=_numbered, name="refund_reference"))


@compiled_rows(Refund)
def _with_number(refund_no: str) -> Any:
    return Refund.select().where(Refund.refund_no == refund_no)


@compiled_rows(Refund)
def _locked(refund_id: int) -> Any:
    return database.for_update(Refund.select().where(Refund.id == refund_id))


@compiled_rows(Refund)
def _of_order(order_id: int) -> Any:
    return Refund.select().where(Refund.order == order_id).order_by(Refund.id)


def refunds_of(order: Order) -> list[Refund]:
    """Return all refunds of an order, oldest first."""
    return _of_order(order.id)


def lives(refunds: list[Refund]) -> list[Refund]:
    """Return those that are not cancelled: their money was refunded, or may be."""
    return [each for each in refunds if each.status != CANCELLED]


@compiled
def _step(refund_id: int, before: str, /, **facts: Any) -> Any:
    return Refund.update(**facts).where(Refund.id == refund_id, Refund.status == before)


def _unmoved(refund_id: int, status: str, due_at: int | None) -> Any:
    return (Refund.id == refund_id) & (Refund.status == status) & (Refund.due_at == due_at)


@compiled
def _claim(refund_id: int, status: str, due_at: int, asks: int, until: int) -> Any:
    later = {"asks": Refund.asks + 1, "due_at": until}
    return Refund.update(later).where(_unmoved(refund_id, status, due_at), Refund.asks == asks)


@compiled
def _set_due(refund_id: int, status: str, before: int | None, due_at: int | None) -> Any:
    return Refund.update(due_at=due_at).where(_unmoved(refund_id, status, before))


class RefundHistory(Table):
    """One step of a refund: from, to, who, why, when. Append-only.

    The reason is `code` with `args` (services/orders/reasons.py).
    """

    refund = ForeignKeyField(Refund)
    before = TextField()
    after = TextField()
    who = TextField()
    at = Timestamp()
    code = TextField()
    args = TextField(null=True)
