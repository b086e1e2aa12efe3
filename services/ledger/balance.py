"""A merchant's balance: available, held, and confirmed but not credited yet (docs/orders.md)."""

from __future__ import annotations

from typing import Any

from peewee import fn

from models.db.compiled import compiled
from models.tables.ledger import AVAILABLE, HELD, LedgerAccount
from models.tables.merchant import Merchant
from models.tables.order import BUY, COMPLETED, CONFIRMED, HOLDING, Order, PaymentException
from models.tables.refund import OPEN, UNCREDITED, Refund


@compiled
def _balance(merchant_id: int) -> Any:
    # One statement, so that all three are of the same moment.
    reviewed = Order.alias()
    own_payment = (reviewed.id == PaymentException.order) & (reviewed.channel_reference == PaymentException.reference)
    # Not correlated, so that the open exceptions, which are few, are read once and not for each deposit.
    in_review = (
        PaymentException.select(PaymentException.order)
        .join(reviewed, on=own_payment)
        .where(PaymentException.resolution.is_null(), PaymentException.kind.in_(HOLDING))
    )
    confirmed = (Order.merchant == merchant_id) & (Order.order_type == BUY) & (Order.status == CONFIRMED)
    being_refunded = Refund.select(Refund.order).where(Refund.merchant == merchant_id, Refund.status.in_(OPEN))
    certain = (confirmed, Order.id.not_in(in_review), Order.id.not_in(being_refunded))
    refunded = Refund.select(fn.COALESCE(fn.SUM(Refund.merchant_actual_amount), 0)).join(Order)
    refunded = refunded.where(*certain, Refund.status == COMPLETED, Refund.paid_from == UNCREDITED)
    unsettled = Order.select(fn.COALESCE(fn.SUM(Order.merchant_actual_amount), 0) - refunded).where(*certain)
    account = LedgerAccount.alias()
    held = account.select(account.balance).where(account.kind == HELD, account.owner == merchant_id)
    own = (LedgerAccount.kind == AVAILABLE) & (LedgerAccount.owner == merchant_id)
    available = LedgerAccount.balance.alias("available_amount")
    return LedgerAccount.select(available, held.alias("held_amount"), unsettled.alias("unsettled_amount")).where(own)


def balance_of(merchant: Merchant) -> Any:
    """Return `available_amount`, `held_amount` and `unsettled_amount` of a merchant, in fen, as of one moment.

    Unsettled is what confirmed deposits will add to the balance, after fees and refunds. A deposit whose own payment
    has an open exception or refund is left out, because it is not certain how much of it will be credited.

    The time grows with the number of confirmed deposits, which the index `order_cell` finds.
    """
    return _balance.first(merchant.id)
