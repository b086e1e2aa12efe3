"""Sandbox channels outside demo mode: they accept nothing, and money that one credited cannot be withdrawn.

Anyone with the address of a payment page can have a sandbox channel report a payment. Outside demo mode no money of
a sandbox channel is real, so its postings must be reversed (services/sandbox/removal.py).
"""

from __future__ import annotations

import logging
from collections import Counter
from functools import reduce
from operator import or_
from typing import Any

from peewee import fn

from gateways.base import Driver
from gateways.sandbox.driver import SandboxDriver
from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.ledger import AVAILABLE, CLEARING, HELD, Entry, LedgerAccount, Posting
from models.tables.merchant import Merchant
from models.tables.order import CONFIRMED, PAID, PENDING, SELL, TYPES, Order
from runtime import clock
from runtime.state import current
from services.errors import N_, OperatorError

log = logging.getLogger(__name__)

REMOVED = "sandbox_removal"  # the purpose of a posting that reverses those of sandbox channels
DEMO_ONLY = N_("The sandbox is available in demo mode only. Choose another provider.")
NOT_REAL = N_(
    "The balance of merchant %(key)s includes sandbox money. Run `orders ledger remove-sandbox %(key)s` first."
)
# For merchants, after the text of 40901.
WITHHELD = N_("part of it is test money from a sandbox channel, which the operator must remove first")


class NoSandbox(Driver):
    """Replaces the sandbox driver outside demo mode: it accepts no deposits, payouts, notices or status checks."""

    name = SandboxDriver.name


def is_barred(channel: Channel) -> bool:
    """Return whether this is a sandbox channel outside demo mode."""
    return channel.driver == SandboxDriver.name and not current().settings.demo


def channels() -> list[Channel]:
    """Return the sandbox channels, by id; none in demo mode."""
    if current().settings.demo:
        return []
    return list(Channel.select().where(Channel.driver == SandboxDriver.name).order_by(Channel.id))


def warning() -> str:
    """Return one line that names the sandbox channels with money in the ledger, and the remedy; "" without any."""
    found = channels()
    if not found:
        return ""
    names = ", ".join(f"{channel.id} ({channel.name})" for channel in found)
    keys = ", ".join(row.key for row in with_money())
    money = f". Withdrawals of {keys} are refused until you run `orders ledger remove-sandbox`" if keys else ""
    return f"Sandbox channels work in demo mode only and are disabled: {names}{money}"


@transaction
def disable() -> None:
    """Disable the sandbox channels outside demo mode, and log their names and the remedy."""
    ids = [channel.id for channel in channels() if channel.enabled]
    if ids:
        Channel.update(enabled=False, updatetime=clock.now()).where(Channel.id.in_(ids)).execute()
    if text := warning():
        log.warning(text)


def net(merchant_id: int, ids: list[int]) -> dict[tuple[str, int], int]:
    """Return by account the net change by sandbox channels and their removal, in fen, for this merchant's orders.

    An order without an entry on a channel's clearing account has only reserved money and returned it.

    Args:
        ids: the ids of the sandbox channels.
    """
    own = Entry.alias()
    theirs = fn.EXISTS(own.select(own.id).where(own.posting == Posting.id, own.account.in_(_accounts(merchant_id))))
    through = Posting.id.in_(_through(ids))
    orders = Posting.select(Posting.order).join(Order).where(through, Order.merchant == merchant_id)
    found: Counter[tuple[str, int]] = Counter()
    for condition in (
        Posting.order.in_(orders),
        Posting.order.is_null() & theirs & (through | (Posting.purpose == REMOVED)),
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


def last_order(merchant_id: int, ids: list[int]) -> Order:
    """Return the merchant's newest order with an entry on the clearing account of one of these channels."""
    through = Order.select().join(Posting).where(Posting.id.in_(_through(ids)), Order.merchant == merchant_id)
    return through.order_by(Order.id.desc()).get()


def _accounts(merchant_id: int) -> list[int]:
    own = LedgerAccount.kind.in_((AVAILABLE, HELD)) & (LedgerAccount.owner == merchant_id)
    return [row.id for row in LedgerAccount.select(LedgerAccount.id).where(own)]


def _through(ids: list[int]) -> Any:
    """A query for the postings with an entry on the clearing account of one of these channels."""
    clearing = LedgerAccount.select(LedgerAccount.id).where(
        LedgerAccount.kind == CLEARING, LedgerAccount.owner.in_(ids)
    )
    through = Entry.alias()
    return through.select(through.posting).where(through.account.in_([row.id for row in clearing]))


def _holding(ids: list[int]) -> Any:
    """A query for the merchants with open withdrawals on these channels, by the index of orders by status."""
    every = Order.merchant.in_(Merchant.select(Merchant.id))
    is_open = (Order.order_type == SELL) & Order.status.in_((PENDING, CONFIRMED)) & Order.channel.in_(ids)
    return Order.select(Order.merchant).where(every, is_open)


def has_money(merchant_id: int) -> bool:
    """Return whether the merchant has postings of a sandbox channel outside demo mode that were not reversed.

    One query if there is no sandbox channel. services/merchants/cache.py keeps the result for each merchant.
    """
    ids = [channel.id for channel in channels()]
    if not ids:
        return False
    return bool(net(merchant_id, ids)) or _holding(ids).where(Order.merchant == merchant_id).exists()


def withholds(order: Order) -> bool:
    """Return whether this is a withdrawal of a merchant with such money."""
    return not order.is_buy and has_money(order.merchant_id)


def refuse_payout(order: Order) -> None:
    """Raise OperatorError if this is a withdrawal of a merchant with such money."""
    if withholds(order):
        raise OperatorError(NOT_REAL, key=order.merchant.key)


def with_money() -> list[Merchant]:
    """Return all merchants with such money, by id."""
    ids = [channel.id for channel in channels()]
    if not ids:
        return []
    through = _through(ids).alias("through")  # joined, so that only their postings are read and not all of a merchant's
    owners = (
        Entry.select(LedgerAccount.owner)
        .join(through, on=(Entry.posting == through.c.posting_id))
        .switch(Entry)
        .join(LedgerAccount)
        .where(LedgerAccount.kind.in_((AVAILABLE, HELD)))
        .distinct()
    )
    # A deposit that was all fee has no entry on an account of its merchant.
    payees = (
        Posting.select(Order.merchant).join(Order).switch(Posting).join(through, on=through.c.posting_id == Posting.id)
    )
    found = [Merchant.id.in_(query) for query in (owners, payees.distinct(), _holding(ids))]
    candidates = Merchant.select().where(reduce(or_, found)).order_by(Merchant.id)
    return [merchant for merchant in candidates if has_money(merchant.id)]


def to_clear() -> list[Merchant]:
    """Return all merchants with such money or with open orders of such channels, by id: nothing else ends those."""
    ids = [channel.id for channel in channels()]
    if not ids:
        return []
    every = Order.merchant.in_(Merchant.select(Merchant.id)) & Order.order_type.in_(TYPES)
    is_open = Order.status.in_((PENDING, PAID, CONFIRMED)) & Order.channel.in_(ids)
    with_orders = Merchant.select().where(Merchant.id.in_(Order.select(Order.merchant).where(every, is_open)))
    return sorted({*with_money(), *with_orders}, key=lambda merchant: int(merchant.id))
