"""Postings that sum to zero, and the balances that they move (in fen)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from peewee import fn

from models.db.base import database
from models.db.hash_chain import Facts
from models.db.writer import transaction
from models.queries import time_bisect
from models.tables.channel import GROUP, Channel
from models.tables.ledger import AVAILABLE, CLEARING, COMMISSION, FEES, HELD, Entry, LedgerAccount, Posting, add_entries
from models.tables.merchant import Merchant
from models.tables.order import Order
from runtime import clock
from services.errors import N_, ApiError, Code, OperatorError
from services.ledger.postings import OPERATOR, Account

REPEATED = 600  # seconds in which a repeated adjustment counts as a form that was sent twice
ADJUSTMENT = "adjustment"  # the purpose of a manual adjustment, with a number if it names its order
IS_ADJUSTMENT = (Posting.purpose == ADJUSTMENT) | Posting.purpose.startswith(f"{ADJUSTMENT} ")


def is_adjustment(posting: Posting) -> bool:
    """Return whether a posting is a manual adjustment; it may name an order, and is no part of the order's money."""
    return posting.purpose.partition(" ")[0] == ADJUSTMENT


def open_accounts(*accounts: Account) -> None:
    """Create the accounts that do not exist yet, with a balance of zero."""
    for kind, owner in accounts:
        LedgerAccount.insert(kind=kind, owner=owner).on_conflict_ignore().execute()


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
        purpose: unique for each order, so that the same money can't move twice.
        lines: fen by account; zeros are dropped and the rest must sum to zero.

    Raises:
        ApiError: Code.INSUFFICIENT_BALANCE, a merchant's account would be overdrawn.
        IntegrityError: the order has this posting already.
    """
    post_each(purpose, [(order, lines, who)], memo=memo, at=at)


@transaction
def post_each(
    purpose: str,
    moves: Sequence[tuple[Order | None, dict[Account, int], str]],
    *,
    memo: str = "",
    at: int | None = None,
) -> None:
    """Write a posting for each of `moves` (order, lines, who), all or none, as `post` writes one."""
    createtime = at or clock.now()
    for _, lines, _ in moves:
        if sum(lines.values()) != 0:
            raise ValueError(f"posting {purpose} does not sum to zero: {lines}")
    same = {"purpose": purpose, "memo": memo, "createtime": createtime}
    ids = Posting.add_all([{**same, "order": order and order.id, "who": who} for order, _, who in moves])
    facts = [
        Facts(posting, order and order.order_no, purpose, who, memo, createtime)
        for posting, (order, _, who) in zip(ids, moves, strict=True)
    ]
    moved = [{account: fen for account, fen in lines.items() if fen} for _, lines, _ in moves]
    if any(moved) and not add_entries(list(zip(moved, facts, strict=True))):
        raise ApiError(Code.INSUFFICIENT_BALANCE)


def numbered(order: Order, purpose: str) -> str:
    """Return a repeatable purpose with the number of its next posting: `hold_again 1`, then `hold_again 2`."""
    earlier = Posting.select().where(Posting.order == order, Posting.purpose.startswith(f"{purpose} ")).count()
    return f"{purpose} {earlier + 1}"


def balances() -> dict[str, dict[str, int]]:
    """Return each merchant's balances: `{merchant key: {"available": fen, "held": fen}}`."""
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


def balances_of(merchant: Merchant) -> dict[str, int]:
    """Return one merchant's balances in fen: `{"available": fen, "held": fen}`."""
    return {kind: LedgerAccount.balance_of(kind, merchant.id) for kind in (AVAILABLE, HELD)}


def moved_by(orders: list[int]) -> dict[int, int]:
    """Return the amounts that these orders added to the balances of their merchants, by order id, in fen.

    Reserving does not change them, and manual adjustments are not counted. Orders that moved nothing are left out.
    """
    moved = (
        Entry.select(Posting.order, fn.SUM(Entry.amount))
        .join(Posting)
        .switch(Entry)
        .join(LedgerAccount)
        .where(Posting.order.in_(orders), ~IS_ADJUSTMENT, LedgerAccount.kind.in_([AVAILABLE, HELD]))
        .group_by(Posting.order)
    )
    return {order: int(fen) for order, fen in moved.tuples() if fen}


def operator_balances() -> dict[str, int]:
    """Return the operator's own balances in fen: fees, commission, and clearing by channel id."""
    rows = LedgerAccount.select().where(LedgerAccount.kind.not_in([AVAILABLE, HELD])).order_by(LedgerAccount.id)
    return {row.kind if row.owner == OPERATOR else f"{row.kind} {row.owner}": row.balance for row in rows}


@transaction
def adjust(
    merchant: Merchant,
    fen: int,
    reason: str,
    *,
    channel: Channel | None = None,
    order: Order | None = None,
    who: str = "operator",
    at: int | None = None,
    once: bool = False,
    newest: int | None = None,
) -> None:
    """Adjust a merchant's available balance manually; a negative amount is deducted.

    The other side is the channel's clearing account if the money went through a channel, otherwise the operator's fees.

    Args:
        order: the merchant's order that it is about.
        once: refuse what the same `who` has just done for the same reason and order.
        newest: the `newest_entry` when the balance was shown; refuse if it was adjusted since then.

    Raises:
        OperatorError: nothing to adjust, no reason, an order of another merchant, an insufficient balance, or a
            repeated adjustment.
    """
    if not fen or not reason.strip():
        raise OperatorError(N_("Enter an amount and a reason for the adjustment."))
    if order is not None:
        check_order(merchant, order)
    database.advisory_lock("adjustments", merchant.id)
    if once and _is_repeated(merchant, fen, reason, order, who):
        said = N_("The same adjustment was just made. To repeat it, say so in the reason.")
        text = f"{merchant.key} was adjusted by this amount for this reason just now. Use --again to repeat it."
        raise OperatorError(text, {"reason": [said]})
    if newest is not None:
        check_newest(merchant, newest)
    other = (CLEARING, channel.id) if channel else (FEES, OPERATOR)
    purpose = numbered(order, ADJUSTMENT) if order else ADJUSTMENT
    try:
        post(purpose, {(AVAILABLE, merchant.id): fen, other: -fen}, who=who, order=order, memo=reason, at=at)
    except ApiError:
        raise _not_covered(merchant) from None


def _is_repeated(merchant: Merchant, fen: int, reason: str, order: Order | None, who: str) -> bool:
    """Return whether `who` has just made this adjustment."""
    since = clock.now() - REPEATED
    account = LedgerAccount.get(LedgerAccount.kind == AVAILABLE, LedgerAccount.owner == merchant.id)
    above, _ = time_bisect.entries_between(since, None)
    before = time_bisect.number_from(account, above + 1) - 1 if above else 0
    mine = (Posting.who == who) & (Posting.memo == reason) & (Entry.amount == fen)
    about = Posting.order == (order and order.id)  # None means that it names no order
    return bool(_adjustments(merchant, before).where(mine, about, Posting.createtime > since).exists())


def check_order(merchant: Merchant, order: Order) -> None:
    """Raise OperatorError if the order that an adjustment names is not the merchant's."""
    if order.merchant_id != merchant.id:
        text = f"order {order.order_no} is not an order of {merchant.key}"
        raise OperatorError(text, {"order_no": [N_("This order is of another merchant.")]})


def _not_covered(merchant: Merchant) -> OperatorError:
    said = N_("The available balance is too low.")
    return OperatorError(f"{merchant.key}: {said}", {"amount": [said]})


def check_cover(merchant: Merchant, fen: int) -> None:
    """Raise OperatorError if the balance does not cover an adjustment of `fen`."""
    if balances_of(merchant)["available"] + fen < 0:
        raise _not_covered(merchant)


def _adjustments(merchant: Merchant, after: int) -> Any:
    """A query for the adjustments of this merchant's balance behind entry `after`."""
    account = LedgerAccount.select(LedgerAccount.id)
    own = account.where(LedgerAccount.kind == AVAILABLE, LedgerAccount.owner == merchant.id)
    return Entry.select(Entry.id).join(Posting).where(Entry.account == own, Entry.number > after, IS_ADJUSTMENT)


def newest_entry(merchant: Merchant) -> int:
    """Return the number of the newest entry of this merchant's available balance; 0 for none."""
    own = (LedgerAccount.kind == AVAILABLE, LedgerAccount.owner == merchant.id)
    return int(LedgerAccount.select(LedgerAccount.entries).where(*own).scalar())


def check_newest(merchant: Merchant, newest: int) -> None:
    """Raise OperatorError if the balance was adjusted after entry `newest`."""
    if not 0 <= newest <= newest_entry(merchant) or _adjustments(merchant, newest).exists():
        raise OperatorError(N_("This balance was adjusted in the meantime. Check that it was not the same adjustment."))


@dataclass(frozen=True)
class Sheet:
    """All balances in fen: `merchants` and `channels` are (row, balance) pairs; a merchant has two balances.

    A negative clearing balance is receivable from the channel.
    """

    merchants: list[tuple[Merchant, int, int]]
    channels: list[tuple[Channel, int]]
    fees: int
    commission: int

    @property
    def available(self) -> int:
        """The sum available to merchants."""
        return sum(fen for _, fen, _ in self.merchants)

    @property
    def held(self) -> int:
        """The sum reserved for open withdrawals and refunds."""
        return sum(fen for _, _, fen in self.merchants)

    @property
    def receivable(self) -> int:
        """The sum receivable from channels."""
        return sum(max(-fen, 0) for _, fen in self.channels)

    @property
    def payable(self) -> int:
        """The sum payable to channels."""
        return sum(max(fen, 0) for _, fen in self.channels)


def sheet() -> Sheet:
    """Return all present balances."""
    rows = LedgerAccount.select(LedgerAccount.kind, LedgerAccount.owner, LedgerAccount.balance).tuples()
    balance = {(kind, owner): fen for kind, owner, fen in rows}
    merchants = Merchant.select(Merchant.id, Merchant.key, Merchant.name).order_by(Merchant.key)
    channels = Channel.select(Channel.id, Channel.name).where(Channel.driver != GROUP).order_by(Channel.id)
    return Sheet(
        [(row, balance.get((AVAILABLE, row.id), 0), balance.get((HELD, row.id), 0)) for row in merchants],
        [(row, balance.get((CLEARING, row.id), 0)) for row in channels],
        balance.get((FEES, OPERATOR), 0),
        balance.get((COMMISSION, OPERATOR), 0),
    )
