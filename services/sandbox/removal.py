"""Reverse the postings of sandbox channels for a merchant (`orders ledger remove-sandbox`), in one transaction."""

from __future__ import annotations

from dataclasses import dataclass

from models.db.base import database
from models.db.writer import after_commit, transaction
from models.tables.ledger import AVAILABLE, FEES, HELD
from models.tables.merchant import Merchant
from models.tables.order import CANCELLED, CONFIRMED, PAID, PENDING, Order, PaymentException
from runtime import clock
from schemas.views import hundredths
from services.errors import ApiError, OperatorError
from services.ledger import accounts, postings
from services.ledger.postings import OPERATOR, RELEASE_AGAIN, Lines
from services.merchants import cache
from services.orders import lifecycle
from services.orders.reasons import Why, because
from services.security import audit, sandbox_guard
from services.withdrawals import money, settle

WHO = "operator"
WHY = because(Why.SANDBOX_REMOVED)


@dataclass(frozen=True)
class Removal:
    """The effect of a removal: fen by account. `orders` were cancelled; `loss` is what the balance did not cover."""

    key: str
    lines: Lines
    orders: int
    loss: int


class _Tried(Exception):
    """Rolls back the transaction of a dry run."""

    def __init__(self, removal: Removal):
        super().__init__()
        self.removal = removal


def affected(merchant: Merchant | None) -> list[Merchant]:
    """Return the merchants with something to reverse or cancel: all, or at most this one.

    Raises:
        OperatorError: there is no sandbox channel, or this is demo mode.
    """
    if not sandbox_guard.channels():
        raise OperatorError("nothing to reverse: no sandbox channel, or demo mode")
    return [row for row in sandbox_guard.to_clear() if merchant is None or row == merchant]


def preview(merchant: Merchant) -> Removal:
    """Return the effect of `remove`; changes nothing."""
    try:
        return remove(merchant, book_loss=True, only_try=True)
    except _Tried as tried:
        return tried.removal


@transaction
def remove(merchant: Merchant, *, book_loss: bool = False, only_try: bool = False) -> Removal:
    """Cancel a merchant's open sandbox orders and reverse the net effect of sandbox channels on every account.

    A second run finds nothing left and posts nothing. The balance never becomes negative: money that was already spent
    is charged to the operator's fees.

    Args:
        book_loss: the operator accepts that charge.

    Raises:
        OperatorError: the available balance does not cover the reversal, and `book_loss` is not given.
    """
    database.advisory_lock("sandbox removal", merchant.id)
    ids = [channel.id for channel in sandbox_guard.channels()]
    ended = _end(merchant, ids)
    found = sandbox_guard.net(merchant.id, ids)
    own = (AVAILABLE, merchant.id)
    loss = max(0, found.get(own, 0) - accounts.balances_of(merchant)["available"])
    if loss and not book_loss:
        raise OperatorError(
            f"{merchant.key} has spent {hundredths(loss)} of the sandbox money. Reject its open withdrawals, or "
            "charge the rest to your fees with --book-loss"
        )
    lines = {account: -fen for account, fen in found.items()}
    if loss:
        lines[own] += loss
        lines[FEES, OPERATOR] = lines.get((FEES, OPERATOR), 0) - loss
    if any(lines.values()):
        memo = f"sandbox removed; not covered: {hundredths(loss)}" if loss else "sandbox removed"
        order, purpose = None, sandbox_guard.REMOVED
        if not any(lines.get((kind, merchant.id)) for kind in (AVAILABLE, HELD)):
            # Without an entry of the merchant, only an order tells whose removal it was: all was fee.
            order = sandbox_guard.last_order(merchant.id, ids)
            purpose = accounts.numbered(order, purpose)
        try:
            accounts.post(purpose, lines, who=WHO, order=order, memo=memo)
        except ApiError:
            raise OperatorError(f"the balance of {merchant.key} has just changed: run the command again") from None
    removal = Removal(merchant.key, {account: fen for account, fen in lines.items() if fen}, ended, loss)
    if only_try:
        raise _Tried(removal)
    _record(merchant, removal)
    return removal


def _record(merchant: Merchant, removal: Removal) -> None:
    # This raises the setup version, so that each service reads the merchant again.
    Merchant.update(updatetime=clock.now()).where(Merchant.id == merchant.id).execute()
    after_commit(cache.forget)
    taken = hundredths(removal.lines.get((AVAILABLE, merchant.id), 0))
    detail = f"available {taken}, orders cancelled {removal.orders}, loss {hundredths(removal.loss)}"
    audit.record(audit.HERE, "remove sandbox", "merchant", merchant.key, detail)


def _end(merchant: Merchant, ids: list[int]) -> int:
    """Cancel the merchant's open orders on these channels, return their reserves and close their exceptions.

    Returns: the number of orders.
    """
    own = (Order.merchant == merchant, Order.channel.in_(ids))
    is_open = Order.order_type.in_((1, 2)) & Order.status.in_((PENDING, PAID, CONFIRMED))
    open_orders = list(Order.select().where(*own, is_open).order_by(Order.id))
    for order in open_orders:
        if order.is_buy:
            lifecycle.transition(order, CANCELLED, WHO, WHY)
        else:
            settle.cancel(order, WHO, WHY)
    exceptions = PaymentException.select().join(Order).where(*own, PaymentException.resolution.is_null())
    for exception in list(exceptions):
        order = exception.order
        if not order.is_buy and money.is_held_again(order):
            accounts.post(accounts.numbered(order, RELEASE_AGAIN), postings.release(order), who=WHO, order=order)
        lifecycle.close_exception(exception, "sandbox_removed", WHO)
    return len(open_orders)
