"""Insert new orders of any kind. Each is committed with its nonce and its first line of history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from models.db.base import database
from models.db.writer import grouped
from models.queries import order_range
from models.tables.channel import Channel
from models.tables.epay import EpayOrder
from models.tables.order import PENDING, SELL, Order, OrderNote
from runtime import clock
from services.channels import groups
from services.channels.calls import lock_account
from services.channels.order_numbers import keep_apart, new_order_no
from services.errors import ApiError, Code
from services.ledger import fees
from services.merchants.cache import Member
from services.orders import lifecycle
from services.orders.reasons import Why, because
from services.security import replay, vault
from services.security.replay import Call


@dataclass(frozen=True)
class Placed:
    """An order, and whether it was found by a retry."""

    order: Order
    replayed: bool = False


@dataclass(frozen=True)
class Source:
    """Who creates an order, and what they may choose for it.

    Args:
        who: the actor in the order's history and in the ledger.
        order_no: its number; a new one if empty.
        expires_at: Unix time at which an unpaid deposit expires; 0 for that of the setting `buy_expiry`.
        note: what the payment is for, shown to the payer.
        bind: called in the order's transaction, to store what belongs to it.
    """

    who: str = "merchant"
    order_no: str = ""
    expires_at: int = 0
    note: str = ""
    bind: Callable[[Order], None] | None = None


MERCHANT = Source()


@dataclass(frozen=True)
class New:
    """An order to insert: its columns except `seq` and times, and the code of its response, if it is known already.

    `wanted` are the loaded fields of the request, `config` the encrypted config of its channel when the order was
    prepared. `member` is the channel's place in the group that the merchant named, if it named one.
    """

    source: Source
    call: Call
    wanted: dict[str, Any]
    config: str
    columns: dict[str, Any]
    outcome: int | None
    member: Member | None = None


def prepared(
    source: Source,
    call: Call,
    channel: Channel,
    wanted: dict[str, Any],
    quote: fees.Quote,
    *,
    outcome: int | None,
    member: Member | None = None,
    **columns: Any,
) -> New:
    """Return a pending order to insert.

    Args:
        wanted: the loaded fields of the request.
        outcome: the code of the response; None if a channel must be called first.
        member: the channel's place in the group that the merchant named.
        columns: those that only its kind has.
    """
    every = {
        "order_no": source.order_no or new_order_no(),
        "merchant": call.merchant.id,
        "channel": channel.id,
        "order_type": wanted["order_type"],
        "status": PENDING,
        "merchant_order_no": wanted.get("merchant_order_no") or "",
        "payment_method": wanted["paychannel_paymethod"],
        **vars(quote),
        "customer_name": "",
        "account": None,
        "expires_at": None,
        "opens_on_view": False,
        "group": member.row.group_id if member else None,
    }
    return New(source, call, wanted, channel.config, every | columns, outcome, member)


def owner(new: New) -> int:
    """Return the id of an order's merchant."""
    return int(new.call.merchant.id)


def insert_all(placed: list[New]) -> list[Order]:
    """Insert orders with their nonces and first lines of history, in the caller's transaction.

    Raises:
        ApiError: Code.SERVICE_UNAVAILABLE if a channel's config changed since it was read; or a code of `replay`.
        groups.NoRoom: a member of a group cannot take its order.
    """
    configs = {channel: lock_account(channel) for channel in {new.columns["channel"] for new in placed}}
    if any(not vault.same(new.config, configs[new.columns["channel"]]) for new in placed):
        raise ApiError(Code.SERVICE_UNAVAILABLE)
    rows = []
    latest: dict[int, tuple[int, int]] = {}
    database.advisory_lock("numbers", *{new.call.merchant.id for new in placed})
    for new in placed:
        merchant = new.call.merchant.id
        seq, before = latest.get(merchant) or order_range.newest(merchant)
        now = max(clock.now(), before)  # keeps the order of creation if the clock was set back
        latest[merchant] = seq + 1, now
        rows.append({**new.columns, "seq": seq + 1, "createtime": now, "updatetime": now})
    passed_on = [(new.member, row) for new, row in zip(placed, rows, strict=True) if new.member]
    for member, row in sorted(passed_on, key=lambda each: each[0].row.id):  # so that no two hosts wait for each other
        groups.take(member, row["payment_method"], row["amount"], row["createtime"])
    ids = Order.add_all(rows)
    orders = [Order(id=order_id, **row) for order_id, row in zip(ids, rows, strict=True)]
    for order in orders:
        if order.order_type == SELL:
            keep_apart(order)
    signed = [(new.call, order, new.outcome) for new, order in zip(placed, orders, strict=True) if new.call.nonce]
    if signed:
        replay.record(signed)
    lifecycle.begin(orders, [new.source.who for new in placed], because(Why.CREATED))
    for new, order in zip(placed, orders, strict=True):
        if new.source.note:
            OrderNote.add(order=order.id, text=new.source.note)
        if new.source.bind:
            new.source.bind(order)
    return orders


insert = grouped(owner)(insert_all)  # one order, in one commit with others that wait


def placed_before(call: Call) -> Placed | None:
    """Return the order of an earlier request with the same Idempotency-Key, before any other check.

    Raises:
        ApiError: as the first time, or INVALID_NONCE, IDEMPOTENCY_KEY_REUSED, REQUEST_IN_PROGRESS.
    """
    row = replay.earlier(call)
    if row is None:
        return None
    if row.outcome not in (None, 1):
        raise ApiError(row.outcome, {"order_no": row.order.order_no} if row.order else None, replayed=True)
    replay.record([(replace(call, idempotency_key=""), None, None)])  # the key is stored already, this nonce is not
    return Placed(row.order, replayed=True)


def note_of(order: Order) -> str:
    """Return what the payment is for, in the words of an operator or of the shop; empty without a note."""
    if note := OrderNote.of(order):
        return note
    payment = EpayOrder.of_order(order.id)
    return payment.name if payment else ""
