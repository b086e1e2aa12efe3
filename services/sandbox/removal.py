"""Sandbox channels outside demo mode: what they left must be removed before the service starts.

Anyone with the address of a payment page can have the sandbox report a payment, so outside demo mode no money of a
sandbox channel is real. `tillbook ledger remove-sandbox` reverses it.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Any

from peewee import fn

from gateways.sandbox.driver import SandboxDriver
from models.db.base import database
from models.db.writer import after_commit, transaction
from models.tables.channel import Channel
from models.tables.ledger import AVAILABLE, CLEARING, FEES, HELD, Entry, LedgerAccount, Posting
from models.tables.merchant import Merchant
from models.tables.order import CANCELLED, CONFIRMED, PAID, PENDING, TYPES, Order, PaymentException
from models.tables.refund import OPEN, Refund
from runtime import clock
from runtime.money import grouped, hundredths
from runtime.state import current
from services.errors import N_, ApiError, OperatorError
from services.ledger import accounts, postings
from services.ledger.accounts import IS_ADJUSTMENT
from services.ledger.postings import OPERATOR, RELEASE_AGAIN, Lines
from services.merchants import cache
from services.orders import lifecycle
from services.orders.reasons import Why, because
from services.refunds import settle as settle_refund
from services.security import audit
from services.withdrawals import money, settle

log = logging.getLogger(__name__)

PURPOSE = "sandbox_removal"  # of a posting that reverses those of sandbox channels
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


def _channels() -> list[Channel]:
    """Return the sandbox channels, by id; none in demo mode."""
    if current().settings.demo:
        return []
    return list(Channel.select().where(Channel.driver == SandboxDriver.name).order_by(Channel.id))


def refuse_leftovers() -> None:
    """Raise OperatorError if sandbox channels left something: no money may be moved before it is removed."""
    if keys := ", ".join(merchant.key for merchant in _affected(_channels())):
        raise OperatorError(
            f"the database has money or open orders of sandbox channels (merchants: {keys}), which work in demo mode "
            "only. Remove them first: `tillbook ledger remove-sandbox`"
        )


@transaction
def disable() -> None:
    """Disable the sandbox channels outside demo mode, and stop the status checks of their orders and refunds.

    All of these have ended.
    """
    found = _channels()
    if not found:
        return
    Channel.update(enabled=False, updatetime=clock.now()).where(Channel.id.in_(found), Channel.enabled).execute()
    for table in (Order, Refund):
        table.update(due_at=None).where(table.channel.in_(found), table.due_at.is_null(False)).execute()
    names = ", ".join(f"{channel.id} ({channel.name})" for channel in found)
    log.warning("Sandbox channels work in demo mode only and are disabled: %s", names)


def affected(merchant: Merchant | None) -> list[Merchant]:
    """Return the merchants with something to reverse or cancel: all, or at most this one.

    Raises:
        OperatorError: there is no sandbox channel, or this is demo mode.
    """
    found = _channels()
    if not found:
        raise OperatorError("nothing to reverse: no sandbox channel, or demo mode")
    return [row for row in _affected(found) if merchant is None or row == merchant]


def _affected(channels: list[Channel]) -> list[Merchant]:
    """Return all merchants with open orders, refunds or exceptions, or money, of these channels, by id."""
    if not channels:
        return []
    every = Order.merchant.in_(Merchant.select(Merchant.id)) & Order.order_type.in_(TYPES)  # uses the index by status
    is_open = every & Order.status.in_((PENDING, PAID, CONFIRMED)) & Order.channel.in_(channels)
    undecided = PaymentException.resolution.is_null() & Order.channel.in_(channels)
    with_orders = {
        *Order.select(Order.merchant).where(is_open).tuples(),
        *PaymentException.select(Order.merchant).join(Order).where(undecided).tuples(),
        *Refund.select(Refund.merchant).where(Refund.status.in_(OPEN), Refund.channel.in_(channels)).tuples(),
    }
    through = _through(channels).alias("through")  # joined, so that only their postings are read
    owners = (
        Entry.select(LedgerAccount.owner)
        .join(through, on=(Entry.posting == through.c.posting_id))
        .switch(Entry)
        .join(LedgerAccount)
        .where(LedgerAccount.kind.in_((AVAILABLE, HELD)))
    )
    # A deposit that was all fee has no entry on an account of its merchant.
    payees = (
        Posting.select(Order.merchant).join(Order).switch(Posting).join(through, on=through.c.posting_id == Posting.id)
    )
    with_money = {*owners.distinct().tuples(), *payees.distinct().tuples()}
    candidates = Merchant.select().where(Merchant.id.in_([each for (each,) in with_orders | with_money]))
    return [each for each in candidates.order_by(Merchant.id) if (each.id,) in with_orders or _net(each.id, channels)]


def _net(merchant_id: int, channels: list[Channel]) -> dict[tuple[str, int], int]:
    """Return by account the net change by sandbox channels and their removal, in fen, for this merchant's orders.

    An order without an entry on a channel's clearing account has only reserved money and returned it. The postings of
    its refunds count as the order's. A manual adjustment counts by its own channel, whatever order it names.
    """
    accounts_of = (LedgerAccount.owner == merchant_id) & LedgerAccount.kind.in_((AVAILABLE, HELD))
    own = [row.id for row in LedgerAccount.select(LedgerAccount.id).where(accounts_of)]
    also = Entry.alias()
    theirs = fn.EXISTS(also.select(also.id).where(also.posting == Posting.id, also.account.in_(own)))
    through = Posting.id.in_(_through(channels))
    own_orders = (through, ~IS_ADJUSTMENT, Order.merchant == merchant_id)
    orders = Posting.select(Posting.order).join(Order).where(*own_orders)
    found: Counter[tuple[str, int]] = Counter()
    for condition in (
        Posting.order.in_(orders) & ~IS_ADJUSTMENT,
        (Posting.order.is_null() | IS_ADJUSTMENT) & theirs & (through | (Posting.purpose == PURPOSE)),
    ):
        rows = (
            Entry.select(LedgerAccount.kind, LedgerAccount.owner, fn.SUM(Entry.amount))
            .join(LedgerAccount)
            .switch(Entry)
            .join(Posting)
            .where(condition)
            .group_by(LedgerAccount.kind, LedgerAccount.owner)
            .tuples()
        )
        found.update({(kind, owner): int(fen) for kind, owner, fen in rows})
    return {account: fen for account, fen in found.items() if fen}


def _through(channels: list[Channel]) -> Any:
    """A query for the postings with an entry on the clearing account of one of these channels."""
    clearing = LedgerAccount.select(LedgerAccount.id).where(
        LedgerAccount.kind == CLEARING, LedgerAccount.owner.in_([channel.id for channel in channels])
    )
    through = Entry.alias()
    return through.select(through.posting).where(through.account.in_([row.id for row in clearing]))


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
    channels = _channels()
    cancelled = _cancel_open_orders(merchant, channels)
    found = _net(merchant.id, channels)
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
        order, purpose = None, PURPOSE
        if not any(lines.get((kind, merchant.id)) for kind in (AVAILABLE, HELD)):
            # Without an entry of the merchant, only an order tells whose removal it was: all was fee.
            of_order = (
                Order.select().join(Posting).where(Posting.id.in_(_through(channels)), Order.merchant == merchant)
            )
            order = of_order.order_by(Order.id.desc()).get()
            purpose = accounts.numbered(order, purpose)
        try:
            accounts.post(purpose, lines, who=WHO, order=order, memo=memo)
        except ApiError:
            raise OperatorError(f"the balance of {merchant.key} has just changed: run the command again") from None
    removal = Removal(merchant.key, {account: fen for account, fen in lines.items() if fen}, cancelled, loss)
    if only_try:
        raise _Tried(removal)
    # This raises the setup version, so that each service reads the merchant again.
    Merchant.update(updatetime=clock.now()).where(Merchant.id == merchant.id).execute()
    after_commit(cache.forget)
    taken = grouped(removal.lines.get((AVAILABLE, merchant.id), 0))
    text = N_("available %(taken)s, orders cancelled %(orders)s, loss %(loss)s")
    detail = text % {"taken": taken, "orders": removal.orders, "loss": grouped(removal.loss)}
    audit.record(audit.HERE, "remove sandbox", "merchant", merchant.key, detail)
    return removal


def _cancel_open_orders(merchant: Merchant, channels: list[Channel]) -> int:
    """Cancel the merchant's open orders and refunds on these channels and return their reserves; close the exceptions.

    Returns: the number of orders.
    """
    own = (Order.merchant == merchant, Order.channel.in_(channels))
    refunds = Refund.select().join(Order).where(*own, Refund.status.in_(OPEN)).order_by(Refund.id)
    for refund in list(refunds):
        settle_refund.cancel(settle_refund.lock(refund), WHO, WHY)
    is_open = Order.order_type.in_(TYPES) & Order.status.in_((PENDING, PAID, CONFIRMED))
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
