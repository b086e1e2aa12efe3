"""A merchant's balance: available, held, and confirmed but not credited yet (docs/orders.md)."""

from __future__ import annotations

from typing import Any

from peewee import fn

from models.db.compiled import compiled
from models.tables.ledger import AVAILABLE, HELD, LedgerAccount
from models.tables.merchant import Merchant
from models.tables.order import BUY, CONFIRMED, HOLDING, Order, PaymentException


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
    unsettled = Order.select(fn.COALESCE(fn.SUM(Order.merchant_actual_amount), 0)).where(
        confirmed, Order.id.not_in(in_review)
    )
    account = LedgerAccount.alias()
    held = account.select(account.balance).where(account.kind == HELD, account.owner == merchant_id)
    own = (LedgerAccount.kind == AVAILABLE) & (LedgerAccount.owner == merchant_id)
    available = LedgerAccount.balance.alias("available_amount")
    return LedgerAccount.select(available, held.alias("held_amount"), unsettled.alias("unsettled_amount")).where(own)


def balance_of(merchant: Merchant) -> Any:
    """Return `available_amount`, `held_amount` and `unsettled_amount` of a merchant, in fen, as of one moment.

    Unsettled is what confirmed deposits will add to the balance, after fees. A deposit whose own payment has an open
    exception is left out, because it is not certain how much of it will be credited.

    The time grows with the number of confirmed deposits, which the index `order_cell` finds.
    """
    return _balance.first(merchant.id)
