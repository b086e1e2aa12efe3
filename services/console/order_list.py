"""Lists of orders: all orders, and withdrawals that need an operator."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

from peewee import Case, fn

from gateways.registry import DRIVERS
from models.queries import keyset, order_range, search, time_bisect
from models.queries.count_buckets import counted
from models.queries.keyset import Key, Line
from models.queries.order_range import EVERY_CELL, Cells, OrderRange
from models.tables.order import (
    BUY,
    COMPLETED,
    CONFIRMED,
    PAID,
    PENDING,
    SELL,
    STATUSES,
    TYPES,
    InternalNote,
    Order,
    PaymentException,
)
from models.tables.order_counts import OrderCount
from models.tables.payout_account import PayoutAccount
from models.tables.payout_batch import FAILED, PayoutBatchLine
from services.console.lists import Browse, add_owners, capped, mark_notes, mark_open_exceptions, merchants
from services.ledger import accounts
from services.orders.next_step import manual_channels
from services.security import masking, second_operator, vault
from services.withdrawals import bank_files

# States of payouts: to approve, to send manually, both, in progress.
APPROVE, SEND, WAITING, UNDER_WAY = "approve", "send", "waiting", "under_way"

AMOUNT = {"amount": Order.amount}  # what a list of open orders sums
MOST = 10_000  # orders of a queue that are read
COUNTED_BY = {"merchant", "type", "since", "until"}  # the filters with which orders are counted without reading them
MOST_SPANS = 10  # merchants whose orders are counted by status in a time range; each costs several queries


class Orders(Browse):
    """Orders, by `merchant`, `channel`, `status`, `type`, `method`, `least`, `most`, `since`, `until`, `note`, `text`.

    `channel` may be a group. `text` is an order's number, or a part of the merchant's own; `note` wants the orders with
    a note of an operator.
    """

    table = Order
    sorted_by = "created"

    @property
    def summed(self) -> dict[str, Any]:  # type: ignore[override]
        """The amounts of completed deposits and of completed withdrawals, as far as the filters want them."""
        types, statuses = self.cells
        names = {BUY: "received", SELL: "paid_out"} if COMPLETED in statuses else {}
        return {
            name: Case(None, [((Order.order_type == kind) & (Order.status == COMPLETED), Order.amount)], 0)
            for kind, name in names.items()
            if kind in types
        }

    @property
    def cells(self) -> Cells:
        """The wanted types and statuses."""
        types = (self.wanted["type"],) if "type" in self.wanted else TYPES
        return types, (self.wanted["status"],) if "status" in self.wanted else STATUSES

    def conditions(self) -> list[Any]:
        """Channel, method, amount, and a part of the merchant's number if its index can't help."""
        text = [Order.merchant_order_no.contains(self.wanted["text"])] if "text" in self.wanted else []
        return [*self._plain_conditions(), *text]

    def _plain_conditions(self) -> list[Any]:
        least = [Order.amount >= self.wanted["least"]] if "least" in self.wanted else []
        most = [Order.amount <= self.wanted["most"]] if "most" in self.wanted else []
        noted = [Order.id.in_(InternalNote.select(InternalNote.order))] if "note" in self.wanted else []
        channel = self.wanted.get("channel")
        of_channel = [(Order.channel == channel) | (Order.group == channel)] if channel else []
        return [*of_channel, *self.equal(method=Order.payment_method), *least, *most, *noted]

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """One line for each merchant, type and status, or for each merchant alone."""
        lows, highs = self._numbers(above, below)
        condition = self.condition()
        parts: list[list[Any]] = [[]]  # one line has all orders of a merchant
        if self.cells != EVERY_CELL:
            parts = [[Order.order_type == kind, Order.status == status] for kind, status in product(*self.cells)]
        return [
            Line(
                table=Order,
                part=[Order.merchant == merchant, *part],
                position=(Order.seq,),
                key=self.columns,
                above=None if lows is None else (lows[merchant] - 1,),
                below=None if highs is None else (highs[merchant],),
                condition=condition,
            )
            for merchant in merchants(self.wanted)
            for part in parts
        ]

    def _numbers(self, above: Key | None, below: Key | None) -> tuple[dict[int, int] | None, dict[int, int] | None]:
        """Return, by merchant, the number of the first wanted order, and of the first one that is too new."""
        above, below = self.in_time(above, below)
        lows = time_bisect.first_from(above[0], above[1] + 1) if above else None
        return lows, time_bisect.first_from(*below) if below else None

    def few(self) -> list[Key] | None:
        """The order with this number, candidates from the index of merchants' numbers, or the orders with a note."""
        text = self.wanted.get("text")
        if not text:
            return self._keys() if "note" in self.wanted else None
        exact = self._keys(Order.order_no == text)
        if exact:
            return exact
        named = search.named(text)
        if named is None:
            return None
        ids, reached = named
        contains = Order.merchant_order_no.contains(text)
        return list({*self._keys(contains, Order.id.in_(ids)), *self._keys(contains, Order.id > reached)})

    def _keys(self, *conditions: Any) -> list[Key]:
        types, statuses = self.cells
        # The sum keeps the database from scanning a merchant's orders instead of fetching the few candidates.
        owner = [Order.merchant + 0 == self.wanted["merchant"]] if "merchant" in self.wanted else []
        cells = [Order.order_type.in_(types), Order.status.in_(statuses)]
        wanted = [*conditions, *cells, *self._plain_conditions(), *owner, *self._times()]
        return list(Order.select(*self.columns).where(*wanted).tuples())

    def _times(self) -> list[Any]:
        """The conditions of the wanted times."""
        return self.within(Order.createtime)

    def total(self) -> int | None:
        """The total by the database's counts, or by the merchants' numbering."""
        if self.condition() is not None:
            return None
        if self.cells == EVERY_CELL and self.wanted.keys() & {"since", "until"}:
            return sum(high - low for low, high in self._ranges().values())
        counts = self.counts()
        return None if counts is None else sum(counts.values())

    def counts(self) -> dict[str, int] | None:
        """Return the number of orders of each wanted status by merchant, type and time; None if that would be slow."""
        types, statuses = self.cells
        if self.wanted.keys() & {"since", "until"}:
            spans = [(merchant, low, high - 1) for merchant, (low, high) in self._ranges().items()]
            if len(spans) > MOST_SPANS:
                return None
            ranges = [OrderRange(*span, order_range.newest(span[0])[0]) for span in spans]
            return {each: sum(counted(span, (types, (each,))) for span in ranges) for each in statuses}
        every = OrderCount.select(OrderCount.status, fn.SUM(OrderCount.count)).group_by(OrderCount.status)
        cells = (OrderCount.order_type.in_(types), OrderCount.status.in_(statuses))
        found = every.where(OrderCount.merchant.in_(merchants(self.wanted)), *cells).tuples()
        return dict.fromkeys(statuses, 0) | {status: int(count) for status, count in found}

    def _ranges(self) -> dict[int, tuple[int, int]]:
        """Return the first number in the wanted time range, and the first one after it, of merchants with orders."""
        lows, highs = self._numbers((0, 0), None)[0] or {}, self._numbers(None, (2**62, 0))[1] or {}
        ends = {merchant: (lows[merchant], highs[merchant]) for merchant in merchants(self.wanted)}
        return {merchant: (low, high) for merchant, (low, high) in ends.items() if low < high}

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with merchant and channel, each with `needs_review`."""
        return mark_notes(mark_open_exceptions(add_owners(super().rows(ids))))

    def exported(self, ids: list[int]) -> list[Any]:
        """The rows, each with `moved`: the amount credited (deposit) or deducted (withdrawal), None if none was."""
        rows, moved = self.rows(ids), accounts.moved_by(ids)
        for row in rows:
            fen = moved.get(row.id)
            row.moved = fen if fen is None or row.is_buy else -fen
        return rows


class CompletedOrders(Orders):
    """Completed orders, the last completed first, also by `completed_since` and `completed_until`."""

    sorted_by = "completed"
    span = ("completed_since", "completed_until")

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns of the index of completed orders."""
        return Order.completedtime, Order.id

    def conditions(self) -> list[Any]:
        """The same, and type and time of creation, which this index can't help with."""
        return [*super().conditions(), *self.equal(type=Order.order_type), *self.within(Order.createtime)]

    def lines(self, above: Key | None, below: Key | None) -> list[Line]:
        """One line for each merchant."""
        if COMPLETED not in self.cells[1]:
            return []
        low, high = self.in_time(above, below)
        done = Order.completedtime.is_null(False)
        return [self.line([Order.merchant == merchant, done], low, high) for merchant in merchants(self.wanted)]

    def key(self, row_id: int) -> Key | None:
        """The key of a completed order."""
        return self.table.select(*self.columns).where(Order.id == row_id, Order.status == COMPLETED).tuples().first()

    def _times(self) -> list[Any]:
        since, until = (self.wanted.get(name) for name in self.span)
        bounds = [] if since is None else [Order.completedtime >= since]
        bounds += [] if until is None else [Order.completedtime <= until]
        return [*super()._times(), *bounds, Order.completedtime.is_null(False)]

    def total(self) -> int | None:
        """None: no count of the database helps."""
        return None


def orders(wanted: dict[str, Any]) -> Orders:
    """Return all orders, in the order that the wanted `sort` and the other filters need."""
    by_completion = "completed" in wanted.get("sort", "") or wanted.keys() & set(CompletedOrders.span)
    return (CompletedOrders if by_completion else Orders)(wanted)


def counts_by_status(wanted: dict[str, Any]) -> dict[str, int]:
    """Return the number of orders of each status, and with the key "" of all; empty if counting them would be slow.

    Args:
        wanted: the filters of `orders`; the status is ignored.
    """
    others = {name: value for name, value in wanted.items() if name not in ("status", "sort")}
    is_slow = isinstance(orders(wanted), CompletedOrders) or not others.keys() <= COUNTED_BY
    counts = None if is_slow else Orders(others).counts()
    return {"": sum(counts.values()), **counts} if counts else {}


def open_exceptions() -> dict[int, list[str]]:
    """Return the kinds of open exceptions by order id."""
    kinds: dict[int, list[str]] = {}
    rows = PaymentException.select().where(PaymentException.resolution.is_null())
    for row in rows.order_by(PaymentException.createtime):
        kinds.setdefault(row.order_id, []).append(row.kind)
    return kinds


class WithExceptions(Orders):
    """Orders with open exceptions, by the filters of `Orders`."""

    def few(self) -> list[Key]:
        """All of them: open exceptions await an operator, so they are few."""
        return self._keys(Order.id.in_(list(open_exceptions())))


class Payouts(Orders):
    """Open withdrawals, by `merchant`, `channel`, `since`, `until`, `state`, `batch` (the number of a bank file).

    `state` is APPROVE for those that an operator must approve, SEND for those to send manually, WAITING for both,
    UNDER_WAY for the others; without it, all.
    """

    summed = AMOUNT

    @property
    def cells(self) -> Cells:
        """Open withdrawals."""
        statuses = {
            APPROVE: (PENDING,),
            SEND: (CONFIRMED,),
            WAITING: (PENDING, CONFIRMED),
            UNDER_WAY: (CONFIRMED, PAID),
        }
        return (SELL,), statuses.get(self.wanted.get("state", ""), (PENDING, CONFIRMED, PAID))

    def _plain_conditions(self) -> list[Any]:
        """The same, the bank file, and the channels of approved withdrawals that wait or do not wait."""
        others, state = super()._plain_conditions(), self.wanted.get("state")
        if "batch" in self.wanted:
            typed = self.wanted["batch"]
            batch = int(typed) if typed.isdecimal() and len(typed) < 10 else 0  # no batch has the number 0
            lines = PayoutBatchLine.select(PayoutBatchLine.order).where(PayoutBatchLine.batch == batch)
            others = [Order.id.in_(lines), *others]
        if state in (None, APPROVE):
            return others
        manual = Order.channel.in_(manual_channels())
        conditions = {
            SEND: manual,
            WAITING: (Order.status == PENDING) | manual,
            UNDER_WAY: (Order.status == PAID) | ~manual,
        }
        return [conditions[state], *others]

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows with their payout accounts, each with `waits`, `is_requested` and `batch`.

        `waits` is the operator's action, APPROVE or SEND, or empty; `is_requested` if it was requested and a second
        operator must approve it; `batch` the number of its open bank file, or None;
        `refused` the line of the bank file whose payout the bank refused, or None.
        """
        rows = super().rows(ids)
        wanted = PayoutAccount.id.in_([row.account_id for row in rows if row.account_id])
        accounts = {account.id: account for account in PayoutAccount.select().where(wanted)}
        lines, requested = bank_files.newest_lines(ids), second_operator.requested(rows)
        for row in rows:
            sends = row.status == CONFIRMED and DRIVERS[row.channel.driver].by_hand
            row.waits = APPROVE if row.status == PENDING else SEND if sends else ""
            row.is_requested = row.id in requested
            row.account = accounts.get(row.account_id)
            line = lines.get(row.id)
            row.batch = line.batch_id if line and line.result is None else None
            row.refused = line if line and line.result == FAILED and row.waits == SEND else None
        return rows


class Claims(Orders):
    """Deposits on manual channels that the payer claims to have paid, by the filters of `Orders` and `amount`."""

    summed = AMOUNT

    @property
    def cells(self) -> Cells:
        """Claimed deposits."""
        return (BUY,), (PAID,)

    def _plain_conditions(self) -> list[Any]:
        """The same, on a manual channel."""
        return [Order.channel.in_(manual_channels()), *self.equal(amount=Order.amount), *super()._plain_conditions()]

    def rows(self, ids: list[int]) -> list[Any]:
        """The rows, each with `payer` and `alike`."""
        return add_payers(super().rows(ids))


def add_payers(deposits: list[Any]) -> list[Any]:
    """Add `payer`, the masked name of the customer, and `alike`, the number of open claims of its amount, to each."""
    claims = (Order.merchant.in_(merchants({})), Order.order_type == BUY, Order.status == PAID)
    amounts = Order.amount.in_({each.amount for each in deposits})
    found = Order.select(Order.amount).where(*claims, Order.channel.in_(manual_channels()), amounts).limit(MOST)
    counts = Counter(fen for (fen,) in found.tuples())
    for each in deposits:
        name = vault.decrypt(each.customer_name) if each.customer_name else ""
        each.payer = masking.masked({"customer_name": name})["customer_name"]
        each.alike = counts[each.amount]
    return deposits


def next_payout(after: str) -> Order | None:
    """Return the oldest withdrawal that an operator must approve or send after this one, or before it, or None."""
    waiting = Payouts({"state": WAITING})
    order = Order.find(after)
    keys = [waiting.key(order.id) if order else None, None]
    for key in dict.fromkeys(keys):
        ids = keyset.page(waiting.lines(key, None), 2, newer=True).ids
        others = [row_id for row_id in ids if order is None or row_id != order.id]
        if others:
            return Order.get_by_id(others[0])
    return None


def payouts_to_approve() -> int:
    """Return the number of withdrawals that an operator must approve, counted up to 100."""
    pending = (OrderCount.order_type == SELL) & (OrderCount.status == PENDING) & OrderCount.merchant.in_(merchants({}))
    counted = int(OrderCount.select(fn.COALESCE(fn.SUM(OrderCount.count), 0)).where(pending).scalar())
    return min(counted, 100)


def _by_hand_waiting(order_type: int, status: str) -> int:
    """Return the number of orders of a type and status on manual channels, counted up to 100."""
    cell = (Order.order_type == order_type) & (Order.status == status) & Order.merchant.in_(merchants({}))
    some = Order.select(Order.channel_id).where(cell).limit(MOST).alias("some")
    return capped(Order.select(some.c.channel_id).from_(some).where(some.c.channel_id.in_(manual_channels())))


def payouts_to_send() -> int:
    """Return the number of withdrawals that an operator must send manually, counted up to 100."""
    return _by_hand_waiting(SELL, CONFIRMED)


def payouts_waiting() -> int:
    """Return the number of withdrawals that need an operator, counted up to 100."""
    pending = payouts_to_approve()
    return pending if pending >= 100 else min(pending + payouts_to_send(), 100)


def claims_waiting() -> int:
    """Return the number of claims on manual channels, counted up to 100."""
    return _by_hand_waiting(BUY, PAID)
