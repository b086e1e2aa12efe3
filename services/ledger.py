"""Money: postings that sum to zero, balances, and the proof that they agree (in fen)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from peewee import JOIN, fn

from models.base import database
from models.channel import Channel
from models.ledger import AVAILABLE, CLEARING, FEES, HELD, Entry, LedgerAccount, Posting
from models.merchant import Merchant
from models.order import BUY, CANCELLED, COMPLETED, SELL, Order
from models.writer import transaction
from services.errors import NotPossible, Refused
from services.postings import OPERATOR, Account


def open_accounts(*accounts: Account) -> None:
    """Make the accounts that are not there yet, with nothing in them."""
    rows = [{"kind": kind, "owner": owner} for kind, owner in accounts]
    LedgerAccount.insert_many(rows).on_conflict_ignore().execute()


@transaction
def post(
    purpose: str,
    lines: dict[Account, int],
    *,
    who: str,
    order: Order | None = None,
    memo: str = "",
    at: int | None = None,
) -> None:
    """Write one posting and move the balances.

    Args:
        purpose: unique per order, so that the same money can't move twice.
        lines: fen by account; zeros are dropped and the rest must sum to zero.

    Raises:
        Refused: 40901, a merchant's account would be overdrawn.
        IntegrityError: the order has this posting already.
    """
    if sum(lines.values()) != 0:
        raise ValueError(f"posting {purpose} does not sum to zero: {lines}")
    posting = Posting.add(
        order=order and order.id, purpose=purpose, who=who, memo=memo, createtime=at or int(time.time())
    )
    # In one order everywhere, so that no two writers wait for each other.
    for (kind, owner), fen in sorted(lines.items()):
        if fen:
            account = LedgerAccount.move(kind, owner, fen)
            if account is None:
                raise Refused(40901)
            Entry.add(posting=posting, account=account, amount=fen)


def balances() -> dict[str, dict[str, int]]:
    """Each merchant's balances: `{merchant key: {"available": fen, "held": fen}}`."""
    rows = (
        Merchant.select(Merchant.key, LedgerAccount.kind, LedgerAccount.balance)
        .join(LedgerAccount, on=((LedgerAccount.owner == Merchant.id) & LedgerAccount.kind.in_([AVAILABLE, HELD])))
        .order_by(Merchant.id, LedgerAccount.kind)
        .tuples()
    )
    result: dict[str, dict[str, int]] = {}
    for key, kind, balance in rows:
        result.setdefault(key, {})[kind] = balance
    return result


def operator_balances() -> dict[str, int]:
    """The operator's own balances in fen: fees, commission, and clearing by channel id."""
    rows = LedgerAccount.select().where(LedgerAccount.kind.not_in([AVAILABLE, HELD])).order_by(LedgerAccount.id)
    return {row.kind if row.owner == OPERATOR else f"{row.kind} {row.owner}": row.balance for row in rows}


def adjust(
    merchant: Merchant,
    fen: int,
    reason: str,
    *,
    channel: Channel | None = None,
    who: str = "operator",
    at: int | None = None,
) -> None:
    """Add to (or, where negative, take from) a merchant's available balance by hand.

    The other side is the channel's clearing account where the money went through one, else the operator's fees.

    Raises:
        NotPossible: nothing to adjust, no reason, or the balance does not cover it.
    """
    if not fen or not reason.strip():
        raise NotPossible("an adjustment needs an amount and a reason")
    other = (CLEARING, channel.id) if channel else (FEES, OPERATOR)
    try:
        post("adjustment", {(AVAILABLE, merchant.id): fen, other: -fen}, who=who, memo=reason, at=at)
    except Refused:
        raise NotPossible(f"{merchant.key}'s available balance does not cover that") from None


def _unbalanced_postings() -> Iterator[str]:
    total = fn.SUM(Entry.amount)
    for posting, amount in Entry.select(Entry.posting, total).group_by(Entry.posting).having(total != 0).tuples():
        yield f"posting {posting} sums to {amount} fen, not 0"


def _wrong_balances() -> Iterator[str]:
    total = fn.COALESCE(fn.SUM(Entry.amount), 0)
    rows = (
        LedgerAccount.select(LedgerAccount, total.alias("entries"))
        .join(Entry, JOIN.LEFT_OUTER)
        .group_by(LedgerAccount.id)
        .having(LedgerAccount.balance != total)
    )
    for row in rows:
        yield f"account {row.kind} {row.owner} says {row.balance} fen, its entries say {row.entries}"
    for row in LedgerAccount.select().where(LedgerAccount.kind.in_([AVAILABLE, HELD]), LedgerAccount.balance < 0):
        yield f"account {row.kind} {row.owner} is negative: {row.balance} fen"


def _orphans() -> Iterator[str]:
    rows = (
        Entry.select(Entry.id)
        .join(Posting, JOIN.LEFT_OUTER)
        .switch(Entry)
        .join(LedgerAccount, JOIN.LEFT_OUTER)
        .where(Posting.id.is_null() | LedgerAccount.id.is_null())
        .tuples()
    )
    for (entry,) in rows:
        yield f"entry {entry} has no posting or no account"


# What each posting of an order does to its own merchant's account: purpose, kind, fen.
_everything = Order.merchant_actual_amount + Order.deposit_amount
MOVES = (
    ("credit", AVAILABLE, Order.merchant_actual_amount),
    ("hold", AVAILABLE, 0 - _everything),
    ("hold", HELD, _everything),
    ("spend", HELD, 0 - _everything),
    ("release", HELD, 0 - _everything),
    ("release", AVAILABLE, _everything),
    ("return", AVAILABLE, Order.merchant_actual_amount),
)


def _wrong_moves() -> Iterator[str]:
    for purpose, kind, expected in MOVES:
        moved = fn.COALESCE(fn.SUM(Entry.amount), 0)
        own = (LedgerAccount.kind == kind) & (LedgerAccount.owner == Order.merchant)
        rows = (
            Posting.select(Order.order_no, moved)
            .join(Order)
            .join(LedgerAccount, JOIN.LEFT_OUTER, on=own)
            .join(Entry, JOIN.LEFT_OUTER, on=((Entry.posting == Posting.id) & (Entry.account == LedgerAccount.id)))
            .where(Posting.purpose == purpose)
            .group_by(Posting.id, Order.id)
            .having(moved != expected)
            .tuples()
        )
        for order_no, fen in rows:
            yield f"order {order_no}: its {purpose} moved {fen} fen of its merchant's {kind} balance"


def _orders_off(ending: str, order_type: int, purpose: str, status: str) -> Iterator[str]:
    """Orders where exactly one of 'is in this status' and 'has this posting' is true."""
    has = Posting.id.is_null(False)
    rows = (
        Order.select(Order.order_no, Posting.id.alias("posting_id"))
        .join(Posting, JOIN.LEFT_OUTER, on=((Posting.order == Order.id) & (Posting.purpose == purpose)))
        .where(Order.order_type == order_type, ((Order.status == status) & ~has) | ((Order.status != status) & has))
        .tuples()
    )
    for order_no, posting in rows:
        yield f"order {order_no} {'was' if posting else 'was not'} {ending}, against its status"


def _wrong_holds() -> Iterator[str]:
    total = fn.COALESCE(fn.SUM(Order.merchant_actual_amount + Order.deposit_amount), 0)
    rows = (
        LedgerAccount.select(LedgerAccount, total.alias("open_orders"))
        .join(
            Order,
            JOIN.LEFT_OUTER,
            on=(
                (Order.merchant == LedgerAccount.owner)
                & (Order.order_type == SELL)
                & Order.status.not_in([COMPLETED, CANCELLED])
            ),
        )
        .where(LedgerAccount.kind == HELD)
        .group_by(LedgerAccount.id)
        .having(LedgerAccount.balance != total)
    )
    for row in rows:
        yield f"account held {row.owner} says {row.balance} fen, the open withdrawals say {row.open_orders}"


CHECKS: dict[str, Callable[[], Iterator[str]]] = {
    "every entry has its posting and its account": _orphans,
    "postings sum to zero": _unbalanced_postings,
    "balances equal their entries": _wrong_balances,
    "postings move what their orders say": _wrong_moves,
    "held equals the open withdrawals": _wrong_holds,
    "completed deposits are credited, no others": lambda: _orders_off("credited", BUY, "credit", COMPLETED),
    "completed withdrawals are spent, no others": lambda: _orders_off("spent", SELL, "spend", COMPLETED),
    "cancelled withdrawals are released, no others": lambda: _orders_off("released", SELL, "release", CANCELLED),
}


def verify() -> Iterator[tuple[str, list[str]]]:
    """Recompute everything from the entries: each check's name and what it found to be off."""
    with database.snapshot():
        for name, check in CHECKS.items():
            yield name, list(check())
