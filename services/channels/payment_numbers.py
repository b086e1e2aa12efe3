"""Banks' and channels' numbers of payments: one number identifies one transfer."""

from __future__ import annotations

import re
from typing import Any
from zlib import crc32

from peewee import SQL

from models.db.base import database
from models.db.compiled import compiled
from models.tables.order import REVERSED, Order, PaymentException
from models.tables.refund import Refund, refunds_of
from services.errors import N_, OperatorError

LONGEST_ID = 64  # characters
_SHORTENED = re.compile(r"[0-9](\.[0-9]+)?e\+?[0-9]+", re.ASCII | re.IGNORECASE)
_SPREADSHEET_ERRORS = {"#n/a", "#ref!", "#value!", "#name?", "#num!", "#div/0!", "#null!", "#spill!", "#calc!"}
_NO_ID = {"无", "空", "暂无", "none", "null", "nan", "n/a", "nil", "undefined"} | _SPREADSHEET_ERRORS
NOTHING_RECORDED = N_(
    "An amount of 0 means that the bank took a deposit's payment back. Enter its recorded transaction ID."
)
_NONE = SQL("''")  # written out, so that both databases can use the partial indexes


def is_shortened(text: str) -> bool:
    """Return whether a spreadsheet replaced the last digits of a number, as in 2.02611E+27."""
    digits = text.isascii() and text.isdecimal() and len(text) >= 20
    return bool(_SHORTENED.fullmatch(text)) or (digits and not text[15:].strip("0"))


def transaction_id(text: str) -> str:
    """Return the bank's number of a payment; "" for none, a placeholder, and a shortened or damaged number."""
    usable = len(text) <= LONGEST_ID and text.isascii() and text.isprintable() and not is_shortened(text)
    return text if usable and not is_placeholder(text) else ""


def is_placeholder(text: str) -> bool:
    """Return whether a text says nothing, such as -, 无 or n/a."""
    return len(set(text)) <= 1 or not any(each.isalnum() for each in text) or text.casefold() in _NO_ID


def is_on_record(order: Order, reference: str) -> bool:
    """Return whether this number is recorded for the order, with its payment or with an exception."""
    if order.channel_reference == reference:
        return True
    mine = (PaymentException.order == order, PaymentException.reference == reference)
    return PaymentException.select().where(*mine).exists()


def first_with(order: Order, reference: str, channel: int = 0) -> Order | None:
    """Return the oldest other order of the channel with this number, or None. Call it in a transaction.

    Deposits, withdrawals and transfers that returned money all count. Until the transaction ends, other transactions
    wait with the same number. Lock the order first (`Order.for_update`), so that no two transactions wait for each
    other.
    """
    if not reference:
        return None
    channel = channel or order.channel_id
    database.advisory_lock("reference", crc32(f"{channel} {reference}".encode()))
    others = [row.id for row in _others_with(channel, order.id, reference)]
    return Order.get_by_id(min(others)) if others else None


@compiled
def _others_with(channel: int, order_id: int, reference: str) -> Any:
    others = Order.select(Order.id).where(Order.channel == channel, Order.id != order_id)
    paid = others.where(Order.channel_reference == reference, Order.channel_reference != _NONE)
    another = Order.select(Order.id).where(Order.id != order_id)
    named = (PaymentException.reference == reference, PaymentException.reference != _NONE)
    reported = another.join(PaymentException).where(PaymentException.channel == channel, *named)
    returned = another.join(PaymentException).where(
        PaymentException.channel == channel, PaymentException.return_reference == reference
    )
    sent_back = another.join(Refund).where(
        Refund.channel == channel, Refund.channel_reference == reference, Refund.channel_reference != _NONE
    )
    return paid.union_all(reported).union_all(returned).union_all(sent_back)


def refuse_second(order: Order, reference: str) -> None:
    """Refuse an operator's number of a transfer that another order has, or a return of this one.

    Raises:
        OperatorError: it is recorded already.
    """
    if not reference:
        return
    mine = (PaymentException.order == order, PaymentException.return_reference == reference)
    # A payout returns once. After a mistaken report of that, the same number is reported again.
    if PaymentException.select().where(*mine, PaymentException.kind != REVERSED).exists():
        text = N_(
            "Transaction ID %(reference)s is already recorded for returned money of this order. Check it. If the "
            "transfer is for both amounts, confirm that (--shared-reference)."
        )
        raise OperatorError(text, "reference", reference=reference)
    for refund in refunds_of(order):
        if refund.channel_reference == reference:
            text = N_(
                "Transaction ID %(reference)s is already recorded for refund %(refund_no)s. Check it. If the transfer "
                "is for both amounts, confirm that (--shared-reference)."
            )
            raise OperatorError(text, "reference", reference=reference, refund_no=refund.refund_no)
    if first := first_with(order, reference):
        text = N_(
            "Transaction ID %(reference)s is already recorded for order %(order_no)s. Check it. If the "
            "transfer pays for both orders, confirm that (--shared-reference)."
        )
        raise OperatorError(text, reference=reference, order_no=first.order_no)
